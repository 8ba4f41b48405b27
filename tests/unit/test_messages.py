"""The pages about troubleshooting have every message that does not say itself what to do.

A message of the pages is a message of the code.
"""

import functools
import re
from collections import defaultdict

import pytest

from tests.unit.messages import VARIES, Message, messages
from tests.unit.references import ROOT, texts

pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)

# The page for the messages of a module: the longest name counts.
SECTIONS = {
    "accounting": "Allocations and guests",
    "conf": "nova.conf and the host",
    "extensions": "All services of Nova",
    "extra_specs": "Flavors, images and ports",
    "guest": "Allocations and guests",
    "in_time": "All services of Nova",
    "inventory": "nova.conf and the host",
    "libvirt": "libvirt",
    "libvirt.cputune": "Allocations and guests",
    "model.candidates": "Placement",
    "model.compute": "Allocations and guests",
    "model.cpu_set": "Flavors, images and ports",
    "model.flavor": "Flavors, images and ports",
    "model.inventory": "Placement",
    "nova": "All services of Nova",
    "nova.api": "nova-api",
    "nova.compute": "nova-compute",
    "nova.scheduler": "nova-scheduler",
    "placement": "Placement",
    "tools": "Commands",
    "tools.accounting": "Allocations and guests",
    "tools.host.checks": "Allocations and guests",
    "tools.http": "Placement",
    "tools.libvirt": "libvirt",
    "tools.networking": "nova.conf and the host",
    "tools.nova.port_healing": "Placement",
    "tools.placement": "Placement",
    "tools.reasons.never_served": "Flavors, images and ports",
    "tools.tiers": "Allocations and guests",
    "tools.tiers.flavor_advice": "Flavors, images and ports",
    "tools.tiers.occupancy": "libvirt",
    "tools.tiers.pair": "Flavors, images and ports",
    "tools.writers.networking_sync": "Placement",
    "translators": "Flavors, images and ports",
    "weights": "All services of Nova",
}

PAGES = "docs/admin/troubleshooting"


@functools.cache
def entries() -> dict[str, dict[str, str]]:
    """Return, for each page by its title, the messages with their causes and remedies."""
    pages = {text.partition("\n")[0]: text for text in texts(PAGES).values()}
    return {
        title: dict(re.findall(r"^``(.+)``\n((?:   .*\n|\n(?=   ))*)", text, re.MULTILINE))
        for title, text in pages.items()
    }


def section_of(message: Message) -> str:
    """Return the title of the page to which a message belongs."""
    name = message.module.removeprefix("cpu_tiers.")
    while name and name not in SECTIONS:
        name = name.rpartition(".")[0]
    return SECTIONS[name]


def is_entry(entry: str, text: str) -> bool:
    """Tell whether an entry is a message, or the beginning of a message that ends in ``…``."""
    beginning = entry.removesuffix(VARIES)
    return entry == text or (
        len(beginning) >= 25 and text.startswith(beginning) and entry != beginning
    )


def test_each_page_of_messages_has_a_section_of_the_code() -> None:
    assert entries().keys() - set(SECTIONS.values()) == {"Troubleshooting: warnings and errors"}


def test_a_page_has_every_message_that_does_not_say_the_remedy() -> None:
    wanted = [each for each in messages() if not each.says_the_remedy]
    assert len(wanted) >= 130
    missing = defaultdict(list)
    for each in wanted:
        if not any(is_entry(entry, each.text) for entry in entries()[section_of(each)]):
            missing[section_of(each)].append(f"``{each.text}``  ({each.module}:{each.line})")
    assert not missing, f"add to {PAGES}, with a cause and a remedy: {dict(missing)}"


def test_each_message_of_the_pages_is_in_the_code() -> None:
    by_section = defaultdict(set)
    for each in messages():
        by_section[section_of(each)].add(each.text)
    unknown = [
        entry
        for title, page in entries().items()
        for entry in page
        if not any(is_entry(entry, text) for text in by_section[title])
    ]
    assert unknown == [], f"remove from {PAGES}, or write what the code has"


def test_each_message_of_the_pages_has_a_cause_and_a_remedy() -> None:
    assert [
        entry
        for page in entries().values()
        for entry, text in page.items()
        if len(text.split()) < 5 or not text.rstrip().endswith(".")
    ] == []

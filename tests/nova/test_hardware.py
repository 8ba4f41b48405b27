"""A flavor's CPUs and NUMA nodes, by us and by Nova: the same, or both refuse.

What differs on purpose is listed here, and docs/reference/cpu-differences.rst says why. What Nova
does not know at all (mixed by amounts, the emulator threads key of the spec, a
real-time mask without real-time) is said to it in its own words; then it has
to come to what we came to.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler.utils import ResourceRequest
from nova.virt import hardware

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import GuestCpus, guest_cpus
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.model.flavor import Image
from cpu_tiers.nova.convert import to_image
from cpu_tiers.translators import ServerRequest, translate
from tests.draws import SEED, part
from tests.nova.readings import by_nova, by_us, missing_memory, novas_plain, plain
from tests.nova.servers import HYPERTHREADING, RELEASED_KEY, SPEC_KEY, Case, draw

BATCH = 100
BATCHES = part(1100)  # one of twenty is drawn twice

YES_OR_NO = {"1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"}
CLAIMS = {"dedicated": ("PCPU",), "mixed": ("VCPU", "PCPU"), "shared": ("VCPU",)}


@dataclass(frozen=True)
class Stricter:
    """What we refuse though Nova accepts it.

    :param applies: to which servers.
    :param says: what our error says then.
    """

    applies: Callable[[Case], object]
    says: str


STRICTER = {
    "the matrix of the spec": Stricter(
        lambda c: (
            (c.specs.get("hw:cpu_policy"), c.image.get("hw_cpu_policy")) == ("mixed", "shared")
        ),
        "the image may not ask for another policy",
    ),
    "an empty value is no value": Stricter(
        lambda c: "" in (*c.specs.values(), *c.image.values()), r"''|leaves no CPU"
    ),
    "real-time is yes or no": Stricter(
        lambda c: c.specs.get("hw:cpu_realtime", "no").strip().lower() not in YES_OR_NO,
        "give yes or no",
    ),
    "mixed has a shared vCPU": Stricter(
        lambda c: "mixed" in c.values("hw:cpu_policy") and "hw:cpu_realtime" in c.specs,
        "leave at least one vCPU shared",
    ),
    "mixed has one mask": Stricter(
        lambda c: (
            "hw:cpu_dedicated_mask" in c.specs
            and (c.values("hw:cpu_realtime_mask") or c.values("hw:cpu_realtime"))
        ),
        "both hw:cpu_dedicated_mask and a real-time mask",
    ),
    "a node has CPUs": Stricter(
        lambda c: any(not hardware.parse_cpu_spec(text) for text in c.values("hw:numa_cpus")),
        "leaves no CPU",
    ),
    "nodes and their memory are counted in plain digits, from 1": Stricter(
        lambda c: any(
            not re.fullmatch("[1-9][0-9]*", text)
            for text in (*c.values("hw:numa_mem"), *c.values("hw:numa_nodes"))
        ),
        "whole number from 1",
    ),
    "a page is of whole kB": Stricter(
        lambda c: c.values("hw:mem_page_size"), "give small, large, any, a size in kB"
    ),
    "no amount of 0 beside the policy that claims it": Stricter(
        lambda c: any(
            c.amount(name) == 0
            for policy in c.values("hw:cpu_policy")
            for name in CLAIMS.get(policy, ())
        ),
        "an amount of 0",
    ),
    "amounts and traits are read as Placement would": Stricter(
        lambda c: (
            any(not v.isdecimal() for k, v in c.specs.items() if k.startswith("resources"))
            or c.specs.get(HYPERTHREADING, "required") not in ("required", "forbidden")
        ),
        "give a whole number|give required, forbidden",
    ),
    "a trait is required or forbidden": Stricter(
        lambda c: c.specs.get(HYPERTHREADING) == "forbidden" and HYPERTHREADING in c.image,
        "must agree",
    ),
    "two keys for emulator threads say the same": Stricter(
        lambda c: {RELEASED_KEY, SPEC_KEY} <= c.specs.keys(),
        "remove one|give one of share, isolate",
    ),
}


NOT_READ = "the image's nodes are read where the guest has nodes"
"""What we accept though Nova, which reads an image as a whole, refuses it."""


def in_novas_words(case: Case, ours: GuestCpus | None) -> dict[str, str]:
    """Return extra specs that say to Nova what ours say to us."""
    specs = dict(case.specs)
    threads = specs.pop(SPEC_KEY, None)
    if threads is not None:
        specs.setdefault(RELEASED_KEY, threads)
    if case.amount("PCPU") == 0:  # without VCPU, Nova would claim no CPU at all
        specs = {key: v for key, v in specs.items() if not key.endswith(":PCPU")}
    specs |= missing_memory(case, ours)
    if ours is None or ours.policy != "mixed":
        return specs
    if case.amount("VCPU"):
        specs = {key: v for key, v in specs.items() if not key.startswith("resources")}
        specs["hw:cpu_policy"] = "mixed"
        if not ours.realtime:
            specs["hw:cpu_dedicated_mask"] = str(ours.dedicated)
        elif ours.realtime != ours.dedicated:  # Nova has no words for it
            del specs["hw:cpu_realtime"]
            specs["hw:cpu_dedicated_mask"] = str(ours.dedicated)
    elif "hw:cpu_dedicated_mask" not in specs and not ours.realtime:
        specs["hw:cpu_realtime"] = "yes"
    return specs


def novas_amounts(flavor: Any, image: Any) -> dict[str, int]:
    spec = objects.RequestSpec(
        flavor=flavor,
        image=image,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
        is_bfv=False,
    )
    return cpus_of(ResourceRequest.from_request_spec(spec).merged_resources())


def cpus_of(resources: Mapping[str, int]) -> dict[str, int]:
    return {name: resources[name] for name in ("VCPU", "PCPU") if resources.get(name)}


def check_accepted(case: Case, image: Image, ours: GuestCpus, specs: Mapping[str, str]) -> None:
    """Hold what we accepted against every function of Nova that decides a part of it."""
    flavor, novas_image = case.novas(specs)
    assert guest_cpus(case.flavor, to_image(novas_image)) == ours
    assert hardware.get_emulator_thread_policy_constraint(flavor) == ours.emulator_threads
    if not (case.amount("VCPU") or case.amount("PCPU")):
        assert hardware.get_cpu_policy_constraint(flavor, novas_image) == ours.policy
    assert hardware.get_dedicated_cpu_constraint(flavor) in (None, ours.dedicated)
    if specs.get("hw:cpu_realtime") == case.specs.get("hw:cpu_realtime"):
        realtime = hardware.get_realtime_cpu_constraint(flavor, novas_image)
        assert (realtime or set()) == ours.realtime
    asked = translate(ServerRequest(flavor=case.flavor, image=image)).resources()
    assert cpus_of(asked) == novas_amounts(flavor, novas_image)


def check(case: Case) -> str:
    """Return what both came to, or which difference it is."""
    image = Image(name="i", properties=case.image)
    ours = by_us(case, image)
    specs = in_novas_words(case, None if isinstance(ours, InvalidInput) else ours)
    theirs = by_nova(case, specs)
    if isinstance(ours, InvalidInput):
        if isinstance(theirs, Exception):
            return "refused"
        reasons = [
            name
            for name, one in STRICTER.items()
            if re.search(one.says, str(ours)) and one.applies(case)
        ]
        assert reasons, (str(ours), novas_plain(theirs))
        return reasons[0]
    if isinstance(theirs, Exception):
        if not ours.nodes and any(key.startswith("hw_numa_") for key in case.image):
            return NOT_READ
        raise AssertionError("Nova refuses") from theirs
    assert plain(guest_topology(ours)) == novas_plain(theirs)
    check_accepted(case, image, ours, specs)
    return f"{ours.policy}"


@seed(SEED)
@settings(
    max_examples=BATCHES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.randoms(use_true_random=True))
def hold_against_nova(random: Random) -> None:
    for _ in range(BATCH):
        hold(random)


def hold(random: Random) -> None:
    """Draw a server, and hold it against Nova."""
    one = draw(random)
    try:
        OUTCOMES[check(one)] += 1
    except AssertionError as error:
        error.add_note(repr(one))
        raise


def not_met() -> set[str]:
    """Return the differences that no server has had."""
    return {name for name in (*STRICTER, NOT_READ) if not OUTCOMES[name]}


OUTCOMES: Counter[str] = Counter()


def test_we_agree_with_nova() -> None:
    """Servers drawn at random, 100 to an example, 110,000 in all; many of them make sense."""
    OUTCOMES.clear()
    hold_against_nova()
    assert OUTCOMES.total() >= BATCH * BATCHES
    for policy in ("None", "dedicated", "mixed", "shared"):
        assert OUTCOMES[policy] >= 0.03 * OUTCOMES.total(), OUTCOMES
    assert OUTCOMES["refused"] < 0.6 * OUTCOMES.total(), OUTCOMES
    # With some seeds, the rarest difference is not met so far.
    random = Random(SEED)
    while not_met() and OUTCOMES.total() < 2 * BATCH * BATCHES:
        hold(random)
    assert not_met() == set()

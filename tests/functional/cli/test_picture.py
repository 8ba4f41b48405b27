"""``host show --svg`` and ``--png``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.delivery import Delivery
from cpu_tiers.tools.host.host_show import picture_rows
from cpu_tiers.tools.page.charts import chart, draw_host
from cpu_tiers.tools.tiers.tier import NO_TIER, Tier
from tests.unit.audit.hosts import evidence, guest

Command = Callable[..., Any]

DOMAIN = (
    "<domain><name>{name}</name><vcpu cpuset='0-3'>1</vcpu>"
    "<cputune><shares>{shares}</shares></cputune></domain>"
)


@pytest.fixture
def show(run: Command, save: Command, capabilities: str) -> Command:
    """Run ``host show`` on a host of 64 CPUs with these guests."""

    def show(guests: Mapping[str, int], *options: object, status: int = 0) -> Any:
        texts = [DOMAIN.format(name=name, shares=shares) for name, shares in guests.items()]
        files = [save(text, f"{i}.xml") for i, text in enumerate(texts)]
        domains = ("--domain", *files) if files else ()
        return run(
            *("--config-file", save("", "nova.conf"), "host", "show"),
            *("--capabilities", capabilities, *domains, *options),
            status=status,
        )

    return show


@pytest.mark.parametrize(
    "guests",
    [
        pytest.param({}, id="none"),
        pytest.param({"gold": 100}, id="one"),
        pytest.param({f"instance-{i:08x}": 25 * (1 + i % 4) for i in range(60)}, id="60"),
        pytest.param({"long-" * 40: 100, "$x^{2$": 50, "名前": 7}, id="names"),
    ],
)
def test_pictures(show: Command, tmp_path: Path, guests: Mapping[str, int]) -> None:
    svg, png = tmp_path / "host.svg", tmp_path / "host.png"
    result = show(guests, "--svg", svg, "--png", png, "--hostname", "compute-$1")
    assert etree.fromstring(svg.read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert result.stderr == ""
    again = tmp_path / "again.svg"
    show(guests, "--svg", again, "--hostname", "compute-$1")
    assert again.read_bytes() == svg.read_bytes()  # one host, one file


def test_a_picture_that_cannot_be_written(show: Command) -> None:
    result = show({"gold": 100}, "--svg", "/nowhere/host.svg", status=1)
    assert "/nowhere/host.svg: cannot be written (there is no folder /nowhere)" in result.stderr


GOLD: dict[str, Any] = {"name": "a", "vcpus": 2, "tier": "gold", "entitlement": 1.5, "floor": 1.0}
BRONZE: dict[str, Any] = {
    "name": "b",
    "vcpus": 1,
    "tier": "bronze",
    "entitlement": 0.5,
    "floor": 0.25,
}


def texts(*guests: Mapping[str, Any]) -> list[str]:
    """Return the texts of a picture, which screen readers and searches find."""
    svg = etree.fromstring(draw_host("svg", "compute1", guests))
    return [node.text for node in svg.iter("{*}text", "{*}tspan") if node.text]


def rows(*guests: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(chart("compute1", guests).to_dict()["data"]["values"])


def test_the_bars_and_texts_of_a_picture() -> None:
    assert {
        *("compute1", "CPU of each guest while all vCPUs want to run"),
        *("bar: entitlement; upright mark: floor", "a (2 vCPUs)", "b (1 vCPU)"),
        *("gold (1 guest)", "bronze (1 guest)", "host CPUs"),
    } <= set(texts(GOLD, BRONZE))
    assert [(row["bar"], row["floor"]) for row in rows(GOLD, BRONZE)] == [(1.5, 1.0), (0.5, 0.25)]


def test_a_higher_tier_is_lighter_and_no_tier_is_white() -> None:
    (color,) = (
        layer["encoding"]["color"]["scale"]
        for layer in chart("h", [GOLD, BRONZE, {**GOLD, "tier": NO_TIER}]).to_dict()["layer"]
        if "color" in layer["encoding"]
    )
    assert color["domain"] == ["gold (1 guest)", "bronze (1 guest)", "no tier (1 guest)"]
    assert color["range"] == ["#fde737", "#00224e", "white"]


def test_guests_with_equal_shortened_names_have_a_bar_each() -> None:
    names = [f"{'x' * 40}{middle}{'y' * 40}" for middle in "ab"]
    shown = texts(*({**GOLD, "name": name} for name in names))
    assert shown.count(f"{'x' * 22}…{'y' * 21} (2 vCPUs)") == 2


def test_nothing_is_due_to_an_idle_guest_and_a_short_guest_is_named() -> None:
    idle = {"wanted": 0.02, "due": 0.01, "delivered": 0.02, "short": False}
    short = {"wanted": 1.0, "due": 0.25, "delivered": 0.125, "short": True}
    guests = [{**GOLD, **idle}, {**BRONZE, **short}, {**BRONZE, **dict.fromkeys(short)}]
    assert [(row["bar"], row["wanted"], row["delivered"]) for row in rows(*guests)] == [
        (0.01, 0.02, 0.02),
        (0.25, 1.0, 0.125),
        (0.0, 0.0, 0.0),
    ]
    assert {
        "bar: due; upright mark: floor; dotted frame: wanted; black line: delivered",
        *("got 0.12 of 0.25 due", "not measured", "gold (1 guest)", "bronze (2 guests)"),
    } <= set(texts(*guests))


def test_guests_are_sorted_by_tier_and_only_measured_guests_have_a_delivery() -> None:
    gold, bronze = guest("b", 100, CpuSet({0})), guest("a", 25, CpuSet({0}))
    host = evidence(bronze, gold).host
    tiers = [Tier.parse("gold", "100", 1, where="gold")]
    assert [row["tier"] for row in picture_rows(host, tiers)] == ["gold", "multiplier 25"]
    delivery = Delivery(seconds=10.0, delivered=0.1, kept=0.1, wanted=1.0, due=0.8)
    measured, other = picture_rows(host, tiers, {"b": delivery})
    # 0.7 of 0.8 due CPUs are missing, which is more than a tenth.
    assert (measured["due"], measured["short"], other["due"]) == (0.8, True, None)

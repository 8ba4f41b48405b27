"""The text of a simulation: a verdict, and the policies side by side."""

import io
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from rich.cells import cell_len

from cpu_tiers.tools.cloud.simulation_text import print_simulation
from cpu_tiers.tools.frame.formatting import TextFormatter


def spread(mean: float, least: float | None = None, most: float | None = None) -> dict[str, float]:
    return {"mean": mean, "least": mean if least is None else least, "most": most or mean}


def policy(name: str, **others: Any) -> dict[str, Any]:
    """Return the values of a policy that takes 9,000 of 12,000 servers."""
    return {
        "policy": name,
        "taken": spread(9000),
        "refused": spread(3000, 2900, 3200),
        "refused_core_hours": spread(0.1234),
        "behind_best": spread(0),
        "first_refused": spread(17),
        "empty_hosts": spread(1.25),
        "whole_hosts": spread(0),
        "tiers": {"gold": {"taken": 3, "refused": 1}, "no tier": {"taken": 4, "refused": 0}},
        "floors": {"gold": {"servers": 8, "floor_kept": 6, "least_floor": 0.5}},
        "flavors": {
            f"flavor-{number}": {"taken": number, "refused": 8 - number} for number in range(9)
        },
        "stranded": {"VCPU": {"free": 8, "stranded": 1}, "DISK_GB": {"free": 8, "stranded": 0}},
        **others,
    }


def text_of(
    monkeypatch: pytest.MonkeyPatch,
    *policies: Mapping[str, Any],
    width: int = 80,
    show_all: bool = False,
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    verdict = ["A verdict of many words. " * 5]
    arguments = Namespace(
        print_text=partial(print_simulation, policies=policies, verdict=verdict, show_all=show_all)
    )
    TextFormatter().emit_list((), (), stream, arguments)
    text = stream.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    return text


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_the_five_default_policies_are_side_by_side_at_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("nova", "literal", "boring", "best-fit", "fragmentation")
    text = lines(text_of(monkeypatch, *(policy(name) for name in names)))
    assert text[0].startswith("A verdict")
    assert text.count(" ".join(["mean of the seeds", *names])) == 1
    assert " ".join(["servers taken", *["9,000"] * 5]) in text
    assert " ".join(["least", *["2,900"] * 5]) in text
    assert " ".join(["core-hours refused", *["12.3 %"] * 5]) in text


def test_the_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    text = lines(text_of(monkeypatch, policy("nova")))
    assert text[text.index("Taken, by tier") :] == [
        "Taken, by tier",
        "gold 75.0 %",  # 3 of 4
        "no tier 100 %",
        "Floors kept, by tier",
        "gold 75.0 %",  # 6 of 8
        "Least floor, by tier",
        "gold 0.50",
        "Taken, by flavor",  # flavor-8 is taken always
        "flavor-0 0 %",
        *(f"flavor-{number} {number * 12.5:.1f} %" for number in range(1, 5)),
        "3 more: --all",
        "Stranded at the end",  # no disk is
        "VCPU 12.5 %",
    ]
    assert "flavor-7 87.5 %" in lines(text_of(monkeypatch, policy("nova"), show_all=True))


def test_absent_figures_are_left_out_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"taken": 5, "refused": 0}
    values = policy(
        "nova",
        refused=spread(0),
        refused_core_hours=None,
        first_refused=None,
        tiers={"gold": nothing},
        floors={},
        flavors={"a": nothing},
        stranded={},
    )
    text = lines(text_of(monkeypatch, values))
    assert "core-hours refused -" in text
    assert "first refused request -" in text
    assert "least" not in " ".join(text)
    assert text[-2:] == ["Taken, by tier", "gold 100 %"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_policies_that_do_not_fit_stand_below(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    names = ["boring=2.0,cpu=0,ram=0,disk=0,num_instances=0", "主機" * 20, "nova", "literal"]
    flavors = {"x" * 99: {"taken": 1, "refused": 1}}
    text = text_of(monkeypatch, *(policy(name, flavors=flavors) for name in names), width=width)
    assert text.count("servers taken") > 1
    assert text.count("literal") == 1

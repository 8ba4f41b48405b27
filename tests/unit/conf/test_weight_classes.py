"""Which weighers of nova-scheduler a list of ``weight_classes`` loads, as Nova reads the list."""

from typing import Any

import pytest
from oslo_config import cfg

from cpu_tiers.conf import list_opts
from cpu_tiers.conf.read import NOVAS_OPTIONS
from cpu_tiers.conf.weight_classes import (
    ALL_WEIGHERS,
    OUR_CLASS,
    OURS,
    loaded_weighers,
    notes_on_weighers,
)

RAM = "nova.scheduler.weights.ram.RAMWeigher"
NOVAS = {"ram": 1, "cpu": 1, "disk": 1, "num_instances": 1, "hypervisor_version": 1}


@pytest.fixture
def options() -> Any:
    conf = cfg.ConfigOpts()
    for group, of_group in (*NOVAS_OPTIONS, *list_opts()):
        conf.register_opts(of_group, group=group)
    conf([])
    return conf.filter_scheduler


@pytest.mark.parametrize(
    ("classes", "times", "unknown"),
    [
        pytest.param([ALL_WEIGHERS], NOVAS, (), id="the default: all of Nova, none of ours"),
        pytest.param([ALL_WEIGHERS, OUR_CLASS], {**NOVAS, OURS: 1}, (), id="with ours"),
        pytest.param([RAM], {"ram": 1}, (), id="an explicit list drops the others"),
        pytest.param([ALL_WEIGHERS, RAM], {**NOVAS, "ram": 2}, (), id="named twice counts twice"),
        pytest.param(
            ["cpu_tiers.nova.scheduler.weigher.ResourceProviderWeigher"],
            {OURS: 1},
            (),
            id="ours by the name of its module",
        ),
        pytest.param(
            [RAM, "acme.Rack", "nova.scheduler.weights.pci.PCIWeigher", "acme.Rack"],
            {"ram": 1},
            ("acme.Rack", "nova.scheduler.weights.pci.PCIWeigher"),
            id="what no command knows is named once",
        ),
        pytest.param([], {}, (), id="an empty list loads nothing"),
    ],
)
def test_the_weighers_of_a_list(
    classes: list[str], times: dict[str, int], unknown: tuple[str, ...]
) -> None:
    assert loaded_weighers(classes) == (times, unknown)


def test_multipliers_of_the_loaded_weighers_only(options: Any) -> None:
    weighers = loaded_weighers([ALL_WEIGHERS, RAM])
    assert weighers.multipliers(options, ["ram", "cpu", OURS]) == {"ram": 2.0, "cpu": 1.0}


@pytest.mark.parametrize(
    ("multiplier", "wants_ours", "classes", "said"),
    [
        (0.0, False, [ALL_WEIGHERS], []),
        (100.0, False, [ALL_WEIGHERS, OUR_CLASS], []),
        (100.0, False, [ALL_WEIGHERS], [OUR_CLASS]),
        (0.0, True, [ALL_WEIGHERS], [OUR_CLASS]),
        (100.0, True, ["acme.Rack"], [OUR_CLASS, "acme.Rack"]),
    ],
)
def test_what_an_order_leaves_out(
    options: Any, multiplier: float, wants_ours: bool, classes: list[str], said: list[str]
) -> None:
    conf = options._conf
    conf.set_override("weight_classes", classes, "filter_scheduler")
    conf.set_override(f"{OURS}_weight_multiplier", multiplier, "filter_scheduler")
    notes = notes_on_weighers(options, wants_ours=wants_ours)
    assert len(notes) == len(said)
    assert all(name in note for name, note in zip(said, notes, strict=True))

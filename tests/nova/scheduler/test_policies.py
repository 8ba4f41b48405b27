"""The weights of a simulated policy, compared with Nova's own weighers on drawn hosts."""

import random
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from nova import conf
from nova.scheduler import weights
from nova.scheduler.weights import cpu, disk, num_instances, ram

from cpu_tiers.conf.read import NOVAS_OPTIONS
from cpu_tiers.tools.simulation.policies import WEIGHERS, with_weights

CLASSES = {
    "ram": ram.RAMWeigher,
    "cpu": cpu.CPUWeigher,
    "disk": disk.DiskWeigher,
    "num_instances": num_instances.NumInstancesWeigher,
}


def host(name: str, values: Mapping[str, float]) -> SimpleNamespace:
    """Return a host state with the attributes that Nova's weighers read."""
    return SimpleNamespace(
        host=name,
        nodename=name,
        aggregates=[],
        free_ram_mb=values["ram"],
        vcpus_total=values["cpu"],
        cpu_allocation_ratio=1.0,
        vcpus_used=0,
        free_disk_mb=values["disk"],
        num_instances=values["num_instances"],
    )


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_novas(seed: int) -> None:
    rng = random.Random(seed)
    # Few values, so that hosts are equal in some of them; a free amount may be negative.
    drawn = [
        {
            name: rng.choice([-4, 0, 3, 8, 60]) if name != "num_instances" else rng.randint(0, 3)
            for name in WEIGHERS
        }
        for _ in range(rng.choice([1, 2, 3, 9]))
    ]
    multipliers = {name: rng.choice([0.0, 1.0, -1.5, 2.0]) for name in WEIGHERS}
    expected = [0.0] * len(drawn)
    for name, multiplier in multipliers.items():
        conf.CONF.set_override(f"{name}_weight_multiplier", multiplier, "filter_scheduler")
        hosts = [host(str(number), values) for number, values in enumerate(drawn)]
        weighed = weights.HostWeightHandler().get_weighed_objects([CLASSES[name]()], hosts, None)
        for item in weighed:
            expected[int(item.obj.host)] += item.weight
        conf.CONF.clear_override(f"{name}_weight_multiplier", "filter_scheduler")
    found = [0.0] * len(drawn)
    for name, multiplier in multipliers.items():
        found = with_weights(found, [values[name] for values in drawn], multiplier, weigher=name)
    assert found == pytest.approx(expected)


def test_the_multipliers_without_options_are_novas() -> None:
    defaults = {
        opt.name: opt.default
        for group, opts in NOVAS_OPTIONS
        if group == "filter_scheduler"
        for opt in opts
        if opt.name.endswith("_weight_multiplier")
    }
    assert defaults == {f"{name}_weight_multiplier": value for name, value in WEIGHERS.items()}
    for name, value in defaults.items():
        assert conf.CONF.filter_scheduler[name] == value

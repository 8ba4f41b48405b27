from pathlib import Path

from cpu_tiers.conf.read import inventory_options, read_config
from cpu_tiers.inventory import BUILT_IN, InventoryOptions
from cpu_tiers.inventory.contract import AllocationRatio
from tests.unit.inventory.hosts import GIB_KB, cell, host, options


def test_the_defaults_are_the_values_of_an_empty_nova_conf(tmp_path: Path) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\n")
    assert inventory_options(read_config([str(path)])) == InventoryOptions()


def test_a_ratio_without_an_initial_ratio_is_the_operators() -> None:
    assert not AllocationRatio(value=16.0).is_initial


def test_each_built_in_reporter_names_the_parents_of_the_providers() -> None:
    everything = options(report_vcpu_shares=True, cpu_shared_set=None)
    it = host(cell(0, "0-3", GIB_KB), cell(1, "4-7", GIB_KB))
    for reporter in BUILT_IN.values():
        for provider in reporter(it, everything):
            assert (provider.parent is None) == (provider.name == it.name)
            assert provider.name.startswith(provider.parent or it.name)

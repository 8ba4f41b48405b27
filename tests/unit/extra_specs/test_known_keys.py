"""Misspelt keys, and keys that are none of Nova's."""

import pytest

from cpu_tiers.extra_specs.known_keys import KEYS, misspelt_keys
from cpu_tiers.model.flavor import Flavor


def advice(*keys: str) -> list[str]:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=dict.fromkeys(keys, "1"))
    return [fault.allowed for fault in misspelt_keys(flavor)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("quota:cpu_share_multiplier", "quota:cpu_shares_multiplier"),
        ("quota:cpu_shares_multiplyer", "quota:cpu_shares_multiplier"),
        ("hw:cpu_dedicatd_mask", "hw:cpu_dedicated_mask"),
        ("hw:numa_cpu.1", "hw:numa_cpus.1"),
        ("hw:numa_mems.0", "hw:numa_mem.0"),
        ("hw:cpu_realtime_masks", "hw:cpu_realtime_mask"),
        ("hw:emulator_thread_policy", "hw:emulator_threads_policy"),
        ("os:secureboot", "os:secure_boot"),
    ],
)
def test_the_key_that_was_meant(key: str, meant: str) -> None:
    assert advice(key) == [f"did you mean {meant}?"]


def test_a_key_like_no_other() -> None:
    assert advice("hw:tachyons", "hw:") == ["remove the key", "remove the key"]


@pytest.mark.parametrize(
    "key",
    [
        *("aggregate_instance_extra_specs:cpu_polcy", "capabilities:boot_mode", "hw", "ssd"),
        *("quotas:cpu_shares", "mycloud:cpu_shares_multiplyer", "group_polcy", "resource:VCPU"),
        *("hw:numa_cpus.0", "hw:numa_mem.127", "quota:cpu_shares", "hw:cpu_emulator_threads"),
    ],
)
def test_keys_that_are_left_alone(key: str) -> None:
    assert advice(key) == []


def test_every_known_key_is_known() -> None:
    assert advice(*(key.replace(".N", ".3") for key in KEYS)) == []

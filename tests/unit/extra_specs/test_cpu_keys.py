"""A key that can change the CPUs of a server is read, however it is written."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus, guest_cpus, has_no_cpu_keys
from cpu_tiers.model.flavor import Flavor, Image


def flavor(*keys: str, value: str = "?") -> Flavor:
    specs = dict.fromkeys(keys, value)
    return Flavor(name="f", vcpus=4, memory_mb=1024, extra_specs=specs)


@pytest.mark.parametrize(
    "key",
    [
        "hw:cpu_policy",
        "hw:cpu_thread_policy",
        "hw:emulator_threads_policy",
        "hw:cpu_emulator_threads",
        "hw:cpu_realtime",
        "hw:numa_nodes",
        "hw:mem_page_size",
        "resources:VCPU",
        "resources_A:PCPU",
    ],
)
def test_a_faulty_key_of_a_flavor_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        guest_cpus(flavor(key))


@pytest.mark.parametrize(
    "key",
    ["hw_cpu_policy", "hw_cpu_thread_policy", "hw_numa_nodes", "hw_mem_page_size"],
)
def test_a_faulty_property_of_an_image_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        guest_cpus(flavor(), Image(name="i", properties={key: "?"}))


@pytest.mark.parametrize("key", ["trait:HW_CPU_HYPERTHREADING", "trait7:HW_CPU_HYPERTHREADING"])
def test_the_trait_of_hyperthreads_is_a_thread_policy(key: str) -> None:
    assert not has_no_cpu_keys(flavor(key, value="required"), None)
    with pytest.raises(InvalidInput, match="a thread policy needs dedicated or mixed"):
        guest_cpus(flavor(key, value="required"))


def test_no_vcpu_is_claimed_for_an_amount_of_0() -> None:
    assert guest_cpus(flavor("resources:VCPU", value="0")).counts == CpuCounts(0, 0)


def test_persistent_memory_needs_a_numa_node() -> None:
    (node,) = guest_cpus(flavor("hw:pmem", value="6GB")).nodes
    assert (len(node.cpus), node.memory_mb) == (4, 1024)


def test_keys_without_cpu_meaning_leave_all_cpus_shared() -> None:
    keys = ("quota:cpu_shares_multiplier", "resources2:VGPU", "os:secure_boot", "color")
    image = Image(name="i", properties={"os_type": "linux", "trait:HW_CPU_X86_AVX2": "required"})
    it = flavor(*keys, value="1")
    assert has_no_cpu_keys(it, image)
    assert guest_cpus(it, image) == GuestCpus(counts=CpuCounts(shared=4, dedicated=0))


def test_faults_of_keys_without_cpu_meaning_are_refused_all_the_same() -> None:
    with pytest.raises(InvalidInput, match="resources:CUSTOM_GOLD"):
        guest_cpus(flavor("resources:CUSTOM_GOLD"))

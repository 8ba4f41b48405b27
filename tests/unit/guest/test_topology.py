import pytest

from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.guest.topology import dedicated_cpus, guest_topology, host_cpu_overhead
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import GuestCell, GuestTopology


def topology(**specs: str) -> GuestTopology | None:
    extra_specs = {key.replace("__", ":"): value for key, value in specs.items()}
    flavor = Flavor(name="f", vcpus=8, memory_mb=512, extra_specs=extra_specs)
    return guest_topology(guest_cpus(flavor))


def cell(number: int, cpuset: str, pcpuset: str) -> GuestCell:
    sets = (CpuSet.parse(cpuset, where="here"), CpuSet.parse(pcpuset, where="here"))
    return GuestCell(id=number, cpuset=sets[0], pcpuset=sets[1], memory_mb=256)


def test_the_specs_3_and_5_over_two_nodes() -> None:
    """NUMA node 0: VCPU VCPU PCPU PCPU; NUMA node 1: VCPU PCPU PCPU PCPU."""
    found = topology(hw__numa_nodes="2", resources__VCPU="3", resources__PCPU="5")
    assert found == GuestTopology(
        cells=(cell(0, "0-1", "2-3"), cell(1, "4", "5-7")), cpu_policy="mixed"
    )
    assert dedicated_cpus(found) == "2-3,5-7"
    assert host_cpu_overhead(found) == 0


def test_properties_that_apply_to_all_cells() -> None:
    found = topology(
        hw__cpu_policy="dedicated",
        hw__cpu_thread_policy="isolate",
        hw__emulator_threads_policy="isolate",
        hw__mem_page_size="1GB",
        hw__cpu_realtime="yes",
        hw__cpu_realtime_mask="^0",
    )
    assert found is not None
    assert (found.cpu_policy, found.cpu_thread_policy) == ("dedicated", "isolate")
    assert (found.page_size, str(found.realtime)) == (1048576, "1-7")
    assert host_cpu_overhead(found) == 1
    assert dedicated_cpus(found) == "0-7"


@pytest.mark.parametrize("specs", [{}, {"hw__cpu_policy": "shared"}, {"resources__VCPU": "8"}])
def test_no_topology_where_no_property_requests_a_topology(specs: dict[str, str]) -> None:
    found = topology(**specs)
    assert found is None
    assert dedicated_cpus(found) == ""
    assert host_cpu_overhead(found) == 0


def test_nodes_of_shared_vcpus_have_no_dedicated_vcpus() -> None:
    assert dedicated_cpus(topology(hw__numa_nodes="2")) == ""

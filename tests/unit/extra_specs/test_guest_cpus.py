"""Which vCPU is what: examples of the specs, and what is refused."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus, guest_cpus
from cpu_tiers.model.flavor import Flavor, Image

MIXED = {"hw:cpu_policy": "mixed"}
DEDICATED = {"hw:cpu_policy": "dedicated"}
REALTIME = {"hw:cpu_realtime": "yes"}
TWO_NODES = {  # use-pcpu-vcpu-in-one-instance, "Set dedicated CPU bit-mask"
    "hw:numa_nodes": "2",
    "hw:numa_cpus.0": "0-2",
    "hw:numa_cpus.1": "3-7",
    "hw:numa_mem.0": "1024",
    "hw:numa_mem.1": "2048",
}


def resolved(
    specs: dict[str, str], image: dict[str, str] | None = None, vcpus: int = 8
) -> GuestCpus:
    flavor = Flavor(name="f", vcpus=vcpus, memory_mb=3072, extra_specs=specs)
    return guest_cpus(flavor, None if image is None else Image(name="i", properties=image))


def nodes(guest: GuestCpus) -> list[tuple[str, int]]:
    return [(str(node.cpus), node.memory_mb) for node in guest.nodes]


def test_the_specs_mask_over_two_nodes() -> None:
    guest = resolved(MIXED | TWO_NODES | {"hw:cpu_dedicated_mask": "2,7"})
    assert str(guest.dedicated) == "2,7"
    assert nodes(guest) == [("0-2", 1024), ("3-7", 2048)]
    assert guest.counts == CpuCounts(shared=6, dedicated=2)


@pytest.mark.parametrize(
    ("specs", "dedicated"),
    [
        pytest.param({"hw:numa_nodes": "2"}, "2-3,5-7", id="the spec's: VVPP VPPP"),
        pytest.param({}, "3-7", id="one node: VVVP PPPP"),
        pytest.param({"hw:numa_nodes": "4"}, "1,3,5-7", id="four nodes: VP VP VP PP"),
        pytest.param(TWO_NODES, "2,4-7", id="3 and 5 vCPUs, in turn: VVP VPPPP"),
        pytest.param(
            TWO_NODES | {"hw:numa_cpus.0": "4", "hw:numa_cpus.1": "0-3,5-7"},
            "2-3,5-7",
            id="a full node is passed over: V VVPPPPP",
        ),
    ],
)
def test_amounts_are_dealt_round_robin(specs: dict[str, str], dedicated: str) -> None:
    guest = resolved({"resources:VCPU": "3", "resources:PCPU": "5", **specs})
    assert str(guest.dedicated) == dedicated
    assert (guest.policy, guest.counts) == ("mixed", CpuCounts(shared=3, dedicated=5))


@pytest.mark.parametrize(
    ("specs", "image", "dedicated", "realtime"),
    [
        (DEDICATED, {}, "0-7", ""),
        (MIXED | {"hw:cpu_dedicated_mask": "0-3,7"}, {}, "0-3,7", ""),
        (MIXED | {"hw:cpu_dedicated_mask": "^0-1,^7"}, {}, "2-6", ""),
        (MIXED | REALTIME | {"hw:cpu_realtime_mask": "^0-1"}, {}, "2-7", "2-7"),
        (MIXED | {"hw:cpu_realtime_mask": "^0-1"}, {}, "2-7", ""),
        (MIXED | REALTIME, {"hw_cpu_realtime_mask": "4"}, "4", "4"),
        # The image's mask goes ahead of the flavor's.
        (
            MIXED | REALTIME | {"hw:cpu_realtime_mask": "5"},
            {"hw_cpu_realtime_mask": "4"},
            "4",
            "4",
        ),
        (DEDICATED | REALTIME | {"hw:cpu_realtime_mask": "^0"}, {}, "0-7", "1-7"),
        (DEDICATED | REALTIME | {"hw:emulator_threads_policy": "share"}, {}, "0-7", "0-7"),
        # Without real-time its mask says nothing, not even nonsense.
        (DEDICATED | {"hw:cpu_realtime_mask": "99"}, {}, "0-7", ""),
        (
            {"resources:VCPU": "1", "resources:PCPU": "7", "hw:cpu_realtime_mask": "6-7"}
            | REALTIME,
            {},
            "1-7",
            "6-7",
        ),
        ({}, {}, "", ""),
    ],
)
def test_dedicated_and_realtime(
    specs: dict[str, str], image: dict[str, str], dedicated: str, realtime: str
) -> None:
    guest = resolved(specs, image)
    assert (str(guest.dedicated), str(guest.realtime)) == (dedicated, realtime)


@pytest.mark.parametrize(
    ("specs", "image", "policy"),
    [
        (DEDICATED, {"hw_cpu_thread_policy": "isolate"}, "isolate"),
        (DEDICATED | {"hw:cpu_thread_policy": "prefer"}, {"hw_cpu_thread_policy": "x"}, None),
        (
            DEDICATED | {"hw:cpu_thread_policy": "prefer"},
            {"hw_cpu_thread_policy": "require"},
            "prefer",
        ),
        (DEDICATED | {"trait:HW_CPU_HYPERTHREADING": "forbidden"}, {}, "isolate"),
        (DEDICATED | {"trait1:HW_CPU_HYPERTHREADING": "required"}, {}, "require"),
        (DEDICATED, {"trait:HW_CPU_HYPERTHREADING": "required"}, "require"),
        (
            DEDICATED | {"hw:cpu_thread_policy": "require"},
            {"trait:HW_CPU_HYPERTHREADING": "required"},
            None,
        ),
        (
            DEDICATED | {"hw:cpu_thread_policy": "require"},
            {"hw_cpu_thread_policy": "isolate"},
            None,
        ),
    ],
)
def test_thread_policy(specs: dict[str, str], image: dict[str, str], policy: str | None) -> None:
    """``None`` stands for a refusal."""
    if policy is None:
        with pytest.raises(InvalidInput, match="thread_policy"):
            resolved(specs, image)
    else:
        assert resolved(specs, image).thread_policy == policy


@pytest.mark.parametrize(
    ("flavors", "images", "size"),
    [
        ("small", None, "small"),
        ("2048", None, 2048),
        ("2MB", None, 2048),
        ("1GiB", None, 1048576),
        ("16384Kb", None, 2048),  # bits
        ("any", "small", "small"),
        ("large", "2MiB", 2048),
    ],
)
def test_page_size_makes_a_single_node(flavors: str, images: str | None, size: object) -> None:
    image = {} if images is None else {"hw_mem_page_size": images}
    guest = resolved({"hw:mem_page_size": flavors}, image)
    assert guest.page_size == size
    assert nodes(guest) == [("0-7", 3072)]


def test_nothing_asks_for_nodes() -> None:
    guest = resolved({"hw:numa_cpus.0": "0-7", "hw:cpu_policy": "shared"})
    assert guest.nodes == ()
    assert nodes(resolved({"hw:pmem": "6GB"})) == [("0-7", 3072)]


def test_the_image_may_describe_the_nodes() -> None:
    image = {"hw_numa_cpus.0": "0", "hw_numa_cpus.1": "1-7"}
    image |= {"hw_numa_mem.0": "72", "hw_numa_mem.1": "3000"}
    guest = resolved({"hw:numa_nodes": "2"}, image)
    assert nodes(guest) == [("0", 72), ("1-7", 3000)]


ISOLATE = {"hw:cpu_emulator_threads": "isolate"}


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (MIXED | {"hw:cpu_dedicated_mask": "0-7"}, "leave at least one vCPU shared"),
        (MIXED | {"hw:cpu_dedicated_mask": ""}, "leaves no CPU"),
        (MIXED | {"hw:cpu_dedicated_mask": "7-1"}, "'7-1' .* no range"),
        (MIXED | {"hw:cpu_dedicated_mask": "8"}, "hw:cpu_dedicated_mask: '8', .* vCPUs 0-7"),
        (MIXED | {"hw:cpu_dedicated_mask": "some"}, "'some'"),
        (MIXED | REALTIME, "leave at least one vCPU shared"),
        (MIXED | REALTIME | {"hw:cpu_dedicated_mask": "0"}, "both"),
        (DEDICATED | {"hw:cpu_dedicated_mask": "0"}, "a mask needs hw:cpu_policy mixed"),
        (DEDICATED | REALTIME, "no vCPU is left for emulator threads"),
        (DEDICATED | {"hw:cpu_realtime": "perhaps"}, "give yes or no"),
        (DEDICATED | {"resources:PCPU": "0"}, "the policy dedicated and an amount of 0"),
        ({"resources:PCPU": "7"}, "7 CPUs; the amounts must add up to 8"),
        (ISOLATE | {"resources:PCPU": "8"}, "must add up to 9"),
        (ISOLATE | {"resources:VCPU": "8", "resources:PCPU": "1"}, "one dedicated vCPU"),
        (
            REALTIME | {"resources:VCPU": "1", "resources:PCPU": "7", "hw:cpu_realtime_mask": "0"},
            "real-time vCPUs 0: the dedicated vCPUs are 1-7",
        ),
        (
            {"resources:VCPU": "1", "resources:PCPU": "7", "hw:cpu_dedicated_mask": "0"},
            "amounts of VCPU and PCPU",
        ),
        ({"hw:mem_page_size": "1.5KB"}, "1.5KB"),
        ({"hw:mem_page_size": "0"}, "'0'"),
        ({"hw:mem_page_size": "1" * 10_000}, "give small, large"),
        ({"hw:numa_nodes": "0"}, "from 1"),
        ({"hw:numa_nodes": "3"}, "8 vCPUs and 3072 MiB; nodes of unequal size need"),
        (TWO_NODES | {"hw:numa_nodes": "3"}, "of every node, or of none"),
        (TWO_NODES | {"hw:numa_cpus.1": "3-8"}, "cpus.1: '3-8'; the server has the vCPUs 0-7"),
        (TWO_NODES | {"hw:numa_cpus.1": "2-7"}, "the vCPUs 2 are in another node"),
        (TWO_NODES | {"hw:numa_cpus.1": "4-7"}, "no node has the vCPUs 3"),
        (TWO_NODES | {"hw:numa_mem.1": "2047"}, "3071 MiB in all; .* 3072"),
    ],
)
def test_refused(specs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^flavor f.*{message}"):
        resolved(specs)


def test_every_fault_at_once() -> None:
    specs = {"hw:cpu_thread_policy": "x", "hw:emulator_threads_policy": "y", "hw:numa_nodes": "z"}
    with pytest.raises(InvalidInput) as caught:
        resolved(specs | {"hw:mem_page_size": "w"}, {"hw_cpu_policy": "v"})
    assert len(caught.value.faults) == 5
    with pytest.raises(InvalidInput) as caught:
        resolved(ISOLATE | REALTIME | {"hw:cpu_thread_policy": "isolate"})
    assert len(caught.value.faults) == 3
    lists = {"hw:numa_cpus.0": "a", "hw:numa_cpus.1": "b", "hw:numa_mem.0": "c"}
    with pytest.raises(InvalidInput) as caught:
        resolved(TWO_NODES | lists)
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize("mask", ["0-999999999", ",".join(["0-65535", "1-65535"] * 10_000)])
def test_absurd_masks_cost_nothing(mask: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidInput, match="hw:cpu_dedicated_mask"):
        resolved(MIXED | {"hw:cpu_dedicated_mask": mask})
    assert time.process_time() - start < 1


def test_a_million_vcpus_are_counted_but_not_told_apart() -> None:
    start = time.process_time()
    million = 1_000_000
    assert resolved({}, vcpus=million).counts == CpuCounts(shared=million, dedicated=0)
    with pytest.raises(InvalidInput, match="no host has more than 65536"):
        resolved(DEDICATED, vcpus=million)
    assert time.process_time() - start < 1


FLAVORS: tuple[str, ...] = (
    *("hw:cpu_policy", "hw:cpu_thread_policy", "hw:cpu_dedicated_mask", "hw:cpu_realtime"),
    *("hw:cpu_realtime_mask", "hw:emulator_threads_policy", "hw:cpu_emulator_threads"),
    *("hw:numa_nodes", "hw:numa_cpus.0", "hw:numa_cpus.1", "hw:numa_mem.0", "hw:numa_mem.1"),
    *("hw:mem_page_size", "hw:pmem", "resources:VCPU", "resources:PCPU"),
)
IMAGES = tuple(key.replace(":", "_", 1) for key in FLAVORS)
VALUES = st.text("0123456789-^, KMB.ix²\0", max_size=12) | st.sampled_from(
    ("dedicated", "mixed", "shared", "yes", "isolate", "share", "large")
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(FLAVORS), VALUES, max_size=8),
    st.dictionaries(st.sampled_from(IMAGES), VALUES, max_size=3),
)
def test_whatever_is_written_is_understood_or_refused(
    specs: dict[str, str], image: dict[str, str]
) -> None:
    try:
        guest = resolved(specs, image)
    except InvalidInput as error:
        assert all(f.where.startswith(("flavor f", "image i")) for f in error.faults)  # noqa: PT017
    else:
        assert guest.realtime <= guest.dedicated
        assert guest.counts.dedicated == len(guest.dedicated)

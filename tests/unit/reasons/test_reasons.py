"""The smallest set of constraints that excludes a host, worked out by hand."""

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import SHARING
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason
from cpu_tiers.tools.reasons.reasons import Reasons, hitting_sets
from tests.unit.cloud_model.hosts import host, inventory, query

AVX = frozenset({"HW_CPU_X86_AVX2"})


def reason(providers: list[CloudProvider], *queries: CandidateQuery) -> HostReason:
    return Reasons(SimulatedCloud(providers), queries).of("host")


@pytest.mark.parametrize(
    ("providers", "asked", "lacks"),
    [
        pytest.param(
            # max_unit is the number of CPUs, so one server never gets 192, though 191 are free
            [host(VCPU=Inventory(total=64, max_unit=64, allocation_ratio=3), used={"VCPU": 1})],
            query(VCPU=192),
            {"VCPU": ClaimLimit("VCPU", "max_unit", 64, 192)},
            id="a server that is too big for one claim",
        ),
        pytest.param(
            [host(VCPU=inventory(8, step_size=2), DISK_GB=inventory(9, min_unit=5))],
            query(VCPU=3, DISK_GB=4),
            {
                "VCPU": ClaimLimit("VCPU", "step_size", 2, 3),
                "DISK_GB": ClaimLimit("DISK_GB", "min_unit", 5, 4),
            },
            id="step_size and min_unit",
        ),
        pytest.param(
            [host(PCPU=inventory(4), used={"PCPU": 7})],
            query(PCPU=4),
            {"PCPU": 7},  # 4 - (4 - 7)
            id="a host over its capacity",
        ),
        pytest.param(
            [
                host("host", "COMPUTE_STATUS_DISABLED", VCPU=inventory(8), aggregates=("a",)),
                host("pool", SHARING, DISK_GB=inventory(99), aggregates=("a",)),
            ],
            query(VCPU=1, DISK_GB=9)._replace(
                root_forbidden=frozenset({"COMPUTE_STATUS_DISABLED"})
            ),
            {"!COMPUTE_STATUS_DISABLED": 1},
            id="a disabled host with a pool of disks",
        ),
        pytest.param(
            [
                host("host", VCPU=inventory(8)),
                host("pool", SHARING, DISK_GB=inventory(99), aggregates=("a",)),
            ],
            query(VCPU=1, DISK_GB=9),
            {"DISK_GB": 9},
            id="a pool of other hosts",
        ),
        pytest.param(
            [host(VCPU=inventory(2, max_unit=9), MEMORY_MB=inventory(512))],
            query(*AVX, VCPU=4, MEMORY_MB=256, VGPU=1),
            {"VCPU": 2, "VGPU": 1, "HW_CPU_X86_AVX2": 1},
            id="three constraints, each of which alone excludes the host",
        ),
    ],
)
def test_the_resources_that_a_host_lacks(
    providers: list[CloudProvider], asked: CandidateQuery, lacks: dict[str, object]
) -> None:
    # A flavor that asks for more than a limit is named with the limit, whatever is free.
    assert reason(providers, asked).lacks == lacks


def test_memory_in_pages_of_another_size_does_not_count() -> None:
    pages = "CUSTOM_MEMORY_PAGE_SIZE_1048576"
    providers = [
        host(VCPU=inventory(8)),
        host("small", parent="host", MEMORY_MB=inventory(9000)),
        host("huge", pages, parent="host", MEMORY_MB=inventory(8192), used={"MEMORY_MB": 6144}),
    ]
    group = RequestGroup("_MEM1", {"MEMORY_MB": 4096}, frozenset({pages}))
    asked = CandidateQuery(groups=(RequestGroup(resources={"VCPU": 1}), group))
    found = reason(providers, asked)
    assert found.lacks == {"MEMORY_MB": 2048}  # 8192 - 6144 = 2048 are free of 4096
    assert found.instead == (pages, "NUMA node 0")


def test_amounts_that_only_together_exclude_a_host() -> None:
    providers = [
        host(),
        host("n0", parent="host", VCPU=inventory(8), CUSTOM_CARD=inventory(1)),
        host("n1", parent="host", VCPU=inventory(2, max_unit=8), CUSTOM_CARD=inventory(4)),
    ]
    group = RequestGroup("_1", {"VCPU": 4, "CUSTOM_CARD": 3})
    found = reason(providers, CandidateQuery(groups=(group,)))
    assert found == HostReason({"VCPU": 2}, ("CUSTOM_CARD",))  # on n1; or 2 cards on n0


def test_an_available_amount_is_not_named() -> None:
    providers = [host(VCPU=inventory(8)), host("gpu", parent="host", VGPU=inventory(4))]
    group = RequestGroup("_GPU", {"VGPU": 1}, frozenset({"CUSTOM_FAST"}))
    asked = CandidateQuery(groups=(RequestGroup(resources={"VCPU": 1}), group))
    assert reason(providers, asked) == HostReason({"CUSTOM_FAST": 1})


def test_isolate() -> None:
    providers = [host(VCPU=inventory(8)), host("nic", parent="host", CUSTOM_VF=inventory(8))]
    groups = (RequestGroup("_1", {"CUSTOM_VF": 1}), RequestGroup("_2", {"CUSTOM_VF": 1}))
    asked = CandidateQuery(groups=groups, group_policy="isolate")
    assert reason(providers, asked) == HostReason({"group_policy=isolate": 1})


def test_any_query_is_enough_and_a_host_with_room_lacks_nothing() -> None:
    providers = [host(VCPU=inventory(8))]
    assert reason(providers, query(PCPU=1), query(VCPU=1)) == HostReason({})
    assert reason(providers, query(PCPU=1), query(VCPU=9)).lacks.keys() == {"PCPU"}


def test_hitting_sets_in_the_order_of_size() -> None:
    assert next(hitting_sets([])) == ()
    conflicts = [("a", "b"), ("b", "c"), ("d",)]
    assert next(hitting_sets(conflicts)) == ("b", "d")
    assert len(list(hitting_sets(conflicts))) == 5  # bd, abd, acd, bcd, abcd


@pytest.mark.parametrize(
    ("present", "asked", "is_filled"),
    [
        pytest.param(host(VCPU=inventory(8), used={"VCPU": 8}), query(VCPU=8), True, id="full"),
        pytest.param(host(VCPU=inventory(8), used={"VCPU": 8}), query(VCPU=9), False, id="small"),
        pytest.param(
            # nova-compute reserves a node of Ironic while the node has a server, or is mended.
            host(CUSTOM_IRON=Inventory(total=1, max_unit=1, reserved=1), used={"CUSTOM_IRON": 1}),
            query(CUSTOM_IRON=1),
            False,
            id="a reserved node, whose server no migration moves",
        ),
    ],
)
def test_hosts_that_would_have_room_without_servers(
    present: CloudProvider, asked: CandidateQuery, *, is_filled: bool
) -> None:
    assert Reasons(SimulatedCloud([present]), [asked]).is_filled("host") is is_filled

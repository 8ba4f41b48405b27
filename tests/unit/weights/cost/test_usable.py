"""What servers of a shape could use of a host."""

import pytest

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.typical_servers import ServerShape
from cpu_tiers.weights.cost.usable import Host, PlainServers, UsableAmounts, UsablePart

OF_ANOTHER_HOST = None
DEVICE = RequestGroup(suffix="_1", resources={"VGPU": 1_000})
TWO_DEVICES = ServerShape.from_groups(
    [RequestGroup(resources={"VCPU": 1}), DEVICE, DEVICE._replace(suffix="_2")]
)


def amount(usable: UsableAmounts, shape: ServerShape, name: str, host: Host) -> float:
    """Return how much of a class of a host servers of a shape could use."""
    return UsablePart(usable, shape, {name: 1.0}).amount(usable.providers(host))


def test_two_whole_devices_need_two_idle_devices() -> None:
    shape, usable = TWO_DEVICES, UsableAmounts()
    a, b = usable.number(frozenset(), ("VGPU", 1_000)), usable.number(frozenset(), ())
    cpus = usable.number(frozenset(), ("VCPU", 4))
    assert amount(usable, shape, "VGPU", (cpus, a, b)) == 0
    assert amount(usable, shape, "VGPU", (cpus, a, a)) == 2_000
    assert amount(usable, shape, "VCPU", (cpus, a, a)) == 4
    assert amount(usable, shape, "VGPU", (b, a, a)) == 0  # without CPUs


@pytest.mark.parametrize(
    ("cpus", "devices", "part"),
    [
        pytest.param(8, 2, 0.5, id="2 of 4 devices: 0.5; 8 VCPU: 8 x 2/16 = 1"),
        pytest.param(2, 2, 0.25, id="2 of 4 devices: 0.5; 2 VCPU: 2 x 2/16 = 0.25"),
        pytest.param(1, 2, 0.0, id="too few VCPU for a server"),
        pytest.param(16, 1, 0.25, id="1 of 4 devices: 0.25; 16 VCPU: 16 x 2/16 = 2"),
        pytest.param(16, 0, 0.0, id="no device"),
    ],
)
def test_the_class_that_ends_first_decides(cpus: int, devices: int, part: float) -> None:
    """A server requests 2 VCPU and a device of 1,000 VGPU, of hosts with 16 VCPU and 4 devices.

    The server requests 1/8 of the VCPU and 1/4 of the devices of a host. So VCPU are worth twice
    their amount: 16 VCPU are enough for the servers of two hosts.
    """
    usable = UsableAmounts()
    server = ServerShape.from_groups([RequestGroup(resources={"VCPU": 2}), DEVICE])
    idle = usable.number(frozenset(), ("VGPU", 1_000))
    host = (usable.number(frozenset(), ("VCPU", cpus)), *[idle] * devices)
    factors = {"VCPU": 2 / 16, "VGPU": 1 / 4_000}
    assert UsablePart(usable, server, factors).amount(usable.providers(host)) == part


def test_a_claim_leaves_the_rest_of_a_provider() -> None:
    usable = UsableAmounts()
    device = usable.number(frozenset({"T"}), ("VGPU", "X", 1_000, 1))
    claim = usable.claim({"VGPU": 400})
    left = usable.number(frozenset({"T"}), ("VGPU", "X", 600, 1))
    for _ in range(2):  # worked out, then remembered
        outcomes = usable.outcomes((device, device), (((claim, claim),), (0, OF_ANOTHER_HOST)))
        assert outcomes == [(left, device)]
    without = usable.number(frozenset({"T"}), ("VGPU", "X", 1_000, 0))
    assert usable.after(device, usable.claim({"X": 1, "Y": 1})) == without


def test_equal_claims_are_the_same_object() -> None:
    usable = UsableAmounts()
    claim = usable.claim({"VCPU": 2, "VGPU": 1})
    assert usable.claim({"VCPU": 2, "VGPU": 1}) is claim
    assert usable.claim({"VCPU": 1, "VGPU": 2}) is not claim


def test_more_use_than_capacity_is_no_room() -> None:
    usable = UsableAmounts()
    full, cpus = (
        usable.number(frozenset(), ("VGPU", -500)),
        usable.number(frozenset(), ("VCPU", 4)),
    )
    assert amount(usable, TWO_DEVICES, "VGPU", (cpus, full)) == 0


def test_the_cpus_of_numa_nodes_are_of_no_use_to_a_server_that_avoids_nodes() -> None:
    """The host has 8 VCPU on each of two NUMA nodes, and 4 GiB of disk on its root provider."""
    amounts = {"VCPU": 2, "DISK_GB": 1}
    anywhere = ServerShape.from_groups([RequestGroup(resources=amounts)])
    elsewhere = ServerShape.from_groups(
        [RequestGroup(resources=amounts, forbidden=frozenset({"HW_NUMA_ROOT"}))]
    )
    assert elsewhere.traits == {"HW_NUMA_ROOT"}
    usable = UsableAmounts()
    root = usable.number(frozenset(), ("DISK_GB", 4))
    node = usable.number(frozenset({"HW_NUMA_ROOT"}), ("VCPU", 8))
    flat = usable.number(frozenset(), ("VCPU", "DISK_GB", 8, 4))
    assert amount(usable, anywhere, "VCPU", (root, node, node)) == 16
    assert amount(usable, elsewhere, "VCPU", (root, node, node)) == 0
    assert amount(usable, elsewhere, "VCPU", (flat,)) == 8
    # A part of the CPUs on a provider without the trait: only that part counts.
    assert amount(usable, elsewhere, "VCPU", (flat, node)) == 8


def test_the_outcome_of_each_candidate() -> None:
    usable = UsableAmounts()
    whole = usable.number(frozenset(), ("VGPU", 1_000))
    half = usable.number(frozenset(), ("VGPU", 500))
    claim = usable.claim({"VGPU": 500})
    for _ in range(2):  # worked out, then remembered
        outcomes = usable.outcomes((half, whole), (((claim,), (claim,)), (1, OF_ANOTHER_HOST)))
        assert outcomes == [(half, half), (half, whole)]


def test_amounts_usable_by_servers_of_several_sizes() -> None:
    """Small servers count once, large ones a half."""
    usable = UsableAmounts()
    small = ServerShape.from_groups([RequestGroup(resources={"VCPU": 2})])
    large = ServerShape.from_groups([RequestGroup(resources={"VCPU": 6, "DISK_GB": 1})])
    weights = {small: 1.0, large: 0.5}
    parts = [
        (weight, UsablePart(usable, shape, {"VCPU": 1.0})) for shape, weight in weights.items()
    ]
    servers = PlainServers(frozenset(), parts)
    disk = usable.number(frozenset(), ("DISK_GB", 4))
    eight, four, one = (usable.number(frozenset(), ("VCPU", n)) for n in (8, 4, 1))

    def of(*host: int) -> float:
        return servers.amount(usable.providers(host))

    assert of(disk, eight) == 8 + 0.5 * 8  # room for both
    assert of(disk, eight, four) == 12 + 0.5 * 8  # the large one has no room beside the 4
    assert of(disk, eight, one) == 8 + 0.5 * 8  # neither has room there
    assert of(disk, four) == 4  # only the small one has room
    assert of(eight) == 8  # without a disk
    assert of(disk) == 0
    assert of() == 0


def test_proportions_of_servers_without_groups() -> None:
    """On a host with 8 VCPU and 4 GiB of disk, two servers with as much disk as VCPU count 4 each.

    The server with half as much disk counts 8: a GiB of disk is worth two VCPU.
    """
    usable = UsableAmounts()
    shapes = {
        ServerShape.from_groups([RequestGroup(resources={"VCPU": n, "DISK_GB": d})]): {
            "VCPU": 1.0,
            "DISK_GB": n / d,
        }
        for n, d in ((1, 1), (2, 2), (2, 1))
    }
    parts = [(1.0, UsablePart(usable, shape, factors)) for shape, factors in shapes.items()]
    host = (usable.number(frozenset(), ("VCPU", "DISK_GB", 8, 4)),)
    assert PlainServers(frozenset(), parts).amount(usable.providers(host)) == 4 + 4 + 8

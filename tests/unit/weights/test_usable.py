"""What servers of a shape could use of a host."""

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.shape import ServerShape
from cpu_tiers.weights.usable import UsableAmounts

DEVICE = RequestGroup(suffix="_1", resources={"VGPU": 1_000})
TWO_DEVICES = ServerShape.of(
    [RequestGroup(resources={"VCPU": 1}), DEVICE, DEVICE._replace(suffix="_2")]
)


def test_two_whole_devices_need_two_idle_devices() -> None:
    shape, usable = TWO_DEVICES, UsableAmounts()
    a, b = usable.number(frozenset(), (("VGPU", 1_000),)), usable.number(frozenset(), ())
    cpus = usable.number(frozenset(), (("VCPU", 4),))
    assert usable.of(shape, "VGPU", (cpus, a, b)) == 0
    assert usable.of(shape, "VGPU", (cpus, a, a)) == 2_000
    assert usable.of(shape, "VCPU", (cpus, a, a)) == 4
    assert usable.of(shape, "VGPU", (b, a, a)) == 0  # without CPUs


def test_a_claim_leaves_the_rest_of_a_provider() -> None:
    usable = UsableAmounts()
    device = usable.number(frozenset({"T"}), (("VGPU", 1_000), ("X", 1)))
    after = usable.after(device, {"VGPU": 400})
    assert after == usable.number(frozenset({"T"}), (("VGPU", 600), ("X", 1)))


def test_more_use_than_capacity_is_no_room() -> None:
    usable = UsableAmounts()
    full, cpus = (
        usable.number(frozenset(), (("VGPU", -500),)),
        usable.number(frozenset(), (("VCPU", 4),)),
    )
    assert usable.of(TWO_DEVICES, "VGPU", (cpus, full)) == 0

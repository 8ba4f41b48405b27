"""The hosts that lack least, and the names of what a host lacks."""

from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason, named, nearest

LIMIT = ClaimLimit("VCPU", "max_unit", 64, 192)


def test_the_nearest_hosts_lack_the_fewest_constraints() -> None:
    reasons = {
        "both": HostReason({"VCPU": 1, "CUSTOM_FAST": 1}),
        "far": HostReason({"VCPU": 3}),
        "near": HostReason({"VCPU": 2}),
        "b": HostReason({"CUSTOM_FAST": 1}),
        "a": HostReason({"CUSTOM_FAST": 1}),
        "with room": HostReason({}),
    }
    # By the missing amount, then by the name; a host with room lacks nothing.
    assert [name for name, _ in nearest(reasons)] == ["a", "b", "near", "far"]


def test_limits_of_a_claim_follow_amounts() -> None:
    """No free amount cures a limit; of two limits, the limit nearer to the amount is first."""
    nearer = ClaimLimit("VCPU", "max_unit", 96, 192)  # lacks 1/2 of the amount, and 64 lack 2/3
    reasons = {
        "far": HostReason({"VCPU": LIMIT}),
        "near": HostReason({"VCPU": nearer}),
        "full": HostReason({"VCPU": 1000}),
    }
    assert [name for name, _ in nearest(reasons)] == ["full", "near", "far"]


def test_a_limit_is_named_beside_its_class() -> None:
    assert named("VCPU", 3) == "VCPU"
    assert named("VCPU", LIMIT) == "VCPU max_unit 64"
    assert LIMIT.to_json() == {"class": "VCPU", "limit": "max_unit", "is": 64, "asked": 192}

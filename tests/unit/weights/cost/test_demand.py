"""Typical requests are counted, fade out, and do not fill the memory."""

from cpu_tiers.weights.cost.typical_servers import (
    HALF_LIFE,
    MOST_SHAPES,
    ServerShape,
    TypicalServers,
)


def shape(vcpus: int) -> ServerShape:
    return ServerShape(anywhere=(("VCPU", vcpus),), groups=())


def test_the_most_frequent_shape_comes_first() -> None:
    seen = TypicalServers()
    for vcpus in (1, 2, 2, 2):
        seen.add(shape(vcpus))
    shares = seen.shares()
    assert list(shares) == [shape(2), shape(1)]
    assert round(shares[shape(2)], 2) == 0.75


def test_requests_fade_out() -> None:
    seen = TypicalServers()
    for vcpus in (1, 2):
        for _ in range(HALF_LIFE):
            seen.add(shape(vcpus))
    assert round(seen.shares()[shape(2)], 3) == 0.667  # 2 to 1


def test_rare_shapes_are_dropped() -> None:
    seen = TypicalServers()
    for vcpus in range(1, 2 * MOST_SHAPES + 1):
        seen.add(shape(1))
        seen.add(shape(vcpus + 1))
    assert len(seen.shares()) <= 2 * MOST_SHAPES
    assert next(iter(seen.shares())) == shape(1)

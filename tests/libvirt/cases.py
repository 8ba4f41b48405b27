"""The contests of docs/contributor/measured.rst. CPUs 0 and 1 are enough for every contest."""

from tests.libvirt.contestants import Contest, Contestant
from tests.libvirt.servers import server

MULTIPLIERS = {"gold": 100, "silver": 50, "bronze": 25, "untiered": None}

_ONE, _BOTH = frozenset({0}), frozenset({0, 1})
_NONE: frozenset[int] = frozenset()


def _server(
    name: str,
    *,
    cpus: frozenset[int] = _ONE,
    vcpus: int = 1,
    pinned: frozenset[int] = _NONE,
    asleep: frozenset[int] = _NONE,
    busy_emulator: bool = False,
) -> Contestant:
    """Return a server of the tier that its name begins with."""
    multiplier = MULTIPLIERS[name.split("-")[0]]
    specs = {} if multiplier is None else {"quota:cpu_shares_multiplier": str(multiplier)}
    return Contestant(
        guest=server(name, cpus=cpus, vcpus=vcpus, pinned=pinned, extra_specs=specs),
        asleep=asleep,
        busy_emulator=busy_emulator,
    )


def _weighted(
    name: str,
    weight: int,
    *,
    cpus: frozenset[int],
    vcpus: int = 1,
    pinned: frozenset[int] = _NONE,
) -> Contestant:
    specs = {"quota:cpu_shares": str(weight)}
    return Contestant(guest=server(name, cpus=cpus, vcpus=vcpus, pinned=pinned, extra_specs=specs))


def _tiers(count: int, cpus: frozenset[int]) -> tuple[Contestant, ...]:
    """Return so many Gold servers, twice as many Silver and three times as many Bronze ones."""
    numbers = {"gold": count, "silver": 2 * count, "bronze": 3 * count}
    names = [f"{tier}-{i + 1}" for tier, number in numbers.items() for i in range(number)]
    return tuple(_server(name, cpus=cpus) for name in names)


def _mixed(asleep: frozenset[int]) -> tuple[Contestant, ...]:
    """Return a guest with a vCPU on CPU 0 alone and one on CPU 1, and two that compete there."""
    shared = frozenset({1})
    return (
        _server("gold-mixed", cpus=shared, vcpus=2, pinned=_ONE, asleep=asleep),
        _server("gold", cpus=shared),
        _server("bronze", cpus=shared),
    )


SPEC = Contest(title="the spec's six guests on one CPU", contestants=_tiers(1, _ONE))
PROMISED = {
    "gold-1": 36.4,  # 100 of 275
    "silver-1": 18.2,
    "silver-2": 18.2,
    "bronze-1": 9.1,
    "bronze-2": 9.1,
    "bronze-3": 9.1,
}
"""How many percent of CPU 0 the spec promises to each of the six guests."""

ASLEEP = Contest(
    title="the same, Gold sleeps",
    contestants=(_server("gold-1", asleep=_ONE), *SPEC.contestants[1:]),
)
UNTIERED = Contest(
    title="one guest has no tier",
    contestants=(_server("gold"), _server("silver"), _server("untiered")),
)
VCPUS = Contest(
    title="1 Gold, 2 Silver and 4 Bronze vCPUs in three guests",
    contestants=(_server("gold"), _server("silver", vcpus=2), _server("bronze", vcpus=4)),
)
EMULATOR = Contest(
    title="QEMU itself is busy, of Gold",
    contestants=(_server("gold", busy_emulator=True), _server("silver"), _server("bronze")),
)
SERVICE = Contest(
    title="a service beside all guests",
    contestants=(_server("gold"), _server("bronze")),
    service=_ONE,
)
SPEC_ON_TWO = Contest(title="the spec's six guests on two CPUs", contestants=_tiers(1, _BOTH))
MANY_ON_TWO = Contest(title="twice as many on two CPUs", contestants=_tiers(2, _BOTH))
VCPUS_ON_TWO = Contest(
    title="guests of 2 vCPUs on two CPUs",
    contestants=tuple(_server(tier, cpus=_BOTH, vcpus=2) for tier in ("gold", "silver", "bronze")),
)
WHOLE_CPU = Contest(
    title="Gold has more weight than one vCPU can use, on two CPUs",
    contestants=tuple(_server(name, cpus=_BOTH) for name in ("gold", "bronze-1", "bronze-2")),
)
PINNED = Contest(
    title="Gold is pinned to CPU 0, the others float over two",
    contestants=(
        _server("gold", cpus=_BOTH, pinned=_ONE),
        *(_server(name, cpus=_BOTH) for name in ("silver-1", "silver-2", "bronze")),
    ),
)
MIXED = Contest(title="a mixed guest, and two on its shared CPU", contestants=_mixed(_NONE))
MIXED_ASLEEP = Contest(title="the same, its pinned vCPU sleeps", contestants=_mixed(_ONE))
LIGHT = Contest(
    title="a weight of 6 2/3 counts as 6",
    contestants=(
        _weighted("rival", 6, cpus=frozenset({1})),
        _weighted("light", 10, cpus=frozenset({1}), vcpus=3, pinned=_ONE),
        _weighted("heavy", 600, cpus=_ONE),
    ),
)

CONTESTS = (
    *(SPEC, ASLEEP, UNTIERED, VCPUS, EMULATOR, SERVICE),
    *(SPEC_ON_TWO, MANY_ON_TWO, VCPUS_ON_TWO, WHOLE_CPU, PINNED, MIXED, MIXED_ASLEEP),
)

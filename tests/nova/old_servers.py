"""Servers that a stock Nova has booted, with faults that no flavor of a new server may have."""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from tests import draws
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES
from tests.nova.servers import RELEASED_KEY, SPEC_KEY

NONE: Mapping[str, str] = MappingProxyType({})
SHARED: Mapping[str, int] = MappingProxyType({"VCPU": 2})
HALVES: Mapping[str, int] = MappingProxyType({"VCPU": 1, "PCPU": 1})
PINNED: Mapping[str, int] = MappingProxyType({"PCPU": 2})
DEDICATED = {"hw:cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1"}
TEN = {MULTIPLIER: "10"}
TWO_NODES = {"hw:numa_nodes": "2"}
OF_EACH = {**TWO_NODES, "hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1"}


class Old(NamedTuple):
    """A server of 2 vCPUs and 512 MiB.

    :param specs: the extra specs of the flavor.
    :param image: the properties of the image.
    :param held: what a stock Nova claims for the server, beside 512 MEMORY_MB.
    :param claims: what the server claims in a move, if it differs.
    :param shares: the VCPU_SHARES that the server claims in a move.
    :param weight: the weight of the guest on a host that reports shares.
    :param is_faulty: nova-scheduler warns of the flavor in each move.
    :param memory_mb: what a stock Nova claims of MEMORY_MB.
    """

    name: str
    specs: Mapping[str, str]
    image: Mapping[str, str] = NONE
    held: Mapping[str, int] = SHARED
    claims: Mapping[str, int] | None = None
    shares: int = 0
    weight: str | None = None
    is_faulty: bool = True
    memory_mb: int = 512

    @property
    def before(self) -> dict[str, int]:
        """Return what the server holds before cpu-tiers is switched on."""
        amounts = {**self.held, "MEMORY_MB": self.memory_mb}
        return {name: amount for name, amount in amounts.items() if amount}

    @property
    def reshaped(self) -> dict[str, int]:
        """Return what the server holds once its host reports shares."""
        return {**self.before, **self._shares}

    @property
    def after(self) -> dict[str, int]:
        """Return what the server holds after a move."""
        claims = self.held if self.claims is None else self.claims
        return {**claims, "MEMORY_MB": 512, **self._shares}

    @property
    def _shares(self) -> dict[str, int]:
        return {SHARES: self.shares} if self.shares else {}


OLD_SHARES = (
    # A weight that is out of range, or no number: neither shares nor a weight.
    Old("1024 for each of 16 vCPUs, as of old", {PLAIN: "16384"}),
    Old("no shares", {PLAIN: "0"}),
    Old("20000 shares", {PLAIN: "20000"}),
    Old("6000 x 2 = 12000", {MULTIPLIER: "6000"}),
    Old("0.1 x 2 is rounded to 0", {MULTIPLIER: "0.1"}),
    Old("a multiplier that is a word", {MULTIPLIER: "gold"}),
    Old("a multiplier of 0", {MULTIPLIER: "0"}),
    Old("a multiplier of 40 digits", {MULTIPLIER: "9" * 40}),
    Old("both keys", {PLAIN: "100", **TEN}),
    Old("an image without a page size", TEN, {"hw_mem_page_size": ""}, shares=20, weight="20"),
    Old("a word for real-time", {"hw:cpu_realtime": "perhaps", **TEN}, shares=20, weight="20"),
    # What Nova overlooks, cpu-tiers overlooks in a move.
    Old(
        "empty values",
        {
            "hw:cpu_policy": "",
            "hw:mem_page_size": "",
            "hw:numa_nodes": "",
            RELEASED_KEY: "",
            **TEN,
        },
        shares=20,
        weight="20",
    ),
    Old(
        "malformed groups",
        {
            "resources:": "1",
            "resources:VGPU": "x",
            "trait:CUSTOM_A": "x",
            "trait:CUSTOM_B": "preferred:x",
            "trait_C:CUSTOM_C": "avoided",
            "group_policy": "x",
        }
        | TEN,
        shares=20,
        weight="20",
    ),
    Old("VCPU_SHARES", {"resources:VCPU_SHARES": "50", **TEN}, shares=20, weight="20"),
    Old(
        "CUSTOM_VCPU_SHARES that are no number",
        {f"resources:{SHARES}": "x", **TEN},
        shares=20,
        weight="20",
    ),
    Old(
        "CUSTOM_VCPU_SHARES of 0, which claims none",
        {f"resources:{SHARES}": "0", **TEN},
        weight="20",
        is_faulty=False,
    ),
)
"""Servers without dedicated vCPUs, for hosts that begin to report shares."""

OLD_EMULATOR_THREADS = (
    Old(
        "two policies for emulator threads",
        {**MIXED, SPEC_KEY: "share", RELEASED_KEY: "isolate", **TEN},
        held={"VCPU": 1, "PCPU": 2},  # a PCPU more, by Nova's key
        shares=10,
        weight="20",
    ),
    Old(
        "isolated emulator threads of a shared server",
        {SPEC_KEY: "isolate", **TEN},
        shares=20,
        weight="20",
    ),
    Old(
        "an unknown policy for emulator threads",
        {**MIXED, SPEC_KEY: "nowhere", **TEN},
        held=HALVES,
        shares=10,
        weight="20",
    ),
    Old(
        "isolated emulator threads without a PCPU of their own",
        {SPEC_KEY: "isolate", "resources:PCPU": "2", **TEN},
        held=PINNED,
        weight="20",
    ),
    Old(
        "isolated emulator threads, by a key that Nova did not know",
        {**MIXED, SPEC_KEY: "isolate", **TEN},
        held=HALVES,
        claims={"VCPU": 1, "PCPU": 2},
        shares=10,
        weight="20",
        is_faulty=False,
    ),
    Old(
        "mixed without a shared vCPU",
        {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", RELEASED_KEY: "share", **TEN},
        held=PINNED,
        weight="20",
    ),
)
"""Nova decides about faulty CPUs, and the shares follow: 10 x 2 shared vCPUs, or 10 x 1."""

OLD_POLICIES = (
    Old(
        "flavor mixed, image shared",
        {**MIXED, **TEN},
        {"hw_cpu_policy": "shared"},
        held=HALVES,
        shares=10,
        weight="20",
    ),
    Old(
        "mixed with two masks",
        {**MIXED, "hw:cpu_realtime_mask": "1", **TEN},
        held=HALVES,
        shares=10,
        weight="20",
    ),
    Old(
        "dedicated, and no PCPU",
        {**DEDICATED, "resources:PCPU": "0", **TEN},
        held=PINNED,
        weight="20",
    ),
    Old(
        "VCPU that is no number beside PCPU",
        {"resources:VCPU": "1.5", "resources:PCPU": "2", **TEN},
        held=PINNED,
        weight="20",
    ),
    Old(
        "a mask that is empty, and of real-time vCPUs a mask that is none",
        {**DEDICATED, "hw:cpu_dedicated_mask": "", **TEN}
        | {"hw:cpu_realtime": "perhaps", "hw:cpu_realtime_mask": "^"},
        held=PINNED,
        weight="20",
    ),
)
"""A tuple of its own, since a host has dedicated CPUs for the servers of a single tuple."""

OLD_NODES = (
    Old(
        "no MEMORY_MB beside a node",
        {"hw:numa_nodes": "1", "resources:MEMORY_MB": "0"},
        memory_mb=0,
    ),
    Old(
        "1 VCPU beside nodes of 2",
        {**TWO_NODES, "resources:VCPU": "1", **TEN},
        held={"VCPU": 1},
        claims=SHARED,
        shares=20,
        weight="20",
    ),
    Old(
        "memory with a space",
        {**OF_EACH, "hw:numa_mem.0": " 256", "hw:numa_mem.1": "256", **TEN},
        shares=20,
        weight="20",
    ),
    Old(
        "a node without vCPUs",
        {**OF_EACH, "hw:numa_cpus.0": "0-1", "hw:numa_cpus.1": ""}
        | {"hw:numa_mem.0": "256", "hw:numa_mem.1": "256", **TEN},
        shares=20,
        weight="20",
    ),
    Old(
        "a node without memory",
        {**OF_EACH, "hw:numa_mem.0": "512", "hw:numa_mem.1": "0", **TEN},
        shares=20,
        weight="20",
    ),
    Old("1024 for each of 16 vCPUs, on two nodes", {**TWO_NODES, PLAIN: "16384"}),
    Old(
        "flavor mixed, image shared, on two nodes",
        {**TWO_NODES, **MIXED, **TEN},
        {"hw_cpu_policy": "shared"},
        held=HALVES,
        shares=10,
        weight="20",
    ),
    Old(
        "two policies for emulator threads, on two nodes",
        {**TWO_NODES, **DEDICATED, SPEC_KEY: "share", RELEASED_KEY: "isolate", **TEN},
        held={"PCPU": 3},
        weight="20",
    ),
    Old(
        "dedicated, and no PCPU, on a node",
        {**DEDICATED, "resources:PCPU": "0", **TEN},
        held=PINNED,
        weight="20",
    ),
    Old(
        "VCPU that is no number beside PCPU, on a node",
        {"resources:VCPU": "1.5", "resources:PCPU": "2", **TEN},
        held=PINNED,
        weight="20",
    ),
)
"""Servers with NUMA nodes, for hosts that begin to report theirs."""

GROUPS = (OLD_SHARES, OLD_EMULATOR_THREADS, OLD_POLICIES, OLD_NODES)
OLD_SERVERS = tuple(old for group in GROUPS for old in group)
"""A server for each rule of cpu-tiers that a flavor of a stock Nova can break.

``tests/nova/scheduler/test_old_flavors.py`` looks for rules without a server.
"""


def drawn(group: tuple[Old, ...]) -> list[Old]:
    """Return the servers of a group in this run.

    A server takes up to 15 seconds of CPU time, and the hosts of a group take 24 seconds. So a run
    has two servers of a single group; a run with ``CPU_TIERS_DAYS=1`` has all servers.
    """
    if draws.DAYS == 1:
        return list(group)
    random = Random(draws.SEED)
    turn = random.choice([each for each in GROUPS for _ in each])
    return random.sample(group, 2) if turn is group else []

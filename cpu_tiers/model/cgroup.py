"""What the kernel has of a host's guests: their cgroups and how their threads are scheduled.

Ranges and defaults: https://docs.kernel.org/scheduler/sched-design-CFS.html (v1) and
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu (v2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cpu_tiers.errors import Fault

Version = Literal[1, 2]

DEFAULT_WEIGHT: Mapping[int, int] = {1: 1024, 2: 100}
"""Of a cgroup to which nobody gave one, by cgroup version."""

WEIGHTS: Mapping[int, range] = {1: range(2, 262144 + 1), 2: range(1, 10000 + 1)}
"""What the kernel takes, by cgroup version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCgroup:
    r"""The cgroup of a guest, and its threads.

    :param path: below the root of the hierarchy, such as
        ``/machine.slice/machine-qemu\x2d1\x2dvm.scope``.
    :param weight: ``cpu.shares`` or ``cpu.weight``; ``None`` where it has none.
    :param policies: name of a thread, such as ``CPU 0/KVM``, to the number of its
        scheduling policy (sched(7)).
    """

    path: str
    weight: int | None
    policies: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCgroups:
    """The cgroups of a host, as far as they could be read.

    :param guests: by the uuid of the domain.
    :param above: each cgroup that holds guests, and those beside it, by path.
    :param sched_ext: the BPF scheduler that is loaded, if any.
    :param faults: what could not be read.
    """

    version: Version
    guests: Mapping[str, GuestCgroup]
    above: Mapping[str, int]
    sched_ext: str | None = None
    faults: tuple[Fault, ...] = ()

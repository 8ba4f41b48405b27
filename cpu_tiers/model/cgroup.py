"""The cgroups of the guests of a host, and the scheduling policies of their threads.

Ranges and defaults: https://docs.kernel.org/scheduler/sched-design-CFS.html (v1) and
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu (v2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cpu_tiers.errors import Fault

Version = Literal[1, 2]

DEFAULT_WEIGHT: Mapping[int, int] = {1: 1024, 2: 100}
"""The weight of a cgroup whose weight was never set, by cgroup version."""

WEIGHTS: Mapping[int, range] = {1: range(2, 262144 + 1), 2: range(1, 10000 + 1)}
"""The weights that the kernel accepts, by cgroup version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCgroup:
    r"""The cgroup of a guest, and the threads of the guest.

    :param path: below the root of the hierarchy, such as
        ``/machine.slice/machine-qemu\x2d1\x2dvm.scope``.
    :param weight: ``cpu.shares`` or ``cpu.weight``; ``None`` if the cgroup has no weight.
    :param policies: by the name of a thread, such as ``CPU 0/KVM``, the number of the
        thread's scheduling policy (sched(7)).
    """

    path: str
    weight: int | None
    policies: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCgroups:
    """The cgroups of a host, as far as the kernel's files could be read.

    :param guests: the cgroups of guests, by the uuid of the domain.
    :param above: the weights of the cgroups that contain guests and of their
        siblings, by path.
    :param sched_ext: the name of the BPF scheduler that is loaded, if any.
    :param faults: the files that could not be read.
    """

    version: Version
    guests: Mapping[str, GuestCgroup]
    above: Mapping[str, int]
    sched_ext: str | None = None
    faults: tuple[Fault, ...] = ()

"""The CPU time that vCPUs get beside the own threads of their QEMU processes.

QEMU itself needs CPU time while its guest runs: emulator threads, I/O threads and vhost threads.
These threads are in the cgroup of the guest, and compete with the vCPUs of the guest as one more
vCPU: libvirt gives the cgroup of the emulator the default weight, as each vCPU. The overhead is
the CPU time of these threads, divided by the CPU time of the vCPUs. Pure.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from cpu_tiers.guest.entitlement.contenders import Contender, Slice

EMULATOR = "emulator"
"""The name of the contender that stands for the own threads of QEMU, in the slice of a guest."""

Divide = Callable[[Mapping[str, Contender | Slice]], Mapping[str, Fraction]]
"""From the cgroups of a host to the CPUs of each contender by its path."""


def beside_emulators(
    host: Mapping[str, Contender | Slice], overhead: Fraction, divide: Divide
) -> dict[str, Fraction]:
    """Return what each contender gets while QEMU uses its overhead, by the path of the contender.

    The own threads of other guests count as threads that want to run at any time. The own threads
    of the same guest run for a part of the time only. The result has no :data:`EMULATOR`.

    :param host: a guest is a slice of its vCPUs, and of a contender :data:`EMULATOR`.
    :param divide: returns the floors or the fair shares.
    """
    awake, asleep = divide(host), divide(_with_emulators_asleep(host))
    vcpus = defaultdict[str, list[str]](list)
    for path in asleep:
        vcpus[path.rpartition("/")[0]].append(path)
    got = {}
    for guest, paths in vcpus.items():
        part = _part_awake(guest, paths, awake, asleep, overhead)
        for path in paths:
            got[path] = asleep[path] + part * (awake[path] - asleep[path])
    return got


def _part_awake(
    guest: str,
    vcpus: Collection[str],
    awake: Mapping[str, Fraction],
    asleep: Mapping[str, Fraction],
    overhead: Fraction,
) -> Fraction:
    """Return the part of the time in which the own threads of a guest want to run.

    The threads want to run until they have had the overhead. While they sleep, the vCPUs get
    ``most``. Otherwise the vCPUs get ``least``, and QEMU gets ``own``. In the part *r* of the
    time, QEMU gets r x own, and this is overhead x (most - r x (most - least)).

    :param vcpus: the paths of the vCPUs of the guest.
    """
    own = awake.get(f"{guest}/{EMULATOR}")
    if own is None:  # a service, which has no QEMU
        return Fraction(1)
    most, least = sum(asleep[path] for path in vcpus), sum(awake[path] for path in vcpus)
    return min(Fraction(1), overhead * most / (own + overhead * (most - least)))


def _with_emulators_asleep(
    members: Mapping[str, Contender | Slice],
) -> dict[str, Contender | Slice]:
    """Return the cgroups, with the own threads of QEMU asleep in each guest."""
    return dict(_asleep(members))


def _asleep(
    members: Mapping[str, Contender | Slice],
) -> Iterator[tuple[str, Contender | Slice]]:
    for name, member in members.items():
        if isinstance(member, Contender):
            yield name, member
        else:
            asleep = frozenset({EMULATOR} & member.members.keys())
            below = _with_emulators_asleep(member.members)
            yield name, replace(member, members=below, asleep=asleep)

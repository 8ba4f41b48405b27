"""Which vCPU of a server is dedicated, shared or real-time, and in which node.

The one place that decides: request, guest topology, metadata and domain XML
read it from here. Specs: use-pcpu-vcpu-in-one-instance,
libvirt-emulator-threads-policy; decisions D4 and D5. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.cpu_masks import (
    DEDICATED_MASK,
    REALTIME,
    REALTIME_MASK,
    is_realtime,
    mixed_mask,
    realtime_mask,
)
from cpu_tiers.extra_specs.cpu_policy import AskedPolicy, asked_policy
from cpu_tiers.extra_specs.emulator_threads import KEYS as EMULATOR_KEYS
from cpu_tiers.extra_specs.emulator_threads import emulator_threads_policy
from cpu_tiers.extra_specs.groups import OwnGroups, parse_groups
from cpu_tiers.extra_specs.numa import GuestNode, guest_nodes, node_count
from cpu_tiers.extra_specs.page_size import page_size
from cpu_tiers.extra_specs.round_robin import shared_round_robin
from cpu_tiers.extra_specs.thread_policy import POLICY as THREAD_POLICY
from cpu_tiers.extra_specs.thread_policy import thread_policy
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import VCPU
from cpu_tiers.model.policies import CpuPolicy, EmulatorThreadsPolicy, PageSize, ThreadPolicy

_NO_CPU = CpuSet()


class CpuCounts(NamedTuple):
    """The CPUs of one server, by what they are taken from.

    :param emulator: dedicated host CPUs for emulator threads, 0 or 1.
    """

    shared: int
    dedicated: int
    emulator: int = 0


class GuestCpus(NamedTuple):
    """What flavor and image decide about the CPUs of a guest, and their memory.

    :param counts: what is claimed.
    :param dedicated: the dedicated vCPUs; all others are shared.
    :param realtime: those of the dedicated ones with a real-time scheduler.
    :param nodes: the guest's NUMA nodes; none where it has no topology.
    """

    counts: CpuCounts
    policy: CpuPolicy | None = None
    thread_policy: ThreadPolicy | None = None
    emulator_threads: EmulatorThreadsPolicy | None = None
    dedicated: CpuSet = _NO_CPU
    realtime: CpuSet = _NO_CPU
    nodes: tuple[GuestNode, ...] = ()
    page_size: PageSize | None = None


class _Asked(NamedTuple):
    """What is asked for, each key understood by itself."""

    cpus: AskedPolicy
    thread_policy: ThreadPolicy | None
    emulator_threads: EmulatorThreadsPolicy | None
    realtime: bool
    nodes: int | None
    page_size: PageSize | None


def guest_cpus(
    flavor: Flavor, image: Image | None = None, own: OwnGroups | None = None
) -> GuestCpus:
    """Return what flavor and image decide about a guest.

    :param own: the flavor's own groups, where they have been read already.
    :raises InvalidInput: with the faults of all keys; or, where each makes
        sense by itself, of those that do not fit together.
    """
    own = parse_groups(flavor) if own is None else own
    asked = _asked(flavor, image, own)
    _check_policies(flavor, asked)
    decided = GuestCpus(
        counts=CpuCounts(shared=0 if own.amount(VCPU) == 0 else flavor.vcpus, dedicated=0),
        policy=asked.cpus.policy,
        thread_policy=asked.thread_policy,
        emulator_threads=asked.emulator_threads,
        page_size=asked.page_size,
    )
    pinned = decided.policy in ("dedicated", "mixed")
    if not (pinned or asked.nodes or asked.page_size or _has_persistent_memory(flavor)):
        return decided
    every = _every(flavor)
    nodes = guest_nodes(flavor, image, asked.nodes or 1, every)
    if not pinned:
        return decided._replace(nodes=nodes)
    dedicated = _dedicated(flavor, image, asked, nodes, every)
    return decided._replace(
        counts=CpuCounts(
            shared=flavor.vcpus - len(dedicated),
            dedicated=len(dedicated),
            emulator=int(asked.emulator_threads == "isolate"),
        ),
        dedicated=dedicated,
        realtime=_realtime(flavor, image, asked, dedicated, every),
        nodes=nodes,
    )


def _asked(flavor: Flavor, image: Image | None, own: OwnGroups) -> _Asked:
    faults = FaultList()
    emulator_threads = None
    with faults:
        emulator_threads = emulator_threads_policy(flavor)
    with faults:
        cpus = asked_policy(flavor, image, own, int(emulator_threads == "isolate"))
    with faults:
        threads = thread_policy(flavor, image, own)
    with faults:
        realtime = is_realtime(flavor)
    with faults:
        nodes = node_count(flavor, image)
    with faults:
        pages = page_size(flavor, image)
    faults.raise_if_any()
    return _Asked(cpus, threads, emulator_threads, realtime, nodes, pages)


def _check_policies(flavor: Flavor, asked: _Asked) -> None:
    """Refuse what needs dedicated vCPUs where there are none, and a mask that says nothing."""
    policy = asked.cpus.policy
    faults = FaultList()
    if policy in (None, "shared"):
        given, pinned = f"the CPU policy {policy or 'is not set'}", "dedicated or mixed"
        if asked.thread_policy:
            where = f"flavor {flavor.name}, {THREAD_POLICY} {asked.thread_policy}"
            faults.add(where, given, f"a thread policy needs {pinned}")
        if asked.emulator_threads == "isolate":
            where = f"flavor {flavor.name}, {' or '.join(EMULATOR_KEYS)} isolate"
            faults.add(where, given, f"isolated emulator threads need {pinned}")
        if asked.realtime:
            faults.add(flavor.spec(REALTIME), given, f"real-time vCPUs need {pinned}")
    if DEDICATED_MASK in flavor.extra_specs and (policy != "mixed" or asked.cpus.shared):
        other = "amounts of VCPU and PCPU" if asked.cpus.shared else f"the CPU policy {policy}"
        given = f"{flavor.extra_specs[DEDICATED_MASK]!r} and {other}"
        faults.add(flavor.spec(DEDICATED_MASK), given, "a mask needs hw:cpu_policy mixed")
    faults.raise_if_any()


def _has_persistent_memory(flavor: Flavor) -> bool:
    return any(label.strip() for label in flavor.extra_specs.get("hw:pmem", "").split(","))


def _every(flavor: Flavor) -> CpuSet:
    if flavor.vcpus > MAX_CPU + 1:
        raise InvalidInput.of(
            f"flavor {flavor.name}, vcpus",
            f"{flavor.vcpus}, with NUMA nodes or dedicated vCPUs",
            f"no host has more than {MAX_CPU + 1}",
        )
    return CpuSet(range(flavor.vcpus))


def _dedicated(
    flavor: Flavor,
    image: Image | None,
    asked: _Asked,
    nodes: tuple[GuestNode, ...],
    every: CpuSet,
) -> CpuSet:
    if asked.cpus.policy == "dedicated":
        return every
    if asked.cpus.shared:
        return CpuSet(every - shared_round_robin(nodes, asked.cpus.shared))
    return mixed_mask(flavor, image, every, realtime=asked.realtime)


def _realtime(
    flavor: Flavor, image: Image | None, asked: _Asked, dedicated: CpuSet, every: CpuSet
) -> CpuSet:
    """Return the real-time vCPUs, all of them dedicated."""
    if not asked.realtime:
        return _NO_CPU
    realtime = realtime_mask(flavor, image, every)
    if not realtime <= dedicated:
        raise InvalidInput.of(
            f"flavor {flavor.name}, real-time vCPUs {realtime}",
            f"the dedicated ones are {dedicated}",
            "a real-time vCPU is dedicated",
        )
    if realtime == every and asked.emulator_threads is None:
        raise InvalidInput.of(
            f"flavor {flavor.name}, {REALTIME} of all vCPUs",
            "none is left for emulator threads",
            f"leave one out of {REALTIME_MASK}, or set {EMULATOR_KEYS[0]}",
        )
    return realtime

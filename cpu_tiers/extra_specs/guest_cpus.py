"""Decides which vCPUs of a server are dedicated, shared or real-time, and their NUMA nodes.

No other module decides this: the request to Placement, the guest topology, the
metadata and the domain XML are made from the result of :func:`guest_cpus`. Specs:
use-pcpu-vcpu-in-one-instance, libvirt-emulator-threads-policy; decisions D4 and
D5. Pure.
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
from cpu_tiers.extra_specs.cpu_policy import RequestedPolicy, requested_policy
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
    """The numbers of shared and dedicated vCPUs of a server.

    :param emulator: the number of dedicated host CPUs for emulator threads, 0 or 1.
    """

    shared: int
    dedicated: int
    emulator: int = 0


class GuestCpus(NamedTuple):
    """The CPUs, the NUMA nodes and the memory pages of a guest, by its flavor and image.

    :param counts: the numbers of CPUs that the server claims.
    :param dedicated: the dedicated vCPUs; all other vCPUs are shared.
    :param realtime: the dedicated vCPUs with a real-time scheduling policy.
    :param nodes: the NUMA nodes; empty for a guest without a NUMA topology.
    """

    counts: CpuCounts
    policy: CpuPolicy | None = None
    thread_policy: ThreadPolicy | None = None
    emulator_threads: EmulatorThreadsPolicy | None = None
    dedicated: CpuSet = _NO_CPU
    realtime: CpuSet = _NO_CPU
    nodes: tuple[GuestNode, ...] = ()
    page_size: PageSize | None = None


class _Request(NamedTuple):
    """What flavor and image request, each key read without regard to the others."""

    cpus: RequestedPolicy
    thread_policy: ThreadPolicy | None
    emulator_threads: EmulatorThreadsPolicy | None
    realtime: bool
    nodes: int | None
    page_size: PageSize | None


def guest_cpus(
    flavor: Flavor, image: Image | None = None, own: OwnGroups | None = None
) -> GuestCpus:
    """Return the CPUs, the NUMA nodes and the memory pages of a guest.

    :param own: the flavor's own groups, if the caller has read them already.
    :raises InvalidInput: with the faults of all keys; or, if each key is valid by
        itself, with the faults of keys that contradict each other.
    """
    own = parse_groups(flavor) if own is None else own
    requested = _requested(flavor, image, own)
    _check_policies(flavor, requested)
    decided = GuestCpus(
        # resources:VCPU=0 says that the server claims no VCPU, as flavors for bare metal do.
        counts=CpuCounts(shared=0 if own.amount(VCPU) == 0 else flavor.vcpus, dedicated=0),
        policy=requested.cpus.policy,
        thread_policy=requested.thread_policy,
        emulator_threads=requested.emulator_threads,
        page_size=requested.page_size,
    )
    pinned = decided.policy in ("dedicated", "mixed")
    # The conditions under which nova.virt.hardware.numa_get_constraints makes a topology.
    if not (pinned or requested.nodes or requested.page_size or _has_persistent_memory(flavor)):
        return decided
    every = _every(flavor)
    # As in Nova, dedicated vCPUs, pages and persistent memory need a topology of at least 1 node.
    nodes = guest_nodes(flavor, image, requested.nodes or 1, every)
    if not pinned:
        return decided._replace(nodes=nodes)
    dedicated = _dedicated(flavor, image, requested, nodes, every)
    return decided._replace(
        counts=CpuCounts(
            shared=flavor.vcpus - len(dedicated),
            dedicated=len(dedicated),
            emulator=int(requested.emulator_threads == "isolate"),
        ),
        dedicated=dedicated,
        realtime=_realtime(flavor, image, requested, dedicated, every),
        nodes=nodes,
    )


def _requested(flavor: Flavor, image: Image | None, own: OwnGroups) -> _Request:
    faults = FaultList()
    emulator_threads = None
    with faults:
        emulator_threads = emulator_threads_policy(flavor)
    with faults:
        cpus = requested_policy(flavor, image, own, int(emulator_threads == "isolate"))
    with faults:
        threads = thread_policy(flavor, image, own)
    with faults:
        realtime = is_realtime(flavor)
    with faults:
        nodes = node_count(flavor, image)
    with faults:
        pages = page_size(flavor, image)
    faults.raise_if_any()
    return _Request(cpus, threads, emulator_threads, realtime, nodes, pages)


def _check_policies(flavor: Flavor, requested: _Request) -> None:
    """Refuse keys that need dedicated vCPUs in a server without, and a mask without effect.

    :raises InvalidInput: there are such keys.
    """
    policy = requested.cpus.policy
    faults = FaultList()
    if policy in (None, "shared"):
        given, pinned = f"the CPU policy {policy or 'is not set'}", "dedicated or mixed"
        if requested.thread_policy:
            where = f"flavor {flavor.name}, {THREAD_POLICY} {requested.thread_policy}"
            faults.add(where, given, f"a thread policy needs {pinned}")
        if requested.emulator_threads == "isolate":
            where = f"flavor {flavor.name}, {' or '.join(EMULATOR_KEYS)} isolate"
            faults.add(where, given, f"isolated emulator threads need {pinned}")
        if requested.realtime:
            faults.add(flavor.spec(REALTIME), given, f"real-time vCPUs need {pinned}")
    if DEDICATED_MASK in flavor.extra_specs and (policy != "mixed" or requested.cpus.shared):
        other = "amounts of VCPU and PCPU" if requested.cpus.shared else f"the CPU policy {policy}"
        given = f"{flavor.extra_specs[DEDICATED_MASK]!r} and {other}"
        faults.add(flavor.spec(DEDICATED_MASK), given, "a mask needs hw:cpu_policy mixed")
    faults.raise_if_any()


def _has_persistent_memory(flavor: Flavor) -> bool:
    # Read as nova.virt.hardware.get_vpmems reads it.
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
    requested: _Request,
    nodes: tuple[GuestNode, ...],
    every: CpuSet,
) -> CpuSet:
    if requested.cpus.policy == "dedicated":
        return every
    if requested.cpus.shared:
        return CpuSet(every - shared_round_robin(nodes, requested.cpus.shared))
    return mixed_mask(flavor, image, every, realtime=requested.realtime)


def _realtime(
    flavor: Flavor, image: Image | None, requested: _Request, dedicated: CpuSet, every: CpuSet
) -> CpuSet:
    """Return the real-time vCPUs.

    :raises InvalidInput: some of them are not dedicated, or no vCPU is left to run
        the emulator threads.
    """
    if not requested.realtime:
        return _NO_CPU
    realtime = realtime_mask(flavor, image, every)
    if not realtime <= dedicated:
        raise InvalidInput.of(
            f"flavor {flavor.name}, real-time vCPUs {realtime}",
            f"the dedicated vCPUs are {dedicated}",
            "every real-time vCPU must be dedicated",
        )
    if realtime == every and requested.emulator_threads is None:
        raise InvalidInput.of(
            f"flavor {flavor.name}, {REALTIME} of all vCPUs",
            "no vCPU is left for emulator threads",
            f"leave a vCPU out of {REALTIME_MASK}, or set {EMULATOR_KEYS[0]}",
        )
    return realtime

"""Decides which vCPUs of a server are dedicated, shared or real-time, and their NUMA nodes.

No other module decides this: the request to Placement, the guest topology, the metadata and the
domain XML are made from the result of :func:`guest_cpus`. Specs: use-pcpu-vcpu-in-one-instance,
libvirt-emulator-threads-policy; decisions D4 and D5. Pure.
"""

from __future__ import annotations  # most servers have no keys for extra_specs.numa to read

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs import cpu_masks as masks
from cpu_tiers.extra_specs import cpu_policies as policies
from cpu_tiers.extra_specs.groups import OwnGroups, read_groups
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet
from cpu_tiers.model.flavor import (
    CpuPolicy,
    EmulatorThreadsPolicy,
    Flavor,
    Image,
    PageSize,
    ThreadPolicy,
    properties,
)
from cpu_tiers.model.names import PCPU, VCPU

if TYPE_CHECKING:
    from cpu_tiers.extra_specs.numa import GuestNode

_NO_CPU = CpuSet()
_CPU_NAMESPACES = ("hw:", "hw_")
_CPU_NAMES = (f":{VCPU}", f":{PCPU}", f":{policies.HYPERTHREADING}")


class CpuCounts(NamedTuple):
    """The numbers of shared and dedicated vCPUs of a server.

    :param emulator: the number of dedicated host CPUs for emulator threads, 0 or 1.
    """

    shared: int
    dedicated: int
    emulator: int = 0


class GuestCpus(NamedTuple):
    """The CPUs, the NUMA nodes and the memory pages of a guest, by its flavor and image.

    :param counts: the numbers of CPUs that the server requests.
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
    """What a flavor and an image request, each key read without regard to the others.

    A key with a fault is read like a missing key. There is an exception: ``cpus`` is ``None``
    if the CPU policy has a fault, and keys that need a certain policy are not refused then.
    """

    flavor: Flavor
    image: Image | None
    cpus: policies.RequestedPolicy | None
    thread_policy: ThreadPolicy | None
    emulator_threads: EmulatorThreadsPolicy | None
    realtime: bool | None
    nodes: int | None
    page_size: PageSize | None

    @property
    def is_pinned(self) -> bool:
        """Whether the guest has dedicated vCPUs, or may have them after its faults are mended."""
        return self.cpus is None or self.cpus.policy in ("dedicated", "mixed")


def guest_cpus(
    flavor: Flavor, image: Image | None = None, own_groups: OwnGroups | None = None
) -> GuestCpus:
    """Return the CPUs, the NUMA nodes and the memory pages of a guest.

    :param own_groups: the flavor's own groups, if the caller has read them already.
    :raises InvalidInput: with the faults of all keys, and with the faults of keys that
        contradict each other.
    """
    faults = FaultList()
    own_groups = read_groups(flavor, faults) if own_groups is None else own_groups
    if has_no_cpu_keys(flavor, image):
        faults.raise_if_any()
        return GuestCpus(counts=CpuCounts(shared=flavor.vcpus, dedicated=0))
    requested = _requested(flavor, image, own_groups, faults)
    with faults:
        _check_policies(requested)
    guest = GuestCpus(
        # resources:VCPU=0 says that the server requests no VCPU, as flavors for bare metal do.
        counts=CpuCounts(shared=0 if own_groups.amount(VCPU) == 0 else flavor.vcpus, dedicated=0),
        policy=requested.cpus.policy if requested.cpus else None,
        thread_policy=requested.thread_policy,
        emulator_threads=requested.emulator_threads,
        page_size=requested.page_size,
    )
    if _has_topology(requested):
        with faults:
            guest = _with_topology(requested, guest)
    faults.raise_if_any()
    return guest


def _requested(
    flavor: Flavor, image: Image | None, own_groups: OwnGroups, faults: FaultList
) -> _Request:
    """Return what flavor and image request, and collect the faults of each key."""
    from cpu_tiers.extra_specs.numa import asks_for_pages, node_count, page_size

    threads = faults.read(policies.thread_policy, flavor, image, own_groups)
    if _sets_emulator_threads(flavor):
        emulator_threads = faults.read(policies.emulator_threads_policy, flavor)
        emulator_cpus = None if emulator_threads is None else int(emulator_threads == "isolate")
    else:
        emulator_threads, emulator_cpus = None, 0
    cpus = faults.read(policies.requested_policy, flavor, image, own_groups, emulator_cpus)
    realtime = faults.read(masks.is_realtime, flavor)
    nodes = faults.read(node_count, flavor, image)
    pages = None
    if asks_for_pages(flavor, image):
        pages = faults.read(page_size, flavor, image)
    return _Request(flavor, image, cpus, threads, emulator_threads, realtime, nodes, pages)


def _sets_emulator_threads(flavor: Flavor) -> bool:
    return any(key in flavor.extra_specs for key in policies.EMULATOR_KEYS)


def _check_policies(requested: _Request) -> None:
    """Refuse keys that need dedicated vCPUs in a server without, and a mask without effect."""
    if requested.cpus is None:
        return
    flavor, policy = requested.flavor, requested.cpus.policy
    faults = FaultList()
    if policy in (None, "shared"):
        given, pinned = f"the CPU policy {policy or 'is not set'}", "dedicated or mixed"
        if requested.thread_policy:
            where = f"flavor {flavor.name}, {policies.THREAD_POLICY} {requested.thread_policy}"
            faults.add(where, given, f"a thread policy needs {pinned}")
        if requested.emulator_threads == "isolate":
            where = f"flavor {flavor.name}, {' or '.join(policies.EMULATOR_KEYS)} isolate"
            faults.add(where, given, f"isolated emulator threads need {pinned}")
        if requested.realtime:
            faults.add(flavor.spec(masks.REALTIME), given, f"real-time vCPUs need {pinned}")
    if masks.DEDICATED_MASK in flavor.extra_specs and (policy != "mixed" or requested.cpus.shared):
        other = "amounts of VCPU and PCPU" if requested.cpus.shared else f"the CPU policy {policy}"
        given = f"{flavor.extra_specs[masks.DEDICATED_MASK]!r} and {other}"
        faults.add(flavor.spec(masks.DEDICATED_MASK), given, "a mask needs hw:cpu_policy mixed")
    faults.raise_if_any()


def _has_topology(requested: _Request) -> bool:
    """Return whether a guest has a NUMA topology, as nova.virt.hardware.numa_get_constraints."""
    from cpu_tiers.extra_specs.numa import asks_for_nodes, asks_for_pages

    flavor, image = requested.flavor, requested.image
    return (
        requested.is_pinned
        or asks_for_nodes(flavor, image)
        or asks_for_pages(flavor, image)
        # Persistent memory, read as nova.virt.hardware.get_vpmems reads it.
        or any(label.strip() for label in flavor.extra_specs.get("hw:pmem", "").split(","))
    )


def _with_topology(requested: _Request, guest: GuestCpus) -> GuestCpus:
    """Return the guest with its NUMA nodes and its dedicated vCPUs."""
    from cpu_tiers.extra_specs.numa import asks_for_nodes, guest_nodes

    faults = FaultList()
    flavor, image = requested.flavor, requested.image
    every = _every(flavor)
    # As in Nova, dedicated vCPUs, pages and persistent memory need a topology of at least 1 node.
    count = requested.nodes if asks_for_nodes(flavor, image) else 1
    nodes = faults.read(guest_nodes, flavor, image, count, every)
    dedicated = realtime = None
    if requested.is_pinned:
        dedicated = faults.read(_dedicated, requested, nodes, every)
        realtime = faults.read(_realtime, requested, dedicated, every)
    faults.raise_if_any()
    guest = guest._replace(nodes=nodes or ())
    if not dedicated:
        return guest
    return guest._replace(
        counts=CpuCounts(
            shared=flavor.vcpus - len(dedicated),
            dedicated=len(dedicated),
            emulator=int(requested.emulator_threads == "isolate"),
        ),
        dedicated=dedicated,
        realtime=realtime or _NO_CPU,
    )


def _every(flavor: Flavor) -> CpuSet:
    if flavor.vcpus > MAX_CPU + 1:
        raise InvalidInput.of(
            f"flavor {flavor.name}, vcpus",
            f"{flavor.vcpus}, with NUMA nodes or dedicated vCPUs",
            f"no host has more than {MAX_CPU + 1}",
        )
    return CpuSet(range(flavor.vcpus))


def _dedicated(
    requested: _Request, nodes: tuple[GuestNode, ...] | None, every: CpuSet
) -> CpuSet | None:
    """Return the dedicated vCPUs, or ``None`` if faults leave the number unknown.

    :param nodes: ``None`` if the NUMA nodes have faults.
    """
    flavor = requested.flavor
    if requested.cpus is None:
        # Of the policies, only mixed has a mask.
        if masks.DEDICATED_MASK in flavor.extra_specs:
            masks.dedicated_mask(flavor, every)
        return None
    if requested.cpus.policy == "dedicated":
        return every
    if requested.cpus.shared:
        if not nodes:
            return None
        return CpuSet(every - masks.shared_round_robin(nodes, requested.cpus.shared))
    return masks.mixed_mask(flavor, requested.image, every, realtime=bool(requested.realtime))


def _realtime(requested: _Request, dedicated: CpuSet | None, every: CpuSet) -> CpuSet:
    """Return the real-time vCPUs, which are dedicated and leave a vCPU for emulator threads.

    :param dedicated: ``None`` if the dedicated vCPUs are unknown.
    """
    if requested.realtime is False:
        return _NO_CPU
    flavor = requested.flavor
    realtime = masks.realtime_mask(flavor, requested.image, every)
    if requested.realtime is None:  # only the faults of the mask count then
        return _NO_CPU
    if dedicated is not None and not realtime <= dedicated:
        raise InvalidInput.of(
            f"flavor {flavor.name}, real-time vCPUs {realtime}",
            f"the dedicated vCPUs are {dedicated}",
            "every real-time vCPU must be dedicated",
        )
    if realtime == every and not _sets_emulator_threads(flavor):
        raise InvalidInput.of(
            f"flavor {flavor.name}, {masks.REALTIME} of all vCPUs",
            "no vCPU is left for emulator threads",
            f"leave a vCPU out of {masks.REALTIME_MASK}, or set {policies.EMULATOR_KEYS[0]}",
        )
    return realtime


def has_no_cpu_keys(flavor: Flavor, image: Image | None) -> bool:
    """Return whether no key can change the CPUs, the NUMA nodes or the pages of a server.

    All such keys are in a namespace of hardware, or are amounts of VCPU and PCPU and the trait
    of hyperthreads, in any group. A malformed key counts, too.
    """
    for key in chain(flavor.extra_specs, properties(image)):
        if key.startswith(_CPU_NAMESPACES) or key.endswith(_CPU_NAMES):
            return False
    return True

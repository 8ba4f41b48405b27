"""Read the cgroups of the running guests of this machine. Each file is read once."""

from collections.abc import Collection

from cpu_tiers.cgroup.files import Files
from cpu_tiers.cgroup.hierarchy import Hierarchy, find_hierarchy
from cpu_tiers.cgroup.processes import find_guests, policies
from cpu_tiers.model.cgroup import GuestCgroup, HostCgroups

_SCHED_EXT = "/sys/kernel/sched_ext"


def read_host(uuids: Collection[str], files: Files | None = None) -> HostCgroups:
    """Return the cgroups of these guests, with the parent cgroups and the siblings of the parents.

    A guest without a process on this machine is left out. ``faults`` of the result names the
    files that could not be read.

    :param uuids: the uuids of the domains, in lower case.
    :raises InvalidInput: this machine has no cgroups.
    """
    files = files or Files()
    hierarchy = find_hierarchy(files)
    guests = {}
    for uuid, pid in find_guests(files, uuids).items():
        with files.noted(f"/proc/{pid}"):
            guests[uuid] = _guest(files, hierarchy, pid)
    return HostCgroups(
        version=hierarchy.version,
        guests=guests,
        above=_above(files, hierarchy, {guest.path for guest in guests.values()}),
        sched_ext=_sched_ext(files),
        faults=tuple(files.faults),
    )


def _guest(files: Files, hierarchy: Hierarchy, pid: str) -> GuestCgroup:
    path = hierarchy.guest_of(files.read(f"/proc/{pid}/cgroup")) or "/"
    # Without a cgroup of its own the guest has no weight: the cgroup that contains its process
    # also contains processes that are no guests.
    weight = None if path == "/" else hierarchy.weight(files, path)
    return GuestCgroup(path=path, weight=weight, policies=policies(files, pid))


def _above(files: Files, hierarchy: Hierarchy, guests: Collection[str]) -> dict[str, int]:
    """Return the weights of the cgroups above guests, and of the siblings of these cgroups.

    The hundreds of cgroups of the guests themselves are left out.
    """
    parents = {
        f"/{'/'.join(parts[:depth])}"
        for path in guests
        for parts in [path.strip("/").split("/")]
        for depth in range(len(parts) - 1)
    }
    weights = {}
    for parent in sorted(parents):
        with files.noted(hierarchy.folder(parent)):
            children = files.folders(hierarchy.folder(parent))
            for path in (f"{parent.rstrip('/')}/{name}" for name in children):
                with files.noted(hierarchy.folder(path)):
                    weight = hierarchy.weight(files, path)
                    if weight is not None:
                        weights[path] = weight
    return weights


def _sched_ext(files: Files) -> str | None:
    """Return the name of the loaded BPF scheduler, or ``None`` if none is loaded.

    Source: https://docs.kernel.org/scheduler/sched-ext.html.
    """
    with files.noted(_SCHED_EXT):
        if files.read(f"{_SCHED_EXT}/state").strip() == "enabled":
            return files.read(f"{_SCHED_EXT}/root/ops").strip() or "unnamed"
    return None

"""Read the cgroups of the running guests of this machine. Each file is read once."""

from collections.abc import Collection, Iterable, Iterator

from cpu_tiers.model.domain import Domain, GuestCgroup, HostCgroups
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import GUEST_NAME, INNER_NAME, Hierarchy, find_hierarchy
from cpu_tiers.tools.cgroup.processes import find_guests, policies, strays, threads, vcpu_threads

_SCHED_EXT = "/sys/kernel/sched_ext"
_STOPPED = ("T", "t")
"""The states of a process that a signal or a debugger stopped."""


def read_host(domains: Collection[Domain], files: Files | None = None) -> HostCgroups:
    """Return the cgroups of these guests, with the cgroups in, above and beside the guests.

    A guest without a process on this machine is left out. ``faults`` of the result names the
    files that could not be read.

    :param domains: the running guests, with their uuids in lower case.
    :raises InvalidInput: this machine has no cgroups.
    """
    files = files or Files()
    hierarchy = find_hierarchy(files)
    guests = {}
    for uuid, pid in find_guests(files, domains).items():
        with files.noted(f"/proc/{pid}"):
            guests[uuid] = _guest(files, hierarchy, pid)
    paths = {guest.path for guest in guests.values()} - {"/"}
    parents = _parents(paths)
    # The siblings of the cgroups above guests count, too; the guests themselves are left out.
    above = _weights(files, hierarchy, _children(files, hierarchy, _parents(parents - {"/"})))
    inner = (f"{guest.path}/{name}" for guest in guests.values() for name in guest.inner_weights)
    quotas, idle = _limits(files, hierarchy, [*parents, *paths, *inner])
    # A cgroup that has the name of a guest is left out, since a guest may start at any time.
    beside = [
        path
        for path in _children(files, hierarchy, {path.rpartition("/")[0] for path in paths})
        if path not in paths | parents and not GUEST_NAME.fullmatch(path.rpartition("/")[2])
    ]
    return HostCgroups(
        version=hierarchy.version,
        guests=guests,
        above=above,
        beside=_weights(files, hierarchy, beside, populated=True),
        quotas=quotas,
        idle=frozenset(idle),
        sched_ext=_sched_ext(files),
        faults=tuple(files.faults),
    )


def _guest(files: Files, hierarchy: Hierarchy, pid: str) -> GuestCgroup:
    path = hierarchy.guest_of(files.read(f"/proc/{pid}/cgroup")) or "/"
    found = list(threads(files, pid))
    # Otherwise, the cgroup with its process also contains processes that are no guests.
    has_own = path != "/"
    return GuestCgroup(
        path=path,
        weight=hierarchy.weight(files, path) if has_own else None,
        policies=policies(found),
        pid=pid,
        stopped=any(thread.number == pid and thread.state in _STOPPED for thread in found),
        vcpus=vcpu_threads(files, pid, found),
        strays=strays(files, hierarchy, path, pid, found) if has_own else {},
        inner_weights=dict(_inner_weights(files, hierarchy, path)) if has_own else {},
    )


def _inner_weights(files: Files, hierarchy: Hierarchy, path: str) -> Iterator[tuple[str, int]]:
    """Yield the cgroups in the cgroup of a guest, below ``libvirt`` with systemd."""
    for name in files.folders(hierarchy.folder(path)):
        if name == "libvirt":
            inner = _inner_weights(files, hierarchy, f"{path}/libvirt")
            yield from ((f"libvirt/{child}", weight) for child, weight in inner)
        elif INNER_NAME.fullmatch(name):
            weight = hierarchy.weight(files, f"{path}/{name}")
            if weight is not None:
                yield name, weight


def _parents(paths: Iterable[str]) -> set[str]:
    """Return the paths of the cgroups above guests, with the root as ``/``."""
    return {
        f"/{'/'.join(parts[:depth])}"
        for path in paths
        for parts in [path.strip("/").split("/")]
        for depth in range(len(parts))
    }


def _children(files: Files, hierarchy: Hierarchy, parents: Iterable[str]) -> Iterator[str]:
    for parent in sorted(parents):
        with files.noted(hierarchy.folder(parent)):
            for name in files.folders(hierarchy.folder(parent)):
                yield f"{parent.rstrip('/')}/{name}"


def _weights(
    files: Files, hierarchy: Hierarchy, paths: Iterable[str], *, populated: bool = False
) -> dict[str, int]:
    """Return the weights of cgroups, without those that have no weight.

    :param populated: only of cgroups that contain a process.
    """
    weights = {}
    for path in paths:
        with files.noted(hierarchy.folder(path)):
            weight = hierarchy.weight(files, path)
            if weight is not None and (not populated or hierarchy.is_populated(files, path)):
                weights[path] = weight
    return weights


def _limits(
    files: Files, hierarchy: Hierarchy, paths: Iterable[str]
) -> tuple[dict[str, tuple[int, int]], set[str]]:
    quotas, idle = {}, set()
    for path in paths:
        with files.noted(hierarchy.folder(path)):
            if quota := hierarchy.quota(files, path):
                quotas[path] = quota
            if hierarchy.is_idle(files, path):
                idle.add(path)
    return quotas, idle


def _sched_ext(files: Files) -> str | None:
    """Return the name of the loaded BPF scheduler, or ``None`` if none is loaded.

    Source: https://docs.kernel.org/scheduler/sched-ext.html.
    """
    with files.noted(_SCHED_EXT):
        if files.read(f"{_SCHED_EXT}/state").strip() == "enabled":
            return files.read(f"{_SCHED_EXT}/root/ops").strip() or "unnamed"
    return None

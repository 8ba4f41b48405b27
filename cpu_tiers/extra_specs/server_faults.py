"""Every fault of a flavor and an image: of shares, CPUs, NUMA nodes, pages and groups.

A user who learns all faults in a single answer corrects the whole flavor at once. Pure.
"""

from collections.abc import Callable, Iterable, Mapping

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.shares import parse_shares
from cpu_tiers.model.cpu_set import MAX_CPU
from cpu_tiers.model.flavor import SIZES, Flavor, Image, is_size


def server_faults(flavor: Flavor, image: Image | None = None) -> tuple[Fault, ...]:
    """Return every fault of the extra specs and of the image properties; empty without faults.

    A fault is returned only if the fault stays when the other faults are corrected: a thread
    policy beside a malformed CPU policy is no fault.
    """
    faults = FaultList()
    faults.read(guest_cpus, flavor, image)
    faults.read(parse_shares, flavor)
    if flavor.vcpus > MAX_CPU + 1:  # too many for masks and NUMA nodes, which are then not read
        sizes = {field: getattr(flavor, field) for field in SIZES} | {"vcpus": None}
        faults.faults += faults_of_any_size(
            flavor.name, sizes, flavor.extra_specs, lambda other: server_faults(other, image)
        )
    return tuple(dict.fromkeys(faults.faults))


# A fault that depends on a size either names the size or is missing with some of these values: the
# largest number of vCPUs has room for every mask, and a disk of 0 GiB is no resource.
_VALUES: Mapping[str, tuple[int, ...]] = {
    "vcpus": (1, 6, MAX_CPU + 1),
    "memory_mb": (1, 6144, 1_000_003),
    "root_gb": (0, 1, 2),
    "ephemeral_gb": (0, 1, 2),
    "swap_mb": (0, 1024, 2048),
}
_VARIANTS = 3


def faults_of_any_size(
    name: str,
    sizes: Mapping[str, object],
    extra_specs: Mapping[str, str],
    check: Callable[[Flavor], Iterable[Fault]],
) -> tuple[Fault, ...]:
    """Return the faults of a flavor that stay whatever its sizes out of range become.

    A size out of range, such as 0 vCPUs, must not hide the other faults (decision D82), so
    valid sizes take its place in turn. A fault that not each of them has depends on the size.

    :param sizes: the sizes by field of :class:`~cpu_tiers.model.flavor.Flavor`, valid or not.
    :param check: returns the faults of a flavor with valid sizes.
    """

    def variant(number: int) -> tuple[Fault, ...]:
        valid = {
            field: size if is_size(size, field) else _VALUES[field][number]
            for field, size in sizes.items()
        }
        return tuple(check(Flavor(name=name, **valid, extra_specs=extra_specs)))

    first, *others = map(variant, range(_VARIANTS))
    return tuple(fault for fault in first if all(fault in faults for faults in others))

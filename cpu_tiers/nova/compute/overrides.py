"""The methods of Nova's libvirt driver that the driver of cpu-tiers overrides or calls."""

from cpu_tiers.nova.seams import Seam

_MODULE = "nova.virt.libvirt.driver"
SEAMS = (
    Seam(
        module=_MODULE,
        path="LibvirtDriver.__init__",
        parameters=(
            "self",
            "virtapi",
            "read_only=False",
        ),
        why="The driver of cpu-tiers turns on its features before Nova's constructor runs.",
        unseen=(
            "If the constructor calls other methods of the driver, they run before the host is "
            "known."
        ),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver.update_provider_tree",
        parameters=(
            "self",
            "provider_tree",
            "nodename",
            "allocations=None",
        ),
        why=(
            "The driver of cpu-tiers adds NUMA nodes and shares to the provider tree that "
            "Nova's method leaves."
        ),
        unseen=(
            "Nova's method may report a class or a child provider that cpu-tiers moves or "
            "removes, or ask for a reshape of its own in another way."
        ),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._update_guest_cputune",
        parameters=("self", "guest", "flavor"),
        why=(
            "The driver of cpu-tiers shows Nova a flavor with the weight as ``quota:cpu_shares``."
        ),
        unseen="If Nova sets ``<shares>`` elsewhere, a guest has no weight by its multiplier.",
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._get_vcpu_available",
        parameters=("self",),
        why="Returns the shared CPUs of the host, which are then reported by NUMA node.",
        unseen="If offline CPUs count, a NUMA node reports CPUs that no guest can have.",
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._get_pcpu_available",
        parameters=("self",),
        why="Returns the dedicated CPUs of the host, which are then reported by NUMA node.",
        unseen="If offline CPUs count, a NUMA node reports CPUs that no guest can have.",
    ),
)
"""Only verified: a subclass needs no wrapper."""

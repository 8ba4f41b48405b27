"""Tells whether flavor and image leave the CPUs of a server as they are by default. Pure."""

from itertools import chain

from cpu_tiers.extra_specs.choices import properties
from cpu_tiers.extra_specs.thread_policy import HYPERTHREADING
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import PCPU, VCPU

_NAMESPACES = ("hw:", "hw_")
_NAMES = (f":{VCPU}", f":{PCPU}", f":{HYPERTHREADING}")


def is_silent_on_cpus(flavor: Flavor, image: Image | None) -> bool:
    """Return whether no key can change the CPUs, the NUMA nodes or the pages of a server.

    All such keys are in a namespace of hardware, or are amounts of VCPU and PCPU and the trait
    of hyperthreads, in any group. A malformed key counts, too.
    """
    for key in chain(flavor.extra_specs, properties(image)):
        if key.startswith(_NAMESPACES) or key.endswith(_NAMES):
            return False
    return True

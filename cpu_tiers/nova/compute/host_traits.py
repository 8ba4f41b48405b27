"""The traits of a host: the functions of cpu-tiers that are on (decision D76), and no NUMA."""

from cpu_tiers.model.names import MULTIPLIER_TRAIT, POLICY_TRAITS, names_of_trait
from cpu_tiers.model.numa import NO_NUMA_TRAIT, OF_TREE
from cpu_tiers.nova.compute.host_report import HostReport
from cpu_tiers.nova.options import CONF, extends_cpu_policies


def mark(host: HostReport, *, keeps_shares: bool, no_numa: bool) -> None:
    """Set the traits of functions that are on, and remove the traits of functions that are off.

    Other traits stay. A tree that is right already is not changed, and Nova sends no request. The
    traits that tell the number of NUMA nodes are removed; the report of the nodes adds them.

    :param keeps_shares: the host must go on reporting shares, though the option is off.
    :param no_numa: servers with a NUMA topology must stay away from the host.
    """
    host.tree.remove_traits(host.name, *(t for t in host.root.traits if t.startswith(OF_TREE)))
    reports_shares: bool = CONF.libvirt.report_vcpu_shares or keeps_shares
    switches = {NO_NUMA_TRAIT: no_numa, MULTIPLIER_TRAIT: reports_shares}
    switches |= dict.fromkeys(POLICY_TRAITS, extends_cpu_policies())
    for trait, is_on in switches.items():
        if is_on:
            host.tree.add_traits(host.name, *names_of_trait(trait))
        else:
            host.tree.remove_traits(host.name, *names_of_trait(trait))

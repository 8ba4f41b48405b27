"""The arguments that describe a host, its guests and the services beside them."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from oslo_config import cfg

from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import FaultList, InvalidInput, read_each
from cpu_tiers.inventory import Host, InventoryOptions
from cpu_tiers.inventory.cpus import check_cpu_sets, shared_cpus, vcpu_inventories
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.documents import read_bytes
from cpu_tiers.tools.libvirt.connection import read_capabilities, read_domains
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, Domain
from cpu_tiers.tools.tiers.occupancy import MACHINES, Occupancy

_SERVICE = r"(?P<name>[^=/]+)=(?P<weight>[0-9]{1,9})x(?P<threads>[0-9]{1,9})"


def add_capabilities_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Add the arguments for the host's capabilities, in a file or from libvirt."""
    source = parser.add_mutually_exclusive_group(required=required)
    source.add_argument("--capabilities", metavar="FILE", help="output of `virsh capabilities`")
    source.add_argument(
        "--connect", metavar="URI", help="URI of a libvirt to ask, such as qemu:///system"
    )


def add_local_libvirt_argument(parser: ArgumentParser) -> None:
    """Add the argument for the libvirt of this machine."""
    parser.add_argument(
        "--connect",
        metavar="URI",
        default="qemu:///system",
        help="URI of the libvirt on this machine (default: qemu:///system)",
    )


def is_remote(uri: str) -> bool:
    """Tell whether a URI such as ``qemu+ssh://host/system`` names another machine."""
    return "://" in uri.replace(":///", "")


def check_local(uri: str) -> None:
    """Check that libvirt is local: a command reads the cgroups of the local machine.

    :raises InvalidInput: the URI is of another machine.
    """
    if is_remote(uri):
        allowed = "run the command on the compute host, because it reads the cgroups there"
        raise InvalidInput.of("--connect", f"got {uri!r}", allowed)


def read_topology(parsed_args: Namespace) -> HostTopology:
    """Return the topology of the host in the file or of the libvirt in the arguments."""
    where = parsed_args.connect or parsed_args.capabilities
    xml = read_capabilities(where) if parsed_args.connect else read_bytes(where)
    return parse_capabilities(xml, where=where)


def add_occupancy_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for a host, its guests, and the services that compete with guests."""
    add_capabilities_arguments(parser)
    parser.add_argument(
        "--domain",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="output of `virsh dumpxml` for each guest; not with --connect, which reads the "
        "guests from libvirt",
    )
    parser.add_argument(
        "--default-weight",
        type=int,
        default=100,
        metavar="N",
        help="default weight of a cgroup in the kernel: 100 in cgroup v2, 1024 in v1 "
        "(default: 100); with --connect libvirt tells the weight of each guest",
    )
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="NAME=WEIGHTxTHREADS",
        help="a cgroup that competes with the guests' machine.slice, such as "
        "system.slice=100x8; may be repeated (default: none)",
    )


def read_occupancy(parsed_args: Namespace, conf: cfg.ConfigOpts) -> Occupancy:
    """Return the host with its guests and services.

    :raises InvalidInput: with every fault of the arguments and of the domain XML.
    """
    if parsed_args.domain and parsed_args.connect:
        raise InvalidInput.of("--domain", "given together with --connect", "give only one of them")
    host = Host(name="this host", topology=read_topology(parsed_args))
    options = inventory_options(conf)
    check_cpu_sets(host, options)
    faults = FaultList()
    if parsed_args.default_weight not in DEFAULT_WEIGHT.values():
        given = f"got {parsed_args.default_weight}"
        faults.add("--default-weight", given, "give 1024 for cgroup v1, or 100 for cgroup v2")
    with faults:
        services = _services(parsed_args.beside, host.topology.cpus)
    with faults:
        domains = _domains(parsed_args)
    faults.raise_if_any()
    return occupancy_of(host, options, domains, parsed_args.default_weight, services)


def occupancy_of(
    host: Host,
    options: InventoryOptions,
    domains: Iterable[Domain],
    default_weight: int,
    services: Mapping[str, Contender] = MappingProxyType({}),
) -> Occupancy:
    """Return a host with its guests and the services beside them.

    :param domains: the guests, each with the weight of its cgroup.
    :param default_weight: the weight that the kernel gives a new cgroup.
    """
    return Occupancy(
        domains=tuple(domains),
        cpus=host.topology.cpus,
        shared_cpus=shared_cpus(host, options),
        default_weight=default_weight,
        services=services,
        inventories=host_inventories(host, options),
        emulator_overhead=Fraction(options.emulator_overhead_percent, 100),
    )


def host_inventories(host: Host, options: InventoryOptions) -> dict[str, Inventory]:
    """Return the inventories of VCPU and VCPU_SHARES of the host as a whole.

    Both are returned also if the host does not report shares yet. For a host that
    reports its NUMA nodes, they are the sum over the nodes.
    """
    # Without NUMA reporting, the CPUs of all nodes are in one inventory of the root.
    by_provider = vcpu_inventories(host, replace(options, enable_numa_reporting_to_placement=None))
    if not by_provider:
        return {}
    ((_, vcpu),) = by_provider
    multiplier, overhead = options.vcpu_share_multiplier, options.emulator_overhead_percent
    return {VCPU: vcpu, VCPU_SHARES: shares_inventory(vcpu, multiplier, overhead)}


def _services(texts: list[str], cpus: CpuSet) -> dict[str, Contender]:
    faults, services = FaultList(), dict[str, Contender]()
    for text in texts:
        match = re.fullmatch(_SERVICE, text)
        if match is None or match["name"] in (MACHINES, *services):
            allowed = "give NAME=WEIGHTxTHREADS, such as system.slice=100x8, and each name once"
            faults.add("--beside", f"got {text!r}", allowed)
            continue
        weight, threads = int(match["weight"]), int(match["threads"])
        with faults:
            services[match["name"]] = Contender(weight=weight, threads={cpus: threads})
    faults.raise_if_any()
    return services


def _domains(parsed_args: Namespace) -> tuple[Domain, ...]:
    if not parsed_args.connect:
        return read_each(
            lambda path: parse_domain(read_bytes(path), where=path), parsed_args.domain
        )
    return tuple(
        replace(parse_domain(guest.xml, where=f"domain {guest.name}"), weight=guest.shares)
        for guest in read_domains(parsed_args.connect)
    )

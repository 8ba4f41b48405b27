"""The reporters and the plugins for domain XML of other distributions, in nova-compute.

The module is imported where a distribution beside cpu-tiers has such a plugin. Reporters are
called in each report of the host, after Nova and cpu-tiers have put their inventories into the
tree. Elements of a guest are merged into the XML that Nova has made for the guest.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lxml import etree
from lxml.etree import _Element
from nova import exception, objects
from nova.virt import hardware
from oslo_log import log as logging

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError, ExtensionError, InvalidInput
from cpu_tiers.inventory import Host, InventoryOptions, Reporter, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.libvirt.contract import DomainElements, Guest
from cpu_tiers.libvirt.document import read_root
from cpu_tiers.libvirt.merging import NOVA, merge, parts_of
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.nova.compute.host_report import HostReport
from cpu_tiers.nova.compute.start_refusal import ReportRefused
from cpu_tiers.nova.convert import to_flavor, to_image
from cpu_tiers.nova.convert_numa import to_compute_host, to_guest_topology, to_pinning
from cpu_tiers.nova.options import CONF
from cpu_tiers.placement.records import inventory_json

LOG = logging.getLogger(__name__)

PARTS_OF_EACH_GUEST = frozenset(
    {
        *("name", "uuid", "memory", "vcpu", "os/type", "os/boot", "sysinfo/system"),
        *("clock/@offset", "cputune/shares", "devices/disk", "devices/interface"),
    }
)
"""What Nova and cpu-tiers write for a plain guest, to refuse a plugin before the first guest."""


class Plugins:
    """The plugins of other distributions.

    :param capabilities: returns libvirt's capabilities of the host as XML.
    :raises ExtensionError: a plugin does not load, or has the name of another plugin.
    """

    def __init__(self, capabilities: Callable[[], str]) -> None:
        self._capabilities = capabilities
        self._reporters = extensions.load(extensions.INVENTORY, others_only=True)
        self._writers = extensions.load(extensions.DOMAIN_XML, others_only=True)
        names = sorted({*self._reporters, *self._writers})
        LOG.info("nova-compute calls the plugins %s of other distributions", ", ".join(names))

    @functools.cached_property
    def _topology(self) -> HostTopology:
        text = self._capabilities().encode()
        return parse_capabilities(text, where="libvirt's capabilities of this host")

    def report(self, host: HostReport, nodes: frozenset[str]) -> None:
        """Add what reporters report to the tree, in which Nova and cpu-tiers have theirs.

        :param nodes: the names of the NUMA nodes and page sizes that cpu-tiers reports in this
            run. What another provider of such a name has is an earlier report of a reporter.
        :raises ReportRefused: two reporters, or a reporter and Nova, contradict each other.
        :raises InternalError: a reporter fails; Nova reports nothing in this run.
        """
        if not self._reporters:
            return
        reporters: dict[str, Reporter] = {NOVA: lambda *_: _present(host, nodes)}
        reporters |= {name: _calling(name, each) for name, each in self._reporters.items()}
        reported = Host(name=host.name, topology=self._topology)
        try:
            providers = build_tree(reported, inventory_options(CONF), reporters).providers
        except CpuTiersError as error:
            raise ReportRefused(str(error)) from error
        for provider in providers:
            _put(host, provider, nodes)

    def check_elements(self, host: ComputeHost, arch: str) -> None:
        """Refuse plugins that contradict each other, or Nova, for a plain guest.

        :raises ExtensionError: with the names of both.
        """
        flavor = Flavor(name="plain", vcpus=1, memory_mb=64)
        written_by = dict.fromkeys(PARTS_OF_EACH_GUEST, NOVA)
        domain = etree.Element("domain")
        guest = Guest(name="plain", flavor=flavor, arch=arch, host=host)
        for name, writer in self._writers.items():
            try:
                elements = list(writer(guest))
            except Exception as error:  # the plugin may know only other guests
                LOG.warning("The plugin %r fails for a plain guest: %r", name, error)
                continue
            for element in elements:
                merge(name, domain, element, written_by)

    def with_elements(self, xml: str, guest: Guest) -> str:
        """Return Nova's XML of a guest with the elements of the plugins.

        :raises InternalError: a plugin fails, or contradicts another plugin or Nova. The guest
            does not start.
        """
        if not self._writers:
            return xml
        where = f"the XML of {guest.name}"
        domain = read_root(xml.encode(), tag="domain", where=where, allowed="XML of Nova")
        written_by = {part: NOVA for element in domain for part in parts_of(element)}
        for name, writer in self._writers.items():
            for element in _elements(name, writer, guest):
                try:
                    merge(name, domain, element, written_by)
                except ExtensionError as error:
                    raise exception.InternalError(err=str(error)) from error
        return etree.tostring(domain, pretty_print=True, encoding="unicode")


def check_signature(function: Any) -> None:
    """Refuse a Nova whose function for the XML of a guest has other first parameters.

    :raises ExtensionError: so that no guest is started without the elements of a plugin.
    """
    first = list(inspect.signature(function).parameters)[:3]
    if first != ["self", "context", "instance"]:
        raise ExtensionError(
            "cpu-tiers does not fit Nova: LibvirtDriver._get_guest_xml was expected with the"
            f" parameters self, context, instance, but has {', '.join(first)}; uninstall the"
            " plugins of cpu_tiers.domain_xml, or install the cpu-tiers for this Nova"
        )


def guest_of(
    instance: objects.Instance, topology: objects.NUMATopology | None, arch: str
) -> Guest | None:
    """Return a server of Nova on its host as plugins see the server.

    :param topology: the NUMA nodes of the host, with their usage.
    :returns: ``None`` if the flavor or the host cannot be expressed; the log names the server.
    """
    try:
        numa = instance.numa_topology
        realtime = hardware.get_realtime_cpu_constraint(instance.flavor, instance.image_meta)
        return Guest(
            name=instance.name,
            flavor=to_flavor(instance.flavor),
            image=to_image(instance.image_meta),
            arch=arch,
            host=host_of(topology),
            topology=numa and to_guest_topology(numa, realtime=CpuSet(realtime or ())),
            pinning=numa and to_pinning(numa),
        )
    except InvalidInput as error:
        text = "The server gets no elements of plugins: correct its flavor, or the host: %s"
        LOG.error(text, error, instance=instance)
        return None


def host_of(topology: objects.NUMATopology | None) -> ComputeHost:
    """Return the NUMA nodes of the host; none if Nova does not know them.

    :raises InvalidInput: a pinned CPU is not a dedicated CPU of the host.
    """
    shared = CpuSet(hardware.get_cpu_shared_set() or ())
    if topology is None:
        return ComputeHost(cells=(), cpu_shared_set=shared)
    return to_compute_host(topology, cpu_shared_set=shared)


def _present(host: HostReport, nodes: frozenset[str]) -> Iterable[ResourceProvider]:
    """Return what Nova and cpu-tiers have put into the tree in this run."""
    for name, provider in host.state.providers.items():
        if name in nodes or provider.parent is None:
            inventories = provider.inventories.by_class
            yield ResourceProvider(name=name, parent=provider.parent, inventories=inventories)


def _put(host: HostReport, provider: ResourceProvider, nodes: frozenset[str]) -> None:
    """Add a provider, its inventories and its traits to the tree, or leave the tree as it is."""
    if not host.tree.exists(provider.name):
        host.tree.new_child(provider.name, provider.parent)
    records: dict[str, Mapping[str, float]] = {
        name: inventory_json(item) for name, item in provider.inventories.items()
    }
    present = host.tree.data(provider.name).inventory
    if provider.parent is None or provider.name in nodes:
        records = {**records, **present}  # as Nova wrote it
    if records != present:
        host.tree.update_inventory(provider.name, records)
    host.tree.add_traits(provider.name, *provider.traits)


def _calling(name: str, reporter: Reporter) -> Reporter:
    def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
        try:
            return list(reporter(host, options))
        except CpuTiersError:
            raise
        except Exception as error:
            text = f"the reporter {name!r} of cpu_tiers.inventory fails: {error!r}"
            raise exception.InternalError(err=text) from error

    return report


def _elements(name: str, writer: DomainElements, guest: Guest) -> list[_Element]:
    try:
        return list(writer(guest))
    except Exception as error:
        text = f"the plugin {name!r} of cpu_tiers.domain_xml fails for {guest.name}: {error!r}"
        raise exception.InternalError(err=text) from error

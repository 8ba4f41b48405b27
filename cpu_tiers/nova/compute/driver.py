"""``compute_driver = cpu_tiers.LibvirtDriver``: Nova's libvirt driver, NUMA nodes and shares.

``report_decision`` decides whether a host reports NUMA nodes and shares, ``shares_inventory``
edits the provider tree, and ``guest_weight`` gives the weight of a guest. What ``numa/`` does with
tree and allocations is imported where the host reports NUMA nodes. The import of the module has no
effect on Nova.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from lxml import etree
from nova import exception, objects
from nova.context import RequestContext
from nova.virt.libvirt import driver
from nova.virt.libvirt.guest import Guest
from nova.virt.virtapi import VirtAPI
from oslo_config import cfg
from oslo_log import log as logging

from cpu_tiers.conf import libvirt
from cpu_tiers.errors import ExtensionError
from cpu_tiers.extra_specs.shares import SHARES
from cpu_tiers.model.names import (
    MULTIPLIER_TRAIT,
    POLICY_TRAITS,
    TIER_CHANGE_TRAIT,
    VCPU_SHARES,
    names_of_trait,
)
from cpu_tiers.model.numa import NO_NUMA_TRAIT, OF_TREE
from cpu_tiers.nova import options
from cpu_tiers.nova.compute import host_report, report_decision, shares_inventory
from cpu_tiers.nova.compute.features import COMPUTE, NUMA_REPORTING
from cpu_tiers.nova.compute.guest_weight import default_weight, with_plain_shares
from cpu_tiers.nova.compute.host_report import Allocations, HostReport
from cpu_tiers.nova.compute.report_decision import ReportDecision, StartingConsumers
from cpu_tiers.nova.compute.start_refusal import refusals_end_process
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import NovaTree
from cpu_tiers.placement.steps import State

if TYPE_CHECKING:
    from cpu_tiers.nova.compute.numa.numa_inventory import NodeReporter
    from cpu_tiers.nova.compute.plugins import Plugins

LOG = logging.getLogger(__name__)

_SETTLEMENT_SECONDS = 30.0
"""The shortest time between two looks for pending changes of tiers: a host also reports itself
when a server arrives."""


class LibvirtDriver(driver.LibvirtDriver):
    """Nova's libvirt driver, which also reports NUMA nodes and shares and gives guests weights."""

    _plugins: Plugins | None = None
    _next_settlement = 0.0

    def __init__(self, virtapi: VirtAPI, read_only: bool = False) -> None:
        """Register the options of cpu-tiers and turn on the features of nova-compute.

        The process ends if a function of Nova has other parameters than cpu-tiers relies on, or
        if an option of cpu-tiers is malformed. Nova would take the error of an option for the
        error of a class that is no compute driver.
        """
        with refusals_end_process(cfg.ConfigFileValueError, ExtensionError):
            options.register(libvirt)
            COMPUTE.start()
            self._plugins = self._load_plugins()
        super().__init__(virtapi, read_only)

    def _load_plugins(self) -> Plugins | None:
        """Return the plugins of other distributions, or ``None`` if no distribution has one."""
        if not has_plugins():
            return None
        from cpu_tiers.nova.compute import plugins

        plugins.check_signature(driver.LibvirtDriver._get_guest_xml)
        return plugins.Plugins(lambda: self._host.get_capabilities().to_xml())

    def init_host(self, host: str) -> None:
        """Start as Nova's driver; the process ends if plugins contradict each other, or Nova."""
        super().init_host(host)
        if self._plugins:
            from cpu_tiers.nova.compute.plugins import host_of

            with refusals_end_process(ExtensionError):
                topology = host_of(self._get_host_numa_topology())
                self._plugins.check_elements(topology, self._arch)

    @property
    def _arch(self) -> str:
        return str(self._host.get_capabilities().host.cpu.arch)

    def _get_guest_xml(
        self, context: RequestContext, instance: objects.Instance, *args: Any, **kwargs: Any
    ) -> Any:
        """Return Nova's XML of a guest, with the elements of plugins."""
        xml = super()._get_guest_xml(context, instance, *args, **kwargs)
        if self._plugins is None:
            return xml
        from cpu_tiers.nova.compute.plugins import guest_of

        guest = guest_of(instance, self._get_host_numa_topology(), self._arch)
        return xml if guest is None else self._plugins.with_elements(xml, guest)

    def _update_guest_cputune(self, guest: Guest, flavor: objects.Flavor) -> None:
        super()._update_guest_cputune(guest, self._weighted(flavor, guest.uuid))

    def _weighted(self, flavor: objects.Flavor, server: str) -> objects.Flavor:
        """Return a flavor whose ``quota:cpu_shares`` is the weight that the guest must have."""
        # Nova does not start a guest with a weight on a host without the cpu controller.
        gives_least = (
            CONF.libvirt.least_weight_without_tier and self._host.is_cpu_control_policy_capable()
        )
        return with_plain_shares(flavor, server, gives_least=gives_least)

    def update_provider_tree(
        self, provider_tree: NovaTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Report everything of Nova's report, NUMA nodes, and shares beside VCPU.

        Nova's own function runs once, on the real tree. Before the function asks for a reshape, it
        adds child providers to the tree, and the second call of the function relies on their
        traits (``_update_provider_tree_for_memory_encryption`` since Nova 32).

        :raises nova.exception.ReshapeNeeded: at a start, where servers lack shares or move to
            NUMA nodes, or where Nova itself has something to move.
        :raises MoveRefused: the servers would not fit.
        :raises ReportRefused: at a start, where reporting was turned off, or where provider.yaml
            reports shares, too.
        """
        run = host_report.CURRENT.get()
        if run is None:  # no function of Nova 31 to 34 calls the driver outside of a run
            super().update_provider_tree(provider_tree, nodename, allocations=allocations)
            return
        host = HostReport(run=run, name=nodename, tree=provider_tree, allocations=allocations)
        self._update(host)
        # Nova's function has kept a copy of the tree, for spawn() and others; now it is old.
        self.provider_tree = copy.deepcopy(provider_tree)

    def _update(self, host: HostReport) -> None:
        """Edit the tree and the allocations of a host."""
        decision = report_decision.decide(host)
        consumers = report_decision.read_consumers(host, decision)
        if consumers is None:
            host = host.as_if_running()
            decision, consumers = report_decision.decide(host), StartingConsumers()
        if decision.nodes:
            # Also where nova.conf does not ask for nodes, and the host must go on to report them.
            COMPUTE.turn_on([NUMA_REPORTING])
        before = host.state if decision.nodes else State(providers={})
        with _root_as_before(host, decision):
            if decision.nodes:
                from cpu_tiers.nova.compute.numa.numa_inventory import show_pcpus

                show_pcpus(host)
            super().update_provider_tree(host.tree, host.name, allocations=host.allocations)
            if host.is_starting and host.allocations is None:
                self._ask_for_reshape(host, decision, before, consumers)
        nodes = self._report(host, decision, before)
        if host.is_starting and host.allocations is not None:
            _reshape(host, decision, nodes, host.allocations)
        if CONF.compute.live_tier_change and time.monotonic() > self._next_settlement:
            from cpu_tiers.nova.compute import tier_change

            self._next_settlement = time.monotonic() + _SETTLEMENT_SECONDS
            tier_change.settle_all(host.run.context, CONF.host, self._set_weight)

    def inject_network_info(self, instance: objects.Instance, nw_info: object) -> None:
        """Set the weight of a running guest whose tier has changed: nova-api calls for it.

        Nova's own method does nothing.
        """
        if CONF.compute.live_tier_change:
            from cpu_tiers.nova.compute import tier_change

            context = instance._context.elevated()
            tier_change.settle(context, instance.uuid, self._set_weight)

    def _set_weight(self, server: objects.Instance) -> None:
        """Give a guest the weight of the flavor of its server, now and for its next start.

        nova-api claims more shares before, and nova-compute gives back what is too much
        afterwards. While libvirt refuses the weight, the metadata have the tier that is not
        claimed, up or down: the audit finds the change that is pending.

        :raises libvirt.libvirtError: libvirt refuses.
        """
        try:
            guest = self._host.get_guest(server)
        except exception.InstanceNotFound:
            return  # the guest gets its weight when it starts
        weight = int(self._weighted(server.flavor, server.uuid).extra_specs.get(SHARES, 0))
        weight = weight or default_weight()
        running = etree.fromstring(guest._domain.XMLDesc(0)).findtext("cputune/shares")
        steps = [
            functools.partial(_weigh, guest, weight),
            functools.partial(self._describe, guest, server),
        ]
        if weight < int(running or default_weight()):
            steps.reverse()
        for step in steps:
            step()
        LOG.info("The guest has weight %d now", weight, instance=server)

    def _describe(self, guest: Guest, server: objects.Instance) -> None:
        """Write the flavor of a server into the metadata of its guest."""
        metadata = self.get_instance_driver_metadata(server, server.get_network_info())
        text = self._get_guest_config_meta(metadata)
        guest.set_metadata(text, persistent=True, live=guest.is_active())

    def _ask_for_reshape(
        self,
        host: HostReport,
        decision: ReportDecision,
        before: State,
        consumers: StartingConsumers,
    ) -> None:
        """Ask Nova for the allocations of the host, if some of them must change."""
        if not decision.shares and not decision.nodes:
            return
        # On a copy, because Nova calls the driver again with this tree.
        coming = host.with_copied_tree()
        self._report(coming, decision, before)
        if decision.nodes:
            from cpu_tiers.nova.compute.numa import numa_inventory

            numa_inventory.warn_of_pinned_servers(host)
        if shares_inventory.plan_shares(coming, consumers.missing_shares, consumers.allocations):
            LOG.info("Servers on %s lack %s", host.name, VCPU_SHARES)
            raise exception.ReshapeNeeded()
        if decision.nodes and numa_inventory.allocations_to_move(coming, consumers.allocations):
            LOG.info("Servers on %s move to its NUMA nodes", host.name)
            raise exception.ReshapeNeeded()

    def _report(self, host: HostReport, decision: ReportDecision, before: State) -> frozenset[str]:
        """Edit the tree after Nova; return the names of the NUMA nodes and page sizes."""
        _set_traits(host, decision)
        nodes = frozenset[str]()
        if decision.nodes:
            cpus = self._get_vcpu_available() | self._get_pcpu_available()
            nodes = self._node_reporter.report(host, cpus, before)
        if decision.shares:
            shares_inventory.put_shares(
                host, CONF.libvirt.vcpu_share_multiplier, CONF.libvirt.emulator_overhead_percent
            )
            if host.is_starting:
                shares_inventory.refuse_two_reporters(host)
        shares_inventory.put_back_shares(host, decision.kept_shares)
        if self._plugins:
            self._plugins.report(host, nodes)
        return nodes

    @functools.cached_property
    def _node_reporter(self) -> NodeReporter:
        from cpu_tiers.nova.compute.numa.numa_inventory import NodeReporter

        return NodeReporter(lambda: self._host.get_capabilities().to_xml())


def has_plugins() -> bool:
    """Tell whether a distribution beside cpu-tiers has a plugin that nova-compute calls."""
    groups = ("cpu_tiers.inventory", "cpu_tiers.domain_xml")
    points = (point for group in groups for point in entry_points(group=group))
    return any(not point.value.startswith("cpu_tiers.") for point in points)


def _set_traits(host: HostReport, decision: ReportDecision) -> None:
    """Set the traits of functions that are on (decision D76), and remove those of functions off.

    Other traits stay. A tree that is right already is not changed, and Nova sends no request. The
    traits that tell the number of NUMA nodes are removed; the report of the nodes adds them.
    """
    host.tree.remove_traits(host.name, *(t for t in host.root.traits if t.startswith(OF_TREE)))
    reports_shares: bool = CONF.libvirt.report_vcpu_shares or bool(decision.kept_shares)
    switches = {NO_NUMA_TRAIT: decision.no_numa, MULTIPLIER_TRAIT: reports_shares}
    switches[TIER_CHANGE_TRAIT] = bool(CONF.compute.live_tier_change)
    switches |= dict.fromkeys(POLICY_TRAITS, options.extends_cpu_policies())
    for trait, is_on in switches.items():
        change = host.tree.add_traits if is_on else host.tree.remove_traits
        change(host.name, *names_of_trait(trait))


def _weigh(guest: Guest, weight: int) -> None:
    flags = [driver.libvirt.VIR_DOMAIN_AFFECT_CONFIG]
    flags += [driver.libvirt.VIR_DOMAIN_AFFECT_LIVE] if guest.is_active() else []
    for flag in flags:  # libvirt does not accept both at once
        guest._domain.setSchedulerParametersFlags({"cpu_shares": weight}, flag)


@contextlib.contextmanager
def _root_as_before(host: HostReport, decision: ReportDecision) -> Iterator[None]:
    """Put the inventories of the root back where a reshape is needed.

    Nova then calls the driver again with the edited tree, and the second call must read the
    inventories of Placement from the tree. Nova's function changes the root last, so Nova's own
    second call finds the root unchanged, too.
    """
    inventory = host.root.inventory
    try:
        yield
    except exception.ReshapeNeeded:
        if decision.nodes or decision.shares:
            host.tree.update_inventory(host.name, inventory)
        raise


def _reshape(
    host: HostReport, decision: ReportDecision, nodes: frozenset[str], allocations: Allocations
) -> None:
    """Give servers their missing shares, and move servers to NUMA nodes.

    :param host: with the tree as the host is going to report it.
    :param allocations: in Nova's shape; edited in place.
    :raises MoveRefused: the servers would not fit, or Nova's database does not answer.
    """
    before = copy.deepcopy(allocations)
    with report_decision.refusing_unknown_servers(host):
        if decision.shares:
            missing = shares_inventory.find_missing_shares(host, allocations)
            additions = shares_inventory.plan_shares(host, missing, allocations)
            shares_inventory.refuse_shares_without_room(host, additions)
            shares_inventory.add_shares(host, additions, allocations)
        if nodes:
            from cpu_tiers.nova.compute.numa.numa_inventory import move_servers

            move_servers(host, nodes, allocations)
    if allocations != before:
        host.run.edited.add(host.name)

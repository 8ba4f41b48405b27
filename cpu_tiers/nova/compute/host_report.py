"""The report of a host to Placement, as Nova hands it to the compute driver.

``ResourceTracker._update_to_placement`` is the only caller of the driver's
``update_provider_tree``, and does not tell the driver whether nova-compute is starting: the only
time when Nova reshapes. A seam keeps the arguments of the function for the time of the call.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Self

from nova import exception
from nova.context import RequestContext

from cpu_tiers.accounting.holdings import Holdings, ProviderId, ProviderName
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import is_part
from cpu_tiers.nova.compute.start_refusal import MoveRefused, refusals_end_process
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.protocols import NovaTree, ProviderData, ResourceTracker
from cpu_tiers.nova.seams import Function, seam
from cpu_tiers.placement.records import Inventories, Traits, read_inventory
from cpu_tiers.placement.steps import ProviderState, State

Allocations = dict[str, dict[str, Any]]
"""The allocations of several consumers in Nova's shape, by the uuid of the consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerRun:
    """One run of the resource tracker, in which a host reports itself to Placement.

    :param context: Nova's request context, which reaches the database of the host's cell v2.
    :param edited: the names of the compute nodes whose allocations cpu-tiers has changed in a
        reshape. A failure of the reshape is then a failure of cpu-tiers.
    """

    tracker: ResourceTracker
    context: RequestContext
    startup: bool
    edited: set[str] = field(default_factory=set)


CURRENT: ContextVar[TrackerRun | None] = ContextVar("cpu_tiers_tracker_run", default=None)
"""The run of the calling resource tracker: nova-compute handles several requests at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What Nova knows of a host while the host reports itself to Placement.

    :param name: the name of the compute node, which is the name of its root provider.
    :param tree: Nova's ``ProviderTree``: first the providers as Placement has them, then as
        Nova's driver and ours have edited them.
    :param allocations: the allocations of all consumers of the host, to be edited in place.
        Nova brings them only in the second call, after the driver raised ``ReshapeNeeded``.
    """

    run: TrackerRun
    name: str
    tree: NovaTree
    allocations: Allocations | None = None

    @property
    def root(self) -> ProviderData:
        """Return a copy of Nova's data of the root provider."""
        return self.tree.data(self.name)

    @property
    def nodes(self) -> list[ProviderData]:
        """Return copies of Nova's data of the NUMA nodes and page sizes, parents first."""
        providers = (self.tree.data(uuid) for uuid in self.tree.get_provider_uuids(self.name))
        return [data for data in providers if is_part(self.name, data.name)]

    @property
    def providers(self) -> list[ProviderData]:
        """Return Nova's data of the root and the NUMA nodes, without the children of others."""
        return [self.root, *self.nodes]

    @property
    def state(self) -> State:
        """Return the root and the NUMA nodes as values of cpu-tiers."""
        names = {data.uuid: data.name for data in self.providers}
        return State(providers={data.name: _provider(data, names) for data in self.providers})

    @property
    def is_starting(self) -> bool:
        """Tell whether nova-compute is starting: the only time when Nova reshapes."""
        return self.run.startup

    @property
    def compute_node(self) -> ComputeNode:
        """Return the compute node, to ask Nova's database for the owners of its consumers."""
        return ComputeNode(
            context=self.run.context,
            host=self.run.tracker.host,
            name=ProviderName(self.name),
            uuid=ProviderId(self.root.uuid),
        )

    def read_allocations(self) -> Allocations:
        """Return the allocations of all consumers, by Nova or else read from Placement."""
        if self.allocations is not None:
            return self.allocations
        client = self.run.tracker.reportclient
        return client.get_allocations_for_provider_tree(self.run.context, self.name)

    def holdings(self, allocations: Allocations) -> Holdings[ProviderName]:
        """Return the holdings of the root and the NUMA nodes in allocations."""
        names = {data.uuid: data.name for data in self.providers}
        return Holdings.by_name(
            {
                consumer: {
                    names[uuid]: allocation["resources"]
                    for uuid, allocation in body["allocations"].items()
                    if uuid in names
                }
                for consumer, body in allocations.items()
            }
        )

    def file_with_shares(self, provider: ProviderData) -> str | None:
        """Return the path of a provider configuration file with shares of a provider.

        Nova's rule: ``$COMPUTE_NODE`` counts for a root provider whose name and uuid are both
        not configured ("Managing Resource Providers Using Config Files" in Nova's guide).
        """
        configs = self.run.tracker.provider_configs  # as Nova read the files, by name or uuid
        host_configs = [configs[key] for key in (provider.name, provider.uuid) if key in configs]
        if not host_configs and provider.parent_uuid is None and "$COMPUTE_NODE" in configs:
            host_configs = [configs["$COMPUTE_NODE"]]
        for config in host_configs:
            for inventories in config.get("inventories", {}).get("additional", ()):
                if VCPU_SHARES in inventories:
                    return str(config["__source_file"])
        return None

    def as_if_running(self) -> Self:
        """Return the report as in a run after the start, in which nothing is reshaped."""
        return replace(self, run=replace(self.run, startup=False))

    def with_copied_tree(self) -> Self:
        """Return the report with a copy of the tree: edits of the copy are not reported."""
        return replace(self, tree=copy.deepcopy(self.tree))


def _provider(data: ProviderData, names: Mapping[str, str]) -> ProviderState:
    generation = data.generation or 0  # Nova has none of a provider that is not in Placement yet
    by_class = {name: read_inventory(record) for name, record in data.inventory.items()}
    return ProviderState(
        uuid=data.uuid,
        parent=data.parent_uuid and names.get(data.parent_uuid),
        inventories=Inventories(generation=generation, by_class=by_class),
        traits=Traits(generation=generation, names=frozenset(data.traits)),
    )


def _remember(
    original: Function,
    self: ResourceTracker,
    context: RequestContext,
    compute_node: object,
    startup: bool,
) -> Any:
    """Remember the run while Nova calls the driver.

    :raises MoveRefused: Placement has not carried out a reshape in which cpu-tiers moves
        allocations.
    """
    run = TrackerRun(tracker=self, context=context, startup=startup)
    token = CURRENT.set(run)
    with refusals_end_process() if startup else contextlib.nullcontext():
        try:
            return original(self, context, compute_node, startup)
        except exception.ReshapeFailed as failure:
            if not run.edited or isinstance(failure, MoveRefused):
                raise
            raise MoveRefused(str(failure)) from failure
        finally:
            CURRENT.reset(token)


SEAMS = (
    seam(
        "nova.compute.resource_tracker:ResourceTracker._update_to_placement",
        "self, context, compute_node, startup",
        _remember,
    ),
    # Methods that the driver overrides or calls are only verified: a subclass needs no wrapper.
    *(
        seam(f"nova.virt.libvirt.driver:LibvirtDriver.{name}", parameters)
        for name, parameters in (
            ("__init__", "self, virtapi, read_only=False"),
            ("update_provider_tree", "self, provider_tree, nodename, allocations=None"),
            ("_update_guest_cputune", "self, guest, flavor"),
            ("_get_vcpu_available", "self"),
            ("_get_pcpu_available", "self"),
        )
    ),
)

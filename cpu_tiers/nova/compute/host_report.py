"""The report of a host to Placement, as Nova hands it to the compute driver.

Nova calls ``update_provider_tree`` of the driver with a provider tree, the name of the compute
node and sometimes allocations, and a seam adds the run of the resource tracker. All of this is
one value here, and every function of the report takes the value.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from cpu_tiers.accounting.holdings import ProviderName
from cpu_tiers.model.numa import is_part
from cpu_tiers.nova.compute.tracker_run import TrackerRun, file_with_shares
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.placement.records import Inventories, Traits, read_inventory
from cpu_tiers.placement.steps import ProviderState, State


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What Nova knows of a host while the host reports itself to Placement.

    :param run: the run of the resource tracker that reports the host.
    :param name: the name of the compute node, which is the name of its root provider.
    :param tree: Nova's ``ProviderTree``: first the providers as Placement has them, then as
        Nova's driver and ours have edited them.
    :param allocations: the allocations of all consumers of the host, to be edited in place.
        Nova brings them only in the second call, after the driver raised ``ReshapeNeeded``.
    """

    run: TrackerRun
    name: str
    tree: Any
    allocations: dict[str, dict[str, Any]] | None = None

    @property
    def root(self) -> Any:
        """Return a copy of Nova's data of the root provider."""
        return self.tree.data(self.name)

    @property
    def nodes(self) -> list[Any]:
        """Return copies of Nova's data of the NUMA nodes and page sizes, parents first."""
        providers = (self.tree.data(uuid) for uuid in self.tree.get_provider_uuids(self.name))
        return [data for data in providers if is_part(self.name, data.name)]

    @property
    def providers(self) -> list[Any]:
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
            uuid=self.root.uuid,
        )

    def read_allocations(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the allocations of all consumers, by Nova or else read from Placement."""
        return self.run.allocations(self.name) if self.allocations is None else self.allocations

    def file_with_shares(self, provider: Any) -> str | None:
        """Return the path of a provider.yaml with shares of a provider, or ``None``.

        :param provider: Nova's data of a provider of the host.
        """
        configs, is_root = self.run.tracker.provider_configs, provider.parent_uuid is None
        return file_with_shares(configs, provider.name, provider.uuid, is_root=is_root)

    def as_if_running(self) -> Self:
        """Return the report as in a run after the start, in which nothing is reshaped."""
        return replace(self, run=replace(self.run, startup=False))

    def with_copied_tree(self) -> Self:
        """Return the report with a copy of the tree: edits of the copy are not reported."""
        return replace(self, tree=copy.deepcopy(self.tree))


def _provider(data: Any, names: Mapping[str, str]) -> ProviderState:
    generation = data.generation or 0  # Nova has none of a provider that is not in Placement yet
    by_class = {name: read_inventory(record) for name, record in data.inventory.items()}
    return ProviderState(
        uuid=data.uuid,
        parent=names.get(data.parent_uuid),
        inventories=Inventories(generation=generation, by_class=by_class),
        traits=Traits(generation=generation, names=frozenset(data.traits)),
    )

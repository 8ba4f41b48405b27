"""Reading the provider tree of a host, and writing the differences to another tree to Placement.

A second run writes nothing, or finishes a first run that has failed.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cpu_tiers.accounting.holdings import Amounts, Holdings, ProviderId, ProviderName
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.numa import is_part
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement.errors import ProviderMismatch
from cpu_tiers.placement.plan import steps
from cpu_tiers.placement.steps import Change, ProviderState, State, Step, bare_tree, tree_of
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.writer import Progress, Writer, carry_out


def sync(client: PlacementClient, tree: ProviderTree) -> tuple[Change, ...]:
    """Write the differences between Placement and a tree, and return the changes.

    :raises PlacementError: the attributes ``written``, ``unconfirmed`` and ``unwritten``
        of the error list the changes. ``ProviderMismatch`` (also if the root is new, and a host
        with its short or its fully qualified name exists), ``ProviderNotFound``,
        ``ReportingCannotBeDisabled`` and ``UnknownNames`` are raised before the first write.
    """

    def attempt(progress: Progress) -> None:
        state = read_state(client, tree)
        planned = steps(state, tree)
        name = tree.root.name
        for other in alike_roots(client, name) if name not in state.providers else ():
            raise ProviderMismatch(
                f"Placement has no provider {name}, and has {other}: if this is the same"
                f" host, give --hostname {other}; if not, create the provider first with"
                f" openstack resource provider create {name}",
                provider=other,
            )
        progress.begin(changes_of(planned))
        Writer(client, state).take(planned, progress)

    return carry_out(client.retry_policy, attempt)


def alike_roots(client: PlacementClient, name: str) -> list[str]:
    """Return the root providers that have the short or the fully qualified name of a host."""
    wanted = name.lower().split(".")
    roots = (other.name for other in client.providers() if other.parent is None)
    labels = ((root, root.lower().split(".")) for root in roots)
    return [
        root
        for root, labels_of_root in labels
        if labels_of_root[: len(wanted)] == wanted[: len(labels_of_root)]
    ]


def changes_of(planned: Iterable[Step]) -> tuple[Change, ...]:
    """Return the changes of all steps."""
    return tuple(change for step in planned for change in step.changes)


def read_state(client: PlacementClient, tree: ProviderTree) -> State:
    """Return the state of the providers of ``tree`` in Placement.

    The NUMA nodes and page sizes that Placement has under a root that is not foreign are read as
    well, because the host may have lost some of them.

    :raises UnknownNames: the tree has standard names that Placement lacks.
    """
    root = client.find_provider(tree.root.name)
    family = client.providers_in_tree(root.uuid) if root else ()
    relatives: dict[str, Provider] = {provider.name: provider for provider in family}
    wanted = _wanted_names(tree, relatives)
    # A provider outside of the family may have the name of a provider of the tree. It is read
    # as well, so that the plan can refuse it before the first write: names are unique.
    present = {name: relatives.get(name) or client.find_provider(name) for name in wanted}
    names = {provider.uuid: provider.name for provider in family}
    providers = {
        name: _read_provider(client, provider, names)
        for name, provider in present.items()
        if provider is not None
    }
    classes, traits = tree.names()
    for state in providers.values():  # Placement knows the names that its providers have.
        classes -= frozenset(state.inventories.by_class)
        traits -= state.traits.names
    absent_classes, absent_traits = client.absent_names(classes, traits)
    return State(providers=providers, absent_classes=absent_classes, absent_traits=absent_traits)


def _wanted_names(tree: ProviderTree, relatives: Iterable[str]) -> set[str]:
    wanted = {provider.name for provider in tree.providers}
    if not tree.root_is_foreign:
        wanted |= {name for name in relatives if is_part(tree.root.name, name)}
    return wanted


def _read_provider(
    client: PlacementClient, provider: Provider, names: dict[str, str]
) -> ProviderState:
    parent: str | None = None
    if (uuid := provider.parent) is not None:
        # A provider that ``tree`` names may be in the tree of another root.
        parent = names.get(uuid) or client.provider(uuid).name
    return ProviderState(
        uuid=provider.uuid,
        parent=parent,
        inventories=client.inventories(provider.uuid),
        traits=client.traits(provider.uuid),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementHost:
    """The provider tree of a compute host, and the holdings of its consumers.

    Providers such as GPUs and network agents are left out.

    :param tree: the root, and the NUMA nodes if the host reports them.
    :param state: the same providers with their uuids.
    """

    tree: ProviderTree
    state: State
    holdings: Holdings[ProviderName]

    @property
    def has_nodes(self) -> bool:
        """Tell whether the host reports its NUMA nodes."""
        return len(self.tree.providers) > 1

    @property
    def classes(self) -> frozenset[str]:
        """Return the resource classes of the host."""
        return frozenset(name for p in self.tree.providers for name in p.inventories)

    def uuid(self, provider: ProviderName) -> ProviderId:
        """Return the uuid of a provider."""
        return ProviderId(self.state.providers[provider].uuid)


def read_host(client: PlacementClient, name: str) -> PlacementHost | None:
    """Return a host; ``None`` if Placement does not know it."""
    state = read_state(client, bare_tree(name))
    if name not in state.providers:
        return None
    return PlacementHost(
        tree=tree_of(state, name),
        state=state,
        holdings=read_holdings(client, state, state.providers.keys()),
    )


def read_holdings(
    client: PlacementClient, state: State, names: Collection[str]
) -> Holdings[ProviderName]:
    """Return the holdings of the providers with these names."""
    portions: dict[str, dict[str, Amounts]] = {}
    for name in sorted(names):
        for consumer, amounts in client.allocations(state.providers[name].uuid).items():
            portions.setdefault(consumer, {})[name] = amounts
    return Holdings.by_name(portions)

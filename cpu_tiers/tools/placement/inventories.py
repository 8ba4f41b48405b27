"""The inventories of compute hosts in Placement: reported amounts and excesses."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import MULTIPLIER_TRAIT, PCPU, POLICY_TRAITS, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_trait
from cpu_tiers.model.providers import Excess, Provider, ProviderIndex
from cpu_tiers.tools.placement import cloud_reader
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import ReadProgress, untold
from cpu_tiers.tools.placement.memberships import traits_of_providers
from cpu_tiers.tools.tiers.ladder import PlacementFacts, Step, step_of_host
from cpu_tiers.tools.tiers.sold import HostShares, Sale


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """The report of a host to Placement: a provider tree with ``VCPU`` or ``PCPU``.

    :param is_numa_aware: the value of ``enable_numa_reporting_to_placement`` on the
        host, read from the traits; ``None`` if the option is not set there.
    :param has_pcpu, has_vcpu, has_shares: the root or NUMA nodes have such an inventory.
    :param tells_nodes: a host with NUMA nodes tells their number, as nova-scheduler requires.
    :param functions: the traits of the root provider that are about functions of cpu-tiers.
    """

    name: str
    is_numa_aware: bool | None
    has_pcpu: bool
    has_vcpu: bool
    has_shares: bool
    tells_nodes: bool = False
    functions: frozenset[str] = frozenset()

    @property
    def step(self) -> Step:
        """The step of the ladder on which the host stands, as far as Placement tells the step."""
        return step_of_host(
            reports_shares=self.has_shares,
            has_driver=None,
            reports_nodes=self.is_numa_aware is True,
        )


def survey(client: PlacementClient, progress: ReadProgress = untold) -> tuple[HostSurvey, ...]:
    """Return the compute hosts, sorted by name.

    It takes a request for each root provider and each NUMA node, and up to sixteen more.
    Storage pools and other providers without CPUs are left out.
    """
    providers = ProviderIndex(client.providers())
    nodes: dict[str, list[str]] = {}
    for node in client.providers_with_trait(NODE_TRAIT):
        nodes.setdefault(providers.roots.get(node.uuid, node.uuid), []).append(node.uuid)
    functions = (MULTIPLIER_TRAIT, *POLICY_TRAITS)
    traits = traits_of_providers(client, (NO_NUMA_TRAIT, count_trait(1), *functions))
    reports = []
    by_name = sorted(providers.by_id.values(), key=lambda provider: provider.name)
    for number, provider in enumerate(by_name):
        progress(number, len(by_name))
        if provider.parent is not None:
            continue
        uuids, has = [provider.uuid, *nodes.get(provider.uuid, ())], traits.get(provider.uuid, ())
        classes = {name for uuid in uuids for name in client.inventories(uuid).by_class}
        aware = True if provider.uuid in nodes else None
        if {VCPU, PCPU} & classes:
            reports.append(
                HostSurvey(
                    name=provider.name,
                    is_numa_aware=False if NO_NUMA_TRAIT in has else aware,
                    has_pcpu=PCPU in classes,
                    has_vcpu=VCPU in classes,
                    has_shares=VCPU_SHARES in classes,
                    tells_nodes=count_trait(1) in has,
                    functions=frozenset(has).intersection(functions),
                )
            )
    return tuple(reports)


def placement_facts(client: PlacementClient) -> PlacementFacts:
    """Return what Placement shows of the step of a cloud, in two requests."""
    traits = client.traits_in_use()
    return PlacementFacts(
        has_shares=VCPU_SHARES not in client.absent_names([VCPU_SHARES], [])[0],
        has_trait=MULTIPLIER_TRAIT in traits,
        has_nodes=NODE_TRAIT in traits,
    )


def read_shares(client: PlacementClient, host: str) -> HostShares:
    """Return the shares of a host, by the name of its root provider.

    :raises InvalidInput: Placement has no such provider.
    """
    root = client.find_provider(host)
    if root is None:
        raise InvalidInput.of(
            f"host {host}",
            "Placement has no provider of that name",
            "name it as Nova does: --hostname",
        )
    tree = cloud_reader.read_tree(client, root.uuid)
    shares = [p.inventories[VCPU_SHARES] for p in tree.providers if VCPU_SHARES in p.inventories]
    return HostShares(
        capacity=sum(inventory.capacity for inventory in shares) if shares else None,
        held={
            consumer: sum(amounts.get(VCPU_SHARES, 0) for amounts in held.values())
            for consumer, held in tree.consumers.items()
        },
        sale=Sale.of_tree(p.inventories for p in tree.providers),
        excesses=tuple(excess for p in tree.used_providers() for excess in p.excesses()),
    )


def held_elsewhere(client: PlacementClient, guests: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names of the providers of which guests hold something; not guests with nothing.

    :param guests: the uuids of guests that hold nothing of their host, which are few.
    """
    held = {guest: client.consumer(guest).allocations for guest in guests}
    return {
        guest: tuple(client.provider(uuid).name for uuid in allocations)
        for guest, allocations in held.items()
        if allocations
    }


def read_excesses(client: PlacementClient, progress: ReadProgress = untold) -> tuple[Excess, ...]:
    """Return the excesses of all providers of the cloud, sorted by the provider's name.

    It takes a request for each provider, and a further request for each provider with allocations.
    """
    providers = sorted(client.providers(), key=lambda provider: provider.name)
    return tuple(_excesses(client, providers, progress))


def excesses_of(client: PlacementClient, names: Iterable[str]) -> Iterator[Excess]:
    """Yield the excesses of some providers, by their names."""
    present = map(client.find_provider, sorted(set(names)))
    yield from _excesses(client, [provider for provider in present if provider])


def _excesses(
    client: PlacementClient, providers: Collection[Provider], progress: ReadProgress = untold
) -> Iterator[Excess]:
    for number, provider in enumerate(providers):
        progress(number, len(providers))
        used = client.usages(provider.uuid)
        if any(used.values()):
            inventories = client.inventories(provider.uuid).by_class
            yield from replace(provider, inventories=inventories, used=used).excesses()

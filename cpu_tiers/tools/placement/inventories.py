"""The inventories of compute hosts in Placement: reported amounts and oversold providers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import MULTIPLIER_TRAIT, PCPU, POLICY_TRAITS, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_trait
from cpu_tiers.model.providers import Excess, HostShares, Provider, ProviderTrees
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import (
    ReadProgress,
    read_tree,
    traits_of_providers,
    untold,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """The report of a host to Placement: a provider tree with ``VCPU`` or ``PCPU``.

    :param is_numa_aware: the value of ``enable_numa_reporting_to_placement`` on the
        host, read from the traits; ``None`` if the option is not set there.
    :param tells_nodes: a host with NUMA nodes tells their number, as nova-scheduler requires.
    :param has_pcpu: the host has an inventory of ``PCPU``, on its root or on NUMA nodes.
    :param has_vcpu: the host has an inventory of ``VCPU``, on its root or on NUMA nodes.
    :param has_shares: the host has an inventory of ``VCPU_SHARES``.
    :param has_other_name: the host has VCPU_SHARES under the name of another os-resource-classes.
    :param functions: the traits of the root provider that are about functions of cpu-tiers.
    """

    name: str
    is_numa_aware: bool | None
    has_pcpu: bool
    has_vcpu: bool
    has_shares: bool
    tells_nodes: bool = False
    has_other_name: bool = False
    functions: frozenset[str] = frozenset()


def survey(client: PlacementClient, progress: ReadProgress = untold) -> tuple[HostSurvey, ...]:
    """Return the compute hosts, sorted by name.

    It takes a request for each root provider and each NUMA node, and up to sixteen more.
    Storage pools and other providers without CPUs are left out.
    """
    providers = ProviderTrees(client.providers())
    nodes: dict[str, list[str]] = {}
    for node in client.providers_with_trait(NODE_TRAIT):
        nodes.setdefault(providers.roots.get(node.uuid, node.uuid), []).append(node.uuid)
    declined = {provider.uuid for provider in client.providers_with_trait(NO_NUMA_TRAIT)}
    telling = {provider.uuid for provider in client.providers_with_trait(count_trait(1))}
    functions = traits_of_providers(client, (MULTIPLIER_TRAIT, *POLICY_TRAITS))
    reports = []
    by_name = sorted(providers.by_id.values(), key=lambda provider: provider.name)
    for number, provider in enumerate(by_name):
        progress(number, len(by_name))
        if provider.parent is not None:
            continue
        uuids = [provider.uuid, *nodes.get(provider.uuid, ())]
        classes = {name for uuid in uuids for name in client.inventories(uuid).by_class}
        aware = True if provider.uuid in nodes else None
        if {VCPU, PCPU} & classes:
            reports.append(
                HostSurvey(
                    name=provider.name,
                    is_numa_aware=False if provider.uuid in declined else aware,
                    has_pcpu=PCPU in classes,
                    has_vcpu=VCPU in classes,
                    has_shares=VCPU_SHARES in classes,
                    tells_nodes=provider.uuid in telling,
                    has_other_name=not client.share_names.others.isdisjoint(uuids),
                    functions=frozenset(functions.get(provider.uuid, ())),
                )
            )
    return tuple(reports)


def read_shares(client: PlacementClient, host: str) -> HostShares:
    """Return the shares of a host.

    :param host: the name of its root provider.
    :raises InvalidInput: Placement has no such provider.
    """
    root = client.find_provider(host)
    if root is None:
        raise InvalidInput.of(
            f"host {host}",
            "Placement has no provider of that name",
            "name it as Nova does: --hostname",
        )
    tree = read_tree(client, root.uuid)
    shares = [p.inventories[VCPU_SHARES] for p in tree.providers if VCPU_SHARES in p.inventories]
    return HostShares(
        capacity=sum(inventory.capacity for inventory in shares) if shares else None,
        held={
            consumer: sum(amounts.get(VCPU_SHARES, 0) for amounts in held.values())
            for consumer, held in tree.consumers.items()
        },
        excesses=tuple(excess for p in tree.used_providers() for excess in p.excesses()),
    )


def read_excesses(client: PlacementClient, progress: ReadProgress = untold) -> tuple[Excess, ...]:
    """Return the excesses of all providers of the cloud, sorted by the provider's name.

    It takes a request for each provider, and a further request for each provider with allocations.
    """
    providers = sorted(client.providers(), key=lambda provider: provider.name)
    excesses: list[Excess] = []
    for number, provider in enumerate(providers):
        progress(number, len(providers))
        excesses += _excesses(client, provider)
    return tuple(excesses)


def excesses_of(client: PlacementClient, names: Iterable[str]) -> Iterator[Excess]:
    """Yield the excesses of some providers, by their names."""
    for name in sorted(set(names)):
        if provider := client.find_provider(name):
            yield from _excesses(client, provider)


def _excesses(client: PlacementClient, provider: Provider) -> Iterator[Excess]:
    used = client.usages(provider.uuid)
    if any(used.values()):
        inventories = client.inventories(provider.uuid).by_class
        yield from replace(provider, inventories=inventories, used=used).excesses()

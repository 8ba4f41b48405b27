"""A survey of all compute hosts in Placement: their NUMA nodes, CPUs and shares."""

from dataclasses import dataclass

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.model.names import MULTIPLIER_TRAIT, PCPU, POLICY_TRAITS, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_trait
from cpu_tiers.model.providers import roots_of
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.reading import ReadProgress, untold


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
    providers = {provider.uuid: provider for provider in client.providers()}
    roots = roots_of({uuid: provider.parent_uuid for uuid, provider in providers.items()})
    nodes: dict[ProviderId, list[ProviderId]] = {}
    for node in client.providers_with_trait(NODE_TRAIT):
        nodes.setdefault(roots.get(node.uuid, node.uuid), []).append(node.uuid)
    declined = {provider.uuid for provider in client.providers_with_trait(NO_NUMA_TRAIT)}
    telling = {provider.uuid for provider in client.providers_with_trait(count_trait(1))}
    functions: dict[ProviderId, set[str]] = {}
    for trait in (MULTIPLIER_TRAIT, *POLICY_TRAITS):
        for provider in client.providers_with_trait(trait):
            functions.setdefault(provider.uuid, set()).add(trait)
    reports = []
    by_name = sorted(providers.values(), key=lambda provider: provider.name)
    for number, provider in enumerate(by_name):
        progress(number, len(providers))
        if provider.parent_uuid is not None:
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

"""Reads some hosts of a cloud, and their sharing providers, as a cloud in memory.

Provider summaries tell the use and the traits of a provider, but neither the limits of a single
claim (``min_unit``, ``max_unit``, ``step_size``) nor the aggregates.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import MAX_AMOUNT, SHARING
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import ReadProgress, untold
from cpu_tiers.tools.placement.memberships import aggregates_of_sharing, passing_deleted


def read_hosts(
    client: PlacementClient,
    hosts: Collection[str],
    summaries: Mapping[str, Mapping[str, Any]],
    amounts: Mapping[str, Collection[int]],
    aggregates: Iterable[str] = (),
    progress: ReadProgress = untold,
) -> SimulatedCloud:
    """Return some hosts and all sharing providers, with the trees of both.

    It takes a request for the list of providers and for those that share, two for each sharing
    provider, one for each amount, one for each provider that is read and has not all amounts of
    its classes free, and three for each provider without a summary. Of a provider that is deleted
    meanwhile, the cloud has only the name.

    :param hosts: the root providers of the hosts.
    :param summaries: the provider summaries of earlier answers.
    :param amounts: the amounts of each resource class that any claim may take of one provider;
        inventories of other classes may be left out. If a single claim may take all amounts, the
        limits of the inventory do not matter. Without amounts of a class, all are read.
    :param aggregates: the aggregates that matter beside those of sharing providers.
    """
    providers = ProviderIndex(client.providers())
    sharing = {record.uuid for record in client.providers_with_trait(SHARING)}
    members = aggregates_of_sharing(client, sharing, aggregates)
    wanted = {*hosts, *(providers.roots[uuid] for uuid in sharing)}
    read = [each for uuid, each in providers.by_id.items() if providers.roots[uuid] in wanted]
    with_room: dict[str, set[str]] = {}
    for name in amounts:
        for amount in sorted(amounts[name]):
            uuids = {each.uuid for each in client.providers_with_room(name, amount)}
            with_room[name] = with_room.get(name, uuids) & uuids
    states: dict[str, Provider] = {}
    for number, record in enumerate(sorted(read, key=lambda record: record.name)):
        progress(number, len(read))
        uuid = record.uuid
        bare = states[uuid] = replace(record, aggregates=frozenset(members.get(uuid, ())))
        with passing_deleted():
            states[uuid] = _state(client, bare, summaries.get(uuid), amounts, with_room)
    return SimulatedCloud(states.values())


def _inventories_of(summary: Mapping[str, Any], names: Collection[str]) -> dict[str, Inventory]:
    """Return the capacities that a provider summary tells of resource classes, as inventories.

    :param names: the classes that matter. Without any, the other classes tell the kind of the
        host.
    """
    resources = summary["resources"]
    names = names or [name for name, amounts in resources.items() if amounts["capacity"]]
    return {
        name: Inventory(total=resources[name]["capacity"], max_unit=MAX_AMOUNT) for name in names
    }


def _state(
    client: PlacementClient,
    record: Provider,
    summary: Mapping[str, Any] | None,
    classes: Collection[str],
    with_room: Mapping[str, Collection[str]],
) -> Provider:
    uuid = record.uuid
    if summary is None:
        used: Mapping[str, int] = client.usages(uuid)
        traits = client.traits(uuid).names
    else:
        used = {name: amounts["used"] for name, amounts in summary["resources"].items()}
        traits = frozenset(summary["traits"])
    present = [name for name in classes if name in used]
    if summary is not None and all(uuid in with_room.get(name, ()) for name in present):
        inventories = _inventories_of(summary, present)
    else:
        inventories = dict(client.inventories(uuid).by_class)
    used = {name: used.get(name, 0) for name in inventories}
    return replace(record, inventories=inventories, traits=traits, used=used)

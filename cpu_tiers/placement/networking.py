"""Make Placement have a networking tree under a host that nova-compute reports.

Spec: bandwidth-resource-provider, "Neutron agent first start", "… restart",
"Finding the compute RP". Beside :func:`~cpu_tiers.placement.sync.sync`: the
host must be there by the name that the agent has for it, and a device that is
gone goes, unless servers use it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.errors import (
    Interrupted,
    PlacementError,
    ProviderInUse,
    ProviderNotFound,
)
from cpu_tiers.placement.records import Provider
from cpu_tiers.placement.steps import ABSENT, PRESENT, Change
from cpu_tiers.placement.sync import sync
from cpu_tiers.placement.writer import Progress, carry_out


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDevice:
    """A device that its agent does not report any more, but that servers use.

    :param used: amounts by resource class.
    """

    provider: str
    used: Mapping[str, int]

    def __str__(self) -> str:
        """Return one line for a person."""
        used = ", ".join(f"{amount} of {name}" for name, amount in sorted(self.used.items()))
        return (
            f"{self.provider}: its agent does not report it any more, but servers hold {used};"
            " it is kept. Move them away, then repeat"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkingChanges:
    """What was written, and which devices were kept though they are gone."""

    changes: tuple[Change, ...]
    kept: tuple[KeptDevice, ...]


def sync_networking(client: PlacementClient, tree: ProviderTree) -> NetworkingChanges:
    """Write what differs of a tree of :mod:`cpu_tiers.inventory.networking`.

    :raises PlacementError: as :func:`~cpu_tiers.placement.sync.sync`.
    :raises ProviderNotFound: no provider has the name of the host; those that
        may be the same host are named.
    """
    try:
        changes = sync(client, tree)
    except ProviderNotFound as error:
        raise _with_lookalikes(client, error) from error
    kept: list[KeptDevice] = []
    try:
        gone = carry_out(partial(_delete_strays, client, tree, kept))
    except (PlacementError, Interrupted) as error:
        error.came_after(changes)
        raise
    return NetworkingChanges(changes=(*changes, *gone), kept=tuple(kept))


def _delete_strays(
    client: PlacementClient, tree: ProviderTree, kept: list[KeptDevice], progress: Progress
) -> None:
    """Delete the devices that the tree lacks; add those that servers use to ``kept``."""
    kept.clear()
    strays = {
        Change(provider=device.name, what="provider", before=PRESENT, after=ABSENT): device
        for device in _strays(client, tree)
    }
    progress.begin(tuple(strays))
    for change, device in strays.items():
        progress.send((change,))
        try:
            client.delete_provider(device.uuid)
        except ProviderInUse:
            progress.drop()
            kept.append(KeptDevice(provider=device.name, used=_used(client, device)))
        else:
            progress.confirm()


def _strays(client: PlacementClient, tree: ProviderTree) -> Iterable[Provider]:
    """Return the devices of our agents, by parent and name, that the tree lacks."""
    wanted = {provider.name for provider in tree.providers}
    host = client.find_provider(tree.root.name)
    family = client.providers_in_tree(host.uuid) if host else ()
    agents = {p.uuid: p.name for p in family if p.name in wanted and p.name != tree.root.name}
    return tuple(
        provider
        for provider in family
        if provider.parent_uuid in agents
        and provider.name not in wanted
        and provider.name.startswith(f"{agents[provider.parent_uuid]}:")
    )


def _used(client: PlacementClient, device: Provider) -> dict[str, int]:
    return {name: amount for name, amount in client.usages(device.uuid).items() if amount}


def _with_lookalikes(client: PlacementClient, error: ProviderNotFound) -> ProviderNotFound:
    """Name the hosts whose names are the same up to the first dot, or but for case."""
    name = error.provider
    label = name.split(".")[0].lower()
    similar = sorted(
        provider.name
        for provider in client.providers()
        if provider.parent_uuid is None and provider.name.split(".")[0].lower() == label
    )
    advice = (
        f"it has {', '.join(similar)}: if that is the same host, give the agent that name"
        if similar
        else "start nova-compute there first, or give the agent the name that it reports"
    )
    told = ProviderNotFound(
        f"Placement has no provider {name}; {advice} (Neutron's"
        " resource_provider_hypervisors or resource_provider_default_hypervisor; see"
        " openstack hypervisor list)",
        provider=name,
    )
    told.report()
    return told

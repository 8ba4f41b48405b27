"""Writing the providers of Neutron's agents to Placement, under a host of nova-compute.

The host must be in Placement with the name in the agent's report, and devices missing in the
report are deleted. A missing device that servers use is kept, with all of its inventory reserved:
no further server gets it.

Spec: bandwidth-resource-provider, "Neutron agent first start", "Neutron agent restart",
"Finding the compute RP".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement.errors import Interrupted, PlacementError, ProviderInUse, ProviderNotFound
from cpu_tiers.placement.steps import ABSENT, PRESENT, Change, SetInventories
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import changes_of, sync
from cpu_tiers.tools.placement.writer import Progress, carry_out, write_all


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDevice:
    """A device without a report of its agent, kept because servers use the device."""

    provider: str
    used: Mapping[str, int]

    def __str__(self) -> str:
        """Return the warning for the operator."""
        used = ", ".join(f"{amount} of {name}" for name, amount in sorted(self.used.items()))
        return (
            f"{self.provider} is kept: its agent no longer reports this device, but servers hold"
            f" {used}. All of it is reserved, so no further server gets the device. Move these"
            " servers to another host and repeat the command"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkingChanges:
    """The written changes, and the devices kept because of their servers."""

    changes: tuple[Change, ...]
    kept: tuple[KeptDevice, ...]


def sync_networking(client: PlacementClient, tree: ProviderTree) -> NetworkingChanges:
    """Write what differs between Placement and a tree of ``tools/networking/agent_tree.py``.

    :raises PlacementError: as in :func:`~cpu_tiers.tools.placement.sync.sync`.
    :raises ProviderNotFound: no provider has the name of the host; the error names the
        providers with similar names.
    """
    try:
        changes = sync(client, tree)
    except ProviderNotFound as error:
        raise _with_lookalikes(client, error) from error
    kept: list[KeptDevice] = []
    for attempt in (_delete_strays, _reserve_all):
        try:
            changes += carry_out(client.retry_policy, partial(attempt, client, tree, kept))
        except (PlacementError, Interrupted) as error:
            error.prepend_written(changes)
            raise
    return NetworkingChanges(changes=changes, kept=tuple(kept))


def _delete_strays(
    client: PlacementClient, tree: ProviderTree, kept: list[KeptDevice], progress: Progress
) -> None:
    """Delete the devices outside of the tree, but add devices in use to ``kept``."""
    kept.clear()  # carry_out() may call this again after a conflict.
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
            used = {name: amount for name, amount in client.usages(device.uuid).items() if amount}
            kept.append(KeptDevice(provider=device.name, used=used))
        else:
            progress.confirm()


def _reserve_all(
    client: PlacementClient, tree: ProviderTree, kept: list[KeptDevice], progress: Progress
) -> None:
    names = {device.provider for device in kept}
    steps: list[tuple[SetInventories, str, int]] = []
    for device in _strays(client, tree) if names else ():
        if device.name in names:
            now = client.inventories(device.uuid)
            after = {
                name: replace(inventory, reserved=inventory.total)
                for name, inventory in now.by_class.items()
            }
            step = SetInventories(provider=device.name, before=now.by_class, after=after)
            if step.changes:
                steps.append((step, device.uuid, now.generation))
    progress.begin(changes_of(step for step, _, _ in steps))
    for step, uuid, generation in steps:
        progress.send(step.changes)
        write_all(client, uuid, step, generation)
        progress.confirm()


def _strays(client: PlacementClient, tree: ProviderTree) -> Iterable[Provider]:
    """Return the devices below the agents of the tree, but not in the tree.

    A device is a child of an agent whose name starts with the agent's name and a
    colon, as Neutron names devices. Other children are not touched.
    """
    wanted = {provider.name for provider in tree.providers}
    host = client.find_provider(tree.root.name)
    family = client.providers_in_tree(host.uuid) if host else ()
    agents = {p.uuid: p.name for p in family if p.name in wanted and p.name != tree.root.name}
    return tuple(
        provider
        for provider in family
        if provider.parent in agents
        and provider.name not in wanted
        and provider.name.startswith(f"{agents[provider.parent]}:")
    )


def _with_lookalikes(client: PlacementClient, error: ProviderNotFound) -> ProviderNotFound:
    name = error.provider
    label = name.split(".")[0].lower()
    similar = sorted(
        provider.name
        for provider in client.providers()
        if provider.parent is None and provider.name.split(".")[0].lower() == label
    )
    advice = (
        f"it has {', '.join(similar)}: if this is the same host, give the agent this name"
        if similar
        else "start nova-compute there first, or give the agent the name that nova-compute reports"
    )
    advised_error = ProviderNotFound(
        f"Placement has no provider {name}; {advice} (in Neutron's options"
        " resource_provider_hypervisors or resource_provider_default_hypervisor; openstack"
        " hypervisor list shows the names)",
        provider=name,
    )
    advised_error.report()  # without changes: the message adds "Nothing was written."
    return advised_error

"""Give a host our name of VCPU_SHARES, in one ``POST /reshaper``.

Placement refuses to remove a resource class that servers hold. So the inventories of the host and
the allocations of all its consumers change their name in the same transaction. The amounts stay,
so that no server needs another place, and a rename needs no plan.
"""

from cpu_tiers.accounting.holdings import ConsumerId
from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES
from cpu_tiers.placement.errors import ProviderNotFound
from cpu_tiers.placement.steps import Change
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import PlacementHost, read_host
from cpu_tiers.tools.placement.writer import Progress, carry_out


def rename_shares(
    client: PlacementClient, host: str, *, is_applied: bool = True
) -> tuple[Change, ...]:
    """Give the providers of a host our name of VCPU_SHARES, if it is applied; return the changes.

    A second run changes nothing. Allocations on other hosts, in a move, stay unchanged.

    :raises ProviderNotFound: Placement does not know the host.
    :raises UnknownNames: the os-resource-classes of Placement does not contain our name.
    :raises PlacementError: the attributes of the error tell whether the changes were made.
    """
    planned: tuple[Change, ...] = ()

    def attempt(progress: Progress) -> None:
        nonlocal planned
        present = read_host(client, host)
        if present is None:
            raise ProviderNotFound(f"Placement has no provider {host}", provider=host)
        amounts = _amounts(client, present)
        planned = _changes(client, present, amounts)
        progress.begin(planned)
        if not planned or not is_applied:
            return
        client.ensure_names({VCPU_SHARES})
        consumers = [client.consumer(uuid) for uuid in amounts]
        inventories = {each.uuid: each.inventories for each in present.state.providers.values()}
        # From here on, the client writes our name for the host.
        client.share_names.others.difference_update(inventories)
        progress.send(planned)
        client.reshape(inventories, consumers)
        progress.confirm()

    written = carry_out(client.retry_policy, attempt)
    return written if is_applied else planned


def _amounts(client: PlacementClient, host: PlacementHost) -> dict[ConsumerId, int]:
    """Return the shares that consumers hold under the other name."""
    others = {n for n, p in host.state.providers.items() if p.uuid in client.share_names.others}
    amounts = {
        consumer: sum(portion.of(name).get(VCPU_SHARES, 0) for name in portion if name in others)
        for consumer, portion in host.holdings.items()
    }
    return {consumer: amount for consumer, amount in sorted(amounts.items()) if amount}


def _changes(
    client: PlacementClient, host: PlacementHost, amounts: dict[ConsumerId, int]
) -> tuple[Change, ...]:
    renamed = [
        (name, "inventory", provider.inventories.by_class[VCPU_SHARES].total)
        for name, provider in host.state.providers.items()
        if provider.uuid in client.share_names.others
    ]
    renamed += [(host.tree.root.name, f"allocations of {c}", n) for c, n in amounts.items()]
    return tuple(
        Change(provider=name, what=what, before=f"{n} {OTHER_SHARES}", after=f"{n} {VCPU_SHARES}")
        for name, what, n in renamed
    )

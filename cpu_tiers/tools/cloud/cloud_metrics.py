"""What of a cloud is sold and left, as metrics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.metrics import Metrics, single
from cpu_tiers.tools.sold.sold import SoldCloud
from cpu_tiers.tools.sold.sold_sums import ClassSum, TierRoom, group_sums, host_sums
from cpu_tiers.tools.tiers.tier import NO_TIER

HOSTS_WITH_CPUS = ("enabled", "disabled", "down")


def cloud_metrics(
    cloud: SoldCloud,
    rooms: Sequence[TierRoom],
    groups_of_hosts: Mapping[str, frozenset[str]],
    time: float,
    homeless: Sequence[int] | None = None,
) -> Iterator[Metrics]:
    """Yield the metrics of a cloud.

    :param rooms: how many more servers of each tier fit; empty if nobody knows.
    :param groups_of_hosts: the names of the hosts of each availability zone or host aggregate.
    :param time: when the cloud was read, in seconds since 1970.
    :param homeless: how many servers find no place, for each failure of a host that leaves any
        without a place; ``None`` if nobody knows.
    """
    shares = [each for each in cloud.amounts if each.resource_class == VCPU_SHARES]
    hosts = {host: sums[VCPU_SHARES] for host, sums in host_sums(shares).items()}
    groups = {
        name: sums[VCPU_SHARES]
        for name, sums in group_sums(shares, groups_of_hosts).items()
        if sums
    }
    down, disabled = cloud.down, cloud.disabled - cloud.down
    enabled = cloud.hosts - down - disabled
    states = zip(HOSTS_WITH_CPUS, map(len, (enabled, disabled, down)), strict=True)
    yield _gauge("cloud_hosts", "Hosts with CPUs", states, "state")
    over = {each.host for each in cloud.excesses}
    yield single("cloud_hosts_over", "Hosts with more allocated than the capacity", len(over))
    yield single("cloud_timestamp_seconds", "Time of the reading", time)
    yield from _survival(homeless)
    more = ((room.tier, room.more) for room in rooms)
    yield _gauge("tier_room", "Servers of the tier that still fit", more, "tier")
    untiered = _untiered(cloud, hosts)
    text = "Servers without a tier on a host with shares"
    yield _gauge("untiered_servers", text, untiered.items(), "host")
    yield from _shares("shares", "host", hosts)
    yield from _shares("group_shares", "group", groups)


def _untiered(cloud: SoldCloud, hosts: Iterable[str]) -> Mapping[str, int]:
    """Return the numbers of servers with shared CPUs and without a tier, of hosts with any."""
    wanted, servers = frozenset(hosts), defaultdict[str, set[str]](set)
    for part in cloud.parts:
        if part.tier == NO_TIER and part.resource_class == VCPU and part.host in wanted:
            servers[part.host].add(part.consumer)
    return Counter({host: len(host_servers) for host, host_servers in sorted(servers.items())})


def _survival(homeless: Sequence[int] | None) -> Iterator[Metrics]:
    """Yield which hosts may not fail; 0 of a cloud that survives the loss of any single host."""
    if homeless is not None:
        text = "Hosts of which a server finds no place if the host fails"
        number = sum(map(bool, homeless))
        yield single("cloud_hosts_may_not_fail", text, number)
        text = "Servers without a place after the worst failure of a single host"
        yield single("cloud_homeless_servers", text, max(homeless, default=0))


def _shares(name: str, label: str, sums: Mapping[str, ClassSum]) -> Iterator[Metrics]:
    sold = ((key, class_sum.used) for key, class_sum in sums.items())
    yield _gauge(f"{name}_sold", f"VCPU_SHARES that servers of the {label} have", sold, label)
    free = ((key, class_sum.capacity - class_sum.used) for key, class_sum in sums.items())
    yield _gauge(f"{name}_free", f"VCPU_SHARES of the {label} that are left", free, label)


def _gauge(name: str, text: str, values: Iterable[tuple[str, float]], label: str) -> Metrics:
    return Metrics(name, text, (((key,), value) for key, value in values), [label])

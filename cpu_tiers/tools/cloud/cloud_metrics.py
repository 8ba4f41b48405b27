"""What of a cloud is sold and left, as metrics for node_exporter's textfile collector.

The file is replaced as a whole: a host that vanishes has no metrics after the next run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cpu_tiers.errors import printable
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.sold.sold import SoldCloud
from cpu_tiers.tools.sold.sold_sums import ClassSum, TierRoom, group_sums, host_sums
from cpu_tiers.tools.tiers.tier import NO_TIER

if TYPE_CHECKING:
    from prometheus_client import Metric

HOSTS_WITH_CPUS = ("enabled", "disabled", "down")


class CloudMetrics:
    """The metrics of a cloud.

    :param rooms: how many more servers of each tier fit; empty if nobody knows.
    :param groups: the names of the hosts of each availability zone or host aggregate.
    :param time: when the cloud was read, in seconds since 1970.
    :param homeless: how many servers find no place, for each failure of a host that leaves any
        without a place; ``None`` if nobody knows.
    """

    def __init__(
        self,
        cloud: SoldCloud,
        rooms: Sequence[TierRoom],
        groups: Mapping[str, frozenset[str]],
        time: float,
        homeless: Sequence[int] | None = None,
    ) -> None:
        self._cloud, self._rooms, self._groups, self._time = cloud, rooms, groups, time
        self._homeless = homeless

    def text(self) -> bytes:
        """Return the file."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        # Whole numbers, because two amounts of 10,000 hosts make 1 MB.
        return generate_latest(registry).replace(b".0\n", b"\n")

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics."""
        shares = [each for each in self._cloud.amounts if each.resource_class == VCPU_SHARES]
        hosts = {host: sums[VCPU_SHARES] for host, sums in host_sums(shares).items()}
        groups = {
            name: sums[VCPU_SHARES]
            for name, sums in group_sums(shares, self._groups).items()
            if sums
        }
        down, disabled = self._cloud.down, self._cloud.disabled - self._cloud.down
        enabled = self._cloud.hosts - down - disabled
        states = zip(HOSTS_WITH_CPUS, map(len, (enabled, disabled, down)), strict=True)
        yield _gauge("cloud_hosts", "Hosts with CPUs", states, "state")
        over = {each.host for each in self._cloud.excesses}
        yield _gauge(
            "cloud_hosts_over", "Hosts with more allocated than the capacity", [("", len(over))]
        )
        yield _gauge("cloud_timestamp_seconds", "Time of the reading", [("", self._time)])
        yield from _survival(self._homeless)
        rooms = ((room.tier, room.more) for room in self._rooms)
        yield _gauge("tier_room", "Servers of the tier that still fit", rooms, "tier")
        untiered = _untiered(self._cloud, hosts)
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


def _survival(homeless: Sequence[int] | None) -> "Iterator[Metric]":
    """Yield which hosts may not fail; 0 of a cloud that survives the loss of any single host."""
    if homeless is not None:
        text = "Hosts of which a server finds no place if the host fails"
        number = sum(map(bool, homeless))
        yield _gauge("cloud_hosts_may_not_fail", text, [("", number)])
        text = "Servers without a place after the worst failure of a single host"
        yield _gauge("cloud_homeless_servers", text, [("", max(homeless, default=0))])


def _shares(name: str, label: str, sums: Mapping[str, ClassSum]) -> "Iterator[Metric]":
    sold = ((key, class_sum.used) for key, class_sum in sums.items())
    yield _gauge(f"{name}_sold", f"VCPU_SHARES that servers of the {label} have", sold, label)
    free = ((key, class_sum.capacity - class_sum.used) for key, class_sum in sums.items())
    yield _gauge(f"{name}_free", f"VCPU_SHARES of the {label} that are left", free, label)


def _gauge(name: str, text: str, values: Iterable[tuple[str, float]], label: str = "") -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    gauge = GaugeMetricFamily(f"cpu_tiers_{name}", text, labels=[label] if label else [])
    for key, value in values:
        gauge.add_metric([printable(key)] if label else [], value)
    return gauge

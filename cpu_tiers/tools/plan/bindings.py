"""The hosts that Nova 31 to 34 may choose for a server that moves, beside what Placement says.

Each function is a row: what binds a server to some hosts, with Nova's function. A row of a filter
counts where nova.conf has the filter. Migration and evacuation have the rows in common: Nova asks
nova-scheduler for both with the request that the server was made with. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from cpu_tiers.conf.read import DEFAULT_FILTERS
from cpu_tiers.model.flavor import Flavor, properties
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.spec_match import matches

SOFT_WEIGHERS = ("ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher")

KNOWN_FILTERS = frozenset(
    {
        *DEFAULT_FILTERS,
        *SOFT_WEIGHERS,
        "AllHostsFilter",
        "AggregateImagePropertiesIsolation",
        "AggregateInstanceExtraSpecsFilter",
        "AggregateMultiTenancyIsolation",
        "AggregateTypeAffinityFilter",
        "DifferentHostFilter",
        "NUMATopologyFilter",
        "PciPassthroughFilter",
        "SameHostFilter",
    }
)
"""The filters of which an answer is not said to lack them."""

HINT_FILTERS = frozenset(
    {"DifferentHostFilter", "JsonFilter", "SameHostFilter", "SimpleCIDRAffinityFilter"}
)
"""The filters that read scheduler hints."""

_NEEDED = {
    "affinity": "ServerGroupAffinityFilter",
    "anti-affinity": "ServerGroupAntiAffinityFilter",
    **dict(zip(("soft-affinity", "soft-anti-affinity"), SOFT_WEIGHERS, strict=True)),
}
"""What nova-scheduler needs for the policy of a server group."""

_TENANT = "filter_tenant_id"
FOLLOWS = "plan again when they have moved"
"""What frees a server that may only go where another server is."""


class FilterOptions(NamedTuple):
    """The options of nova-scheduler that decide about hosts.

    :param enabled: ``[filter_scheduler] enabled_filters``, without their modules, and the weighers
        of soft groups that are in ``weight_classes``.
    :param limits_tenants, requires_tenants, isolates_aggregates: of ``[scheduler]``
        ``limit_tenants_to_placement_aggregate``, ``placement_aggregate_required_for_tenants`` and
        ``enable_isolated_aggregate_filtering``.
    :param image_prefix: how the metadata begin that AggregateImagePropertiesIsolation reads.
    :param packs: of ``[compute] packing_host_numa_cells_allocation_strategy``.
    """

    enabled: frozenset[str] = frozenset((*DEFAULT_FILTERS, *SOFT_WEIGHERS))
    limits_tenants: bool = False
    requires_tenants: bool = False
    isolates_aggregates: bool = False
    image_prefix: str = ""
    packs: bool = False


class Binding(NamedTuple):
    """Some hosts, by the name of the root provider, and why a server may only go there."""

    hosts: frozenset[str]
    why: str


class BindingStep(NamedTuple):
    """A binding of a server, and the hosts that remain after it and the bindings before it."""

    binding: Binding
    left: frozenset[str]


class Bindings:
    """What binds the servers of a cloud.

    Servers with equal zone, project, flavor and image have these bindings in common, which are
    worked out once.

    :param host_of: the host of each server by uuid.
    :param hosts: all hosts.
    """

    def __init__(
        self,
        servers: SnapshotServers,
        host_of: Mapping[str, str],
        hosts: Collection[str],
        options: FilterOptions,
    ) -> None:
        self._servers, self._host_of, self._options = servers, host_of, options
        self._hosts = frozenset(hosts)
        self._rows: dict[object, tuple[Binding, ...]] = {}
        self._common: dict[object, tuple[BindingStep, ...]] = {}
        # A cloud has many projects and few sets of hosts: equal sets are one object.
        self._equal: dict[Binding, Binding] = {}
        self._steps_of: dict[tuple[Binding, ...], tuple[BindingStep, ...]] = {}
        self._of_host = defaultdict[str, list[SnapshotAggregate]](list)
        for aggregate in servers.aggregates.values():
            for host in aggregate.hosts:
                self._of_host[host].append(aggregate)
        self._groups = defaultdict[str, list[ServerGroup]](list)
        for group in servers.groups.values():
            for member in group.members:
                self._groups[member].append(group)

    def steps(self, uuid: str, server: SnapshotServer) -> Iterator[BindingStep]:
        """Yield what binds a server, first what its zone, project, flavor and image do."""
        key = server.zone, server.project, id(server.flavor), id(server.image)
        if key not in self._common:
            bindings = tuple(self._of_equal(server))
            if bindings not in self._steps_of:
                self._steps_of[bindings] = tuple(self._steps(self._hosts, bindings))
            self._common[key] = self._steps_of[bindings]
        common = self._common[key]
        yield from common
        left = common[-1].left if common else self._hosts
        yield from self._steps(left, chain(self._affinity(uuid), self._hints(server)))

    def of_flavor(self, flavor: Flavor) -> Iterator[Binding]:
        """Yield what binds a new server of a flavor, without the image and the project."""
        server = SnapshotServer(name="", flavor=flavor)
        yield from self._filtered("AggregateInstanceExtraSpecsFilter", self._specs_pass, server)
        yield from self._filtered("AggregateTypeAffinityFilter", self._type_passes, server)

    def _steps(self, left: frozenset[str], bindings: Iterable[Binding]) -> Iterator[BindingStep]:
        for binding in bindings:
            left &= binding.hosts
            yield BindingStep(binding, left)

    def _of_equal(self, server: SnapshotServer) -> Iterator[Binding]:
        """Yield what binds all servers of a zone, a project, a flavor and an image."""
        flavor, image = id(server.flavor), id(server.image)
        rows: Sequence[tuple[str, object, Iterable[Binding]]] = (
            ("zone", server.zone, self._zone(server)),
            ("tenant", server.project, self._tenant(server)),
            ("isolated", (flavor, image), self._isolated(server)),
            *(
                (name, of, self._filtered(name, passes, server))
                for name, of, passes in (
                    ("AggregateInstanceExtraSpecsFilter", flavor, self._specs_pass),
                    ("AggregateImagePropertiesIsolation", image, self._image_passes),
                    ("AggregateMultiTenancyIsolation", server.project, self._tenant_passes),
                    ("AggregateTypeAffinityFilter", flavor, self._type_passes),
                )
            ),
        )
        for name, of, bindings in rows:
            if (name, of) not in self._rows:
                self._rows[name, of] = tuple(self._equal.setdefault(b, b) for b in bindings)
            yield from self._rows[name, of]

    def _filtered(
        self, name: str, passes: Callable[[SnapshotServer, str], bool], server: SnapshotServer
    ) -> Iterator[Binding]:
        if name in self._options.enabled:
            hosts = frozenset(host for host in self._hosts if passes(server, host))
            if hosts != self._hosts:
                yield Binding(hosts, f"{name} lets it go to hosts of other aggregates only")

    def pairs(self, server: SnapshotServer) -> Iterable[str]:
        """Return the uuids of the servers beside which a server may not be.

        Nova: ``nova/scheduler/filters/affinity_filter.py`` DifferentHostFilter.
        """
        is_on = "DifferentHostFilter" in self._options.enabled
        return server.hints.get("different_host", ()) if is_on else ()

    def _zone(self, server: SnapshotServer) -> Iterator[Binding]:
        """Nova: ``nova/scheduler/request_filter.py`` map_az_to_placement_aggregate.

        A zone without an aggregate, such as the default zone, binds nothing.
        """
        aggregates = [a for a in self._servers.aggregates.values() if a.zone == server.zone]
        if server.zone and aggregates:
            hosts = frozenset(host for aggregate in aggregates for host in aggregate.hosts)
            yield Binding(hosts, f"it is pinned to the availability zone {server.zone}")

    def _tenant(self, server: SnapshotServer) -> Iterator[Binding]:
        """Nova: ``nova/scheduler/request_filter.py`` require_tenant_aggregate."""
        if not self._options.limits_tenants:
            return
        aggregates = [
            aggregate
            for aggregate in self._servers.aggregates.values()
            if any(
                key.startswith(_TENANT) and value == server.project
                for key, value in aggregate.metadata.items()
            )
        ]
        if aggregates or self._options.requires_tenants:
            hosts = frozenset(host for aggregate in aggregates for host in aggregate.hosts)
            yield Binding(hosts, "its project is limited to the hosts of some aggregates")

    def _isolated(self, server: SnapshotServer) -> Iterator[Binding]:
        """Nova: ``nova/scheduler/request_filter.py`` isolate_aggregates."""
        if not self._options.isolates_aggregates:
            return
        specs = server.flavor.extra_specs if server.flavor else {}
        keys = {**specs, **properties(server.image)}
        required = {key for key, value in keys.items() if value == "required"}
        hosts = frozenset(host for host in self._hosts if self._isolating(host) <= required)
        if hosts != self._hosts:
            yield Binding(hosts, "other hosts are isolated by traits of their aggregates")

    def _isolating(self, host: str) -> set[str]:
        """Return the traits that a server needs for the aggregates of a host."""
        metadata = [item for each in self._of_host[host] for item in each.metadata.items()]
        return {key for key, value in metadata if key[:6] == "trait:" and value == "required"}

    def _affinity(self, uuid: str) -> Iterator[Binding]:
        """Nova: ``nova/scheduler/filters/affinity_filter.py`` ServerGroupAffinityFilter.

        nova-scheduler takes a host on which the group has a member, and never the host that the
        server leaves: so the only member cannot leave either. Where the members are on several
        hosts, a plan moves them to the host with the most members, and no member leaves that host.
        Without the filter or the weigher of the policy, ``setup_instance_group`` refuses to move a
        member of a group.
        """
        for group in self._groups[uuid]:
            name = _NEEDED.get(group.policy)
            if name and name not in self._options.enabled:
                why = f"nova-scheduler has no {name}, and so moves no member of {group.name}"
                yield Binding(frozenset(), why)
            elif group.policy == "affinity":
                at = Counter(self._host_of[m] for m in group.members if m in self._host_of)
                target = min(at, key=lambda host: (-at[host], host), default="")
                is_there = target == self._host_of.get(uuid)
                hosts = frozenset() if is_there else frozenset({target})
                yield Binding(hosts, f"it must stay with the affinity group {group.name}")

    def _hints(self, server: SnapshotServer) -> Iterator[Binding]:
        """Nova: ``nova/scheduler/filters/affinity_filter.py`` SameHostFilter."""
        uuids = server.hints.get("same_host", ())
        if uuids and "SameHostFilter" in self._options.enabled:
            hosts = frozenset(self._host_of[each] for each in uuids if each in self._host_of)
            yield Binding(hosts, f"its hint same_host names servers: {FOLLOWS}")

    def _metadata(self, host: str) -> Mapping[str, set[str]]:
        """Return the values of the metadata of a host's aggregates."""
        values = defaultdict[str, set[str]](set)
        for aggregate in self._of_host[host]:
            for key, text in aggregate.metadata.items():
                values[key].update(part.strip() for part in text.split(","))
        return values

    def _specs_pass(self, server: SnapshotServer, host: str) -> bool:
        """Nova: ``nova/scheduler/filters`` AggregateInstanceExtraSpecsFilter.host_passes."""
        metadata = self._metadata(host)
        for key, requirement in server.flavor.extra_specs.items() if server.flavor else ():
            scope, mark, name = key.partition(":")
            if mark and scope != "aggregate_instance_extra_specs":
                continue
            values = metadata.get(name if mark else key, ())
            if not any(matches(value, requirement) for value in values):
                return False
        return True

    def _image_passes(self, server: SnapshotServer, host: str) -> bool:
        """Nova: ``nova/scheduler/filters`` AggregateImagePropertiesIsolation.host_passes."""
        image = properties(server.image)
        return all(
            not image.get(key) or image[key] in values
            for key, values in self._metadata(host).items()
            if key.startswith(self._options.image_prefix)
        )

    def _tenant_passes(self, server: SnapshotServer, host: str) -> bool:
        """Nova: ``nova/scheduler/filters`` AggregateMultiTenancyIsolation.host_passes."""
        allowed = {
            value
            for key, values in self._metadata(host).items()
            if key.startswith(_TENANT)
            for value in values
        }
        return not allowed or server.project in allowed

    def _type_passes(self, server: SnapshotServer, host: str) -> bool:
        """Nova: ``nova/scheduler/filters`` AggregateTypeAffinityFilter.host_passes."""
        names = self._metadata(host).get("instance_type", set())
        return not names or server.flavor is None or server.flavor.name in names

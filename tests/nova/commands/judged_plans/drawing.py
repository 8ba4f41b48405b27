"""Clouds drawn at random for plans: hosts, aggregates, groups, and servers of every kind.

A drawn cloud is plain values, so a failing cloud can be printed, and made smaller by hand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

STATES = ("PAUSED", "SHUTOFF", "SUSPENDED", "RESCUE", "VERIFY_RESIZE", "ERROR", "SHELVED")
POLICIES = ("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity")
TRAITS = ("CUSTOM_FAST", "CUSTOM_OLD")
SSD = "ssd"
"""A key of the metadata of aggregates, which flavors and images can demand."""

OFF_FILTERS = (
    "DifferentHostFilter",
    "SameHostFilter",
    "JsonFilter",
    "AggregateInstanceExtraSpecsFilter",
    "AggregateImagePropertiesIsolation",
    "AggregateMultiTenancyIsolation",
)
"""Filters that Nova does not enable by default."""

PREFILTERS = ("limit_tenants_to_placement_aggregate", "enable_isolated_aggregate_filtering")
"""Options of ``[scheduler]`` by which aggregates decide."""


@dataclass(frozen=True, kw_only=True)
class DrawnHost:
    """A host.

    :param vcpus: the CPUs, all for VCPU.
    :param traits: traits that an operator gave the host.
    :param lost: traits that the host has only until its servers are there.
    :param has_nodes: whether the host reports its NUMA nodes; only servers with nodes go there.
    :param sizes: the vCPUs that a server of the host may have.
    :param ratio: the allocation ratio of VCPU after the servers are there.
    :param is_fast: whether the host is in an aggregate with the metadata :data:`SSD`.
    :param tenant: ``ours`` or ``theirs``: the project of an aggregate of the host.
    :param is_isolated: whether an aggregate of the host demands the first of :data:`TRAITS`.
    :param state: ``disabled``, ``down``, ``evacuated`` (down, and its servers elsewhere), or none.
    """

    name: str
    traits: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    zone: str = ""
    is_fast: bool = False
    tenant: str = ""
    is_isolated: bool = False
    state: str = ""
    ratio: float = 1.0
    sizes: tuple[int, ...] = (1, 2, 4, 6, 8)
    has_nodes: bool = False


@dataclass(frozen=True, kw_only=True)
class DrawnServer:
    """A server, which is deleted again if Nova finds no place on its host.

    :param hints: scheduler hints; ``{name}`` stands for the uuid of an earlier server.
    :param volume: whether the root disk is a volume.
    """

    name: str
    host: str
    vcpus: int = 1
    disk_gb: int = 0
    specs: Mapping[str, str] = field(default_factory=dict)
    image: Mapping[str, str] = field(default_factory=dict)
    state: str = ""
    zone: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    ports: int = 0
    is_volume: bool = False
    is_locked: bool = False


@dataclass(frozen=True, kw_only=True)
class DrawnCloud:
    """A cloud.

    :param has_nodes: whether nova-scheduler requests NUMA nodes, which hosts may report.
    :param has_pool: whether a sharing provider gives all hosts their disk.
    :param filters: the filters beside those that Nova enables by default.
    :param prefilters: those of :data:`PREFILTERS` that are on.
    :param groups: the policies of server groups by name.
    :param is_cold: whether the plans may have cold migrations.
    """

    hosts: Sequence[DrawnHost]
    servers: Sequence[DrawnServer]
    groups: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[str] = ()
    prefilters: Sequence[str] = ()
    has_nodes: bool = False
    has_pool: bool = False
    is_cold: bool = False
    wanted: int = 1


def draw_cloud(seed: str) -> DrawnCloud:
    """Return the cloud of a seed."""
    return _Drawing(random.Random(seed)).cloud()


class _Drawing:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def _is(self, chance: float) -> bool:
        return self._rng.random() < chance

    def cloud(self) -> DrawnCloud:
        rng = self._rng
        has_nodes = self._is(0.4)
        hosts = [self._host(number, has_nodes=has_nodes) for number in range(rng.randint(3, 5))]
        groups = {f"g{n}": rng.choice(POLICIES) for n in range(rng.randint(0, 2))}
        servers: list[DrawnServer] = []
        for number in range(rng.randint(4, 11)):
            servers.append(self._server(number, hosts, groups, servers))
        return DrawnCloud(
            hosts=hosts,
            servers=servers,
            groups=groups,
            filters=[name for name in OFF_FILTERS if self._is(0.7)],
            prefilters=[name for name in PREFILTERS if self._is(0.15)],
            has_nodes=has_nodes,
            has_pool=not has_nodes and self._is(0.15),
            is_cold=self._is(0.5),
            wanted=rng.randint(1, 2),
        )

    def _host(self, number: int, *, has_nodes: bool) -> DrawnHost:
        rng = self._rng
        traits = tuple(name for name in TRAITS if self._is(0.4))
        return DrawnHost(
            name=f"host{number}",
            traits=traits,
            lost=tuple(name for name in traits if self._is(0.15)),
            zone=rng.choice(("", "", "east", "west")),
            is_fast=self._is(0.5),
            tenant=rng.choice(("ours", "theirs")) if self._is(0.2) else "",
            is_isolated=TRAITS[0] in traits and self._is(0.2),
            state=rng.choice(("disabled", "down", "evacuated")) if self._is(0.2) else "",
            ratio=0.5 if self._is(0.1) else 1.0,
            sizes=(2, 2, 4, 4) if has_nodes else DrawnHost.sizes,
            has_nodes=has_nodes and self._is(0.7),
        )

    def _server(
        self,
        number: int,
        hosts: Sequence[DrawnHost],
        groups: Mapping[str, str],
        earlier: Sequence[DrawnServer],
    ) -> DrawnServer:
        rng = self._rng
        host = rng.choice([host for host in hosts if host.tenant != "theirs"] or hosts)
        specs = dict(self._specs(host))
        return DrawnServer(
            name=f"s{number}",
            host=host.name,
            vcpus=rng.choice(host.sizes),
            disk_gb=rng.choice((0, 0, 1)),
            specs=specs,
            image=dict(self._image(host)),
            state=rng.choice(STATES) if self._is(0.25) else "",
            zone=host.zone if self._is(0.3) else "",
            hints=dict(self._hints(host, earlier)),
            group=rng.choice(list(groups)) if groups and self._is(0.4) else "",
            ports=1 if self._is(0.12) else 0,
            is_volume=not any(each.is_volume for each in earlier) and self._is(0.15),
            is_locked=self._is(0.08),
        )

    def _specs(self, host: DrawnHost) -> Iterator[tuple[str, str]]:
        rng = self._rng
        if host.is_isolated:
            yield f"trait:{TRAITS[0]}", "required"
        elif self._is(0.25):
            name = rng.choice(TRAITS)
            yield f"trait:{name}", "required" if name in host.traits else "forbidden"
        if host.is_fast and self._is(0.25):
            yield f"aggregate_instance_extra_specs:{SSD}", "true"
        if host.has_nodes:
            yield "hw:numa_nodes", rng.choice(("1", "2"))
            if self._is(0.4):
                yield "hw:cpu_policy", "dedicated"
            if self._is(0.3):
                yield "hw:mem_page_size", rng.choice(("small", "2MB"))

    def _image(self, host: DrawnHost) -> Iterator[tuple[str, str]]:
        if host.traits and self._is(0.15):
            yield f"trait:{self._rng.choice(host.traits)}", "required"
        if host.is_fast and self._is(0.15):
            yield SSD, "true"
        if self._is(0.08):
            yield "hw_architecture", "x86_64"

    def _hints(self, host: DrawnHost, earlier: Sequence[DrawnServer]) -> Iterator[tuple[str, str]]:
        rng = self._rng
        beside = [each.name for each in earlier if each.host == host.name]
        others = [each.name for each in earlier if each.host != host.name]
        kind = rng.choice(("different_host", "same_host", "query")) if self._is(0.2) else ""
        if kind == "different_host" and others:
            yield kind, f"{{{rng.choice(others)}}}"
        if kind == "same_host" and beside:
            yield kind, f"{{{rng.choice(beside)}}}"
        if kind == "query":
            names = sorted({host.name, f"host{rng.randint(0, 4)}"})
            yield kind, '["or", ' + ", ".join(f'["=", "$host", "{n}"]' for n in names) + "]"

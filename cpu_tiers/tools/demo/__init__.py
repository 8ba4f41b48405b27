"""``cpu-tiers demo``: hosts, servers and scores on a real Placement, in a few seconds."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from uuid import uuid4

from cliff.command import Command
from rich import box
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cpu_tiers.conf.read import inventory_options, read_config
from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.inventory import BUILT_IN, Host, InventoryOptions, build_tree
from cpu_tiers.inventory.cpus import shared_cpus
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import MEMORY_MB, VCPU, VCPU_SHARES
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.libvirt.domain import write_domain
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.weights import SCORINGS, HostScore, make_forest

TIERS = ("gold", "silver", "bronze")
DISK_GB = {"plain": 400, "gpu": 400, "small": 200}
"""The local disk of each host, by host name."""

_DATA = files(__package__) / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoServer:
    """A server, and its host; the host is empty if Placement has no candidate.

    :param scores: the scores of all candidate hosts, by host name.
    """

    name: str
    flavor: Flavor
    host: str = ""
    scores: Mapping[str, HostScore] = field(default_factory=dict)


def gpu_reporter(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report the GPU and the traits of the host ``gpu``, as a plugin for inventories does."""
    if host.name == "gpu":
        yield ResourceProvider(
            name=host.name,
            inventories={"VGPU": Inventory(total=4, max_unit=1)},
            traits=frozenset({"HW_CPU_X86_AVX512F", "CUSTOM_GPU_HOST"}),
        )


class DemoCloud:
    """The hosts of the demo in a Placement service, which is empty before."""

    def __init__(self, client: PlacementClient) -> None:
        with as_file(_DATA) as data:
            self.conf = read_config([str(data / "nova.conf")])
            # Of the spec cpu-performance-service-levels.
            self.flavors = {name: read_flavor(str(data / f"{name}.json")) for name in TIERS}
            topologies = {
                name: parse_capabilities((data / f"{name}.xml").read_bytes(), where=name)
                for name in DISK_GB
            }
        self.hosts = {
            name: Host(name=name, topology=topology, disk_gb=DISK_GB[name])
            for name, topology in topologies.items()
        }
        self._client = client
        options = inventory_options(self.conf)
        self.trees: dict[str, ProviderTree] = {}
        for name, host in self.hosts.items():
            self.trees[name] = build_tree(host, options, {**BUILT_IN, "gpu": gpu_reporter})
            sync(client, self.trees[name])
        self._names = {provider.uuid: provider.name for provider in client.providers()}

    def query(self, flavor: Flavor) -> CandidateQuery:
        query_shares = self.conf.filter_scheduler.query_placement_for_vcpu_shares
        return translate(ServerRequest(flavor=flavor, query_vcpu_shares=query_shares))

    def fill(self) -> Iterator[DemoServer]:
        tiers = list(TIERS)
        count = dict.fromkeys(TIERS, 0)
        while tiers:
            for tier in tuple(tiers):
                count[tier] += 1
                server = self._start(f"{tier}-{count[tier]}", self.flavors[tier])
                if not server.host:
                    tiers.remove(tier)
                yield server

    def _start(self, name: str, flavor: Flavor) -> DemoServer:
        query = self.query(flavor)
        answer = self._client.candidates(query)
        scoring = SCORINGS[self.conf.filter_scheduler.resource_provider_scoring]
        forest = make_forest(
            answer.provider_summaries, query.resources(), query.required_traits(), scoring=scoring
        )
        if not answer.allocation_requests:
            return DemoServer(name=name, flavor=flavor)

        def score(request: AllocationRequest) -> float:
            return forest.score(next(iter(request.allocations)))

        best = max(answer.allocation_requests, key=score)
        claim(self._client, str(uuid4()), best, project_id="demo", user_id="demo")
        return DemoServer(
            name=name,
            flavor=flavor,
            host=self._names[next(iter(best.allocations))],
            scores={self._names[root]: forest.explain(root) for root in answer.hosts()},
        )

    def usage(self, host: str) -> dict[str, tuple[int, int]]:
        (uuid,) = (uuid for uuid, name in self._names.items() if name == host)
        used = self._client.usages(uuid)
        return {
            name: (used.get(name, 0), inventory.capacity)
            for name, inventory in self.trees[host].root.inventories.items()
        }


_STYLES = {"gold": "gold3", "silver": "grey62", "bronze": "dark_orange3"}
"""The color of each tier; all are readable on dark and on light terminals."""

_MOST_BAR_CELLS = 24
_BESIDE_BAR = 44
"""The columns of a terminal that the other figures of a server take."""


class DemoReport:
    """Prints the steps of the demo to a console."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def hosts(self, cloud: DemoCloud) -> None:
        self._step(1, "Three hosts report their inventories to a real Placement")
        table = _table("host", "CPUs", VCPU, VCPU_SHARES, MEMORY_MB, "also")
        for name, tree in cloud.trees.items():
            inventories = tree.root.inventories
            other = [f"VGPU {inventories['VGPU'].total}"] if "VGPU" in inventories else []
            table.add_row(
                name,
                str(len(cloud.hosts[name].topology.cpus)),
                *(str(inventories[c].capacity) for c in (VCPU, VCPU_SHARES, MEMORY_MB)),
                ", ".join((*other, *sorted(tree.root.traits))),
            )
        self._table(table)
        libvirt = cloud.conf.libvirt
        self._note(
            f"Each CPU is sold {cloud.conf.cpu_allocation_ratio:g} times, and each time with "
            f"{libvirt.vcpu_share_multiplier} shares."
        )

    def flavors(self, cloud: DemoCloud) -> None:
        self._step(2, "A server of each tier requests shares from Placement")
        for name, flavor in cloud.flavors.items():
            ((key, value),) = flavor.extra_specs.items()
            self._console.print(Text(f"  {name:7}", _STYLES[name]), f"{key}={value}")
            self._note(f"        {cloud.query(flavor).to_query_string()}")

    def placements(self, cloud: DemoCloud, servers: Sequence[DemoServer]) -> None:
        scoring = cloud.conf.filter_scheduler.resource_provider_scoring
        self._step(
            3, f"Placement returns candidates, and the weigher ({scoring}) chooses the best host"
        )
        self._why(servers[0])
        table = _table("server", "goes to", *cloud.hosts)
        for server in servers:
            name = Text(server.name, _STYLES[server.flavor.name])
            if server.host:
                table.add_row(name, server.host, *(_score(server, host) for host in cloud.hosts))
            else:
                table.add_row(name, Text("Placement says no", "red"))
        self._table(table)
        self._note("The score of each candidate. A dash: the host has too little left.")

    def _why(self, server: DemoServer) -> None:
        table = _table("host", "score", "resources", "traits", f"why, for {server.name}")
        for host, score in sorted(server.scores.items(), key=lambda item: -item[1].score):
            parts = [f"{name} {part:.2f}" for name, part in score.resources.items()]
            unused = [f"{name} not requested" for name, part in score.traits.items() if not part]
            row = (score.score, score.resource_score, score.trait_score)
            table.add_row(host, *(f"{part:.3f}" for part in row), ", ".join((*parts, *unused)))
        self._table(table)

    def guests(self, cloud: DemoCloud, servers: Iterable[DemoServer]) -> None:
        self._step(4, "When every server wants to run, the kernel divides the CPUs by weight")
        self._table(_usages(cloud))
        for host in cloud.hosts:
            flavors = {server.name: server.flavor for server in servers if server.host == host}
            self._console.print(Text(host, "bold"))
            self._table(_entitlements(cloud, host, flavors, self._bar))

    def _bar(self, share: float, style: str) -> Text:
        """Return a bar with a filled part, which fits beside the other columns."""
        full, empty = ("█", "░") if self._console.encoding.startswith("utf") else ("#", ".")
        cells = max(1, min(_MOST_BAR_CELLS, self._console.width - _BESIDE_BAR))
        bar = Text(full * round(share * cells), style)
        return bar.append(empty * (cells - len(bar)), "dim")

    def domain(self, cloud: DemoCloud, server: DemoServer) -> None:
        self._step(5, f"The libvirt domain of {server.name}")
        host, options = cloud.hosts[server.host], inventory_options(cloud.conf)
        guest = Guest(
            name=server.name,
            flavor=server.flavor,
            arch=host.topology.arch,
            host=ComputeHost.of(host.topology, cpu_shared_set=options.cpu_shared_set),
        )
        self._console.print(
            Syntax(write_domain(guest), "xml", background_color="default", word_wrap=True)
        )

    def _step(self, number: int, text: str) -> None:
        self._console.print(f"\n[bold]{number}. {text}[/bold]\n")

    def _table(self, table: Table) -> None:
        """Print a table without the blanks with which rich fills each line."""
        for segments in self._console.render_lines(table, pad=False):
            line = Text.assemble(*((part.text, part.style or "") for part in segments))
            line.rstrip()
            if line:
                self._console.print(line, no_wrap=True, crop=False, overflow="ignore")
        self._console.print()

    def _note(self, text: str) -> None:
        self._console.print(Text(text, "dim"), soft_wrap=not self._console.is_terminal)


def _usages(cloud: DemoCloud) -> Table:
    usages = {host: cloud.usage(host) for host in cloud.hosts}
    classes = list(dict.fromkeys(name for usage in usages.values() for name in usage))
    table = _table("allocated, free", *classes)
    for host, usage in usages.items():
        pairs = (usage.get(name) for name in classes)
        cells = (f"{pair[0]}, {pair[1] - pair[0]}" if pair else "" for pair in pairs)
        table.add_row(host, *cells)
    return table


def _entitlements(
    cloud: DemoCloud, host: str, flavors: Mapping[str, Flavor], bar: Callable[[float, str], Text]
) -> Table:
    cpus = shared_cpus(cloud.hosts[host], inventory_options(cloud.conf))
    weights = {name: domain_shares(flavor) or 0 for name, flavor in flavors.items()}
    entitlements = entitlement_cpus(
        {
            name: Contender(weight=weights[name], threads={cpus: flavor.vcpus})
            for name, flavor in flavors.items()
        }
    )
    table = _table("server", "weight", "of its vCPU", "CPUs", "of the host")
    for name in sorted(entitlements, key=lambda name: (-entitlements[name], name)):
        granted, style = float(entitlements[name]), _STYLES[flavors[name].name]
        filled = bar(granted / flavors[name].vcpus, style)
        host_part = f"{granted / len(cpus):.1%}"
        weight = str(weights[name])
        table.add_row(Text(name, style), weight, filled, f"{granted:.2f}", host_part)
    return table


def _score(server: DemoServer, host: str) -> Text:
    if host not in server.scores:
        return Text("-", "dim")
    return Text(f"{server.scores[host].score:.3f}", "bold" if host == server.host else "")


def _table(*columns: str) -> Table:
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.justify, column.overflow = "left", "fold"
    return table


class Demo(Command):
    """Fill three hosts with Gold, Silver and Bronze servers, and show the CPU of each server.

    The demo runs a Placement service inside the process. It reads no nova.conf and
    writes nothing outside of the process.
    """

    def take_action(self, parsed_args: Namespace) -> None:
        report = DemoReport(Console(highlight=False))
        with embedded_placement() as client:
            cloud = DemoCloud(client)
            report.hosts(cloud)
            report.flavors(cloud)
            servers = list(cloud.fill())
            report.placements(cloud, servers)
            report.guests(cloud, servers)
            report.domain(cloud, servers[0])

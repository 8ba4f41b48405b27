"""The output of the demo on a terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from cpu_tiers.conf.read import inventory_options
from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.guest.contenders import Contender
from cpu_tiers.guest.fair_share import fair_cpus
from cpu_tiers.inventory.cpus import shared_cpus
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.domain import write_domain
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import MEMORY_MB, VCPU, VCPU_SHARES
from cpu_tiers.tools.demo.cloud import TIERS, DemoCloud, DemoServer, RefusedServer

_STYLES = {"gold": "gold3", "silver": "grey62", "bronze": "dark_orange3"}
"""The color of each tier; all are readable on dark and on light terminals."""

_MOST_BAR_CELLS = 24
_BESIDE_BAR = 44
"""The columns of a terminal that the other figures of a server take."""


class DemoReport:
    """Prints the steps of the demo."""

    def __init__(self, console: Console) -> None:
        """Print to ``console``."""
        self._console = console

    def hosts(self, cloud: DemoCloud) -> None:
        """Show the inventories and traits of each host."""
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
        self._console.print(table)
        libvirt = cloud.conf.libvirt
        self._note(
            f"Each CPU is sold {cloud.conf.cpu_allocation_ratio:g} times, and each time with "
            f"{libvirt.vcpu_share_multiplier} shares."
        )

    def flavors(self, cloud: DemoCloud) -> None:
        """Show the extra spec and the Placement query of each flavor."""
        self._step(2, "A server of each tier requests shares from Placement")
        for name, flavor in cloud.flavors.items():
            ((key, value),) = flavor.extra_specs.items()
            self._console.print(Text(f"  {name:7}", _STYLES[name]), f"{key}={value}")
            self._note(f"        {cloud.query(flavor).to_query_string()}")

    def placements(self, cloud: DemoCloud, outcomes: Sequence[DemoServer | RefusedServer]) -> None:
        """Show the chosen host of each server, and the scores of all candidates."""
        scoring = cloud.conf.filter_scheduler.resource_provider_scoring
        self._step(
            3, f"Placement returns candidates, and the weigher ({scoring}) chooses the best host"
        )
        first = next(outcome for outcome in outcomes if isinstance(outcome, DemoServer))
        self._why(first)
        table = _table("server", "goes to", *cloud.hosts)
        for outcome in outcomes:
            if isinstance(outcome, RefusedServer):
                table.add_row(_name(outcome.name), Text("Placement says no", "red"))
                continue
            scores = (_score(outcome, host) for host in cloud.hosts)
            table.add_row(_name(outcome.name), outcome.host, *scores)
        self._console.print(table)
        self._note("The score of each candidate. A dash: the host has too little left.")

    def _why(self, server: DemoServer) -> None:
        table = _table("host", "score", "resources", "traits", f"why, for {server.name}")
        for host, score in sorted(server.scores.items(), key=lambda item: -item[1].score):
            parts = [f"{name} {part:.2f}" for name, part in score.resources.items()]
            unused = [f"{name} not requested" for name, part in score.traits.items() if not part]
            row = (score.score, score.resource_score, score.trait_score)
            table.add_row(host, *(f"{part:.3f}" for part in row), ", ".join((*parts, *unused)))
        self._console.print(table)

    def guests(self, cloud: DemoCloud, servers: Iterable[DemoServer]) -> None:
        """Show the allocated and the free resources of each host, and the CPU of each server."""
        self._step(4, "When every server wants to run, the kernel divides the CPUs by weight")
        by_host: dict[str, dict[str, Flavor]] = {name: {} for name in cloud.hosts}
        for server in servers:
            by_host[server.host][server.name] = server.flavor
        self._console.print(_usages(cloud))
        for host, flavors in by_host.items():
            self._console.print(Text(f"\n{host}", "bold"))
            self._console.print(_entitlements(cloud, host, flavors, self._bar))

    def _bar(self, share: float, style: str) -> Text:
        """Return a bar with a filled part, which fits beside the other columns."""
        full, empty = ("█", "░") if self._console.encoding.startswith("utf") else ("#", ".")
        cells = max(1, min(_MOST_BAR_CELLS, self._console.width - _BESIDE_BAR))
        bar = Text(full * round(share * cells), style)
        return bar.append(empty * (cells - len(bar)), "dim")

    def domain(self, cloud: DemoCloud, server: DemoServer) -> None:
        """Show the libvirt domain of a server."""
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

    def _note(self, text: str) -> None:
        self._console.print(Text(text, "dim"), soft_wrap=not self._console.is_terminal)


def _usages(cloud: DemoCloud) -> Table:
    """Return a table with the allocated and the free resources of each host."""
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
    """Return a table with the fair share of each server of a host, as a bar and a number."""
    cpus = shared_cpus(cloud.hosts[host], inventory_options(cloud.conf))
    weights = {name: domain_shares(flavor) or 0 for name, flavor in flavors.items()}
    fair = fair_cpus(
        {
            name: Contender(weight=weights[name], threads={cpus: flavor.vcpus})
            for name, flavor in flavors.items()
        }
    )
    table = _table("server", "weight", "of its vCPU", "CPUs", "of the host")
    for name in sorted(fair, key=lambda name: (-fair[name], name)):
        granted = float(fair[name])
        share = granted / flavors[name].vcpus
        weight = str(weights[name])
        of_host = f"{granted / len(cpus):.1%}"
        filled = bar(share, _STYLES[flavors[name].name])
        table.add_row(_name(name), weight, filled, f"{granted:.2f}", of_host)
    return table


def _score(server: DemoServer, host: str) -> Text:
    if host not in server.scores:
        return Text("-", "dim")
    return Text(f"{server.scores[host].score:.3f}", "bold" if host == server.host else "")


def _name(server: str) -> Text:
    tier = next(tier for tier in TIERS if server.startswith(tier))
    return Text(server, _STYLES[tier])


def _table(*columns: str) -> Table:
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "left"
    for column in table.columns:
        column.overflow = "fold"
    return table

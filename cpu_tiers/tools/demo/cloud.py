"""The cloud of the demo: three hosts on a real Placement, read from files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from uuid import uuid4

from oslo_config import cfg

from cpu_tiers.conf.read import inventory_options, read_config
from cpu_tiers.inventory import BUILT_IN, Host, InventoryOptions, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.weights import SCORINGS, Forest, HostScore

TIERS = ("gold", "silver", "bronze")
DISK_GB = {"plain": 400, "gpu": 400, "small": 200}
"""The local disk of each host, by host name."""

_DATA = files(__package__) / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoServer:
    """A server on a host.

    :param scores: the scores of all candidate hosts, by host name.
    """

    name: str
    flavor: Flavor
    host: str
    scores: Mapping[str, HostScore]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedServer:
    """A server for which Placement has no allocation candidate."""

    name: str


def demo_config() -> cfg.ConfigOpts:
    """Return the nova.conf of the demo."""
    with as_file(_DATA / "nova.conf") as path:
        return read_config([str(path)])


def demo_hosts() -> dict[str, Host]:
    """Return the hosts by name, read from their capabilities."""
    return {
        name: Host(
            name=name,
            topology=parse_capabilities((_DATA / f"{name}.xml").read_bytes(), where=name),
            disk_gb=disk_gb,
        )
        for name, disk_gb in DISK_GB.items()
    }


def demo_flavors() -> dict[str, Flavor]:
    """Return the flavors of the spec cpu-performance-service-levels, by name."""
    flavors = {}
    for name in TIERS:
        with as_file(_DATA / f"{name}.json") as path:
            flavors[name] = read_flavor(str(path))
    return flavors


def gpu_reporter(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report the GPU and the traits of the host ``gpu``, as a plugin for inventories does."""
    if host.name == "gpu":
        yield ResourceProvider(
            name=host.name,
            inventories={"VGPU": Inventory(total=4, max_unit=1)},
            traits=frozenset({"HW_CPU_X86_AVX512F", "CUSTOM_GPU_HOST"}),
        )


class DemoCloud:
    """The hosts of the demo in a Placement service."""

    def __init__(self, client: PlacementClient) -> None:
        """Report every host to an empty Placement."""
        self.conf = demo_config()
        self.hosts = demo_hosts()
        self.flavors = demo_flavors()
        self._client = client
        options = inventory_options(self.conf)
        self.trees: dict[str, ProviderTree] = {}
        self._names: dict[str, str] = {}
        for name, host in self.hosts.items():
            self.trees[name] = build_tree(host, options, {**BUILT_IN, "gpu": gpu_reporter})
            sync(client, self.trees[name])
            provider = client.find_provider(name)
            assert provider is not None, "sync() has written it"  # noqa: S101  # narrows the type
            self._names[provider.uuid] = name

    def query(self, flavor: Flavor) -> CandidateQuery:
        """Return the Placement query for a server of the flavor."""
        query_shares = self.conf.filter_scheduler.query_placement_for_vcpu_shares
        return translate(ServerRequest(flavor=flavor, query_vcpu_shares=query_shares))

    def fill(self) -> Iterator[DemoServer | RefusedServer]:
        """Start a server of each tier in turn, until no server of any tier fits."""
        tiers = list(TIERS)
        count = dict.fromkeys(TIERS, 0)
        while tiers:
            for tier in tuple(tiers):
                count[tier] += 1
                outcome = self._start(f"{tier}-{count[tier]}", self.flavors[tier])
                if isinstance(outcome, RefusedServer):
                    tiers.remove(tier)
                yield outcome

    def _start(self, name: str, flavor: Flavor) -> DemoServer | RefusedServer:
        query = self.query(flavor)
        answer = self._client.candidates(query)
        scoring = SCORINGS[self.conf.filter_scheduler.resource_provider_scoring]
        forest = Forest(
            answer.provider_summaries, query.resources(), query.required_traits(), scoring=scoring
        )
        if not answer.allocation_requests:
            return RefusedServer(name=name)

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
        """Return the allocated amount and the capacity of each resource class of a host."""
        provider = self._client.find_provider(host)
        assert provider is not None, "written at the start"  # noqa: S101  # narrows the type
        used = self._client.usages(provider.uuid)
        return {
            name: (used.get(name, 0), inventory.capacity)
            for name, inventory in self.trees[host].root.inventories.items()
        }

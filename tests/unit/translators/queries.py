"""Servers with NUMA nodes, and their queries as Placement reads them."""

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.translators import ServerRequest, translate

SMALL, LARGE = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_LARGE"
TWO, ONE = {"hw:numa_nodes": "2"}, {"hw:numa_nodes": "1"}

Query = set[tuple[str, frozenset[str]]]


def server(
    specs: dict[str, str],
    *,
    vcpus: int = 8,
    memory_mb: int = 8192,
    disk_gb: int = 0,
    image: dict[str, str] | None = None,
    query_numa: bool = True,
    ports: tuple[Port, ...] = (),
) -> ServerRequest:
    flavor = Flavor(
        name="f",
        vcpus=vcpus,
        memory_mb=memory_mb,
        root_gb=disk_gb,
        ephemeral_gb=0,
        swap_mb=0,
        extra_specs=specs,
    )
    return ServerRequest(
        flavor=flavor,
        image=None if image is None else Image(name="i", properties=image),
        query_vcpu_shares=True,
        query_numa=query_numa,
        ports=ports,
    )


def read(query: str) -> Query:
    """Return a query as Placement reads it: a set of parameters, each a set."""
    pairs = (pair.strip().partition("=") for pair in query.split("&"))
    return {(key, frozenset(value.split(","))) for key, _, value in pairs}


def asked(it: ServerRequest) -> Query:
    return read(translate(it).to_query_string())


def node(number: int, cpus: str, memory_mb: int, pages: str | None = SMALL) -> str:
    """Return what the spec asks for one node."""
    required = f"&required_MEM{number}={pages}" if pages else ""
    return (
        f"resources_MEM{number}=MEMORY_MB:{memory_mb}{required}&resources_PROC{number}={cpus}"
        f"&required_NUMA{number}=HW_NUMA_ROOT"
        f"&same_subtree=_MEM{number},_PROC{number},_NUMA{number}"
    )


def two(first: str, second: str) -> Query:
    return read(f"{first}&{second}&group_policy=none")

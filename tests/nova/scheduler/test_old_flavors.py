"""Moves of servers that a stock Nova boots, with flavors drawn at random (law L3, decision D72).

``tests/nova/laws/test_old_servers.py`` moves a server for each rule that such a flavor can break.
The first test here tells whether a rule is missing there.
"""

import sys
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

import pytest
from nova import exception, objects
from nova.scheduler import utils
from nova.virt import hardware

from cpu_tiers.conf import compute, filter_scheduler
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Image
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import resource_request
from cpu_tiers.nova.scheduler.numa import numa_query
from cpu_tiers.nova.seams import install
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import broken_rules
from tests import draws
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES
from tests.nova.old_servers import OLD_SERVERS, Old
from tests.nova.servers import SPEC_KEY, Case, draw, rarely

SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
MOVE = objects.Destination(allow_cross_cell_move=True)
CPUS_AND_MEMORY = ("VCPU", "PCPU", "MEMORY_MB")

Rule = tuple[str, str]
"""The file and the function that find a fault."""


class Stock(NamedTuple):
    """A server that a stock Nova accepts.

    :param topology: the NUMA nodes of the guest.
    :param claims: what Nova claims for the server.
    """

    case: Case
    topology: Any
    claims: Mapping[str, int]


def with_more(random: Random, case: Case) -> Case:
    """Return a server with shares and amounts, too."""
    more = {
        PLAIN: rarely(0.4, random, "16384", "0", "20000", "100", "1"),
        MULTIPLIER: rarely(0.4, random, "100", "2000", "gold", "0", "NaN", "9" * 40, "0.01", ""),
        "resources:MEMORY_MB": rarely(0.1, random, "0", "100", str(case.memory_mb), "x"),
        f"resources:{SHARES}": rarely(0.1, random, "0", "100", "x"),
        "resources:VCPU_SHARES": rarely(0.03, random, "0", "100"),
        "resources:CUSTOM_FOO": rarely(0.05, random, "0", "", "1.5"),
        "resources:": rarely(0.02, random, "1"),
        "trait:CUSTOM_T": rarely(0.05, random, "required", "x", "avoided:x"),
        "group_policy": rarely(0.03, random, "none", "isolate", "x"),
    }
    specs = {**case.specs, **{key: value for key, value in more.items() if value is not None}}
    return Case(case.vcpus, case.memory_mb, specs, case.image)


def request_of(case: Case, topology: Any) -> objects.RequestSpec:
    flavor, image = case.novas(case.specs)
    return objects.RequestSpec(
        flavor=flavor,
        image=image,
        is_bfv=False,
        instance_uuid=SERVER,
        requested_destination=MOVE,
        requested_resources=[],
        numa_topology=topology,
        request_level_params=objects.RequestLevelParams(),
    )


def claims_of(case: Case, topology: Any) -> dict[str, int]:
    request = utils.resources_from_request_spec(None, request_of(case, topology), None)
    claims: dict[str, int] = request.merged_resources()
    return claims


def fits_no_host(case: Case, topology: Any) -> bool:
    """Tell whether Nova accepts a server that Placement or any host refuses."""
    trait = "trait:HW_CPU_HYPERTHREADING"
    sizes = {cell.pagesize for cell in topology.cells} if topology else set()
    return bool(
        (case.specs.get(trait) == "forbidden" and trait in case.image)
        or any(size and (size > 0 or size < -3) for size in sizes)  # the hosts have pages of 4 KiB
    )


def stock_servers(count: int) -> Iterator[Stock]:
    """Yield the servers among drawn servers that a stock Nova accepts."""
    random = Random(draws.SEED)
    for _ in range(count):
        case = with_more(random, draw(random))
        try:
            topology = hardware.numa_get_constraints(*case.novas(case.specs))
        except (exception.NovaException, ValueError):
            continue
        if not fits_no_host(case, topology):
            yield Stock(case, topology, claims_of(case, topology))


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> set[Rule]:
    """Return the rules that find faults from now on."""
    found: set[Rule] = set()

    def note() -> None:
        code = sys._getframe(2).f_code
        found.add((code.co_filename.rpartition("cpu_tiers/")[2], code.co_qualname))

    of, add = InvalidInput.of.__func__, FaultList.add  # type: ignore[attr-defined]  # of a class

    def noted_of(cls: type[InvalidInput], *args: str) -> InvalidInput:
        note()
        error: InvalidInput = of(cls, *args)
        return error

    def noted_add(self: FaultList, *args: str, **kwargs: str) -> None:
        note()
        add(self, *args, **kwargs)

    monkeypatch.setattr(InvalidInput, "of", classmethod(noted_of))
    monkeypatch.setattr(FaultList, "add", noted_add)
    return found


def break_rules(case: Case) -> None:
    image = Image(name="i", properties=case.image) if case.image else None
    broken_rules(lambda: ServerRequest(case.flavor, image))


def test_each_rule_that_nova_lacks_has_an_old_server(rules: set[Rule]) -> None:
    for old in OLD_SERVERS:
        break_rules(Case(2, 512, old.specs, old.image))
    known = frozenset(rules)
    missing: dict[Rule, Case] = {}
    for server in stock_servers(draws.part(500)):
        rules.clear()
        break_rules(server.case)
        missing |= dict.fromkeys(rules - known, server.case)
    assert not missing


@pytest.mark.parametrize("old", OLD_SERVERS, ids=[old.name for old in OLD_SERVERS])
def test_the_audit_expects_the_weight_of_the_guest(old: Old) -> None:
    guest = Domain(name="g", vcpu_sets=(None, None), extra_specs=old.specs)
    assert due_weight(guest) == (int(old.weight) if old.weight else None)


@pytest.fixture
def switch_on() -> Iterator[Any]:
    """Return a function that switches the options of nova-scheduler on."""
    options.register(filter_scheduler)
    options.register(compute)

    def switch(*, nodes: bool) -> None:
        CONF.set_override("query_placement_for_vcpu_shares", True, filter_scheduler.GROUP)
        CONF.set_override("query_placement_for_numa", nodes, filter_scheduler.GROUP)
        CONF.set_override("extend_cpu_policies", True, compute.GROUP)
        install((*cpu_policies.SEAMS, resource_request.SEAM))
        install(numa_query.SEAMS if nodes else ())

    yield switch
    CONF.clear_override("query_placement_for_vcpu_shares", filter_scheduler.GROUP)
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)
    CONF.clear_override("extend_cpu_policies", compute.GROUP)


def with_nodes(server: Stock) -> Mapping[str, int]:
    """Return the claims by the NUMA nodes of a guest; the claims of Nova for a guest without."""
    if server.topology is None:
        return server.claims
    cells = server.topology.cells
    isolated = server.topology.emulator_threads_policy == "isolate"
    claims = {
        "VCPU": sum(len(cell.cpuset) for cell in cells),
        "PCPU": sum(len(cell.pcpuset) for cell in cells),
        "MEMORY_MB": sum(cell.memory for cell in cells),
    }
    claims["PCPU"] += isolated and claims["PCPU"] > 0
    return {name: amount for name, amount in claims.items() if amount}


def has_shared(server: Stock) -> bool:
    cells = server.topology.cells if server.topology else ()
    return not any(cell.pcpuset for cell in cells) or any(cell.cpuset for cell in cells)


@pytest.mark.parametrize("nodes", [False, True])
def test_a_move_claims_what_nova_claims(switch_on: Any, *, nodes: bool) -> None:
    servers = [s for s in stock_servers(draws.part(500)) if SPEC_KEY not in s.case.specs]
    switch_on(nodes=nodes)
    for server in servers:
        claims = claims_of(server.case, server.topology)
        expected = with_nodes(server) if nodes else server.claims
        assert {n: claims.get(n) for n in CPUS_AND_MEMORY} == {
            n: expected.get(n) for n in CPUS_AND_MEMORY
        }, server.case
        stated = f"resources:{SHARES}" in server.case.specs
        assert stated or has_shared(server) or not claims.get(SHARES), server.case
    assert len(servers) > 10

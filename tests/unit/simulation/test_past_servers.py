"""Servers that came and went, as requests of a simulation."""

from datetime import datetime, timedelta
from typing import Any

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.simulation.requests import (
    Arrival,
    PastServer,
    read_arrivals,
    to_requests,
    to_rows,
)

START = datetime(2026, 1, 1)  # Nova's database has no time zones


def flavor(name: str = "gold", vcpus: int = 2, **specs: str) -> Flavor:
    return Flavor(name=name, vcpus=vcpus, memory_mb=512, extra_specs=specs)


def server(created: float, ended: float | None, of: Flavor) -> PastServer:
    def moment(seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    return PastServer(
        created=moment(created), ended=None if ended is None else moment(ended), flavor=of
    )


def test_times_begin_with_the_first_request() -> None:
    past = [server(70, None, flavor()), server(10, 40, flavor("lead"))]
    arrivals, flavors = to_requests(past)
    assert arrivals == [
        Arrival(time=0.0, flavor="lead", lifetime=30.0),
        Arrival(time=60.0, flavor="gold"),
    ]
    assert [found.name for found in flavors] == ["lead", "gold"]


def test_a_clock_that_went_back_and_no_servers() -> None:
    ((arrival,), _) = to_requests([server(10, 5, flavor())])
    assert arrival.lifetime == 0.0
    assert to_requests([]) == ([], [])


def test_a_flavor_that_was_changed_gets_another_name() -> None:
    changed = [flavor(), flavor(vcpus=4), flavor("gold (2)"), flavor()]
    arrivals, flavors = to_requests(server(n, None, of) for n, of in enumerate(changed))
    assert [arrival.flavor for arrival in arrivals] == ["gold", "gold (2)", "gold (2) (2)", "gold"]
    assert [found.vcpus for found in flavors] == [2, 4, 2]


def test_masked_flavors() -> None:
    specs: dict[str, Any] = {"hw:numa_nodes": "1", "customer": "me"}
    arrivals, (found,) = to_requests([server(0, 1, flavor(**specs))], is_masked=True)
    assert (arrivals[0].flavor, found.name) == ("flavor-1", "flavor-1")
    assert found.extra_specs == {"hw:numa_nodes": "1"}


def test_simulate_reads_the_rows() -> None:
    arrivals, _ = to_requests([server(0, 90, flavor()), server(3, None, flavor())])
    lines = [",".join(map(str, row)) for row in to_rows(arrivals)]
    assert read_arrivals(lines, ["gold"], where="x") == arrivals

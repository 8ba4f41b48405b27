"""Which hosts take servers, worked out by hand from what Nova says of its services."""

import pytest

from cpu_tiers.tools.cloud_model.service_states import (
    ENABLED,
    SERVICE,
    UP,
    ComputeService,
    service_states,
)

# The host node1 was renamed: Placement has both providers. The case of NODE2 is another name, too.
ROOTS = {"u1": "node1.example.org", "u2": "node1", "u3": "NODE2", "u4": "node2"}


def service(host: str, *nodes: str, is_up: bool = True, is_enabled: bool = True) -> ComputeService:
    return ComputeService(host=host, nodes=nodes, is_up=is_up, is_enabled=is_enabled)


@pytest.mark.parametrize(
    ("services", "lacking"),
    [
        pytest.param(
            [service("node1", "u2", "node1"), service("node2", "u4", "node2", is_up=False)],
            {"u1": SERVICE, "u3": SERVICE, "u4": UP},
            id="by the uuids of compute nodes, one of them down",
        ),
        pytest.param(
            [service("node1", "7", "node1"), service("node2", "8", "node2", is_enabled=False)],
            {"u1": SERVICE, "u3": SERVICE, "u4": ENABLED},
            id="by the names of compute nodes, one of them disabled",
        ),
        pytest.param(
            [service("node1"), service("node2")],
            {"u1": SERVICE, "u3": SERVICE},
            id="by the names of hosts: the provider with exactly this name",
        ),
        pytest.param(
            [service("node2", is_up=False, is_enabled=False)],
            {"u1": SERVICE, "u2": SERVICE, "u3": SERVICE, "u4": UP},
            id="down and disabled is down",
        ),
    ],
)
def test_what_hosts_lack(services: list[ComputeService], lacking: dict[str, str]) -> None:
    states = service_states(ROOTS, services)
    assert (states.lacking, states.unknown, states.note) == (lacking, "", "")


def test_a_host_whose_provider_has_its_domain() -> None:
    roots = {"u1": "node1.example.org", "u2": "node2.a", "u3": "node2.b"}
    states = service_states(roots, [service("node1"), service("node2")])
    assert states.strangers == {"u2", "u3"}  # two providers could be of node2


@pytest.mark.parametrize("services", [[], [service("elsewhere", "u9", "elsewhere")]])
def test_services_of_no_provider_are_no_answer(services: list[ComputeService]) -> None:
    states = service_states(ROOTS, services)
    assert states.lacking == {}
    assert "no compute node" in states.unknown
    assert "Nova was not asked" in states.note

"""The step of a host and of a cloud. The right steps are those of the table in docs/index.rst."""

import pytest

from cpu_tiers.tools.tiers.ladder import SchedulerFacts, Step, step_of_cloud, step_of_host

STOCK = SchedulerFacts()
WEIGHER = SchedulerFacts(loads_weigher=True)
SHARES = SchedulerFacts(loads_weigher=True, requests_shares=True)
NODES = SchedulerFacts(loads_weigher=True, requests_nodes=True)
IDLE = SchedulerFacts(requests_shares=True, requests_nodes=True)


@pytest.mark.parametrize(
    ("shares", "driver", "nodes", "step"),
    [
        pytest.param(False, False, False, 0, id="a stock host"),
        pytest.param(True, False, False, 1, id="a file"),
        pytest.param(True, None, False, 1, id="who reports is not known: no more than a file"),
        pytest.param(False, None, False, 0, id="Placement has no shares"),
        pytest.param(True, True, False, 3, id="the driver"),
        pytest.param(False, True, False, 3, id="the driver gives weights without a report"),
        pytest.param(True, True, True, 4, id="NUMA nodes"),
        pytest.param(True, None, True, 4, id="only the driver reports NUMA nodes"),
        pytest.param(True, False, True, 1, id="NUMA nodes that Nova's own driver leaves behind"),
    ],
)
def test_the_step_of_a_host(shares: bool, driver: bool | None, nodes: bool, step: int) -> None:
    assert step == step_of_host(reports_shares=shares, has_driver=driver, reports_nodes=nodes)


@pytest.mark.parametrize(
    ("hosts", "scheduler", "step"),
    [
        pytest.param([], STOCK, 0, id="no hosts"),
        pytest.param([0, 0], IDLE, 0, id="options without the weigher have no effect"),
        pytest.param([0, 1], STOCK, 1, id="a file on a host"),
        pytest.param([3, 3], STOCK, 1, id="drivers before nova-scheduler: only pairs claim"),
        pytest.param([0, 0], WEIGHER, 2, id="the weigher"),
        pytest.param([3, 1], WEIGHER, 2, id="the weigher requests nothing"),
        pytest.param([1, 1], SHARES, 3, id="requests of shares"),
        pytest.param([1, 1], NODES, 4, id="requests of NUMA nodes"),
        pytest.param([1, 4], STOCK, 4, id="a host with NUMA nodes"),
    ],
)
def test_the_step_of_a_cloud(hosts: list[int], scheduler: SchedulerFacts, step: int) -> None:
    assert step == step_of_cloud([Step(host) for host in hosts], scheduler)


def test_the_output_names_a_step_by_number_and_title() -> None:
    assert str(Step.NOVAS_DRIVER) == "1, tiers with Nova's own driver"

"""Placement does not answer requests of cpu-tiers in nova-compute: nothing of Nova's is lost.

No services: Nova's objects are stand-ins, and only the faults are of interest.
"""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import objects

from cpu_tiers.nova.compute import leftover_allocations, numa_inventory
from tests.nova.broken_answers import DATABASE_FAULTS
from tests.nova.compute.reports import NO_ALLOCATIONS, SHARES, host_report, record


@pytest.mark.parametrize("fault", NO_ALLOCATIONS)
def test_a_vanished_node_stays(fault: Exception) -> None:
    nodes = {"one": {"VCPU": record(8)}, "one_NUMA1": {SHARES: record(800)}}
    host = host_report(nodes, in_placement=fault)
    numa_inventory.drop_vanished(host, present=())
    assert host.tree.exists("one_NUMA1")


@pytest.mark.parametrize(
    ("has_left", "reads"),
    [
        pytest.param(True, ["m", "s", "s", "s"], id="the last read fails"),
        pytest.param(False, ["m", "s"], id="the write failed before"),
    ],
)
@pytest.mark.parametrize("fault", NO_ALLOCATIONS)
@pytest.mark.parametrize(
    ("this_host", "of_this_host"),
    [
        pytest.param("one", {"one", "one_NUMA0", "one:br-int"}, id="on the source"),
        pytest.param("two", {"two", "two_NUMA0", "two:br-int"}, id="on the destination"),
    ],
)
def test_a_revert_tells_the_providers_of_the_source_without_the_last_read(
    this_host: str,
    of_this_host: set[str],
    fault: Exception,
    has_left: bool,
    reads: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ports of the server are mapped to providers by the result."""
    monkeypatch.setattr(leftover_allocations, "_reports_nodes", lambda *_: True)
    monkeypatch.setattr(leftover_allocations, "_leave", lambda *_: has_left)
    names = [f"{host}{part}" for host in ("one", "two") for part in ("_NUMA0", ":br-int")]
    answers = [{"allocations": {}}, {"allocations": dict.fromkeys(names, "amounts")}]
    read = mock.Mock(side_effect=[*answers, fault, fault])
    client = SimpleNamespace(get_allocs_for_consumer=read)
    tree = SimpleNamespace(get_provider_uuids=lambda _: of_this_host)
    manager = SimpleNamespace(
        host=this_host, reportclient=client, rt=SimpleNamespace(provider_tree=tree)
    )
    move = SimpleNamespace(
        uuid="m", source_compute="one", source_node="one", dest_compute="two", dest_node="two"
    )
    revert = leftover_allocations._leave_destination(mock.Mock())
    held = revert(manager, None, SimpleNamespace(uuid="s"), move)
    assert held == {"one_NUMA0": "amounts", "one:br-int": "amounts"}
    assert [call.args[1] for call in read.mock_calls] == reads


@pytest.mark.parametrize(
    ("answers", "tries", "lines"),
    [
        pytest.param([False, True], 2, 0, id="409 once: another service wrote meanwhile"),
        pytest.param([False] * 4, 4, 1, id="409 for ever"),
        pytest.param([ConnectFailure("reset"), True], 2, 0, id="no connection once"),
        pytest.param([ConnectFailure("reset")] * 4, 4, 1, id="no connection for ever"),
    ],
)
def test_allocations_of_the_host_that_a_server_left_are_removed_in_several_tries(
    answers: list[Any],
    tries: int,
    lines: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = SimpleNamespace(uuid="root")
    monkeypatch.setattr(objects.ComputeNode, "get_by_host_and_nodename", lambda *_: node)
    remove = mock.Mock(side_effect=answers)
    client = SimpleNamespace(remove_provider_tree_from_instance_allocation=remove)
    manager = SimpleNamespace(reportclient=client)
    server: Any = SimpleNamespace(uuid="s")
    has_left = leftover_allocations._leave(manager, None, server, "one", "one")
    assert has_left == (lines == 0)
    assert remove.mock_calls == [mock.call(None, "s", "root")] * tries
    assert len(caplog.messages) == lines


@pytest.mark.parametrize("fault", DATABASE_FAULTS)
def test_a_move_ends_though_the_database_does_not_tell_the_host_that_a_server_left(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception would leave the server in ERROR."""
    raising = mock.Mock(side_effect=lambda *_: DATABASE_FAULTS[fault](lambda: None))
    monkeypatch.setattr(objects.ComputeNode, "get_by_host_and_nodename", raising)
    server: Any = SimpleNamespace(uuid="s")
    leftover_allocations._leave(SimpleNamespace(), None, server, "one", "one")
    (line,) = caplog.messages
    assert "Server s has left one, but still has its allocations there: " in line

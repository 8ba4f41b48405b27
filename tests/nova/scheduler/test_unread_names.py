"""Cold migrations and resizes while Placement tells no names of NUMA nodes or devices.

A host has two NUMA nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from fixtures import MonkeyPatch
from keystoneauth1.exceptions import ConnectFailure
from nova import context, exception, objects
from nova.scheduler.client import report
from oslo_db.exception import DBConnectionError

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import candidate_cells, options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import port_devices, started_resizes, unread_names
from tests.nova.scheduler.reporting_hosts import ONE, ReportingHosts

NODE, DEVICE, PORT = "node", "device", "port"
CANDIDATE = {"mappings": {"_PROC1": [NODE], PORT: [DEVICE]}}


class TestServices(ReportingHosts):
    """The random life 120264000: nova-compute refused all that nova-scheduler had chosen."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.moved = self.boot(self.flavor("half", ONE, vcpus=2))
        self.start_host("two")

        def refuse(*args: Any, **kwargs: Any) -> None:
            raise exception.ComputeResourcesUnavailable(reason="the node is full")

        self.useFixture(MonkeyPatch("nova.compute.claims.MoveClaim._claim_test", refuse))
        candidate_cells._CELLS.clear()

    def act(self, action: dict[str, Any]) -> str:
        """Have the server moved while no names can be read; return the message of its fault."""
        get = report.SchedulerReportClient.get

        def fail(client: Any, url: str, **values: Any) -> Any:
            if url.startswith("/resource_providers?required=HW_NUMA_ROOT"):
                raise ConnectFailure("connection refused")
            return get(client, url, **values)

        held = self.placed(self.moved)
        with mock.patch.object(report.SchedulerReportClient, "get", fail):
            self.api.post_server_action(self.moved["id"], action)
            self._wait_for_migration_status(self.moved, ["error"])
            self._wait_for_state_change(self.moved, "ACTIVE")
        assert self.placed(self.moved) == held
        # nova-api shows the faults of servers in ERROR only.
        admin = context.get_admin_context()
        fault = objects.InstanceFault.get_latest_for_instance(admin, self.moved["id"])
        message: str = fault.message
        return message

    def test_a_migration_is_refused(self) -> None:
        assert "names of the NUMA nodes" in self.act({"migrate": None})

    def test_a_resize_is_refused(self) -> None:
        larger = self.flavor("larger", ONE, vcpus=3)
        assert "names of the NUMA nodes" in self.act({"resize": {"flavorRef": larger}})


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The types of the migrations of the server that wait for a host: a cold migration."""
    found = {"migration"}

    def get(_cell: Any, filters: dict[str, str]) -> Any:
        assert filters["status"] == "pre-migrating"
        return SimpleNamespace(objects=["m"] if filters["migration_type"] in found else [])

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", get)
    monkeypatch.setattr(started_resizes, "target_cell", lambda *args: nullcontext())
    monkeypatch.setattr(candidate_cells, "_CELLS", {NODE: 0})
    monkeypatch.setattr(port_devices, "_INTERFACES", {DEVICE: "ens0"})
    options.register(filter_scheduler)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    yield found
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)


def select(*, moved: bool = True, servers: Any = ("s",), candidates: Any = (CANDIDATE,)) -> Any:
    """Return what Nova's function returns; raises what the seam raises."""
    cell = objects.CellMapping(uuid="0d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11") if moved else None
    spec = objects.RequestSpec(
        requested_destination=objects.Destination(cell=cell),
        requested_resources=[objects.RequestGroup(requester_id=PORT)],
        pci_requests=objects.InstancePCIRequests(
            requests=[objects.InstancePCIRequest(requester_id=PORT)]
        ),
    )
    wrapped = unread_names._refuse(lambda *args: "selected")
    of_request = SimpleNamespace(elevated=SimpleNamespace)
    by_root = None if candidates is None else {"root": list(candidates)}
    return wrapped(None, of_request, spec, servers, by_root, {}, "1.36", True)


def test_a_migration_goes_on_with_all_names(kinds: set[str]) -> None:
    assert select() == "selected"
    candidate_cells._CELLS[NODE] = None  # Placement tells a name without the number of a cell
    port_devices._INTERFACES[DEVICE] = None
    assert select() == "selected"


@pytest.mark.parametrize("kind", ["migration", "resize"])
@pytest.mark.parametrize("unread", ["node", "device"])
def test_without_a_name_there_is_no_valid_host(kinds: set[str], kind: str, unread: str) -> None:
    kinds.clear()
    kinds.add(kind)
    (candidate_cells._CELLS if unread == "node" else port_devices._INTERFACES).clear()
    with pytest.raises(exception.NoValidHost, match="does not tell the names"):
        select()


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"moved": False}, id="a boot"),
        pytest.param({"servers": None}, id="an old nova-conductor"),
        pytest.param({"candidates": None}, id="a rebuild"),
        pytest.param({"candidates": ()}, id="no candidate"),
        pytest.param({"candidates": [{"mappings": {"": ["n"]}}]}, id="no NUMA nodes"),
    ],
)
def test_other_requests_go_on(kinds: set[str], values: dict[str, Any]) -> None:
    candidate_cells._CELLS.clear()
    assert select(**values) == "selected"


def test_an_evacuation_goes_on(kinds: set[str]) -> None:
    kinds.clear()
    candidate_cells._CELLS.clear()
    assert select() == "selected"


def test_without_the_database_nova_compute_decides(
    kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = mock.Mock(side_effect=DBConnectionError("no database"))
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", away)
    candidate_cells._CELLS.clear()
    assert select() == "selected"


@pytest.mark.parametrize("value", [None, False])
def test_off_is_off(kinds: set[str], value: bool | None) -> None:
    candidate_cells._CELLS.clear()
    CONF.set_override("query_placement_for_numa", value, filter_scheduler.GROUP)
    assert select() == "selected"

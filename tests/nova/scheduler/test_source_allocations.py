"""A server without a disk leaves a host that reports its NUMA nodes for one that does not.

Source: nova-conductor's replace_allocation_with_migration and nova-compute's _revert_allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception, objects
from nova.compute import claims
from oslo_db.exception import DBConnectionError

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import source_allocations, started_resizes
from tests.nova.computes import Computes
from tests.nova.numa.pinning import PINNED, PINNING, TWO


class TestServices(Computes):
    """The random life 1520264004: host one reports its NUMA nodes, two and three do not."""

    kind = PINNING
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.server = self.boot(self.flavor("diskless", PINNED | TWO, vcpus=4))
        self.before = self.held(self.server["id"])
        self.flags(enable_numa_reporting_to_placement=None, group="compute")
        self.start_host("two")
        self.start_host("three")
        self.refused: list[str] = []

    def refusing(self, times: int) -> Any:
        """Return a context in which so many hosts refuse the server."""
        test = claims.MoveClaim._claim_test

        def refuse(claim: Any, *args: Any) -> Any:
            if len(self.refused) < times:
                self.refused.append(claim.nodename)
                raise exception.ComputeResourcesUnavailable(reason="no")
            return test(claim, *args)

        return mock.patch.object(claims.MoveClaim, "_claim_test", refuse)

    def check_moved(self, host: str, vcpus: int = 4) -> None:
        """Check what the server holds while it waits for its confirmation, and its migration."""
        amounts = {"PCPU": vcpus, "MEMORY_MB": 512}
        assert self.held(self.server["id"]) == {host: amounts}
        assert self.held(self.migration_of(self.server["id"])) == self.before

    def test_a_migration_is_confirmed(self) -> None:
        self._migrate_server(self.server)
        host = self.host_of(self.server)
        self.check_moved(host)
        self._confirm_resize(self.server)
        assert self.held(self.server["id"]).keys() == {host}
        assert self.held(self.migration_of(self.server["id"])) == {}

    def test_a_resize_is_reverted(self) -> None:
        self._resize_server(self.server, self.flavor("larger", PINNED | TWO, vcpus=6))
        self.check_moved(self.host_of(self.server), 6)
        self._revert_resize(self.server)
        assert self.held(self.server["id"]) == self.before
        assert self.held(self.migration_of(self.server["id"])) == {}

    def test_a_host_that_refuses_the_server_keeps_nothing(self) -> None:
        with self.refusing(1):
            self._migrate_server(self.server)
        (refused,) = self.refused
        host = self.host_of(self.server)
        assert {refused, host} == {"two", "three"}
        assert refused not in self.held(self.server["id"])
        self._confirm_resize(self.server)
        assert self.held(self.server["id"]).keys() == {host}

    def test_nothing_is_written_for_a_server_with_a_disk(self) -> None:
        flavor = self._create_flavor(
            vcpu=2, memory_mb=512, disk=1, ephemeral=0, extra_spec=dict(PINNED)
        )
        self.server = self.boot(flavor, host="two")
        with mock.patch.object(source_allocations, "write_both") as write:
            self._migrate_server(self.server)
        write.assert_not_called()


HELD = {"node": {"resources": {"PCPU": 4}}}
CLAIM: dict[str, Any] = {
    "allocations": {"other": {"resources": {"PCPU": 4}}},
    "mappings": {"": ["other"]},
}
BOTH = {**HELD, **CLAIM["allocations"]}


class Client:
    """Nova's report client, as far as it is needed.

    :param reads: the answers to the reads of the server's allocations, or exceptions.
    :param write: the answer to the write, or an exception.
    """

    def __init__(self, *reads: Any, write: Any = 204) -> None:
        self.answers, self.status = reads, write
        self.reads = 0
        self.written: list[Any] = []

    def get_allocs_for_consumer(self, context: Any, consumer: str) -> Any:
        self.reads += 1
        answer = self.answers[self.reads - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def post(self, url: str, body: Any, **values: Any) -> Any:
        if isinstance(self.status, Exception):
            raise self.status
        self.written.append(body)
        return SimpleNamespace(status_code=self.status, text="")


def body(allocations: Any, generation: int = 1) -> dict[str, Any]:
    return {
        "allocations": allocations,
        "consumer_generation": generation,
        "project_id": "p",
        "user_id": "u",
    }


@pytest.fixture
def migrating(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The option is on, and the database has a cold migration of the server."""
    found: list[Any] = [SimpleNamespace(uuid="m")]

    def get(_cell: Any, filters: dict[str, str]) -> Any:
        return SimpleNamespace(objects=found if filters["migration_type"] == "migration" else [])

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", get)
    monkeypatch.setattr(started_resizes, "target_cell", lambda *args: nullcontext())
    options.register(filter_scheduler)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    yield found
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)


def claim_of(
    client: Client, *, moved: bool = True, granted: bool = True, candidate: Any = CLAIM
) -> bool:
    """Claim a candidate; return whether it was granted."""
    cell = objects.CellMapping(uuid="0d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11") if moved else None
    spec = objects.RequestSpec(requested_destination=objects.Destination(cell=cell))
    context = SimpleNamespace(global_id="req-1")
    wrapped = source_allocations._hand_over(lambda *args: granted)
    answer: bool = wrapped(context, client, spec, "s", candidate, "1.36")
    return answer


@pytest.fixture
def claim(migrating: list[Any]) -> Callable[..., bool]:
    return claim_of


def test_the_migration_gets_what_the_server_held(claim: Callable[..., bool]) -> None:
    client = Client(body(HELD), body(BOTH, 2))
    assert claim(client)
    assert client.reads == 2
    assert client.written == [
        {
            "m": {**body(HELD), "consumer_generation": None},
            "s": body(CLAIM["allocations"], 2),
        }
    ]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"moved": False}, id="a boot"),
        pytest.param({"candidate": {"mappings": {"_PROC1": ["n"]}}}, id="a host with nodes"),
    ],
)
def test_nothing_is_read_for_other_claims(
    claim: Callable[..., bool], values: Mapping[str, Any]
) -> None:
    client = Client()
    assert claim(client, **values)
    assert client.reads == 0


def test_nothing_is_read_for_another_move(
    claim: Callable[..., bool], migrating: list[Any]
) -> None:
    migrating.clear()
    client = Client()
    assert claim(client)
    assert client.reads == 0


@pytest.mark.parametrize("value", [None, False])
def test_off_is_off(
    claim: Callable[..., bool], monkeypatch: pytest.MonkeyPatch, value: bool | None
) -> None:
    CONF.set_override("query_placement_for_numa", value, filter_scheduler.GROUP)
    query = mock.Mock()
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", query)
    client = Client()
    assert claim(client)
    query.assert_not_called()
    assert client.reads == 0


def test_nothing_is_written_without_a_claim(claim: Callable[..., bool]) -> None:
    client = Client(body(HELD))
    assert not claim(client, granted=False)
    assert not client.written


def test_nothing_is_written_if_the_migration_has_it(claim: Callable[..., bool]) -> None:
    client = Client(body({}))
    assert claim(client)
    assert client.reads == 1
    assert not client.written


@pytest.mark.parametrize(
    "now",
    [
        pytest.param({**BOTH, "third": {"resources": {"PCPU": 1}}}, id="more"),
        pytest.param(HELD, id="less"),
    ],
)
def test_nothing_is_written_over_what_another_service_has_changed(
    claim: Callable[..., bool], now: Mapping[str, Any]
) -> None:
    client = Client(body(HELD), body(now, 3))
    with mock.patch.object(source_allocations.LOG, "warning") as warning:
        assert claim(client)
    warning.assert_called_once()
    assert not client.written


AWAY = ConnectFailure("no route")
RETRIEVAL = exception.ConsumerAllocationRetrievalFailed(consumer_uuid="s", error="503")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Client(AWAY), id="first read: no connection"),
        pytest.param(lambda: Client(RETRIEVAL), id="first read: 503"),
        pytest.param(lambda: Client(ValueError("half")), id="first read: half an answer"),
        pytest.param(lambda: Client({}), id="first read: another JSON"),
        pytest.param(lambda: Client({"allocations": 3}), id="first read: a number"),
        pytest.param(lambda: Client(body(HELD), AWAY), id="second read: no connection"),
        pytest.param(lambda: Client(body(HELD), {}), id="second read: another JSON"),
        pytest.param(
            lambda: Client(body(HELD), body(BOTH), write=AWAY), id="write: no connection"
        ),
        pytest.param(lambda: Client(body(HELD), body(BOTH), write=200), id="write: empty 200"),
        pytest.param(lambda: Client(body(HELD), body(BOTH), write=409), id="write: conflict"),
    ],
)
def test_a_failure_is_a_warning(claim: Callable[..., bool], make: Callable[[], Client]) -> None:
    with mock.patch.object(source_allocations.LOG, "warning") as warning:
        assert claim(make())
    warning.assert_called_once()


def test_a_database_that_is_away_is_a_warning(
    claim: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = mock.Mock(side_effect=DBConnectionError("no database"))
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", away)
    with mock.patch.object(source_allocations.LOG, "warning") as warning:
        assert claim(Client())
    warning.assert_called_once()

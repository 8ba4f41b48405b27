"""The search for a resize of a server without a disk on its own host, without services."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception, objects
from oslo_db.exception import DBConnectionError

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import own_host, same_host_resize


class Reports:
    """Nova's report client, as far as the seams call it; it records the reads.

    :param answers: the answers to the reads; the last answer is repeated.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers, self.reads = answers, 0

    def get_allocs_for_consumer(self, context: Any, consumer: str) -> Any:
        answer = self.answers[min(self.reads, len(self.answers) - 1)]
        self.reads += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


ROOT, NODE, ELSEWHERE = "root", "root's NUMA node", "the root of another host"
NODE_BY_NAME = "get_by_host_and_nodename"
SUMMARIES = {ROOT: ROOT, NODE: ROOT, ELSEWHERE: ELSEWHERE}
HELD = {"allocations": {NODE: {"resources": {"PCPU": 1}}}, "consumer_generation": 3}
NOTHING: dict[str, Any] = {"allocations": {}}


@pytest.fixture
def resizing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The option is on, and the database has a resize of the server from the host of ROOT."""
    migration = SimpleNamespace(uuid="m", source_compute="one", source_node="one")
    found = SimpleNamespace(objects=[migration])
    node = SimpleNamespace(uuid=ROOT)
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", lambda *args: found)
    monkeypatch.setattr(objects.ComputeNode, "get_by_host_and_nodename", lambda *args: node)
    monkeypatch.setattr(own_host, "target_cell", lambda *args: nullcontext())
    options.register(filter_scheduler)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    yield
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)


def select(
    client: Reports, *, roots: Mapping[str, str] = SUMMARIES, moved: bool = True, **spec: Any
) -> Any:
    """Select hosts for a server; return the resize that the claim would see."""

    def original(self: Any, *args: Any) -> list[Any]:
        seen.append(same_host_resize._RESIZE.get())
        return []

    seen: list[Any] = []
    manager = SimpleNamespace(placement_client=client)
    context = SimpleNamespace(elevated=SimpleNamespace)
    cell = objects.CellMapping(uuid="0d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11") if moved else None
    spec_obj = objects.RequestSpec(requested_destination=objects.Destination(cell=cell), **spec)
    summaries = {uuid: {"root_provider_uuid": root} for uuid, root in roots.items()}
    wrapped = same_host_resize._select(original)
    wrapped(manager, context, spec_obj, ["s"], {"p": []}, summaries, "1.36", True)
    (resize,) = seen
    return resize


@pytest.mark.usefixtures("resizing")
def test_a_resize_is_found_with_one_read() -> None:
    client = Reports(HELD)
    resize = select(client)
    assert (resize.migration, resize.root, resize.old) == ("m", ROOT, HELD)
    assert resize.providers == {ROOT, NODE}
    assert client.reads == 1


@pytest.mark.usefixtures("resizing")
@pytest.mark.parametrize(
    "request_values",
    [
        pytest.param({"moved": False}, id="a boot"),
        pytest.param({"ignore_hosts": ["one"]}, id="Nova keeps the server off its own host"),
        pytest.param({"roots": {ELSEWHERE: ELSEWHERE}}, id="its own host is no candidate"),
    ],
)
def test_nothing_is_read_for_a_server_that_leaves_its_host(request_values: Any) -> None:
    client = Reports(HELD)
    assert select(client, **request_values) is None
    assert client.reads == 0


@pytest.mark.usefixtures("resizing")
@pytest.mark.parametrize("value", [None, False])
def test_nothing_is_read_while_the_option_is_off(
    monkeypatch: pytest.MonkeyPatch, value: bool | None
) -> None:
    def query(*args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", query)
    CONF.set_override("query_placement_for_numa", value, filter_scheduler.GROUP)
    client = Reports(HELD)
    assert select(client) is None
    assert client.reads == 0


@pytest.mark.usefixtures("resizing")
def test_a_migration_that_has_the_allocations_needs_no_seam() -> None:
    assert select(Reports(NOTHING)) is None


FAILURES = pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ConnectFailure("no route"), id="no connection"),
        pytest.param(
            exception.ConsumerAllocationRetrievalFailed(consumer_uuid="s", error="503"), id="503"
        ),
        pytest.param(ValueError("not JSON"), id="half an answer"),
        pytest.param(KeyError("allocations"), id="another JSON"),
        pytest.param({"allocations": None}, id="no mapping"),
    ],
)


@pytest.mark.usefixtures("resizing")
@FAILURES
def test_after_failed_reads_there_is_no_valid_host(failure: Any) -> None:
    """The random life 20261551: nova-compute refused a host, and nobody removed the allocations.

    The claim on the host's other NUMA node was refused because of them, and the server ended in
    ERROR. Nova's own claim needs the same answer of Placement.
    """
    client = Reports(failure)
    with pytest.raises(exception.NoValidHost, match="the allocations of server s are not known"):
        select(client)
    assert client.reads == 2


@pytest.mark.usefixtures("resizing")
@FAILURES
def test_a_read_that_fails_once_is_repeated(failure: Any) -> None:
    client = Reports(failure, HELD)
    assert select(client).old == HELD
    assert client.reads == 2


@pytest.fixture(params=[("MigrationList", "get_by_filters"), ("ComputeNode", NODE_BY_NAME)])
def unreadable(
    request: pytest.FixtureRequest, resizing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nova's database does not answer one of the two queries."""
    name, function = request.param
    away = mock.Mock(side_effect=DBConnectionError("no database"))
    monkeypatch.setattr(getattr(objects, name), function, away)


@pytest.mark.usefixtures("unreadable")
def test_without_the_database_the_own_host_is_refused() -> None:
    resize = select(Reports(HELD))
    assert (resize.root, resize.providers) == (ROOT, {ROOT, NODE})
    assert not resize.claim(None, None, "s", {})


@pytest.mark.usefixtures("unreadable")
def test_without_the_database_a_server_without_allocations_is_unshelved() -> None:
    assert select(Reports(NOTHING)) is None


@pytest.mark.usefixtures("unreadable")
def test_without_the_database_and_placement_there_is_no_valid_host() -> None:
    with pytest.raises(exception.NoValidHost, match="the host of server s is not known"):
        select(Reports(ConnectFailure("no route")))


def test_a_claim_that_placement_does_not_answer_is_refused() -> None:
    """As Nova's claim_resources, which returns None after a connection failure."""

    def post(*args: Any, **values: Any) -> Any:
        raise ConnectFailure("no route")

    reads = Reports(ConnectFailure("no route"))
    reads.post = post  # type: ignore[attr-defined]  # the test's client reads only
    resize = own_host.Resize(migration="m", root=ROOT, providers=frozenset({NODE}), old=HELD)
    context = SimpleNamespace(global_id="req-1")
    assert not resize.claim(reads, context, "s", {})

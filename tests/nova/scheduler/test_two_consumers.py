"""The allocations of a migration and of its server are written once, whatever is answered."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception

from cpu_tiers.nova.scheduler.two_consumers import hand_over

CONTEXT = SimpleNamespace(global_id="req-1")
OLD = {"node": {"resources": {"PCPU": 1}}}
NEW = {"node": {"resources": {"PCPU": 3}}}
CONFLICT = json.dumps({"errors": [{"code": "placement.concurrent_update", "detail": "consumer"}]})
FULL = json.dumps({"errors": [{"code": "placement.undefined_code", "detail": "capacity"}]})

Fault = Callable[["Placement"], Any]


class Placement:
    """A Placement with a migration and a server, which answers the first writes with a fault."""

    def __init__(self, fault: Fault, times: int) -> None:
        self.fault, self.times = fault, times
        self.held: dict[str, Any] = {"m": {}, "s": OLD}
        self.generation, self.writes = 1, 0

    def get_allocs_for_consumer(self, context: Any, consumer: str) -> Any:
        return {"allocations": self.held[consumer], "consumer_generation": self.generation}

    def post(self, url: str, body: Any, **values: Any) -> Any:
        assert (url, values["version"]) == ("/allocations", "1.28")
        self.writes += 1
        if self.writes <= self.times:
            return self.fault(self)
        if not body["m"]["allocations"]:
            return self.take_back(body)
        assert body["m"]["consumer_generation"] is None
        if body["s"]["consumer_generation"] != self.generation:
            return SimpleNamespace(status_code=409, text=CONFLICT)
        return self.write(body["m"]["allocations"], body["s"]["allocations"])

    def take_back(self, body: Any) -> Any:
        """Each consumer has the generation of the write: 1 of the migration, 2 of the server."""
        if not self.held["m"]:
            return SimpleNamespace(status_code=409, text=CONFLICT)
        assert body["m"]["consumer_generation"] == 1
        assert body["s"]["consumer_generation"] == 2
        return self.write(body["m"]["allocations"], body["s"]["allocations"])

    def write(self, migration: Any, server: Any) -> Any:
        self.held = {"m": migration, "s": server}
        return SimpleNamespace(status_code=204, text="")


def answer(status: int, text: str) -> Fault:
    return lambda placement: SimpleNamespace(status_code=status, text=text)


def reset(placement: Placement) -> Any:
    raise ConnectFailure("reset")


def answer_is_lost(placement: Placement) -> Any:
    placement.write(OLD, NEW)
    raise ConnectFailure("timed out")


def another_writes(placement: Placement) -> Any:
    """Another service changes the server, for instance its project, and keeps the amounts."""
    placement.generation += 1
    return SimpleNamespace(status_code=409, text=CONFLICT)


def another_takes(placement: Placement) -> Any:
    placement.held["s"] = {}
    return SimpleNamespace(status_code=409, text=CONFLICT)


def silence(placement: Placement) -> Any:
    def get(*args: Any) -> Any:
        raise exception.ConsumerAllocationRetrievalFailed(consumer_uuid="s", error="503")

    vars(placement)["get_allocs_for_consumer"] = get
    raise ConnectFailure("refused")


def written_in_silence(placement: Placement) -> Any:
    placement.write(OLD, NEW)
    silence(placement)


@pytest.mark.parametrize(
    ("fault", "times", "writes", "is_done"),
    [
        pytest.param(reset, 0, 1, True, id="no fault"),
        pytest.param(another_writes, 1, 2, True, id="409 of a generation: read again and written"),
        pytest.param(another_writes, 9, 4, False, id="409 of a generation for ever"),
        pytest.param(another_takes, 1, 1, False, id="the server holds other amounts now"),
        pytest.param(answer(409, FULL), 1, 1, False, id="no room is final"),
        pytest.param(answer(503, "<html>"), 1, 2, True, id="503 once"),
        pytest.param(answer(200, ""), 9, 4, False, id="an empty 200 for ever"),
        pytest.param(reset, 9, 4, False, id="no connection for ever"),
        pytest.param(answer_is_lost, 1, 1, True, id="written, and the answer is lost"),
        pytest.param(silence, 9, 2, False, id="the read fails, too"),
        pytest.param(silence, 1, 2, False, id="not written, so nothing is taken back"),
        pytest.param(written_in_silence, 1, 2, False, id="written, and taken back unseen"),
    ],
)
def test_the_write_is_done_or_not_at_all(
    fault: Fault, times: int, writes: int, is_done: bool
) -> None:
    placement = Placement(fault, times)
    client: Any = placement
    old = placement.get_allocs_for_consumer(CONTEXT, "s")
    assert (hand_over(client, CONTEXT, "m", "s", old, NEW) == "") == is_done
    assert placement.writes == writes
    moved = {"m": OLD, "s": NEW}
    assert (placement.held == moved) == is_done

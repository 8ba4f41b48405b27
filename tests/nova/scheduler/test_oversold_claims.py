"""A claim is given back if Placement has allocated more than the capacity, and in no other case.

A host of 4 CPUs; the server claims 2. The fake Placement grants every claim, as a real Placement
may do for claims at the same time.
"""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception
from nova.scheduler.client import report

from cpu_tiers import oversold
from cpu_tiers.nova.scheduler import oversold_claims
from tests.nova.computes import WEIGHER, Computes
from tests.nova.kinds import Kind

CONTEXT = SimpleNamespace(global_id="req-1")
CPUS = 4
SOURCE = {"source": {"resources": {"VCPU": 2}}}
CLAIM = {"allocations": {"host": {"resources": {"VCPU": 2}}}}
CONFLICT = json.dumps({"errors": [{"code": "placement.concurrent_update", "detail": "consumer"}]})

Fault = Callable[["Placement"], Any]


def answer(status: int, body: Any = None) -> Any:
    return SimpleNamespace(status_code=status, text=json.dumps(body), json=lambda: body)


class Placement:
    """Nova's report client in front of a Placement with a host of 4 CPUs.

    :ivar others: the CPUs of other servers; a number for each look, the last number for ever.
    :ivar looks: faults of the reads of the usages, the first for the first look.
    :ivar writes: the same for the writes that give the claim back.
    """

    def __init__(self, *others: int, before: Any = None) -> None:
        self.others = list(others)
        self.server: dict[str, Any] = dict(before or {})
        self.looks: list[Fault] = []
        self.writes: list[Fault] = []
        self.reads: list[Fault] = []
        self.requests: list[str] = []
        self.claims = 0

    def claim_resources(self, context: Any, server: str, request: Any, *args: Any) -> bool:
        self.claims += 1
        self.server = {**request["allocations"], **self.server}
        return True

    def get_allocs_for_consumer(self, context: Any, server: str) -> Any:
        self.requests.append("consumer")
        if self.reads:
            self.reads.pop(0)(self)
        return {"allocations": self.server, "consumer_generation": 1, "project_id": "p"}

    def get(self, url: str, **values: Any) -> Any:
        what = url.rpartition("/")[2]
        self.requests.append(what)
        if what == "inventories":
            cpus = {"total": CPUS, "reserved": 0, "max_unit": CPUS, "allocation_ratio": 1.0}
            return answer(200, {"inventories": {"VCPU": cpus}})
        if self.looks:
            return self.looks.pop(0)(self)
        others = self.others.pop(0) if len(self.others) > 1 else self.others[0]
        own = self.server.get("host", {"resources": {"VCPU": 0}})["resources"]["VCPU"]
        return answer(200, {"usages": {"VCPU": others + own}})

    def post(self, url: str, body: Any, **values: Any) -> Any:
        self.requests.append("post")
        assert (url, values["version"]) == ("/allocations", "1.28")
        assert body["uuid"]["project_id"] == "p"
        if self.writes:
            return self.writes.pop(0)(self)
        return self.write(body)

    def write(self, body: Any) -> Any:
        self.server = body["uuid"]["allocations"]
        return answer(204)


def wrapped(original: Any) -> Any:
    (wrap,) = filter(None, (seam.wrap for seam in oversold_claims.SEAMS))
    return wrap(original)


def claim(placement: Any) -> Any:
    wrapper = wrapped(Placement.claim_resources)
    return wrapper(placement, CONTEXT, "uuid", CLAIM, "project", "user", "1.36")


def reset(placement: Placement) -> Any:
    raise ConnectFailure("reset")


def no_consumer(placement: Placement) -> Any:
    raise exception.ConsumerAllocationRetrievalFailed(consumer_uuid="uuid", error="503")


def ready(placement: Placement) -> None:
    """Read without a fault."""


def is_lost(placement: Placement) -> Any:
    placement.server = {}
    raise ConnectFailure("timed out")


def another_writes(placement: Placement) -> Any:
    placement.server = {**placement.server, "port": {"resources": {"NET": 1}}}
    return answer(409, json.loads(CONFLICT))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversold, "LONGEST_PAUSE", 0.0)


def test_a_claim_that_fits_costs_three_reads() -> None:
    placement = Placement(2)
    assert claim(placement) is True
    assert placement.requests == ["consumer", "usages", "inventories"]


def test_an_excess_that_ends_meanwhile() -> None:
    """2 + 3 > 4, and after the pause 2 + 2: another server has given back its claim."""
    placement = Placement(3, 2)
    assert claim(placement) is True
    assert (placement.claims, placement.server) == (1, CLAIM["allocations"])
    assert "post" not in placement.requests


def test_an_excess_is_given_back_and_the_host_is_claimed_again() -> None:
    placement = Placement(3, 3, 2)
    assert claim(placement) is True
    assert (placement.claims, placement.server) == (2, CLAIM["allocations"])


@pytest.mark.parametrize("before", [{}, SOURCE], ids=["boot", "evacuation"])
def test_a_lasting_excess_leaves_the_server_unchanged(before: Any) -> None:
    placement = Placement(3, before=before)
    assert claim(placement) is False
    assert (placement.claims, placement.server) == (3, before)


def test_a_provider_that_the_server_has_already_is_not_looked_at() -> None:
    """Nova claims nothing new there."""
    placement = Placement(9, before=CLAIM["allocations"])
    assert claim(placement) is True
    assert placement.requests == ["consumer"]


@pytest.mark.parametrize(
    ("faults", "held"),
    [
        pytest.param({"reads": [no_consumer]}, True, id="before the claim"),
        pytest.param({"looks": [reset]}, True, id="no answer to the look"),
        pytest.param({"looks": [lambda _: answer(503)]}, True, id="503"),
        pytest.param({"looks": [lambda _: answer(200)]}, True, id="null"),
        pytest.param({"looks": [lambda _: answer(200, {"usages": {"VCPU": "x"}})]}, True, id="x"),
        pytest.param({"writes": [reset] * 9}, True, id="no answer to the writes"),
        pytest.param({"writes": [lambda _: answer(503)] * 9}, True, id="503 to the writes"),
        pytest.param({"reads": [ready, *[no_consumer] * 9]}, True, id="no answer to the reads"),
        pytest.param({"writes": [another_writes]}, True, id="changed by another service"),
        pytest.param({"writes": [reset]}, False, id="no answer to one write"),
        pytest.param({"writes": [is_lost]}, False, id="given back, and the answer is lost"),
    ],
)
def test_a_fault(
    faults: dict[str, list[Fault]], held: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A claim stays with the server, as with Nova alone, or is given back as a whole."""
    placement = Placement(3)
    vars(placement).update(faults)
    assert claim(placement) is held
    assert placement.server.get("host") == (CLAIM["allocations"]["host"] if held else None)
    assert (placement.claims == 1) is held
    assert {vars(record)["instance_uuid"] for record in caplog.records} == {"uuid"}


def test_a_refused_claim_costs_a_single_read() -> None:
    placement = Placement(2)
    refused = wrapped(lambda *_: False)
    assert refused(placement, CONTEXT, "uuid", CLAIM) is False
    assert placement.requests == ["consumer"]


class TestOversoldClaims(Computes):
    """Another consumer takes the CPUs of the claimed host between the claim and the look."""

    microversion = "latest"  # Nova stops an evacuated server from 2.95 on
    kind = Kind(
        weighers=(WEIGHER,),
        scheduler_options={
            "query_placement_for_vcpu_shares": False,
            "give_back_oversold_claims": True,
        },
    )

    def race(self, *sources: str) -> list[str]:
        """Reserve the CPUs of the next host that is claimed; return the host, once claimed.

        :param sources: the hosts of which the server has allocations.
        """
        put = report.SchedulerReportClient.put
        raced: list[str] = []

        def put_and_reserve(client: Any, url: str, data: Any, **values: Any) -> Any:
            response = put(client, url, data, **values)
            if url.startswith("/allocations/") and not raced:
                names = self.tree.names()
                (provider,) = (uuid for uuid in data["allocations"] if names[uuid] not in sources)
                self.reserve(provider)
                raced.append(names[provider])
            return response

        path = "nova.scheduler.client.report.SchedulerReportClient.put"
        self.useFixture(fixtures.MonkeyPatch(path, put_and_reserve))
        return raced

    def reserve(self, provider: str) -> None:
        url = f"/resource_providers/{provider}/inventories"
        body = self.placement.get(url).body
        cpus = body["inventories"]["VCPU"]
        cpus.update(reserved=cpus["total"] - 1, allocation_ratio=1.0)
        assert self.placement.put(url, body).status == 200

    def test_a_boot_and_an_evacuation_go_to_the_next_host(self) -> None:
        for name in ("one", "two", "three", "four"):
            self.start_host(name)
        raced = self.race()
        server = self.boot(self.flavor("pair", vcpus=2))
        source = self.host_of(server)
        assert raced != [source]
        assert self.held(server["id"]).keys() == {source}
        self.go_down(source)
        again = self.race(source)
        self._evacuate_server(server)
        target = self.host_of(server)
        assert {source, target, *raced, *again} == {"one", "two", "three", "four"}
        assert self.held(server["id"]).keys() == {source, target}

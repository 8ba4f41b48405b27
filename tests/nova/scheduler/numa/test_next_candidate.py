"""The other NUMA node of a host, where Placement or nova-compute refuses the first.

A host has two NUMA nodes of 4 CPUs; a server has 3.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import fixtures
import pytest
from nova import exception
from nova.compute import claims
from nova.scheduler.client import report
from oslo_utils.fixture import uuidsentinel as uuids

from cpu_tiers.nova.scheduler.numa import next_candidate
from tests.nova.scheduler.reporting_hosts import ONE, ReportingHosts


def test_a_claim_with_a_lost_answer_is_no_error() -> None:
    """Placement has the server's allocations, so Nova refuses a further claim by an exception."""
    claimed: list[str] = []

    def claim(_ctx: Any, _client: Any, _spec: Any, _uuid: str, wanted: Any) -> bool:
        claimed.extend(wanted["allocations"])
        if len(claimed) > 1:
            raise exception.AllocationUpdateFailed(consumer_uuid="u", error="exists")
        return False

    candidates = [
        {"allocations": {node: {}}, "mappings": {"_PROC1": [node]}} for node in ("n0", "n1", "n2")
    ]
    host = SimpleNamespace(allocation_candidates=candidates)
    spec, client = SimpleNamespace(), cast("Any", None)
    next_candidate._keep(lambda *_: [host], None, spec, [host], 0)
    first = host.allocation_candidates[0]
    assert next_candidate._claim_next(claim, None, client, spec, "u", first) is False
    assert claimed == ["n0", "n1"]


@pytest.mark.parametrize(
    ("left", "alternates"),
    [
        pytest.param([1], ["1", "elsewhere"], id="the other node has room"),
        pytest.param([], ["elsewhere", "1"], id="later servers have taken the other node"),
    ],
)
def test_alternates(left: Sequence[int], alternates: Sequence[str]) -> None:
    """As far as nova-scheduler knows: Placement may have room that the later servers left."""
    candidates = [
        {"allocations": {f"{cell}": {}}, "mappings": {"_PROC1": [f"{cell}"]}} for cell in (0, 1)
    ]
    host = SimpleNamespace(
        allocation_candidates=candidates,
        uuid=uuids.node,
        host="one",
        nodename="one",
        cell_uuid=uuids.cell,
        limits={},
        aggregates=[],
    )
    spec = SimpleNamespace()
    keep = partial(next_candidate._keep, lambda *_: [host])
    keep(None, spec, [host], 0)
    claimed = host.allocation_candidates[0]
    host.allocation_candidates = [candidates[cell] for cell in left]
    keep(None, spec, [host], 1)  # Nova sorts again before it chooses alternates

    def offered(claimed: Any) -> list[str]:
        offer = partial(next_candidate._offer_next, lambda *_: [["selected", "elsewhere"]])
        (own,) = offer(None, [host], spec, [host], 1, 2, {}, "1.36", [claimed])
        return [_name(alternate) for alternate in own[1:]]

    assert offered(claimed) == alternates
    # An equal candidate, such as another server's, is not the one that was kept.
    assert offered(dict(claimed)) == (alternates if left else ["elsewhere"])


def _name(alternate: Any) -> str:
    """Return the node of a selection; other alternates are names already."""
    if isinstance(alternate, str):
        return alternate
    (node,) = json.loads(alternate.allocation_request)["allocations"]
    return str(node)


class TestNextCandidate(ReportingHosts):
    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.most = self.flavor("most", ONE, vcpus=3)

    def before_claims(self, act: Callable[[Mapping[str, Any]], None]) -> list[list[str]]:
        """Call a function before each claim; return the providers of the claims, in order."""
        put = report.SchedulerReportClient.put
        claimed: list[list[str]] = []

        def act_and_put(client: Any, url: str, data: Any, **kwargs: Any) -> Any:
            if url.startswith("/allocations/"):
                names = self.names_of(data["allocations"])
                act(data["allocations"])
                claimed.append(names)
            return put(client, url, data, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.scheduler.client.report.SchedulerReportClient.put", act_and_put
            )
        )
        return claimed

    def names_of(self, allocations: Mapping[str, Any]) -> list[str]:
        """Return the names of the nodes with VCPU."""
        providers = self.placement.get("/resource_providers").body["resource_providers"]
        names = {provider["uuid"]: provider["name"] for provider in providers}
        return [names[uuid] for uuid, item in allocations.items() if "VCPU" in item["resources"]]

    def take(self, allocations: Mapping[str, Any]) -> None:
        """Have another consumer claim the VCPU of an allocation first."""
        (node,) = (uuid for uuid, item in allocations.items() if "VCPU" in item["resources"])
        body = {
            "allocations": {node: {"resources": {"VCPU": 3}}},
            "project_id": uuids.project,
            "user_id": uuids.user,
            "consumer_generation": None,
        }
        consumer = getattr(uuids, f"consumer_{node}")
        response = self.placement.put(f"/allocations/{consumer}", body, version="1.28")
        assert response.status == 204, response.body

    def test_a_race_for_a_node_is_followed_by_the_second_node(self) -> None:
        self.start_host("two")
        races = iter([self.take])
        claimed = self.before_claims(lambda wanted: next(races, lambda _: None)(wanted))
        server = self.boot(self.most)
        ((host, cell),) = self.where(server["id"])
        assert claimed == [[f"{host}_NUMA{1 - cell}"], [f"{host}_NUMA{cell}"]]
        assert self.nodes_of(server) == {f"{host}_NUMA{cell}"}

    def test_a_host_without_room_is_followed_by_another_host(self) -> None:
        self.start_host("two")
        races = iter([self.take, self.take])
        claimed = self.before_claims(lambda wanted: next(races, lambda _: None)(wanted))
        server = self.boot(self.most)
        hosts = [name.partition("_")[0] for (name,) in claimed]
        assert hosts in (["one", "one", "two"], ["two", "two", "one"])
        assert self.nodes_of(server) == set(claimed[-1])

    def test_two_servers_of_a_request(self) -> None:
        """The claim of the second fails; the first keeps its own allocation."""
        self.start_host("two")
        races = iter([lambda _: None, self.take])
        claimed = self.before_claims(lambda wanted: next(races, lambda _: None)(wanted))
        body = self._build_server(flavor_id=self.most, networks="none")
        body |= {"min_count": 2, "max_count": 2, "return_reservation_id": True}
        self.api.api_post("/servers", {"server": body})
        servers = [server["id"] for server in self.api.get_servers()]
        for server in servers:
            self._wait_for_state_change({"id": server}, "ACTIVE")
            self.where(server)
        assert len(claimed) == 3

    def test_a_refused_node_is_followed_by_the_second_node(self) -> None:
        self.start_host("two")
        self.start_host("three")
        test = claims.Claim._claim_test
        refused: list[Any] = []

        def refuse_once(claim: Any, *args: Any, **kwargs: Any) -> Any:
            if not refused:
                refused.append(claim.nodename)
                raise exception.ComputeResourcesUnavailable(reason="the device is taken")
            return test(claim, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch("nova.compute.claims.Claim._claim_test", refuse_once))
        claimed = self.before_claims(lambda _: None)
        server = self.boot(self.most)
        ((first,), *_, (second,)) = claimed
        assert self.host_of(server) == refused[0]
        assert {first, second} == {f"{refused[0]}_NUMA0", f"{refused[0]}_NUMA1"}
        assert self.nodes_of(server) == {second}

    def test_a_node_that_another_server_of_the_request_leaves(self) -> None:
        """Two servers fill the nodes of the only host, and nova-compute refuses each once.

        The second had no other node, and ends. The first has the node of the second then.
        """
        test = claims.Claim._claim_test
        refused: set[str] = set()

        def refuse_once(claim: Any, *args: Any, **kwargs: Any) -> Any:
            uuid = claim.instance.uuid
            if uuid not in refused:
                refused.add(uuid)
                raise exception.ComputeResourcesUnavailable(reason="the device is taken")
            return test(claim, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch("nova.compute.claims.Claim._claim_test", refuse_once))
        claimed = self.before_claims(
            lambda wanted: self._wait_for_assert(lambda: self.free(wanted))
        )
        body = self._build_server(flavor_id=self.most, networks="none")
        body |= {"min_count": 2, "max_count": 2, "return_reservation_id": True}
        self.api.api_post("/servers", {"server": body})

        def at_rest() -> None:
            states = sorted(server["status"] for server in self.api.get_servers())
            assert states == ["ACTIVE", "ERROR"]

        self._wait_for_assert(at_rest, max_retries=40)
        first, second, last = claimed
        assert {*first, *second} == {"one_NUMA0", "one_NUMA1"}
        assert last == second

    def free(self, allocations: Mapping[str, Any]) -> None:
        """Check that nobody has allocated VCPU of the providers."""
        for uuid in allocations:
            usages = self.placement.get(f"/resource_providers/{uuid}/usages").body["usages"]
            assert not usages.get("VCPU")

    def test_few_attempts_are_left_to_further_hosts(self) -> None:
        self.flags(max_attempts=2, group="scheduler")
        self.start_host("two")
        test = claims.Claim._claim_test

        def refuse_one(claim: Any, *args: Any, **kwargs: Any) -> Any:
            if claim.nodename == "one":
                raise exception.ComputeResourcesUnavailable(reason="broken")
            return test(claim, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch("nova.compute.claims.Claim._claim_test", refuse_one))
        assert self.host_of(self.boot(self.most)) == "two"

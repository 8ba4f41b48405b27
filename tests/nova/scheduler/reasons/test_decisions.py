"""The record of nova-scheduler's decisions: of servers that got a host, and of servers without."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest

from cpu_tiers.nova.notes import search_of
from cpu_tiers.nova.scheduler.reasons import decisions
from cpu_tiers.nova.scheduler.reasons.decisions import Decision, Round
from tests.nova.cloud import Cloud
from tests.nova.scheduler.reasons.written_lines import lines_of

BORING = {
    "resource_provider_weight_multiplier": 2.0,
    "resource_provider_resources": ["CUSTOM_VCPU_SHARES", "CUSTOM_GPU"],
    "resource_provider_traits": ["CUSTOM_NONE"],
    "resource_provider_scoring": "boring",
}


class TestDecisions(Cloud):
    def setUp(self) -> None:
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.file = Path(self.folder) / "decisions.json"
        super().setUp()
        self.start_host("gpu", CUSTOM_VCPU_SHARES=800, CUSTOM_GPU=4)
        self.start_host("plain", CUSTOM_VCPU_SHARES=800)
        self.restart_scheduler(**BORING, decision_record_file=str(self.file))

    def decisions(self) -> list[dict[str, Any]]:
        """Return the decisions in the file, when the thread has written at least one."""
        return [json.loads(line) for line in lines_of(self.file, 1)]

    def refused(self, flavor: str, **server: Any) -> Mapping[str, Any]:
        """Boot a server that gets no host; return the server."""
        body = {**self._build_server(flavor_id=flavor, networks="none"), **server}
        created = self.api.post_server({"server": body})
        refused: Mapping[str, Any] = self._wait_for_state_change(created, "ERROR")
        return refused

    def test_a_server_that_gets_a_host(self) -> None:
        server = self.boot(self.tier("gold", "100"))
        (decision,) = self.decisions()
        assert decision["servers"] == [server["id"]]
        assert decision["request_id"].startswith("req-")
        assert decision["flavor"] == "gold"
        assert "CUSTOM_VCPU_SHARES%3A100" in decision["queries"][0]
        assert decision["candidates"]["number"] == 2
        assert sorted(decision["candidates"]["names"]) == ["gpu", "plain"]
        (one,) = decision["rounds"]
        assert one["server"] == server["id"]
        assert {each["left"] for each in one["filters"]} == {2}
        assert "ComputeFilter" in [each["filter"] for each in one["filters"]]
        # boring: resources of plain (1 - 100/800) / 1 = 0.875, of gpu (0.875 + 0) / 2 = 0.4375;
        # with the traits (both hosts 1.0): 0.9375 and 0.71875; the multiplier is 2.
        assert one["weights"] == [
            {"host": "plain", "weight": 1.875, "parts": {"ResourceProviderWeigher": 1.875}},
            {"host": "gpu", "weight": 1.4375, "parts": {"ResourceProviderWeigher": 1.4375}},
        ]
        ((provider,),) = [claim["providers"] for claim in one["claims"]]
        assert one["claims"][0]["granted"] is True
        assert provider == self.provider("plain")
        assert decision["selected"] == [{"host": "plain", "alternates": ["gpu"]}]
        assert decision["fault"] is None

    def provider(self, host: str) -> str:
        found = self.placement.get(f"/resource_providers?name={host}").body
        uuid: str = found["resource_providers"][0]["uuid"]
        return uuid

    def test_no_candidate(self) -> None:
        server = self.refused(self.tier("huge", "900"))
        (decision,) = self.decisions()
        assert decision["servers"] == [server["id"]]
        assert decision["candidates"] == {"number": 0, "names": []}
        assert decision["rounds"] == decision["selected"] == []
        assert decision["fault"].startswith("No valid host was found.")

    def test_a_filter_removes_all_hosts(self) -> None:
        flavor = self.flavor("elsewhere", {"capabilities:hypervisor_type": "elsewhere"})
        self.refused(flavor)
        (decision,) = self.decisions()
        (one,) = decision["rounds"]
        last = one["filters"][-1]
        assert (last["filter"], last["left"]) == ("ComputeCapabilitiesFilter", 0)
        assert last["removed"]["number"] == 2
        assert sorted(last["removed"]["names"]) == ["gpu", "plain"]
        assert one["weights"] == one["claims"] == decision["selected"] == []
        assert decision["fault"].startswith("No valid host was found.")

    def test_many_servers_have_a_round_each(self) -> None:
        body = self._build_server(flavor_id=self.tier("gold", "100"), networks="none")
        self.api.post_server({"server": {**body, "min_count": 2}})
        for server in self.api.get_servers():
            self._wait_for_state_change(server, "ACTIVE")
        (decision,) = self.decisions()
        assert len(decision["servers"]) == 2
        rounds = decision["rounds"][:2]  # a further one is for the alternates
        assert [each["server"] for each in rounds] == decision["servers"]
        assert all(each["claims"][0]["granted"] for each in rounds)

    def test_a_file_that_cannot_be_written_costs_no_host(self) -> None:
        self.restart_scheduler(decision_record_file=str(Path(self.folder) / "none" / "file"))
        Path(self.folder, "none").write_text("no folder")
        gold = self.tier("gold", "100")
        assert self.host_of(self.boot(gold)) == "plain"
        text = "no answer waits: record of a decision: NotADirectory"
        # The thread that writes has failed by the next decision, or by one of the next.
        hosts = (self.host_of(self.boot(gold)) for _ in range(20))
        assert any(text in self.stdlog.logger.output for _ in hosts)


def test_a_weigher_that_works_in_another_way_costs_no_host(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It has a weight for only one of two hosts."""
    weighed = [SimpleNamespace(obj=SimpleNamespace(host=name), weight=1.0) for name in "ab"]

    def handle(_self: Any, weighers: Any, _hosts: Any, spec: Any) -> Any:
        weighers[0].weigh_objects(weighed, spec)
        return weighed

    spec = SimpleNamespace()
    decision = Decision(request_id=None, servers=(), flavor="gold", rounds=[Round(server="s")])
    search_of(spec).decision = decision
    weigher = SimpleNamespace(
        minval=None,
        maxval=None,
        weigh_objects=lambda hosts, _: [0.0 for _ in hosts[1:]],
        weight_multiplier=lambda _: 1.0,
    )
    assert decisions._note_weights(handle, None, [weigher], [], spec) is weighed
    assert decision.rounds[0].weights == []
    assert "The weights of hosts are not recorded: " in caplog.text

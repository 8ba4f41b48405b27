"""Hosts near the present host of a server, and hosts of its project."""

from types import SimpleNamespace

import fixtures
import pytest
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.nova.notes import HostNotes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.scores import RequestScores
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
from tests.nova.computes import SHARES
from tests.nova.scheduler.weighed_hosts import Weighed, aggregate, host, spec, summary, weighed
from tests.nova.traffic import Traffic

GROUP = "filter_scheduler"
SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
RACK, OTHER_RACK = aggregate(1, rack="yes"), aggregate(2, rack="yes")
SHARD, OWNED = aggregate(3, shard="a"), aggregate(4, filter_tenant_id2="p, q")


@pytest.mark.parametrize(
    ("option", "ignored", "weights"),
    [
        pytest.param("same_host", None, [0.0, 0.0, 0.0, 0.0], id="a new server has no host"),
        pytest.param("same_host", ["one"], [2.0, 0.0, 0.0, 0.0], id="Nova names the host first"),
        pytest.param("same_host", ["gone"], [0.0, 0.0, 0.0, 0.0], id="no candidate is the host"),
        pytest.param(
            "same_aggregate",
            ["one", "two"],
            [2.0, 1.0, 0.0, 0.0],
            id="both keys, one, none",
        ),
        pytest.param("same_aggregate", ["three"], [0.0, 0.0, 2 / 2, 0.0], id="one key of two"),
        pytest.param("same_aggregate", None, [0.0, 0.0, 0.0, 0.0], id="no host to be near to"),
        pytest.param(
            "same_project", None, [0.0, 0.0, 0.0, 2.0], id="of the project of the server"
        ),
    ],
)
def test_nearness(option: str, ignored: list[str] | None, weights: list[float]) -> None:
    """Of two keys, rack and shard; the project of the server is q."""
    groups = {"one": [RACK, SHARD], "two": [RACK], "three": [OTHER_RACK], "four": [OWNED]}
    manager = SimpleNamespace(_get_aggregates_info=lambda name: groups.get(name, []))
    request = spec()
    request.instance_uuid, request.project_id = SERVER, "q"
    request.ignore_hosts = ignored
    weigher = ResourceProviderWeigher()
    scores = RequestScores({name: summary(name, 8) for name in groups}, request, manager)
    hosts = [host(name, cpu_tiers=HostNotes(scores=scores)) for name in groups]
    for state in hosts:
        state.aggregates = groups[state.host]
    assert weigher.weigh_objects(weighed(*hosts), None) == [0.0] * 4  # multipliers of 0.0
    CONF.set_override("resource_provider_same_aggregate_keys", ["rack", "shard"], GROUP)
    CONF.set_override(f"resource_provider_{option}_weight_multiplier", 2.0, GROUP)
    assert weigher.weigh_objects(weighed(*hosts), None) == weights
    CONF.clear_override(f"resource_provider_{option}_weight_multiplier", GROUP)
    CONF.clear_override("resource_provider_same_aggregate_keys", GROUP)


class TestNearness(LibvirtMigrationMixin, Weighed):
    def test_moves_within_a_rack_and_a_resize_in_place(self) -> None:
        """By shares alone, "far" is the best: (1 - 100/1600) / 2.

        After the live migration, the list that nova-scheduler has of the servers on the former
        host has the server still; the list of the present host has not.
        """
        for name, shares in {"one": 400, "near": 800, "far": 1600}.items():
            self.start_host(name, **{SHARES: shares})
        rack = self.api.post_aggregate({"aggregate": {"name": "rack"}})
        for name in ("one", "near"):
            self.api.add_host_to_aggregate(rack["id"], name)
        metadata = {"set_metadata": {"metadata": {"rack": "1"}}}
        self.api.post_aggregate_action(rack["id"], metadata)
        self.configure(
            resource_provider_same_aggregate_keys=["rack"],
            resource_provider_same_aggregate_weight_multiplier=1.0,
        )
        copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy, return_value="{}"))  # the fake has no disks
        asked: list[str] = []
        query = lambda _send, _kind, statement: asked.append(statement)  # noqa: E731
        traffic = self.useFixture(Traffic(query=query))
        server = self.boot(self.tier("gold", "100"), host="one")
        self.server = server
        self.src, self.dest = self.computes["one"], self.computes["near"]
        self._live_migrate(server)
        assert self.host_of(server) == "near"  # (1 - 100/800) / 2 + 1
        lists = self.scheduler.manager.host_manager._instance_info
        assert [name for name in lists if server["id"] in lists[name]["instances"]] == ["one"]
        assert asked == []  # the requests so far name the present host, or are for a new server
        self.flags(allow_resize_to_same_host=True)
        self.configure(
            resource_provider_same_aggregate_weight_multiplier=0.0,
            resource_provider_same_host_weight_multiplier=1.0,
        )
        self._resize_server(server, self.tier("silver", "50"))
        assert self.host_of(server) == "near"  # (1 - 50/700) / 2 + 1, far (1 - 50/1600) / 2
        traffic.settle()
        assert asked == ["SELECT instances"]

"""Changes of the tier of running servers with NUMA nodes, dedicated CPUs, ports and volumes.

The hosts have two nodes with two shared and four dedicated CPUs each. What is pinned, and what a
port holds, stays as it is; shares follow the shared vCPUs of each node.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from nova import context as nova_context
from nova import objects
from nova.tests import fixtures as nova_fixtures

from cpu_tiers.nova import tier_changes
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES
from tests.nova.kinds import Kind
from tests.nova.networks import PORT_IDS, Neutron, add_devices, bandwidth, placement_of
from tests.nova.numa.agreement import topology_of
from tests.nova.numa.pinning import PINNING
from tests.nova.tier_changes import TierChanges

TWO = {"hw:numa_nodes": "2"}
DEDICATED = {**TWO, "hw:cpu_policy": "dedicated"}
MIXED = {**TWO, "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0,^2"}
UNEVEN = {
    **TWO,
    "hw:numa_cpus.0": "0",
    "hw:numa_mem.0": "128",
    "hw:numa_cpus.1": "1-2",
    "hw:numa_mem.1": "384",
}
DISK = {
    "boot_index": 0,
    "source_type": "volume",
    "destination_type": "volume",
    "uuid": nova_fixtures.CinderFixture.IMAGE_BACKED_VOL,
}


class TestKinds(TierChanges):
    kind: ClassVar[Kind] = PINNING
    cpus: ClassVar[int] = 12
    weighers: tuple[str, ...] | None = PINNING.weighers
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **PINNING.scheduler_options,
        "query_placement_for_vcpu_shares": True,
    }

    def start_hosts(self) -> None:
        self.nodes(True)
        self.neutron = self.useFixture(Neutron(self))
        self.neutron.ask(PORT_IDS[0], bandwidth(1000))
        self.start_host("one")
        add_devices(placement_of(self), "one")

    def shares_of_nodes(self, consumer: str) -> dict[str, int]:
        held = self.held(consumer).items()
        return {name: amounts[SHARES] for name, amounts in held if SHARES in amounts}

    def life(
        self,
        specs: Mapping[str, str],
        vcpus: int,
        *steps: tuple[str, int, list[int]],
        has_volume: bool = False,
        networks: Any = "none",
    ) -> None:
        """Change the tier of a server again and again.

        :param steps: a multiplier, the weight of the guest, and the shares by node, in order.
        """
        names = [f"tier {number}" for number in range(len(steps))]
        flavors = [
            self.flavor(name, {**specs, MULTIPLIER: step[0]} if step[0] else specs, vcpus=vcpus)
            for name, step in zip(names, steps, strict=True)
        ]
        request = self._build_server(
            flavor_id=flavors[0], networks=networks, image_uuid="" if has_volume else None
        )
        if has_volume:
            request["block_device_mapping_v2"] = [DISK]
        server = self.api.post_server({"server": request})["id"]
        self._wait_for_state_change({"id": server}, "ACTIVE")
        before = self.what_stays(server)
        for name, flavor, (_, weight, shares) in zip(
            names[1:], flavors[1:], steps[1:], strict=True
        ):
            self.resize(server, flavor)
            self.check(server, name, weight=weight, shares=sum(shares))
            assert sorted(self.shares_of_nodes(server).values()) == sorted(shares)
            self.report(server)  # the resource tracker counts each pinned CPU once
            assert self.what_stays(server) == before
            self.confirm(server)
            self.report(server)
            assert self.what_stays(server) == before
        _, weight, shares = steps[-1]
        self.resize(server, flavors[0])
        self.revert(server)
        self.check(server, names[-1], weight=weight, shares=sum(shares))
        assert sorted(self.shares_of_nodes(server).values()) == sorted(shares)
        assert self.what_stays(server) == before
        self._delete_server({"id": server})
        assert self.tree.used() == {}

    def what_stays(self, server: str) -> list[Any]:
        """Return what a change of the tier must not change, in Placement, Nova and libvirt."""
        held = {
            name: rest
            for name, amounts in self.held(server).items()
            if (rest := {key: n for key, n in amounts.items() if key != SHARES})
        }
        topology = topology_of(server)
        pins = [(cell.id, cell.cpu_pinning) for cell in topology.cells] if topology else []
        node = objects.ComputeNode.get_by_nodename(nova_context.get_admin_context(), "one")
        cells = objects.NUMATopology.obj_from_db_obj(node.numa_topology).cells
        pinned = [sorted(cell.pinned_cpus) for cell in cells]
        tuning = self.domain(server, "one").find("cputune")
        lines = [(each.tag, dict(each.attrib)) for each in tuning if each.tag != "shares"]
        return [held, pins, pinned, [cell.cpu_usage for cell in cells], lines]

    def test_shared_on_two_nodes(self) -> None:
        steps = ("25", 50, [25, 25]), ("0.5", 2, [1]), ("50", 100, [50, 50])
        self.life(TWO, 2, *steps)

    def test_uneven_nodes_and_no_tier(self) -> None:
        """1 and 2 vCPUs: 3 x 30 is 30 and 60; 3 x 2.5 is 7.5, rounded 8: 3 and 5."""
        self.life(UNEVEN, 3, ("", 0, []), ("30", 90, [30, 60]), ("2.5", 8, [3, 5]))

    def test_dedicated(self) -> None:
        """Dedicated vCPUs claim no shares; the weight counts them all."""
        self.life(DEDICATED, 4, ("25", 100, []), ("50", 200, []))

    def test_mixed_with_a_port_and_a_volume(self) -> None:
        """A shared and a dedicated vCPU on each node: 2 of 4 vCPUs claim shares."""
        steps = ("25", 100, [25, 25]), ("50", 200, [50, 50])
        self.life(MIXED, 4, *steps, has_volume=True, networks=[{"port": PORT_IDS[0]}])


def body(**allocations: Mapping[str, int]) -> dict[str, Any]:
    return {"allocations": {name: {"resources": dict(n)} for name, n in allocations.items()}}


@pytest.mark.parametrize(
    ("shares", "allocations"),
    [
        pytest.param({"a": 5}, {"a": {"VCPU": 1, SHARES: 5}}, id="a new class"),
        pytest.param({"a": 0}, {"a": {"VCPU": 1}}, id="no tier"),
        pytest.param({"b": 5}, {"a": {"VCPU": 1}, "b": {SHARES: 5}}, id="another provider"),
    ],
)
def test_allocations_with_other_shares(
    shares: dict[str, int], allocations: dict[str, dict[str, int]]
) -> None:
    held = body(a={"VCPU": 1})
    assert tier_changes.with_amounts(held, shares) == body(**allocations)
    assert held == body(a={"VCPU": 1})  # the caller writes it again, perhaps
    whole = body(**allocations)
    assert tier_changes.amount(whole, ["a", "b", "c"]) == sum(shares.values())
    assert PLAIN not in str(whole)


def test_a_provider_of_which_nothing_is_left() -> None:
    held = body(a={"VCPU": 1}, b={SHARES: 5})
    assert tier_changes.with_amounts(held, {"b": 0}) == body(a={"VCPU": 1})

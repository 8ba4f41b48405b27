"""``cpu-tiers reshape plan --offline``: where Nova's database alone tells too little.

That it tells the same as Placement otherwise, :mod:`tests.nova.commands.test_numa_plan` shows for
servers and moves of every kind.
"""

import pytest
from nova import context, objects

from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.nova.offline_holdings import held_by_flavor
from tests.nova.numa.moves import Moves
from tests.nova.reshapes import resize_from_one

TWO_NODES = {"hw:numa_nodes": "2"}
CELL = objects.InstanceNUMACell(id=0, cpuset=set(), pcpuset={0, 1, 2, 3}, memory=512)
PINNED = objects.InstanceNUMATopology(cells=[CELL])


@pytest.mark.parametrize(
    ("specs", "on_nodes", "amounts"),
    [
        pytest.param(
            {"hw:cpu_policy": "dedicated", "resources:PCPU": "0"},
            False,
            {"PCPU": 4},
            id="0 PCPU, which the policy replaces in Nova",
        ),
        pytest.param({"resources:VCPU": "0"}, False, {}, id="0 VCPU, which Nova claims"),
        pytest.param(
            {**TWO_NODES, "resources:VCPU": "1"}, False, {"VCPU": 1}, id="1 VCPU, as booted"
        ),
        pytest.param(
            {**TWO_NODES, "resources:VCPU": "1", "resources:MEMORY_MB": "0"},
            True,
            {"VCPU": 4},
            id="the nodes have 4 vCPUs and 512 MiB",
        ),
    ],
)
def test_amounts_of_a_flavor(
    specs: dict[str, str], amounts: dict[str, int], *, on_nodes: bool
) -> None:
    flavor = Flavor(name="f", vcpus=4, memory_mb=512, extra_specs=specs)
    owner = Owner(name="s", server="s", flavor=flavor)
    topology = PINNED if "hw:cpu_policy" in specs else None
    held = held_by_flavor(owner, topology, has_pcpu=True, on_nodes=on_nodes)
    assert held == {**amounts, "MEMORY_MB": 512}


class TestOffline(Moves):
    def test_servers_that_changed_since_an_offline_plan(self) -> None:
        self.start_host("one")
        stays, goes, loses = (self.boot_on("one", self.flavor(name)) for name in "abc")
        path = self.commands.folder / "plan.json"
        self.commands.offline("--save", path)
        self._delete_server({"id": goes})
        comes = self.boot_on("one", self.flavor("d"))
        body = self.placement.get(f"/allocations/{loses}", version="1.28").body
        (held,) = body["allocations"].values()
        held["resources"] = {"MEMORY_MB": 256}
        assert self.placement.put(f"/allocations/{loses}", body, version="1.28").status == 204
        generations = self.tree.generations("one")
        said = self.commands.ask("apply", path, status=1)
        assert f"consumer {comes}: is not in the plan; make the plan again" in said.error
        assert (
            f"({loses}), flavor c: holds 256 MEMORY_MB, but 512 MEMORY_MB, 1 VCPU when the plan"
            in said.error
        )
        assert f"({stays})" not in said.error
        assert f"({goes})" not in said.error
        assert self.tree.generations("one") == generations

    def test_a_resize_of_which_the_database_does_not_tell(self) -> None:
        uuid, migration = resize_from_one(self, stop="resize_instance")
        server = objects.Instance.get_by_uuid(context.get_admin_context(), uuid, ["flavor"])
        server.new_flavor = None  # as at the moment when the destination hears of it
        server.save()
        assert self.commands.goes_to("--offline").keys() == {migration}
        said = self.commands.ask("plan", "--offline", host="two", status=1)
        assert "is being resized, and Nova does not know its new flavor yet" in said.error

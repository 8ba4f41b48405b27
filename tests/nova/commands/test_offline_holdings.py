"""``cpu-tiers reshape plan --offline``: where Nova's database alone tells too little.

That it tells the same as Placement otherwise, :mod:`tests.nova.commands.test_numa_plan` shows for
servers and moves of every kind.
"""

from nova import context, objects

from tests.nova.numa.moves import Moves
from tests.nova.reshapes import resize_from_one


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

"""A plan of each kind, carried out by Nova's services over a real Placement.

``cpu-tiers plan`` reads the cloud over HTTP. nova-scheduler looks at each migration itself: it
asks Placement for the host of the plan, and the filters look at server groups.
"""

from collections.abc import Mapping
from typing import Any

from tests.nova.cloud import SHARES
from tests.nova.planned import PlannedCloud


class TestPlan(PlannedCloud):
    """Each plan of the four."""

    def carry_out(self, plan: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        """Migrate as the script of the plan does; look at the books after each step."""
        steps = []
        for move in plan["moves"]:
            shares = self.allocated(move["server"])[move["from"]]
            self.server = self.api.get_server(move["server"])
            self.src, self.dest = self.computes[move["from"]], self.computes[move["host"]]
            self._live_migrate(self.server, host=move["host"])
            assert self.host_of(self.server) == move["to"]
            assert self.allocated(move["server"]) == {move["to"]: shares}
            assert self.domain_shares(move["server"], move["to"]) is None  # of Nova's own driver
            steps.append((move["name"], move["from"], move["to"]))
        for name in self.computes:
            inventory = self.inventory(name)
            assert inventory is not None
            held = [self.allocated(uuid).get(name) or 0 for uuid in self.uuids.values()]
            assert sum(held) <= inventory["total"]
        return steps

    def test_room(self) -> None:
        self.start("one", "two", "three")
        for name, host in (("a", "one"), ("b", "two"), ("c", "three")):
            self.boot_named(name, 3, host)
        refused = self.boot(self.flavors[6], state="ERROR")  # 500 of 800 are free on each host
        self._delete_server(refused)
        plan = self.plan("room", "gold-6")
        assert plan["proven"] is True
        assert len(self.carry_out(plan)) == 1
        self.uuids["d"] = self.boot(self.flavors[6])["id"]

    def test_drain(self) -> None:
        group = self.api.post_server_groups({"name": "g", "policy": "anti-affinity"})["id"]
        self.start("one", "two", "three")
        self.boot_named("a", 3, "one", group)
        self.boot_named("b", 3, "one")
        self.boot_named("c", 3, "two", group)
        steps = self.carry_out(self.plan("drain", "one"))
        assert ("a", "one", "three") in steps  # c of the group is on two
        assert {name for name, _, _ in steps} == {"a", "b"}
        assert "one" not in {host for uuid in self.uuids.values() for host in self.held(uuid)}

    def test_relieve(self) -> None:
        self.start("one", "two")
        self.boot_named("a", 3, "one")
        self.boot_named("b", 4, "one")
        self.write_provider_yaml("$COMPUTE_NODE", {SHARES: 400})
        self.restart("one")
        plan = self.plan("relieve")
        assert plan["verdict"].startswith(f"Over capacity now: 300 {SHARES} of one.")
        assert self.carry_out(plan) in ([("a", "one", "two")], [("b", "one", "two")])
        assert self.plan("relieve")["verdict"].startswith("Nothing to mend")

    def test_survive(self) -> None:
        self.start("one", "two", "three")
        for name, vcpus, host in (("a", 6, "one"), ("b", 4, "two"), ("c", 4, "three")):
            self.boot_named(name, vcpus, host)
        plan = self.plan("survive", status=3)
        assert len(self.carry_out(plan)) == 1  # b or c goes to the other
        assert self.plan("survive")["verdict"].startswith("Yes")
        self.go_down("one")
        self._evacuate_server(self.api.get_server(self.uuids["a"]))
        assert self.host_of({"id": self.uuids["a"]}) in {"two", "three"}

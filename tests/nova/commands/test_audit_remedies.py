"""What ``cpu-tiers host audit`` advises on a step of the ladder, carried out.

Each test brings a host into a state, follows the advice of the audit, and runs the audit again.
Findings about processes and cgroups are in ``tests/libvirt``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import fixtures

from cpu_tiers.conf import libvirt
from cpu_tiers.nova import options
from cpu_tiers.tools.tiers.pair import AMOUNT
from tests.nova.cloud import MULTIPLIER, STOCK, hardware
from tests.nova.commands.host_commands import HostCommands, KeepsFlavor
from tests.nova.computes import PLAIN, SHARES, WEIGHER, Computes
from tests.nova.kinds import KeepsTuning, Kind


class Remedies(Computes):
    """Hosts of 8 shared CPUs, with 100 shares each."""

    microversion = "latest"
    words_of_tier = "quota:cpu_shares_multiplier"
    words_of_inventory = "or the allocation ratio and the total of VCPU_SHARES in Placement"

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(KeepsTuning())
        self.useFixture(KeepsFlavor())
        copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy, return_value="{}"))
        options.register(libvirt)
        self.flags(group="compute", cpu_shared_set="0-7")
        self.flags(cpu_allocation_ratio=1.0, allow_resize_to_same_host=True)
        self.commands = HostCommands(self)
        self.start("one")
        self.renew()

    def start(self, name: str) -> None:
        """Start a compute that reports shares."""
        self.start_compute(name, host_info=hardware())

    def renew(self) -> None:
        """Have nova-compute report what nova.conf says now, as the remedy says."""
        self.restart("one")

    def specs(self, shares: int) -> Mapping[str, str]:
        """Return the extra specs of a flavor of one vCPU that weighs and claims shares."""
        return {MULTIPLIER: str(shares)}

    def boot_tier(self, *shares: int) -> list[str]:
        """Boot a server for each number of shares."""
        return [
            self.boot_on("one", self.flavor(f"of{number}-{n}", self.specs(n)))
            for number, n in enumerate(shares)
        ]

    def advice(self, kind: str, *others: str) -> str:
        """Return what the audit advises, and expect findings of these kinds only."""
        found = self.commands.audit(status=3)
        assert found.keys() == {kind, *others}
        return str(found[kind]["do"]).replace("\n", " ")

    def set_shares(self, server: str, shares: int) -> None:
        """Have a server hold another number of shares, or none."""
        body = self.placement.get(f"/allocations/{server}", version="1.28").body
        (allocation,) = body["allocations"].values()
        allocation["resources"] |= {SHARES: shares}
        allocation["resources"] = {k: n for k, n in allocation["resources"].items() if n}
        assert self.placement.put(f"/allocations/{server}", body, version="1.28").status == 204

    def resize(self, server: str, shares: int) -> None:
        """Resize a server to a tier."""
        flavor = self.flavor(f"to{shares}", self.specs(shares))
        self.act(server, {"resize": {"flavorRef": flavor}})

    def act(self, server: str, action: Mapping[str, Any]) -> None:
        """Resize or migrate a server, and confirm."""
        self.api.post_server_action(server, action)
        self._wait_for_state_change({"id": server}, "VERIFY_RESIZE")
        self.api.post_server_action(server, {"confirmResize": None})
        self._wait_for_state_change({"id": server}, "ACTIVE")

    def test_too_little_is_allocated(self) -> None:
        (server,) = self.boot_tier(200)
        self.set_shares(server, 0)
        assert "cpu-tiers allocation heal --plan --host" in self.advice("claim")
        for mode in ("--plan", "--apply"):
            self.commands.run("allocation", "heal", mode, "--host", "one", "--skip-ports")
        assert self.allocated(server) == {"one": 200}
        assert self.commands.audit(status=0) == {}

    def test_placement_has_the_server_on_another_host(self) -> None:
        (server,) = self.boot_tier(200)
        two = self.start_host("two")
        body = self.placement.get(f"/allocations/{server}", version="1.28").body
        (held,) = body["allocations"].values()
        bare = {name: held["resources"][name] for name in ("VCPU", "MEMORY_MB")}
        body["allocations"] = {two: {"resources": bare}}
        assert self.placement.put(f"/allocations/{server}", body, version="1.28").status == 204
        advice = self.advice("claim")
        assert f"openstack resource provider allocation delete {server}, then cpu-tiers" in advice
        self.placement.delete(f"/allocations/{server}")
        heal = ("allocation", "heal", "--apply", "--server", server, "--skip-ports")
        self.commands.run(*heal)
        assert self.allocated(server) == {"one": 200}
        assert self.commands.audit(status=0) == {}

    def test_too_much_is_allocated(self) -> None:
        (server,) = self.boot_tier(200)
        self.set_shares(server, 300)
        assert "resize the server to another flavor" in self.advice("claim")
        self.resize(server, 100)
        assert self.allocated(server) == {"one": 100}
        assert self.commands.audit(status=0) == {}

    def test_a_flavor_that_claims_another_number(self) -> None:
        flavor = self.flavor("odd", {PLAIN: "200", AMOUNT: "100"})
        server = self.boot_on("one", flavor)
        advice = self.advice("flavor", "claim")
        assert "make a corrected flavor with another name, and resize" in advice
        self.resize(server, 200)
        assert self.commands.audit(status=0) == {}

    def test_a_change_that_is_undone(self) -> None:
        self.flags(cpu_allocation_ratio=2.0)
        self.renew()
        self.boot_tier(300, 300, 300)  # of 8 x 100 x 2.0
        self.flags(cpu_allocation_ratio=1.0)
        self.renew()
        advice = self.advice("overcommitted", "oversold")
        assert "or undo the change of vcpu_share_multiplier" in advice
        assert "restart nova-compute" in advice
        self.flags(cpu_allocation_ratio=2.0)
        self.renew()
        assert self.commands.audit(status=0) == {}

    def test_a_resize_of_the_server_without_a_tier(self) -> None:
        """750 of 800 shares are sold. Without a tier a guest weighs 1024 or 100, see the audit."""
        self.boot_tier(300, 300, 150)
        server = self.boot_on("one", self.flavor("plain"))
        words = f"resize the servers without a tier to flavors with {self.words_of_tier}"
        assert words in self.advice("oversold", "untiered")
        assert f"resize the server to a flavor with {self.words_of_tier}" in self.advice(
            "untiered", "oversold"
        )
        self.resize(server, 50)
        assert self.commands.audit(status=0) == {}

    def test_an_inventory_that_somebody_changed(self) -> None:
        uuid = self.compute_rp_uuids["one"]
        path = f"/resource_providers/{uuid}/inventories/{SHARES}"
        inventory = self.placement.get(path).body
        body = {**inventory, "total": 400, "max_unit": 400}
        assert self.placement.put(path, body).status == 200
        assert self.words_of_inventory in self.advice("sold")
        self.renew()
        assert self.commands.audit(status=0) == {}

    def test_a_nova_conf_that_is_wrong(self) -> None:
        self.commands.multiplier = 50
        assert "correct the nova.conf of this host" in self.advice("sold")
        self.commands.multiplier = None
        assert self.commands.audit(status=0) == {}

    def move(self, server: str) -> None:
        """Move a server to a second host."""
        self.start("two")
        self.restart("one")  # Nova's driver takes the last start for the one of its host
        self.act(server, {"migrate": {"host": "two"}})
        assert self.host_of({"id": server}) == "two"

    def test_a_move_from_a_host_of_which_too_much_is_allocated(self) -> None:
        self.flags(cpu_allocation_ratio=2.0)
        self.renew()
        _, _, server = self.boot_tier(300, 300, 300)
        self.flags(cpu_allocation_ratio=1.0)
        self.renew()
        assert self.advice("overcommitted", "oversold").startswith("move servers to other hosts")
        self.move(server)
        assert self.commands.audit(status=0) == {}

    def test_a_move_of_the_server_without_a_tier(self) -> None:
        self.boot_tier(300, 300, 150)
        server = self.boot_on("one", self.flavor("plain"))
        assert "or move these servers to hosts that sell no tiers" in self.advice(
            "oversold", "untiered"
        )
        self.move(server)
        assert self.commands.audit(status=0) == {}


class TestOwnMeans(Remedies):
    """Step 1: Nova's driver, our provider.yaml, and pairs."""

    kind = replace(STOCK, weighers=("nova.scheduler.weights.all_weighers",), hardware=hardware)
    scheduler_options = {"query_placement_for_vcpu_shares": False}  # noqa: RUF012  # as the base
    words_of_tier = "quota:cpu_shares and its pair"
    words_of_inventory = "or write its provider.yaml again"

    def start(self, name: str) -> None:
        self.flags(group="compute", provider_config_location=str(self.commands.folder))
        super().start(name)

    def renew(self) -> None:
        self.commands.write_file()
        super().renew()

    def specs(self, shares: int) -> Mapping[str, str]:
        return {PLAIN: str(shares), AMOUNT: str(shares)}


class TestDriver(Remedies):
    """Step 3: the driver of cpu-tiers, the weigher, and requests of shares."""

    kind = Kind(weighers=(WEIGHER,), scheduler_options={"query_placement_for_vcpu_shares": True})

    def test_the_least_weight(self) -> None:
        """The guest without a tier is to weigh 2. ``tests/libvirt`` runs the audit with --fix."""
        self.boot_tier(300, 300, 150)
        self.boot_on("one", self.flavor("plain"))
        assert "[libvirt] least_weight_without_tier" in self.advice("oversold", "untiered")
        self.flags(group="libvirt", least_weight_without_tier=True)
        assert "run the audit with --fix" in self.advice("weight")


del Remedies  # or pytest would run its tests, too

"""nova-compute keeps a pressure trait that a person sets, and never restores a cleared trait."""

from cpu_tiers.tools.writers.host_pressure import change_trait
from tests.nova.cloud import STOCK
from tests.nova.computes import Computes
from tests.nova.networks import placement_of

CPU, GOLD = "CUSTOM_PRESSURE_CPU", "CUSTOM_GOLD"
DISABLED, ACCELERATORS = "COMPUTE_STATUS_DISABLED", "COMPUTE_ACCELERATORS"


class TestNovasDriver(Computes):
    kind = STOCK
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        uuid = self.start_host("one")
        self._create_trait(GOLD)
        self._set_provider_traits(uuid, [*self.tree.traits("one", "one"), GOLD])
        self._run_periodics()  # Nova's copy of the traits is now from before the next command

    def press(self, on: bool) -> None:
        """Do what ``host pressure`` does."""
        client = placement_of(self)
        host = client.provider(self.compute_rp_uuids["one"])
        assert len(change_trait(client, host, CPU, is_set=on)) == 1

    def traits(self) -> set[str]:
        return self.tree.traits("one", "one") & {CPU, GOLD, DISABLED, ACCELERATORS}

    def change_traits_of_the_driver(self, on: bool) -> None:
        """Have nova-compute write traits, first by its old copy, which Placement refuses."""
        self.computes["one"].driver.capabilities["supports_accelerators"] = on
        self._run_periodics()

    def test_a_trait_set_by_hand_stays(self) -> None:
        self.change_traits_of_the_driver(False)
        self.press(True)
        self._run_periodics()
        assert self.traits() == {CPU, GOLD}
        self.change_traits_of_the_driver(True)
        assert self.traits() == {CPU, GOLD, ACCELERATORS}
        service = self.api.get_services(host="one", binary="nova-compute")[0]
        for status in ("disabled", "enabled"):  # Nova writes COMPUTE_STATUS_DISABLED
            self.api.put_service(service["id"], {"status": status})
            assert (DISABLED in self.traits()) == (status == "disabled")
            assert self.traits() - {DISABLED} == {CPU, GOLD, ACCELERATORS}
        self.restart("one")
        assert self.traits() >= {CPU, GOLD}

    def test_a_cleared_trait_does_not_come_back(self) -> None:
        self.press(True)
        self.restart("one")  # Nova's copy has the trait
        self.change_traits_of_the_driver(False)
        assert self.traits() == {CPU, GOLD}
        self.press(False)
        self.change_traits_of_the_driver(True)
        assert self.traits() == {GOLD, ACCELERATORS}


class TestOurDriver(TestNovasDriver):
    """The same with the driver of cpu-tiers, which reports shares and traits of its own."""

    kind = Computes.kind

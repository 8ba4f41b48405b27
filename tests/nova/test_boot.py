"""What a new server claims, and what the user is told where it cannot be."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.nova.cloud import MULTIPLIER, SHARES, Cloud
from tests.nova.faults import no_bad_query

BOTH = {MULTIPLIER: "2.5", "quota:cpu_shares": "100"}
PLAIN = "quota:cpu_shares"


class TestBoot(Cloud):
    def test_a_multiplier_claims_shares(self) -> None:
        self.start_host("one", **{SHARES: 800})
        server = self.boot(self.tier("bronze", "2.5", vcpus=3))
        assert self.allocated(server["id"]) == {"one": 8}  # 2.5 x 3 = 7.5

    def test_shares_of_the_domain_are_claimed_unscaled(self) -> None:
        self.start_host("one", **{SHARES: 800})
        server = self.boot(self.flavor("legacy", {PLAIN: "70"}, vcpus=3))
        assert self.allocated(server["id"]) == {"one": 70}

    def test_a_flavor_without_shares_claims_none(self) -> None:
        self.start_host("one")
        server = self.boot(self.flavor("plain"))
        assert self.allocated(server["id"]) == {"one": None}

    def test_amounts_in_the_flavor_win(self) -> None:
        self.start_host("one", **{SHARES: 800})
        own = self.flavor("own", {MULTIPLIER: "100", f"resources:{SHARES}": "7"})
        assert self.allocated(self.boot(own)["id"]) == {"one": 7}
        none = self.flavor("none", {MULTIPLIER: "100", f"resources:{SHARES}": "0"})
        assert self.allocated(self.boot(none)["id"]) == {"one": None}

    def test_no_more_servers_than_shares(self) -> None:
        self.start_host("one", **{SHARES: 250})
        gold = self.tier("gold", "100")
        self.boot(gold)
        self.boot(gold)
        third = self.boot(gold, state="ERROR")  # 3 x 100 > 250, though there are 8 CPUs
        assert self.fault_of(third) == (
            f"No valid host was found. A host would have room without one of these: 100 {SHARES}"
        )
        self.boot(self.tier("silver", "50"))

    def test_shares_and_something_else_are_lacking(self) -> None:
        self.start_host("one", **{SHARES: 250})
        large = self.boot(self.tier("large", "50", vcpus=17), state="ERROR")  # of 16 CPUs
        assert self.fault_of(large).endswith(f"without these two: 850 {SHARES}, 17 VCPU")

    def test_no_host_reports_shares_yet(self) -> None:
        self.start_host("one")
        with no_bad_query():
            self.boot(self.tier("gold", "100"), state="ERROR")
        assert SHARES in self._get_all_resource_classes()
        self.boot(self.flavor("plain"))


class TestFaults(Cloud):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one", **{SHARES: 800})
        self.api.microversion = "2.85"  # nothing is validated before 2.86

    def test_both_specs_are_refused_with_the_reason(self) -> None:
        server = self.boot(self.flavor("both", BOTH), state="ERROR")
        assert self.fault_of(server) == (
            "No valid host was found. flavor both, extra specs quota:cpu_shares_multiplier and "
            "quota:cpu_shares: both are set ('2.5' and '100'); both set the weight of the "
            "server: remove one of them"
        )
        self.assert_scheduler_lives()

    def test_garbage_is_refused_with_the_reason(self) -> None:
        for index, value in enumerate(("gold", "NaN", "-1", "0", "10001", "1e3", "٣", "1" * 99)):
            server = self.boot(self.tier(f"bad{index}", value), state="ERROR")
            assert (
                self.fault_of(server)
                == (
                    f"No valid host was found. flavor bad{index}, extra spec "
                    f"quota:cpu_shares_multiplier: got {value!r}; give a decimal number above 0 "
                    "and up to 10000, such as 100 or 2.5"
                )[:255]
            )  # what Nova keeps of a fault
        self.assert_scheduler_lives()

    def test_a_weight_that_the_kernel_does_not_take(self) -> None:
        server = self.boot(self.tier("wide", "5000", vcpus=4), state="ERROR")
        assert "5000 x 4 vCPUs is a weight of 20000" in self.fault_of(server)
        self.assert_scheduler_lives()

    def test_a_resize_to_a_faulty_flavor_leaves_the_server_unchanged(self) -> None:
        server = self.boot(self.tier("gold", "100"))
        failure = self.fail_to_resize(server, self.tier("bad", "gold"))
        assert self.allocated(server["id"]) == {"one": 100}
        # Nova puts its own words in place of the scheduler's reason; its log has both.
        assert failure == "No valid host was found. No valid host found for resize"
        assert "got 'gold'; give a decimal number" in self.stdlog.logger.output
        self.boot(self.tier("silver", "50"))

    def assert_scheduler_lives(self) -> None:
        server = self.boot(self.tier("good", "100"))
        assert self.allocated(server["id"]) == {"one": 100}


class TestQueryOff(Cloud):
    """The weigher is loaded, and nothing else was switched on."""

    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def test_nothing_is_claimed(self) -> None:
        self.start_host("one")
        assert self.allocated(self.boot(self.tier("gold", "100"))["id"]) == {"one": None}
        assert SHARES not in self._get_all_resource_classes()

    def test_flavors_of_before_go_on_as_before(self) -> None:
        self.start_host("one")
        self.boot(self.flavor("old", {PLAIN: "20000"}))  # above what cgroup v2 takes

    def test_a_contradiction_is_left_to_nova(self) -> None:
        """``[api] refuse_faulty_flavors`` refuses it: test_flavor_admission."""
        self.start_host("one")
        assert self.allocated(self.boot(self.flavor("both", BOTH))["id"]) == {"one": None}

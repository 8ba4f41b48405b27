"""A new server lands on a host with the functions that its flavor needs; a move goes anywhere.

The host ``new`` has the driver of cpu-tiers. The host ``old`` has Nova's own driver and reports
shares by a provider.yaml, so that only the traits tell the hosts apart.
"""

import pytest
from nova.tests.functional.api.client import OpenStackApiException

from tests.nova.computes import SHARES, Computes
from tests.nova.faults import no_bad_query
from tests.nova.kinds import NODES_OF_SEVEN

WEIGHT = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
AMOUNTS = "CUSTOM_COMPUTE_CPU_AMOUNTS"
THREADS = "CUSTOM_COMPUTE_CPU_EMULATOR_THREADS"
REALTIME_MASK = "CUSTOM_COMPUTE_CPU_REALTIME_MASK"
EVEN_MEMORY = "CUSTOM_COMPUTE_NUMA_EVEN_MEMORY"
OF_POLICIES = {AMOUNTS, THREADS, REALTIME_MASK, EVEN_MEMORY}
# 2 vCPUs, and a PCPU for the emulator threads.
MIXED = {"resources:VCPU": "1", "resources:PCPU": "2", "hw:cpu_emulator_threads": "isolate"}
# Two kinds that an unmodified Nova refuses: a real-time mask, and NUMA nodes without memory.
NODES = {"hw:cpu_policy": "mixed", "hw:cpu_realtime_mask": "^0", "hw:numa_nodes": "1"}
NODES["hw:numa_cpus.0"] = "0-1"


class TestHostTraits(Computes):
    microversion = "latest"
    kind = NODES_OF_SEVEN
    extends_cpu_policies = True

    def setUp(self) -> None:
        super().setUp()
        self.start_host("new")
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.provider_yaml("old", 1600)
        self.start_host("old")
        self.gold = self.tier("gold", "100", vcpus=2)
        self.mixed = self.flavor("mixed", MIXED, vcpus=2)

    def ours(self, host: str) -> set[str]:
        """Return the traits of a host that are about functions of cpu-tiers."""
        return {name for name in self.tree.traits(host, host) if "CUSTOM_COMPUTE_" in name}

    def test_a_new_server_lands_on_a_host_that_supports_the_flavor(self) -> None:
        for flavor in (self.gold, self.mixed):  # off: any host takes the server
            self.boot_on("old", flavor)
        self.restart_scheduler(require_host_traits=True)
        assert (self.ours("new"), self.ours("old")) == ({WEIGHT, *OF_POLICIES}, set())
        plain = self.boot(self.flavor("plain"), host="new")
        nodes = self.flavor("nodes", NODES, vcpus=2)
        with no_bad_query():
            for flavor in (self.gold, self.mixed, nodes):
                assert self.host_of(self.boot(flavor)) == "new"
                self.boot(flavor, host="old", state="ERROR")
            with pytest.raises(OpenStackApiException, match="NoValidHost"):
                self._resize_server(plain, self.gold)
            self._resize_server(plain, self.flavor("legacy", {"quota:cpu_shares": "70"}))
        assert self.host_of(plain) == "old"  # Nova itself gives the weight

    def test_a_server_that_exists_moves_anywhere(self) -> None:
        self.restart_scheduler(require_host_traits=True)
        cold, gone = self.boot(self.gold), self.boot(self.mixed)
        self._migrate_server(cold)
        self._confirm_resize(cold)
        self.go_down("new")
        self._evacuate_server(gone, expected_host="old")
        assert [self.host_of(server) for server in (cold, gone)] == ["old", "old"]
        assert self.held(cold["id"]) == {"old": {"VCPU": 2, "MEMORY_MB": 512, SHARES: 200}}

    def test_the_traits_go_with_the_options(self) -> None:
        self.flags(compute_driver="cpu_tiers.LibvirtDriver")
        self._create_trait("CUSTOM_OF_AN_OPERATOR")
        uuid = self.compute_rp_uuids["new"]
        kept = {*self.tree.traits("new", "new"), "CUSTOM_OF_AN_OPERATOR"}
        self._set_provider_traits(uuid, list(kept))
        self.flags(group="compute", extend_cpu_policies=False)
        self.restart("new")
        assert self.tree.traits("new", "new") == kept - OF_POLICIES

"""Servers over their lives, on hosts that report their nodes and on those that do not."""

from typing import Any

import fixtures
from nova import context
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.nova.compute.driver import LibvirtDriver
from tests.nova.compute.test_numa_pinning import NumaComputes
from tests.nova.numa.agreement import cells_of, check_agreement, check_agreement_on_root


class Lives(LibvirtMigrationMixin, NumaComputes):
    """A test sets ``server``, the one whose life it is."""

    def setUp(self) -> None:
        super().setUp()
        self.reports: dict[str, bool | None] = {}
        update = LibvirtDriver.update_provider_tree

        def with_its_own_option(
            driver: Any, tree: Any, nodename: str, allocations: Any = None
        ) -> None:
            """All computes share the options of this process; each has one of its own."""
            self.flags(group="compute", enable_numa_reporting_to_placement=self.reports[nodename])
            update(driver, tree, nodename, allocations)

        name = "cpu_tiers.nova.compute.driver.LibvirtDriver.update_provider_tree"
        self.useFixture(fixtures.MonkeyPatch(name, with_its_own_option))

    def start(self, name: str, reporting: bool | None = True) -> str:
        """Start a compute that reports its nodes, does not, or refuses guests that have some."""
        self.reports[name] = reporting
        return self.start_host(name)

    def is_on(self, host: str, *, others: bool = False) -> None:
        """Check that all agree that the server is on the nodes of a host.

        :param others: that it may hold other hosts too.
        """
        found = check_agreement(self, self.server["id"], others=others)
        assert {name for name, _ in found} == {host}

    def is_on_root(self, host: str, *, others: bool = False) -> None:
        """Check that all agree that the server is on a host that reports no nodes."""
        assert self.host_of(self.server) == host
        check_agreement_on_root(self, self.server["id"], others=others)

    def live_migrate(self, source: str, destination: str) -> None:
        self.src, self.dest = self.computes[source], self.computes[destination]
        action = {"host": destination, "block_migration": "auto"}
        self.api.post_server_action(self.server["id"], {"os-migrateLive": action})
        self._wait_for_migration_status(self.server, ["completed"])
        place = {"OS-EXT-SRV-ATTR:host": destination, "status": "ACTIVE"}
        self._wait_for_server_parameter(self.server, place)

    def is_back(self, host: str) -> None:
        """Have a compute that was down start again."""
        self.restart(host)
        self.come_back(host)

    def used(self) -> dict[str, dict[str, int]]:
        """Return what is used of each provider of the cloud, by name; nothing is left out."""
        found = self.placement.get("/resource_providers").body["resource_providers"]
        usages = {
            one["name"]: self.placement.get(f"/resource_providers/{one['uuid']}/usages").body
            for one in found
        }
        used = {name: body["usages"] for name, body in usages.items()}
        return {
            name: taken
            for name, amounts in used.items()
            if (taken := {key: amount for key, amount in amounts.items() if amount})
        }

    def end(self) -> None:
        """Delete the server; nothing is left of it anywhere.

        Of one that had moved, Nova lets go of the pins in the next periodic run.
        """
        self._delete_server(self.server)
        left = self.used()
        assert not left, left
        for name, compute in self.computes.items():
            compute.manager.update_available_resource(context.get_admin_context())
            cells = cells_of(name).values()
            assert not any(cell.pinned_cpus or cell.cpu_usage for cell in cells)

    def fails(self, action: dict[str, Any], name: str, event: str) -> str:
        """Have an action fail on the active server; return what the user sees of it."""
        self.api.post_server_action(self.server["id"], action)
        self._wait_for_action_fail_completion(self.server, name, event)
        self._wait_for_state_change(self.server, "ACTIVE")
        return self.last_failure_of(self.server)

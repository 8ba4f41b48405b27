"""Servers over their lives, on hosts that report their nodes and on those that do not."""

from typing import Any

import fixtures
from nova import context

from cpu_tiers.nova.compute.driver import LibvirtDriver
from tests.nova.computes import Computes
from tests.nova.numa.agreement import cells_of, check_agreement, check_agreement_on_root
from tests.nova.patience import wait_until


class Life:
    """The life of a server: what happens to it, and what must hold after each step.

    :param cloud: the test, whose ``server`` it is; its class has Nova's
        ``LibvirtMigrationMixin`` if the server migrates live.
    :param pcpu: whether the hosts have PCPU; see :func:`check_agreement`.
    """

    def __init__(self, cloud: Computes, *, pcpu: bool = True) -> None:
        self.cloud = cloud
        self.pcpu = pcpu
        self.reports: dict[str, bool | None] = {}
        update = LibvirtDriver.update_provider_tree

        def with_its_own_option(
            driver: Any, tree: Any, nodename: str, allocations: Any = None
        ) -> None:
            """All computes share the options of this process; each has one of its own."""
            cloud.nodes(self.reports[nodename])
            update(driver, tree, nodename, allocations)

        name = "cpu_tiers.nova.compute.driver.LibvirtDriver.update_provider_tree"
        cloud.useFixture(fixtures.MonkeyPatch(name, with_its_own_option))

    @property
    def server(self) -> dict[str, Any]:
        server: dict[str, Any] = self.cloud.server
        return server

    def start(self, name: str, reporting: bool | None = True) -> str:
        """Start a compute that reports its nodes, does not, or refuses guests that have some."""
        self.reports[name] = reporting
        return self.cloud.start_host(name)

    def is_on(self, host: str, *, others: bool = False) -> None:
        """Check that all agree that the server is on the nodes of a host.

        :param others: that it may hold other hosts too.
        """
        nodes = check_agreement(self.cloud, self.server["id"], others=others, pcpu=self.pcpu)
        assert {name for name, _ in nodes} == {host}

    def is_on_root(self, host: str, *, others: bool = False) -> None:
        """Check that all agree that the server is on a host that reports no nodes."""
        assert self.cloud.host_of(self.server) == host
        check_agreement_on_root(self.cloud, self.server["id"], others=others, pcpu=self.pcpu)

    def live_migrate(self, source: str, destination: str) -> None:
        cloud = self.cloud
        cloud.src, cloud.dest = cloud.computes[source], cloud.computes[destination]
        action = {"host": destination, "block_migration": "auto"}
        cloud.api.post_server_action(self.server["id"], {"os-migrateLive": action})
        # The server may have completed another migration before.
        place = {"OS-EXT-SRV-ATTR:host": destination, "status": "ACTIVE"}
        cloud._wait_for_server_parameter(self.server, place)
        cloud._wait_for_migration_status(self.server, ["completed"])
        # Nova completes a migration before the server's allocations of the source are removed.
        wait_until(lambda: not any(name.startswith(source) for name in self.holds()))

    def holds(self) -> dict[str, dict[str, int]]:
        """Return what the server holds, by the name of the provider."""
        return self.cloud.held(self.server["id"])

    def is_back(self, host: str) -> None:
        """Have a compute that was down start again."""
        self.cloud.restart(host)
        self.cloud.come_back(host)

    def used(self) -> dict[str, dict[str, int]]:
        """Return what is used of each provider of the cloud, by name; nothing is left out."""
        return self.cloud.tree.used()

    def end(self) -> None:
        """Delete the server; nothing is left of it anywhere.

        Of a server that had moved, Nova lets go of the pins in the next periodic run.
        """
        self.cloud._delete_server(self.server)
        left = self.used()
        assert not left, left
        for name, compute in self.cloud.computes.items():
            compute.manager.update_available_resource(context.get_admin_context())
            cells = cells_of(name).values()
            assert not any(cell.pinned_cpus or cell.cpu_usage for cell in cells)

    def fails(self, action: dict[str, Any], name: str, event: str) -> str:
        """Have an action fail on the active server; return what the user sees of it."""
        self.cloud.api.post_server_action(self.server["id"], action)
        self.cloud._wait_for_action_fail_completion(self.server, name, event)
        self.cloud._wait_for_state_change(self.server, "ACTIVE")
        return self.cloud.last_failure_of(self.server)

"""A server that exists moves, whatever faults its flavor has (law L3, decision D72).

A stock Nova boots the servers. Then the services are restarted with the options of cpu-tiers, and
the servers live on. A run draws a part of the servers; ``CPU_TIERS_DAYS=1`` has all of them.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import uuid4

from nova.api.validation.extra_specs import validators
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.command_line import CommandLine
from tests.nova.computes import MULTIPLIER, SHARES, Computes
from tests.nova.kinds import BEFORE_CPU_TIERS
from tests.nova.old_servers import (
    OLD_EMULATOR_THREADS,
    OLD_NODES,
    OLD_POLICIES,
    OLD_SHARES,
    Old,
    drawn,
)

Server = dict[str, Any]


class Warnings(logging.Handler):
    """Counts the warnings about moves of servers with a faulty flavor, by server."""

    def __init__(self) -> None:
        super().__init__()
        self.by_server: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("The server is moved though its flavor"):
            self.by_server[vars(record)["instance_uuid"]] += 1


class Life(LibvirtMigrationMixin, Computes):
    """Two hosts, and a server of each drawn kind that is booted before cpu-tiers is on."""

    __test__ = False
    kind = BEFORE_CPU_TIERS
    old_servers: ClassVar[tuple[Old, ...]]
    reports_nodes: ClassVar[bool] = False

    def setUp(self) -> None:
        self.drawn = drawn(self.old_servers)
        if not self.drawn:
            self.skipTest("it is the turn of other servers: see tests/nova/old_servers.py")
        super().setUp()
        self.flags(instances=-1, cores=-1, group="quota")
        for host in ("one", "two"):
            self.start_host(host)
        self.servers: list[tuple[Old, Server]] = []
        self.breaches: list[str] = []
        self.expected_warnings: Counter[str] = Counter()
        self.warnings = Warnings()
        logger = logging.getLogger("cpu_tiers.nova.scheduler.refusal")
        logger.addHandler(self.warnings)
        self.addCleanup(logger.removeHandler, self.warnings)

    def boot_old(self) -> None:
        for number, old in enumerate(self.drawn):
            flavor = self.flavor(f"old{number}", old.specs, vcpus=2)
            server = self.boot(flavor, host="one", image_uuid=self.image(old))
            self.servers.append((old, server))
            self.expect("boot", old, self.amounts(server), {"one": old.before})

    def image(self, old: Old) -> str:
        """Make an image with the properties of a server; return its id."""
        image = self.glance.show(None, self.glance.auto_disk_config_enabled_image["id"])
        properties = {**image["properties"], **old.image}
        self.glance.create(None, {**image, "id": (made := str(uuid4())), "properties": properties})
        return made

    def switch_on(self) -> None:
        """Restart nova-api and the hosts with the options of cpu-tiers."""
        self.flags(group="compute", extend_cpu_policies=True)
        self.flags(group="api", refuse_faulty_flavors=True)
        validators.load_validators()
        self.reporting(True)
        self.nodes(self.reports_nodes or None)
        for host in ("one", "two"):
            self.restart(host)

    def amounts(self, server: Server) -> dict[str, dict[str, int]]:
        """Return what a server holds, by host and not by NUMA node."""
        amounts: dict[str, Counter[str]] = {}
        for provider, resources in self.held(server["id"]).items():
            amounts.setdefault(provider.partition("_")[0], Counter()).update(resources)
        return {host: dict(held) for host, held in amounts.items()}

    def expect(self, step: str, old: Old, found: object, expected: object) -> None:
        """Note a breach; the servers live on."""
        if found != expected:
            self.breaches.append(f"{old.name}, {step}: {found}, not {expected}")

    def each(self, step: str, act: Callable[[Server], str | None], *, moves: bool = True) -> None:
        """Do something with each server, and check claim, guest and log after it.

        :param act: returns the host on which the server must be; ``None`` for any host.
        :param moves: whether nova-scheduler makes a claim for the server.
        """
        for old, server in list(self.servers):
            self.server = server
            try:
                expected = act(server)
            except Exception as error:  # a move that is refused is one of several shapes
                self.breaches.append(f"{old.name}, {step}: {error!r}")
                self.servers.remove((old, server))
                continue
            host = self.host_of(server)
            self.expect(step, old, host, expected or host)
            self.expect(step, old, self.amounts(server)[host], old.after)
            self.expect(step, old, self.domain_shares(server["id"], host), old.weight)
            self.expected_warnings[server["id"]] += old.is_faulty and moves
            warnings = self.warnings.by_server[server["id"]]
            self.expect(step, old, warnings, self.expected_warnings[server["id"]])
            if step == "cold migration":
                self._confirm_resize(server)

    def test_old_servers(self) -> None:
        self.boot_old()
        self.switch_on()
        for old, server in self.servers:
            self.expect("reshape", old, self.amounts(server), {"one": old.reshaped})
        self.heal()  # before nova-scheduler's seams are in the process of the command, too
        self.restart_scheduler(
            query_placement_for_vcpu_shares=True, query_placement_for_numa=self.reports_nodes
        )
        self.src, self.dest = self.computes["one"], self.computes["two"]
        self.each("live migration", self.migrate_live)
        self.each("cold migration", self.migrate)
        self.go_down("one")
        self.each("evacuation", self.evacuate)
        self.restart("one")
        self.come_back("one")
        self.each("unshelving", self.unshelve)
        self.each("rebuild", self.rebuild, moves=False)
        self.resize_all()
        assert not self.breaches, "\n".join(self.breaches)

    def heal(self) -> None:
        """Delete the allocations of all servers, and have them healed."""
        for _, server in self.servers:
            self.placement.delete(f"/allocations/{server['id']}")
        CommandLine(self).run("allocation", "heal", "--apply")
        for old, server in self.servers:
            self.expect("heal", old, self.amounts(server), {"one": old.after})

    def migrate_live(self, server: Server) -> str:
        self._live_migrate(server)
        return "two"

    def migrate(self, server: Server) -> str:
        self._migrate_server(server)
        return "one"

    def evacuate(self, server: Server) -> str:
        self._evacuate_server(server, expected_host="two", expected_state="ACTIVE")
        return "two"

    def unshelve(self, server: Server) -> None:
        self._shelve_server(server)
        self._unshelve_server(server)

    def rebuild(self, server: Server) -> None:
        self._rebuild_server(server, self.glance.auto_disk_config_disabled_image["id"])

    def resize_all(self) -> None:
        """Resize the servers to a flavor without faults."""
        nodes = {"hw:numa_nodes": "1"} if self.reports_nodes else {}
        good = self.flavor("good", {**nodes, MULTIPLIER: "30"}, vcpus=2)
        claims = {"VCPU": 2, "MEMORY_MB": 512, SHARES: 60}  # 30 x 2
        for old, server in self.servers:
            self._resize_server(server, good)
            self._confirm_resize(server)
            self.expect("resize", old, list(self.amounts(server).values()), [claims])


class TestShares(Life):
    """The hosts begin to report shares."""

    __test__ = True
    old_servers = OLD_SHARES


class TestEmulatorThreads(Life):
    __test__ = True
    old_servers = OLD_EMULATOR_THREADS


class TestPolicies(Life):
    __test__ = True
    old_servers = OLD_POLICIES


class TestNodes(Life):
    """The hosts begin to report shares and NUMA nodes."""

    __test__ = True
    old_servers = OLD_NODES
    reports_nodes = True

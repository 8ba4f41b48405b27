"""A host whose servers all want another tier, over a Placement of several processes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import fixtures
from nova.compute.rpcapi import ComputeAPI
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.fixtures import PlacementFixture

from cpu_tiers.conf import libvirt
from cpu_tiers.nova import options, tier_changes
from cpu_tiers.nova.api import tier_change
from tests.nova.computes import PLAIN, SHARES
from tests.nova.tier_changes import TierChanges

SHARES_OF_CPU = 20
"""``[libvirt] vcpu_share_multiplier``: the host has a CPU for each server."""

GATE_SECONDS = 300
"""In production, claims are repeated for less time: a busy machine would decide the answer."""

AT_A_TIME = 10
"""More boots at the same time would lock SQLite for longer than Nova waits."""

SAYS_WHY = f"its host has no room for 20 more {SHARES}"


class Crowd(TierChanges):
    """A host with servers of a vCPU.

    Nova's database is an SQLite here, which refuses writes of several threads at the same time. So
    nova-api does one thing at a time, but for the claims, and calls no host.

    :ivar gate: where the first ``POST /allocations`` for each server waits for the first of each
        other server, so that Placement gets all claims at the same time.
    """

    def __init__(self, servers: int) -> None:
        super().__init__("runTest")
        self.cpus = servers  # type: ignore[misc]  # of this host only
        self.gate: threading.Barrier | None = None
        self._claimed, self._turn = set[str](), threading.Lock()

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Do nothing: the test has the steps."""

    @contextmanager
    def running(self, url: str) -> Iterator[None]:
        """Run the services over a Placement at a URL."""
        set_up, post = PlacementFixture.setUp, PlacementFixture._fake_post

        def use_url(fixture: Any) -> None:
            set_up(fixture)
            fixture.endpoint = url

        def claim(
            fixture: Any, client: object, path: str, data: Any, *args: Any, **rest: Any
        ) -> Any:
            if self.gate and not self._claimed.issuperset(data):
                self._claimed.update(data)
                self.gate.wait(GATE_SECONDS)
            return post(fixture, client, path, data, *args, **rest)

        claim_alone, root_of = tier_change._Change._claim, tier_changes.root_of

        def claim_beside_others(change: Any) -> None:
            self._turn.release()
            try:
                claim_alone(change)
            finally:
                self._turn.acquire()

        def root_in_turn(instance: Any) -> str:
            with self._turn:
                return root_of(instance)

        with (
            mock.patch.object(PlacementFixture, "setUp", use_url),
            mock.patch.object(PlacementFixture, "_fake_post", claim),
            mock.patch.object(tier_change._Change, "_claim", claim_beside_others),
            mock.patch.object(tier_changes, "root_of", root_in_turn),
            mock.patch.object(tier_change, "_LONGEST_SECONDS", GATE_SECONDS),
            mock.patch.object(tier_changes, "_LONGEST_SECONDS", GATE_SECONDS),
        ):
            try:
                self.setUp()
                self.useFixture(fixtures.MockPatchObject(ComputeAPI, "inject_network_info"))
                yield
            finally:
                self.end()

    def start_hosts(self) -> None:
        options.register(libvirt)
        self.flags(vcpu_share_multiplier=SHARES_OF_CPU, group="libvirt")
        self.flags(instances=-1, cores=-1, ram=-1, group="quota")
        self.start_host("one")

    def sized(self, name: str, shares: int) -> str:
        """Make a flavor of 64 MiB with a number of shares; return its id."""
        flavor: str = self._create_flavor(
            name=name,
            vcpu=1,
            memory_mb=64,
            disk=0,
            ephemeral=0,
            extra_spec={PLAIN: str(shares)},
        )
        return flavor

    def boot_all(self, flavor: str) -> list[str]:
        """Boot a server for each CPU, some at a time; return their uuids."""
        body = self._build_server(flavor_id=flavor, networks="none")
        counts = {"min_count": AT_A_TIME, "max_count": AT_A_TIME}
        for _ in range(self.cpus // AT_A_TIME):
            self.api.post_server({"server": {**body, **counts}})
            for server in self.api.get_servers():
                self._wait_for_state_change({"id": server["id"]}, "ACTIVE")
        servers = [each["id"] for each in self.api.get_servers()]
        assert len(servers) == self.cpus
        return servers

    def answer(self, server: str, flavor: str) -> str:
        """Ask for a resize; return the status, and whether a refusal says what is lacking."""
        try:
            with self._turn:
                self.api.post_server_action(server, {"resize": {"flavorRef": flavor}})
        except OpenStackApiException as error:
            return f"{error.response.status_code} {SAYS_WHY in str(error)}"
        return "202"

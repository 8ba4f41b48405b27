"""Compares nova-scheduler's candidates for random servers with the brute force."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from oslo_utils import uuidutils

from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import WsgiTransport, placement_app
from tests import made_once
from tests.nova.scheduler.random_scheduler import (
    Round,
    Scheduler,
    request_spec,
    scheduler,
    suffixes_of,
)
from tests.random_clouds.brute_force import (
    Placement,
    cells_with_devices,
    fill,
    in_placement,
    on_hardware,
    take,
)
from tests.random_clouds.drawing import draw_hosts, draw_server
from tests.random_clouds.hosts import Host, Server
from tests.random_clouds.providers import CARD, NAMES, Providers
from tests.random_clouds.queries import assert_same

_URL = "http://placement.random"
SERVERS = 3


@dataclass(frozen=True)
class Empty:
    """A Placement that is emptied for each cloud."""

    adapter: Adapter
    rows: Any


@contextmanager
def placement() -> Iterator[Empty]:
    """Yield a Placement that knows the names of resource classes and traits."""
    with placement_app() as app, requests.Session() as http:
        http.mount(_URL, WsgiTransport(app))
        http.hooks["response"].append(_no_failure)
        session = Session(auth=Token(_URL, "admin"), session=http)
        client = PlacementClient(Adapter(session, service_type="placement"))
        client.ensure_names(classes=[CARD, "CUSTOM_NUMA_SERVER"], traits=NAMES)
        adapter = Adapter(
            session, service_type="placement", default_microversion="1.36", raise_exc=False
        )
        yield Empty(adapter, made_once.copy_of_placement())


def _no_failure(response: requests.Response, **_options: object) -> None:
    """Fail if Placement fails: nova-scheduler would go on without the answer."""
    assert response.status_code < 500, response.text


def check_cloud(empty: Empty, seed: str) -> Counter[str]:
    """Draw a cloud and servers, and compare the candidates; return how many there were.

    tests/functional/placement/test_random_clouds.py compares the answers of Placement itself.
    """
    rng = random.Random(seed)  # not for secrets
    made_once.copy_to_placement(empty.rows)
    # Providers of networks have the same uuids for the same names, and processes keep them.
    hosts = draw_hosts(rng, f"cn{uuidutils.generate_uuid()[:8]}")
    providers = Providers(hosts)
    aliases = rng.random() < 0.5
    counts: Counter[str] = Counter(clouds=1, hosts=len(hosts))
    with scheduler(empty.adapter, hosts, providers.uuids, aliases=aliases) as scheduling:
        check = Checks(scheduling, providers)
        for _ in range(SERVERS):
            drawn, servers = rng.choice([(check.one, 1), (check.three, 2), (check.race, 1)])
            fits = functools.partial(check.have_room, hosts, servers=servers)
            counts += drawn(copy.deepcopy(hosts), draw_server(rng, hosts, fits))
    return counts


@dataclass(frozen=True)
class Checks:
    """Checks of nova-scheduler in a cloud."""

    scheduling: Scheduler
    providers: Providers

    def one(self, hosts: list[Host], server: Server, servers: int = 1) -> Counter[str]:
        """Check the candidates for a request, and for each further server of the request."""
        spec = request_spec(server)
        suffixes = suffixes_of(spec, server)
        selections = self.scheduling.schedule(spec, servers)
        rounds = self.scheduling.rounds
        answered = self._answered(hosts, server)
        if not rounds:
            assert not answered, f"no answer, but {sorted(answered)[:5]} for {server}"
            return Counter(requests=1)
        found = self._placements(rounds[0].answered, suffixes)
        assert_same(set(found), answered, f"the joined answer: {server}")
        by_name = {host.name: host for host in hosts}
        counts: Counter[str] = Counter(requests=1, scheduled=bool(selections))
        for number, seen in enumerate(rounds):
            kept = self._kept(hosts, seen, suffixes)
            right = self._right(hosts, server)
            assert_same(set(kept), right, f"server {number} of {servers}, {self.what}: {server}")
            assert len(kept) == len(set(kept)), f"a candidate twice for {server}"
            self._check_first(hosts, server, kept)
            counts += Counter({f"kept {number}": len(kept)})
            first = next(iter(seen.kept), None)
            # Where Nova chooses cells or devices, the test does not know what is taken.
            if not first or not by_name[first].reports or self._chooses_devices(server):
                break
            take(by_name[first], server, kept[0])
        return counts

    def _check_first(
        self, hosts: Sequence[Host], server: Server, kept: Sequence[Placement]
    ) -> None:
        """Check that a server without PCI devices leaves the cells of devices to other servers.

        A server with PCI devices does the opposite, as in Nova.
        """
        best = max if server.requests_devices else min
        for host in hosts:
            numbers = [cells_with_devices(host, way) for way in kept if way.host == host.name]
            if numbers:
                assert numbers[0] == best(numbers), f"{numbers} cells with devices for {server}"

    def three(self, hosts: list[Host], server: Server) -> Counter[str]:
        """Check a request for three servers."""
        return self.one(hosts, server, 3)

    def race(self, hosts: list[Host], server: Server) -> Counter[str]:
        """Check which candidate is claimed after another server has taken CPUs of the first."""
        spec = request_spec(server)
        suffixes = suffixes_of(spec, server)
        right = self._right(hosts, server)
        expected: list[Placement] = []
        with ExitStack() as cleanup:

            def take_cpus(seen: Round) -> None:
                way = self._placements(seen.kept, suffixes)[0]
                (host,) = (host for host in hosts if host.name == way.host)
                if way.cells:
                    node = f"{host.name}_NUMA{way.cells[0][0]}"
                    cleanup.enter_context(
                        self.providers.another(fill(host, way.cells[0][0]), node)
                    )
                still = self._answered(hosts, server)
                first = [
                    way
                    for name, ways in seen.kept.items()
                    for way in self._placements({name: ways[:4]}, suffixes)
                ]
                expected.extend(way for way in first if way in still)

            self.scheduling.race = take_cpus
            selections = self.scheduling.schedule(spec, 1)
            self.scheduling.race = None
        if not self.scheduling.rounds or not self.scheduling.rounds[0].kept:
            assert not right, f"no host, but {sorted(right)[:5]} for {server}"
            return Counter(races=1)
        claimed = None
        if selections:
            selection = selections[0][0]
            mappings = json.loads(selection.allocation_request)["mappings"]
            claimed = self.providers.placement_of(selection.service_host, mappings, suffixes)
        assert claimed == next(iter(expected), None), f"{claimed} of {expected} for {server}"
        return Counter(races=1, won=bool(selections))

    def have_room(self, hosts: Sequence[Host], server: Server, *, servers: int) -> bool:
        """Tell whether the hosts that report their NUMA nodes take several equal servers."""
        hosts = copy.deepcopy(hosts)
        for _ in range(servers):
            first = min(self._right(hosts, server), default=None)
            if first is None:
                return False
            if not self._chooses_devices(server):
                take(next(host for host in hosts if host.name == first.host), server, first)
        return True

    @property
    def what(self) -> str:
        """What is said in a failure."""
        return f"aliases in Placement: {self.scheduling.aliases}"

    def _chooses_devices(self, server: Server) -> bool:
        return bool(server.devices) and not self.scheduling.aliases

    def _answered(self, hosts: Sequence[Host], server: Server) -> set[Placement]:
        aliases = self.scheduling.aliases
        return {
            way
            for host in hosts
            for way in in_placement(host, server, aliases=aliases, as_vcpu=True)
        }

    def _right(self, hosts: Sequence[Host], server: Server) -> set[Placement]:
        aliases = self.scheduling.aliases
        reporting = [host for host in hosts if host.reports]
        return {way for host in reporting for way in on_hardware(host, server, aliases=aliases)}

    def _kept(
        self, hosts: Sequence[Host], seen: Round, suffixes: Sequence[str]
    ) -> list[Placement]:
        """Return the placements on hosts that report their NUMA nodes, the first host first."""
        reporting = {host.name for host in hosts if host.reports}
        kept = {name: ways for name, ways in seen.kept.items() if name in reporting}
        return self._placements(kept, suffixes)

    def _placements(
        self, candidates: Mapping[str, Sequence[Mapping[str, Any]]], suffixes: Sequence[str]
    ) -> list[Placement]:
        return [
            self.providers.placement_of(host, candidate["mappings"], suffixes)
            for host, ways in candidates.items()
            for candidate in ways
        ]

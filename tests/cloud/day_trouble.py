"""What disturbs a day: restarts of services, a lost RabbitMQ, and offenders beside guests."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.cloud.day_watch import Count, count
from tests.cloud.faults import API, Fault
from tests.cloud.lives import report
from tests.cloud.moving_server import wait_until
from tests.cloud.outages import Outages
from tests.cloud.page import ROOT
from tests.cloud.rest import COMPUTE, Cloud
from tests.cloud.two_hosts import HOSTS

RABBIT_SECONDS = 20
RABBIT = Fault(program="rabbitmq-server", way="stopped")
WEIGHT = 2000
"""Of a planted process, beside Gold with 100 and Bronze with 25."""
SHORT = 0.9
"""A guest that has less than this part of what is due lacks something."""


class Service(NamedTuple):
    """A service that is restarted.

    :param programs: of the supervisor; nova-api is restarted without nova-compute.
    :param port: of an API; without a port, Nova's database has the reports of the program.
    """

    programs: str
    host: str = "compute1"
    port: int = 0

    def __str__(self) -> str:
        return self.programs if self.host == "compute1" else f"{self.programs} on {self.host}"


SERVICES = (
    Service("nova-api", port=8774),
    Service("nova-scheduler"),
    Service("nova-conductor"),
    Service("nova-compute"),
    Service("nova-compute", "compute2"),
    Service("placement-api", port=8778),
    Service("neutron-api neutron-rpc-server", port=9696),
)


class Planted(NamedTuple):
    """A planted offender.

    :param missing: the seconds that the guest lacks by the kernel's count, and ``counted`` by the
        watch of its host.
    :param host_counted: the seconds of all guests of the host.
    :param elsewhere: the seconds that the watch of the other host has counted meanwhile.
    """

    kind: str
    host: str
    seconds: float
    missing: float
    counted: float
    host_counted: float
    elsewhere: float


class Guests(NamedTuple):
    """The servers that stay on a host: one spins, one without a tier is paused."""

    gold: str
    untiered: str


class Trouble:
    """Restarts and plants, in a thread with a shell of its own.

    :ivar lock: is held while a service is away, or an offender is there.
    :ivar failures: what did not come back, or could not be planted; the day goes on.
    :ivar again: the services that needed a second restart.
    """

    def __init__(
        self, cloud: Cloud, outages: Outages, guests: Mapping[str, Guests], due: float
    ) -> None:
        self.cloud, self.outages, self.guests, self.due = cloud, outages, guests, due
        self.planted: list[Planted] = []
        self.lock = threading.Lock()
        self.failures: list[str] = []
        self.again: list[str] = []

    def live(self, minutes: float, ended: threading.Event) -> None:
        """Have all trouble of a day of so many minutes, unless it ends before."""
        begin = time.monotonic()
        for at, kind in schedule(minutes):
            # A second at least, in which another thread may take the lock.
            if ended.wait(max(1.0, begin + at - time.monotonic())):
                return
            with self.lock:
                try:
                    self._have_trouble(kind, min(25.0, minutes * 3))
                except (AssertionError, ValueError) as error:
                    self.failures.append(f"{kind}: {error}")
                    report(f"FAILURE {self.failures[-1]}")

    def _have_trouble(self, kind: Service | str, seconds: float) -> None:
        if isinstance(kind, Service):
            self.restart(kind)
        elif kind == "rabbit":
            self.lose_rabbit()
        else:
            host, _, way = kind.partition(" ")
            self.plant(host, way, seconds)

    def restart(self, service: Service) -> None:
        """Restart a service, and wait until it answers or reports itself.

        If the start of nova-compute fails, its process stays and does nothing, as with Nova alone.
        Then it is started again.
        """
        outage = self.outages.begin(f"{service}")
        if not self._comes_back(service):
            self.again.append(str(service))
            assert self._comes_back(service), f"{service} does not come back"
        self.outages.end(outage)
        report(f"{service} was restarted")

    def _comes_back(self, service: Service) -> bool:
        self.cloud.on(service.host, f"supervisorctl restart {service.programs}")
        before = self._reports(service)
        if service.port:
            api = API.format(service.port)
            return wait_until(lambda: self.cloud.on("compute1", api)[0] == 0)
        return wait_until(lambda: self._reports(service) not in (0, before))

    def _reports(self, service: Service) -> int:
        """Return how often a service of Nova has reported itself."""
        where = f"`binary` = '{service.programs}' AND host = '{service.host}' AND NOT deleted"
        query = f"SELECT report_count FROM services WHERE {where}"  # noqa: S608
        rows = [] if service.port else self.cloud.rows("nova", query)
        return int(rows[0][0]) if rows else 0

    def lose_rabbit(self) -> None:
        """Stop RabbitMQ for a time."""
        outage = self.outages.begin("rabbitmq-server")
        RABBIT.begin(self.cloud)
        time.sleep(RABBIT_SECONDS)
        RABBIT.end(self.cloud)
        self.outages.end(outage)
        report("RabbitMQ was away")

    def plant(self, host: str, way: str, seconds: float) -> None:
        """Have the busy guest of a host lack CPU time for some seconds."""
        (other,) = set(HOSTS) - {host}
        before, before_elsewhere = count(self.cloud, host), count(self.cloud, other)
        samples = (
            self._beside_a_process(host, seconds)
            if way == "process"
            else self._beside_untiered(host, seconds)
        )
        time.sleep(2.5)  # until two more readings of the watch
        after, elsewhere = count(self.cloud, host), count(self.cloud, other)
        gold = self.guests[host].gold
        self.planted.append(
            Planted(
                way,
                host,
                seconds,
                lack(samples, self.due),
                _of(after, gold) - _of(before, gold),
                after.missing - before.missing,
                elsewhere.missing - before_elsewhere.missing,
            )
        )
        report(f"{self.planted[-1]}")

    def _planting(self, host: str, seconds: float, weight: str) -> str:
        module = f"cd {ROOT} && python3 -m tests.cloud.planting"
        return f"{module} {self.guests[host].gold} {seconds} {weight}"

    def _beside_a_process(self, host: str, seconds: float) -> list[tuple[float, float]]:
        status, output = self.cloud.on(host, self._planting(host, seconds, str(WEIGHT)))
        assert status == 0, output
        return _samples(output)

    def _beside_untiered(self, host: str, seconds: float) -> list[tuple[float, float]]:
        """Continue the guest without a tier for a time."""
        command = f"{self._planting(host, 600, '')}; echo; rm /run/planting.stop"
        self.cloud.on(host, f"({command}) >/run/planting.json 2>/run/planting.err &")
        uuid = self.guests[host].untiered
        self._have(uuid, "unpause", "active")
        time.sleep(seconds)
        self._have(uuid, "pause", "paused")
        time.sleep(1)
        self.cloud.on(host, "touch /run/planting.stop")
        read = "until tail -n 1 /run/planting.json | grep -q '^$'; do sleep 0.5; done"
        status, output = self.cloud.on(host, f"{read}; head -n 1 /run/planting.json")
        assert status == 0, self.cloud.on(host, "cat /run/planting.err")
        return _samples(output)

    def _have(self, uuid: str, action: str, state: str) -> None:
        """Pause or continue a server, also if a service is just away."""
        query = f"SELECT vm_state FROM instances WHERE uuid = '{uuid}'"  # noqa: S608

        def is_done() -> bool:
            path = f"/servers/{uuid}/action"
            self.cloud.request("POST", COMPUTE, path, {action: None})
            return wait_until(lambda: self.cloud.rows("nova", query) == [[state]], 20)

        assert wait_until(is_done, 120), f"{uuid} does not {action}"


def _of(seen: Count, uuid: str) -> float:
    return seen.guests.get(uuid, 0.0)


def _samples(output: str) -> list[tuple[float, float]]:
    return [(at, ran) for at, ran in json.loads(output.splitlines()[-1])]


def lack(samples: list[tuple[float, float]], due: float) -> float:
    """Return the seconds that a busy guest lacks, in seconds with less than is due.

    :param samples: clock and CPU time, five in a second.
    :param due: in CPUs.
    """
    missing = 0.0
    seconds = samples[::5]
    for (begin, before), (end, after) in pairwise(seconds):
        wanted, ran = due * (end - begin), after - before
        if ran < SHORT * wanted:
            missing += wanted - ran
    return missing


def schedule(minutes: float) -> list[tuple[float, Service | str]]:
    """Return when what happens in a day: restarts in turn, and between them all other trouble."""
    seconds = minutes * 60

    def spread(
        events: Sequence[Service | str], number: int, phase: float
    ) -> Iterator[tuple[float, Service | str]]:
        for turn in range(number):
            yield (turn + phase) / number * seconds, events[turn % len(events)]

    plants = [f"{host} {way}" for way in ("process", "untiered") for host in HOSTS]
    events: list[tuple[float, Service | str]] = [
        *spread(SERVICES, max(len(SERVICES), round(minutes / 4)), 0.3),
        *spread(["rabbit"], 2 if minutes >= 20 else 1, 0.6),
        *spread(plants, 2 + round(minutes / 10), 0.7),
    ]
    return sorted(events, key=lambda event: event[0])

"""The guests of a day: a host that is sold full, and guests that want nothing or only their own.

Eight guests of three tiers spin. Beside them are a guest that a quota of its flavor stops, a guest
that sleeps, a guest that is paused and continued, a guest that is started again and again, a guest
whose memory is sent as in a live migration, and a guest that reads its disk. All guests together
have the 600 shares that the host sells.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path

import libvirt
from lxml import etree
from lxml.builder import E

from cpu_tiers.libvirt.contract import DomainElements
from cpu_tiers.tools.libvirt.domain import BUILT_IN, write_domain
from tests.libvirt.cgroup import guest_cgroup, outweighing
from tests.libvirt.contest import EMULATED, build_firmware, qmp
from tests.libvirt.disk_load import devices, disk
from tests.libvirt.servers import server

BUSY = {
    **{f"gold-{number}": 100 for number in (1, 2)},
    **{f"silver-{number}": 50 for number in (1, 2)},
    **{f"bronze-{number}": 25 for number in (1, 2, 3, 4)},
}
"""The shares of the guests that spin: 400 of 600."""

QUIET = {
    "capped": 50,
    "sleeping": 25,
    "paused": 25,
    "starting": 25,
    "migrating": 50,
    "reading": 25,
}
"""The shares of the guests to which nothing is due, or not more than they have: 200 of 600."""

_CAP = (100_000, 2_000)
"""The period and the quota of the capped guest, in microseconds: 0.02 CPUs."""


def spinning(folder: Path, vcpus: tuple[int, ...] = (0,)) -> Mapping[str, DomainElements]:
    """Return the elements of a guest that spins with these vCPUs, and sleeps with the others."""
    loader = E.loader(str(build_firmware(folder, vcpus)), type="rom")
    return {"firmware": lambda _: [E.os(loader)]}


@contextmanager
def running(
    hypervisor: libvirt.virConnect,
    name: str,
    shares: int | None,
    plugins: Mapping[str, DomainElements],
    *,
    quota: tuple[int, int] | None = None,
    paused: bool = False,
) -> Iterator[libvirt.virDomain]:
    """Yield a running guest of one vCPU on CPU 0.

    :param shares: its weight; ``None`` for a guest without a tier.
    """
    specs = {} if shares is None else {"quota:cpu_shares": str(shares)}
    memory_mb = 256 if name == "migrating" else 32
    guest = server(name, extra_specs=specs, memory_mb=memory_mb)
    root = etree.fromstring(write_domain(guest, {**BUILT_IN, **plugins}))
    if quota:
        tune = root.find("cputune")
        assert tune is not None
        for element, value in zip(("period", "quota"), quota, strict=True):
            etree.SubElement(tune, element).text = str(value)
    if EMULATED:
        root.set("type", "qemu")
    flags = libvirt.VIR_DOMAIN_START_PAUSED if paused else 0
    domain = hypervisor.createXML(etree.tostring(root, encoding="unicode"), flags)
    try:
        yield domain
    finally:
        with suppress(libvirt.libvirtError):  # the day may have ended the guest
            domain.destroy()


class DayGuests:
    """The guests, by name."""

    def __init__(self, hypervisor: libvirt.virConnect, folder: Path) -> None:
        self.hypervisor, self.folder = hypervisor, folder
        self.domains: dict[str, libvirt.virDomain] = {}
        self._end = threading.Event()
        self.errors: list[str] = []

    @contextmanager
    def living(self) -> Iterator[None]:
        """Run all guests; the quiet guests live their lives in a thread each."""
        with ExitStack() as stack:
            # Nothing spins while QEMUs start, which would take minutes.
            for name, shares in BUSY.items():
                self.domains[name] = stack.enter_context(
                    running(self.hypervisor, name, shares, spinning(self.folder), paused=True)
                )
            plain = {"sleeping": (), "capped": (0,), "paused": (0,), "migrating": (0,)}
            for name, vcpus in plain.items():
                self.domains[name] = stack.enter_context(
                    running(
                        self.hypervisor,
                        name,
                        QUIET[name],
                        spinning(self.folder, vcpus),
                        quota=_CAP if name == "capped" else None,
                        paused=True,
                    )
                )
            self.domains["reading"] = stack.enter_context(self._reading())
            stack.enter_context(outweighing(guest_cgroup(self.domains["gold-1"]).parent))
            for domain in self.domains.values():
                domain.resume()
            lives = (self._pause, self._restart, self._migrate)
            threads = [threading.Thread(target=self._live, args=(live,)) for live in lives]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._end.set()
                for thread in threads:
                    thread.join()

    @contextmanager
    def another(
        self, name: str, shares: int | None, *, asleep: bool = False
    ) -> Iterator[libvirt.virDomain]:
        """Run a further guest, which spins or sleeps."""
        elements = spinning(self.folder, () if asleep else (0,))
        with running(self.hypervisor, name, shares, elements) as domain:
            yield domain

    def _reading(self) -> AbstractContextManager[libvirt.virDomain]:
        console = self.folder / "console"
        console.write_text("")
        elements = devices(disk(self.folder, 64), console, "threads", 0)
        plugins = {"disk": lambda _: elements}
        return running(self.hypervisor, "reading", QUIET["reading"], plugins, paused=True)

    def _live(self, live: Callable[[], None]) -> None:
        while not self._end.is_set():
            try:
                live()
            except (libvirt.libvirtError, AssertionError) as error:
                self.errors.append(f"{error}")
                self._end.wait(1)

    def _pause(self) -> None:
        self.domains["paused"].suspend()
        self._end.wait(7)
        self.domains["paused"].resume()
        self._end.wait(7)

    def _restart(self) -> None:
        with self.another("starting", QUIET["starting"]):
            self._end.wait(15)
        self._end.wait(2)

    def _migrate(self) -> None:
        """Let QEMU send the memory of the running guest, as the source of a live migration."""
        domain = self.domains["migrating"]
        with closing(socket.socket(socket.AF_UNIX)) as destination:
            path = self.folder / "destination"
            path.unlink(missing_ok=True)
            destination.bind(str(path))
            destination.listen()
            threading.Thread(target=_receive, args=(destination,), daemon=True).start()
            self._send(domain, path)
        self._end.wait(1)
        domain.resume()
        self._end.wait(10)

    def _send(self, domain: libvirt.virDomain, path: Path) -> None:
        qmp(domain, "migrate", uri=f"unix:{path}")
        deadline = time.monotonic() + 60
        while qmp(domain, "query-migrate").get("status") not in ("completed", "failed"):
            assert time.monotonic() < deadline, "the migration did not end"
            self._end.wait(0.5)


def _receive(destination: socket.socket) -> None:
    """Take what one QEMU sends, and drop it."""
    sender, _ = destination.accept()
    with sender:
        while sender.recv(2**20):
            pass

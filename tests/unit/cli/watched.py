"""A machine under watch: files of two guests in a folder, and a libvirt that describes them."""

from collections.abc import Collection, Iterator
from pathlib import Path

from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.inventory import Host
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.host.watched_host import WatchedHost
from cpu_tiers.tools.libvirt.connection import RunningDomain
from cpu_tiers.tools.tiers.tier import Tier
from tests.unit.cgroup.layouts import Kind, Layout

GOLD, PLAIN = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2))
NAMES = {GOLD: "gold", PLAIN: "plain"}
SHARES = {GOLD: "<cputune><shares>100</shares></cputune>", PLAIN: ""}


class Machine:
    """One CPU, cgroup v2 unless a test says otherwise, and a clock that a test moves."""

    def __init__(self, root: Path, kind: Kind = "v2 systemd", conf: str | None = None) -> None:
        self.layout, self.now = Layout(root, kind), 100.0
        self.described = list[set[str]]()
        self.error: CpuTiersError | None = None
        self.xml = dict[str, str]()
        cells = (NumaCell(id=0, cpus=CpuSet({0}), memory_kb=2**20),)
        self.watched = WatchedHost(
            Host(name="h", topology=HostTopology(arch="x86_64", cells=cells)),
            read_config([conf or "/dev/null"]),
            self._describe,
            [Tier.parse("gold", "100", 1, where="gold")],
            Files(root),
            lambda: self.now,
        )

    def start(self, uuid: str) -> None:
        """Start a guest with one vCPU, with the process ids 1010 and 1020 by the order."""
        self.layout.guest(uuid, self.layout.default)
        self.spend(uuid, 0, 0, 0)

    def spend(self, uuid: str, ran: float, waited: float, runs: int) -> None:
        """Set what the vCPU of a guest has used since its start."""
        pid = self._pid(uuid)
        text = f"{ran * 1e9:.0f} {waited * 1e9:.0f} {runs}\n"
        self.layout.write(f"proc/{pid}/task/{pid + 1}/schedstat", text)

    def stop(self, uuid: str) -> None:
        pid = self._pid(uuid)
        (self.layout.root / "proc" / str(pid)).rename(self.layout.root / f"ended-{pid}")

    def read(self, seconds: float = 10.0) -> None:
        """Let the time pass, and read."""
        self.now += seconds
        self.watched.read()

    def _pid(self, uuid: str) -> int:
        return 1010 + 10 * list(self.layout.paths).index(uuid)

    def _describe(self, uuids: Collection[str]) -> Iterator[RunningDomain]:
        self.described.append(set(uuids))
        if self.error:
            raise self.error
        for uuid in sorted(uuids):
            xml = self.xml.get(uuid) or self.describe(uuid)
            yield RunningDomain(name=NAMES[uuid], xml=xml.encode(), shares=None)

    def describe(self, uuid: str) -> str:
        """Return the XML of a guest, as it is unless a test has other XML."""
        return (
            f"<domain><name>{NAMES[uuid]}</name><uuid>{uuid}</uuid><vcpu>1</vcpu>"
            f"{SHARES[uuid]}<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>"
            "</devices></domain>"
        )

"""The checker of a random life: what each server has, in Placement, in Nova and in libvirt."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from nova import context, objects

from cpu_tiers.nova.tier_changes import is_live
from tests.nova.computes import SHARES
from tests.nova.networks import BRIDGE, EGRESS
from tests.nova.numa.agreement import cells_of, check_domain, check_pins, topology_of
from tests.nova.numa.devices import DEVICE, gpus_of
from tests.nova.numa.random_lives.cloud import REQUESTS, LifeCloud, Rows
from tests.nova.numa.random_lives.guests import CARD, Guest
from tests.nova.provider_tree import ANCHOR

PLACED = ("ACTIVE", "SHUTOFF", "VERIFY_RESIZE")
"""The states of a server that is on a host; in other states the server holds nothing."""


@dataclass
class Resident:
    """A server of a life.

    :param guest: what its flavor asks for.
    :param has_volume: whether its disk is a volume.
    :param status: as the user sees it.
    :param host: where it is.
    :param held: what it held after the last step.
    :param source: what it held before a resize or a cold migration that waits for its user.
    :param left: what it held of a host that is down, from which it was evacuated.
    """

    uuid: str
    guest: Guest
    has_volume: bool
    status: str = ""
    host: str = ""
    held: Rows = field(default_factory=dict)
    source: Rows = field(default_factory=dict)
    left: Rows = field(default_factory=dict)

    def look(self, server: dict[str, Any], guests: dict[str, Guest], down: set[str]) -> None:
        """Take over what the user sees after a step."""
        status, host = server["status"], server["OS-EXT-SRV-ATTR:host"] or ""
        assert not server["OS-EXT-STS:task_state"], f"{server['OS-EXT-STS:task_state']} for ever"
        if status == "VERIFY_RESIZE" != self.status:
            self.source = self.held
        elif status != "VERIFY_RESIZE":
            self.source = {}
        if self.host in down and host != self.host:
            self.left = self.held
        self.guest = guests[server["flavor"]["original_name"]]
        self.status, self.host = status, host


class Checker:
    """Checks all servers of a cloud after a step.

    :param has_shares: whether the cloud requests VCPU_SHARES.
    """

    def __init__(self, cloud: LifeCloud, *, has_shares: bool) -> None:
        self.cloud = cloud
        self.has_shares = has_shares
        self.repaired = 0
        self.admin = context.get_admin_context()

    def check(self, residents: list[Resident], *, is_faulty: bool) -> None:
        """Check all that Placement has, and the guests.

        :param is_faulty: that a request failed: as with Nova alone, allocations of another host
            than the server's may be left. They are removed.
        """
        rows = self.cloud.rows()
        self.nodes = {host: cells_of(host) for host in self.cloud.computes}
        pins: dict[str, list[int]] = {host: [] for host in self.nodes}
        for resident in residents:
            held = rows.pop(resident.uuid, {})
            wanted = self._wanted(resident, held, pins) if resident.status in PLACED else {}
            wanted |= resident.left
            if held != wanted and is_faulty:
                held = self._repair(resident, held, wanted)
            assert held == wanted, f"{resident} holds {held}, not {wanted}"
            if resident.status == "VERIFY_RESIZE":
                self._check_source(resident, held, rows, pins)
            resident.held = held
        for consumer in list(rows) if is_faulty else ():
            self.cloud.write_rows(consumer, {})
            self.repaired += 1
            del rows[consumer]
        assert not rows, f"nobody's: {rows}"
        for host, cpus in pins.items():
            assert len(set(cpus)) == len(cpus), f"{host} has pinned twice: {sorted(cpus)}"

    def take_over(self, residents: list[Resident]) -> None:
        """Take over what migrations hold besides, after the hosts have begun to report shares."""
        rows = self.cloud.rows()
        for resident in residents:
            if is_live(migration_of(resident)):
                continue
            held = rows[migration_of(resident).uuid]
            assert without_shares(held) == without_shares(resident.source)
            resident.source = held

    @staticmethod
    def check_is_empty(host: str) -> None:
        """Check that a host has no guest in Nova."""
        for cell in cells_of(host).values():
            assert not cell.pinned_cpus, f"{host} keeps {cell.pinned_cpus}"
            assert not cell.cpu_usage, f"{host} keeps {cell.cpu_usage} CPUs"

    def _repair(self, resident: Resident, held: Rows, wanted: Rows) -> Rows:
        """Remove what is left of other hosts; what is on the server's host must be right."""
        left = {name for name in held if name not in wanted}
        here = {name for name in left if resident.host and self._host_of(name) == resident.host}
        assert not here, f"{resident} holds {here} of its host, and {wanted}"
        self.repaired += 1
        kept = {name: amounts for name, amounts in held.items() if name not in left}
        self.cloud.write_rows(resident.uuid, kept)
        return kept

    @staticmethod
    def _host_of(provider: str) -> str:
        return provider.partition("_")[0].partition(":")[0]

    def _check_source(
        self, resident: Resident, now: Rows, rows: dict[str, Rows], pins: Any
    ) -> None:
        """Check what the migration of a server holds that waits for its user.

        :param now: what the server itself holds.
        """
        migration = migration_of(resident)
        held = rows.pop(migration.uuid, {})
        if is_live(migration):
            less = shares_in(resident.source) - shares_in(now)
            assert shares_in(held) == max(0, less), f"{resident}: the migration holds {held}"
            assert not without_shares(held), f"{resident}: the migration holds {held}"
            return
        assert held == resident.source, f"{resident}: the migration holds {held}"
        topology = migration_context(resident.uuid).old_numa_topology
        pins[migration.source_compute] += pinned(topology)

    def _wanted(self, resident: Resident, held: Rows, pins: dict[str, list[int]]) -> Rows:
        """Return what a server has to hold of its host."""
        host, guest = resident.host, resident.guest
        topology, nodes = topology_of(resident.uuid), bool(self.cloud.options[host][0])
        assert bool(topology) == guest.is_aware
        wanted: dict[str, Counter[str]] = {}
        if topology is None:
            wanted[host] = guest.holds()
        else:
            check_pins(topology, self.nodes[host])
            pins[host] += pinned(topology)
            wanted = self._of_nodes(host, topology, nodes=nodes)
        assert sum(wanted.values(), Counter()) == guest.holds(), f"{topology} for {guest}"
        if topology and nodes:
            wanted.setdefault(host, Counter())[ANCHOR] = 1
        if guest.disk_gb and not resident.has_volume:
            wanted.setdefault(host, Counter())["DISK_GB"] += guest.disk_gb
        self._add_shares(resident, held, wanted, topology)
        self._add_devices(resident, wanted, topology)
        self._check_domain(resident, topology)
        return {name: dict(+amounts) for name, amounts in wanted.items() if +amounts}

    def _of_nodes(self, host: str, topology: Any, *, nodes: bool) -> dict[str, Counter[str]]:
        """Return what a guest needs of the NUMA nodes where Nova has it, or of the root."""
        wanted: dict[str, Counter[str]] = {}
        for number, cell in enumerate(topology.cells):
            isolated = number == 0 and topology.emulator_threads_isolated
            sizes = [pages.size_kb for pages in self.nodes[host][cell.id].mempages]
            size = cell.pagesize or min(sizes)
            node = f"{host}_NUMA{cell.id}" if nodes else host
            pages = f"{node}_PAGES_{size}" if nodes else host
            cpus = Counter(VCPU=len(cell.cpuset), PCPU=len(cell.pcpuset) + isolated)
            wanted.setdefault(node, Counter()).update(+cpus)
            wanted.setdefault(pages, Counter())["MEMORY_MB"] += cell.memory
        return wanted

    def _add_shares(
        self, resident: Resident, held: Rows, wanted: dict[str, Counter[str]], topology: Any
    ) -> None:
        """Check the shares: in all those of the guest, and of each node those of its vCPUs."""
        if not self.has_shares:
            return
        guest, total = resident.guest, 0
        for name, amounts in wanted.items():
            share = held.get(name, {}).get(SHARES, 0)
            exact = Fraction(guest.shares * amounts["VCPU"], guest.shared or 1)
            assert abs(share - exact) < 1, f"{resident}: {share} of {name}, exactly {exact}"
            total += share
            amounts[SHARES] = share
        assert total == guest.shares, f"{resident} holds {total} shares"

    def _add_devices(
        self, resident: Resident, wanted: dict[str, Counter[str]], topology: Any
    ) -> None:
        """Add PCI devices, which are on the nodes of the guest, and the bandwidth of ports."""
        node = objects.ComputeNode.get_by_nodename(self.admin, resident.host)
        # A resize on the same host keeps the devices of both flavors until its end.
        resize = migration_context(resident.uuid)
        old = {device.id for device in resize.old_pci_devices or ()} if resize else set()
        devices = [
            device
            for device in objects.PciDeviceList.get_by_instance_uuid(self.admin, resident.uuid)
            if device.compute_node_id == node.id and device.id not in old
        ]
        cells = {cell.id for cell in topology.cells} if topology else set()
        requests = objects.InstancePCIRequests.get_by_instance_uuid(self.admin, resident.uuid)
        # A port keeps the policy of the flavor with which it was bound, also after a resize. All
        # NUMA nodes of a host are on one socket.
        policies = {request.request_id: request.numa_policy for request in requests.requests}
        for device in devices if cells else ():
            is_anywhere = policies[device.request_id] in ("preferred", "socket")
            assert is_anywhere or device.numa_node in cells, resident
        cards = [device.address for device in devices if device.dev_type == "type-PCI"]
        assert len(cards) == resident.guest.cards, f"{resident} has {cards}"
        for address in cards:
            wanted[f"{resident.host}_{address}"] = Counter({CARD: 1})
        gpus = gpus_of(self.cloud, resident.host, resident.uuid)
        assert len(gpus) == resident.guest.gpus, f"{resident} has {gpus}"
        for name in gpus:
            wanted[name] = Counter(VGPU=1)
        parents = {device.address: device.extra_info.get("parent_ifname") for device in devices}
        for port in self.cloud.ports_of(resident.uuid):
            profile = self.cloud.neutron.profile(port)
            slot = profile.get("pci_slot")
            host = resident.host
            name = DEVICE.format(host, parents[slot]) if slot else BRIDGE.format(host)
            provider = self.cloud.client.find_provider(name)
            assert provider is not None
            assert profile["allocation"] == provider.uuid, f"{resident}: {profile}"
            wanted.setdefault(name, Counter())[EGRESS] += REQUESTS[port]["resources"][EGRESS]

    def _check_domain(self, resident: Resident, topology: Any) -> None:
        """Check the guest as libvirt has it."""
        domain = self.cloud.domain(resident.uuid, resident.host)
        assert domain.findtext("cputune/shares") == resident.guest.weight
        if topology is not None:
            check_domain(domain, topology, self.nodes[resident.host])


def migration_of(resident: Resident) -> Any:
    """Return the migration of a server that waits for its user."""
    admin = context.get_admin_context()
    return objects.Migration.get_by_instance_and_status(admin, resident.uuid, "finished")


def migration_context(uuid: str) -> Any:
    """Return what a server had before its resize, and has now; ``None`` if no resize is open."""
    admin = context.get_admin_context()
    return objects.Instance.get_by_uuid(admin, uuid, ["migration_context"]).migration_context


def without_shares(rows: Rows) -> Rows:
    """Return what a consumer holds beside shares."""
    others = {
        provider: {name: amount for name, amount in amounts.items() if name != SHARES}
        for provider, amounts in rows.items()
    }
    return {provider: amounts for provider, amounts in others.items() if amounts}


def shares_in(rows: Rows) -> int:
    """Return all shares that a consumer holds."""
    return sum(amounts.get(SHARES, 0) for amounts in rows.values())


def pinned(topology: Any) -> list[int]:
    """Return the host's CPUs that are pinned or reserved for a guest."""
    cells = topology.cells if topology else ()
    return [
        cpu
        for cell in cells
        for cpu in (*(cell.cpu_pinning or {}).values(), *(cell.cpuset_reserved or ()))
    ]

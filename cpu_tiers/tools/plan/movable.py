"""What Nova 31 to 34 do with a server: two tables, of migration and of evacuation.

A row is what Nova looks at, with Nova's function, and says why the server stays and what would
free it. Rows that restrict the hosts of a server stand in :mod:`cpu_tiers.tools.plan.bindings`. A
lock is no row: ``check_instance_lock`` lets an administrator migrate a locked server, and an
evacuation does not look at the lock. Persistent memory and NUMA nodes are no rows: all four
releases migrate both live. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from cpu_tiers.extra_specs.cpu_masks import YES
from cpu_tiers.model.flavor import properties
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer

LIVE = frozenset({"ACTIVE", "PAUSED"})
COLD = frozenset({"SHUTOFF"})
"""Nova migrates ACTIVE servers cold, too, and stops them: a plan does not."""

EVACUATED = frozenset(
    {"ACTIVE", "SHUTOFF", "ERROR"}
    # States of an ACTIVE or stopped server on which Nova was at work when its host failed.
    | {"REBOOT", "HARD_REBOOT", "PASSWORD", "REBUILD", "MIGRATING", "RESIZE"}
)
UNKNOWN_STATE, UNCONFIRMED = "", "VERIFY_RESIZE"

_FREES = {
    "ERROR": "openstack server set --state active, if the server runs",
    "PAUSED": "openstack server unpause",
    "RESCUE": "openstack server unrescue",
    "SHELVED": "openstack server unshelve",
    "SHUTOFF": "openstack server start, or --cold",
    "SOFT_DELETED": "openstack server restore, or delete it",
    "SUSPENDED": "openstack server resume",
    "VERIFY_RESIZE": "openstack server resize confirm, or resize revert",
}
_WAIT = "plan again when Nova has ended its work on the server"
_STOP = "openstack server stop, and plan with --cold"


class Subject(NamedTuple):
    """A server, as the rows look at it.

    :param classes: the resource classes that the server holds.
    """

    server: SnapshotServer
    classes: Collection[str] = ()

    def value(self, name: str) -> str:
        """Return the value of an extra spec ``hw:NAME``, or else of the image property."""
        flavor, image = self.server.flavor, self.server.image
        specs = flavor.extra_specs if flavor else {}
        return specs.get(f"hw:{name}") or properties(image).get(f"hw_{name}", "")

    def spec(self, key: str) -> str:
        flavor = self.server.flavor
        return flavor.extra_specs.get(key, "") if flavor else ""

    def holds(self, *beginnings: str) -> bool:
        return any(name.startswith(beginnings) for name in self.classes)


class Refusal(NamedTuple):
    """A row of a table.

    :param source: Nova's function that refuses.
    :param refuses: whether Nova refuses the server.
    :param reason: why, in words with ``{task}``; empty for the words of the state.
    :param frees: what would free the server.
    """

    source: str
    refuses: Callable[[Subject], bool]
    reason: str = ""
    frees: str = ""

    def words(self, subject: Subject, verb: str) -> str:
        """Return why Nova does not do something, and what would free the server."""
        state = subject.server.state
        reason = self.reason or f"Nova {verb} no server in state {state}"
        frees = self.frees or _FREES.get(state, _WAIT)
        return f"{reason.replace('{task}', subject.server.task)}: {frees}"


def _has_tpm(subject: Subject) -> bool:
    return bool(subject.value("tpm_version"))


def _has_port_accelerator(subject: Subject) -> bool:
    held = subject.holds("FPGA", "PGPU", "CUSTOM_ACCELERATOR_", "CUSTOM_FPGA")
    return held and not subject.spec("accel:device_profile")


_PORT_ACCELERATOR = Refusal(
    "nova/compute/api.py block_port_accelerators",
    _has_port_accelerator,
    "a port of the server has an accelerator",
    "openstack server remove port",
)
_DEVICE_PROFILE = Refusal(
    "nova/compute/api.py block_accelerators",
    lambda subject: bool(subject.spec("accel:device_profile")),
    "it has an accelerator",
    "openstack server resize to a flavor without accel:device_profile",
)

LIVE_MIGRATION = (
    Refusal(
        "nova/compute/api.py API.live_migrate, check_instance_state",
        lambda subject: subject.server.state not in {*LIVE, UNKNOWN_STATE},
    ),
    Refusal(
        "nova/compute/api.py API.live_migrate, check_instance_state",
        lambda subject: bool(subject.server.task),
        "Nova works on it ({task})",
        _WAIT,
    ),
    Refusal(
        "nova/compute/api.py reject_vtpm_instances (31, 32), reject_legacy_vtpm_live_migration",
        lambda subject: _has_tpm(subject) and subject.spec("hw:tpm_secret_security") != "host",
        "it has a virtual TPM",
        _STOP,
    ),
    Refusal(
        "nova/compute/api.py reject_sev_instances (31 to 33), reject_mem_enc_instances (34)",
        lambda subject: subject.value("mem_encryption").strip().lower() in YES,
        "its memory is encrypted",
        _STOP,
    ),
    _DEVICE_PROFILE,
    _PORT_ACCELERATOR,
    Refusal(
        "nova/conductor/tasks/live_migrate.py LiveMigrationTask._check_can_migrate_pci",
        lambda subject: bool(subject.spec("pci_passthrough:alias")),
        "it has a PCI device",
        _STOP,
    ),
    Refusal(
        "nova/virt/libvirt/driver.py LibvirtDriver.check_can_live_migrate_source",
        lambda subject: subject.holds("VGPU"),
        "it has a virtual GPU, which only some versions of libvirt and QEMU migrate",
        _STOP,
    ),
)
"""The first row that refuses a server is its reason."""

COLD_MIGRATION = (
    Refusal(
        "nova/compute/api.py API.resize, check_instance_state",
        lambda subject: subject.server.state not in COLD,
    ),
    Refusal(
        "nova/compute/api.py API.resize, check_instance_state",
        lambda subject: bool(subject.server.task),
        "Nova works on it ({task})",
        _WAIT,
    ),
    _DEVICE_PROFILE,
    _PORT_ACCELERATOR,
)

EVACUATION = (
    Refusal(
        "nova/compute/api.py API.evacuate, check_instance_state",
        lambda subject: subject.server.state not in {*EVACUATED, UNKNOWN_STATE},
        frees="openstack server set --state active, once its host is down",
    ),
    Refusal(
        "nova/compute/api.py API.evacuate, reject_vtpm_instances",
        _has_tpm,
        "it has a virtual TPM",
        "start its host again",
    ),
    _PORT_ACCELERATOR,
)


def stays(subject: Subject, *, is_cold: bool) -> str:
    """Return why Nova does not migrate a server; empty for a server that may go.

    :param is_cold: whether servers that are powered off may be migrated.
    """
    if subject.server.stays:
        return subject.server.stays
    is_off = subject.server.state in COLD
    if is_off and not is_cold:
        return "it is powered off: --cold lets it move"
    return _first(COLD_MIGRATION if is_off else LIVE_MIGRATION, subject, "migrates")


def homeless(subject: Subject, *, is_confirmable: bool = False) -> str:
    """Return why Nova does not evacuate a server; empty for a server that it evacuates.

    :param is_confirmable: whether an unconfirmed resize can be confirmed without the server's
        host: ``API.confirm_resize`` asks the source.
    """
    if subject.server.state == UNCONFIRMED and is_confirmable:
        return ""
    return _first(EVACUATION, subject, "evacuates")


def _first(rows: Iterable[Refusal], subject: Subject, verb: str) -> str:
    return next((row.words(subject, verb) for row in rows if row.refuses(subject)), "")

"""nova-compute over Nova's fake libvirt: ``python -m tests.processes.fake_libvirt …``.

The arguments are the arguments of nova-compute. ``cpu-tiers-nova-compute`` starts nova-compute, as
on a host with Nova in another directory. ``FAKE_HOST`` has the sizes of the host, as JSON;
``pages`` are the kB and the number of each page size of a node. The XML of each guest is written
to ``FAKE_DOMAINS``.
"""

import importlib
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

from cpu_tiers.nova.compute import launcher

# Nova's fixtures would choose green threads, the service has native ones unless a test says so.
os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
importlib.import_module("nova.cmd.compute")

from nova.tests import fixtures  # noqa: E402
from nova.tests.fixtures import libvirt  # noqa: E402

DRIVER = "nova.virt.libvirt.driver.LibvirtDriver"
HOST = "nova.virt.libvirt.host.Host"
NO_DISKS = {
    f"{DRIVER}._create_image": (False, False),
    f"{DRIVER}._ensure_console_log_for_instance": None,
    f"{DRIVER}._get_local_gb_info": {"total": 128, "used": 0, "free": 128},
    f"{DRIVER}.migrate_disk_and_power_off": "{}",
    "nova.privsep.utils.supports_direct_io": True,
}


class Connection(libvirt.Connection):
    """Writes the XML of guests to files for a test."""

    def defineXML(self, xml: str) -> Any:  # noqa: N802  # libvirt's name
        domain = super().defineXML(xml)
        self._file(domain).write_text(xml)
        return domain

    def _undefine(self, domain: Any) -> None:
        super()._undefine(domain)
        self._file(domain).unlink()

    def _file(self, domain: Any) -> Path:
        return Path(os.environ["FAKE_DOMAINS"], f"{domain.UUIDString()}.xml")


def host_info(*, nodes: int, cores: int, node_kb: int, pages: list[tuple[int, int]]) -> Any:
    return libvirt.HostInfo(
        cpu_nodes=nodes,
        cpu_sockets=1,
        cpu_cores=cores,
        cpu_threads=1,
        kB_mem=nodes * node_kb,
        mempages=[libvirt.create_mempages(pages) for _ in range(nodes)],
    )


def main() -> None:
    """Install the fake libvirt, and run nova-compute."""
    host = host_info(**json.loads(os.environ["FAKE_HOST"]))
    connection = Connection("qemu:///system", host_info=host, hostname=os.environ["FAKE_NAME"])
    for fixture in (
        fixtures.LibvirtFixture(),
        fixtures.LibvirtImageBackendFixture(),
        fixtures.CGroupsFixture(),
        fixtures.OSBrickFixture(),
    ):
        fixture.setUp()
    answers = {
        **NO_DISKS,
        f"{HOST}.get_connection": connection,
        f"{HOST}.get_online_cpus": set(range(host.cpus)),
    }
    for name, answer in answers.items():
        mock.patch(name, return_value=answer).start()
    launcher.main()


if __name__ == "__main__":
    main()

"""The commands of a host, on a host of the functional services."""

from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova.tests.fixtures.libvirt import VIR_CONNECT_LIST_DOMAINS_ACTIVE

from cpu_tiers.nova.options import CONF
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.libvirt.connection import RunningDomain
from tests.nova.command_line import CommandLine
from tests.nova.computes import Computes
from tests.nova.kinds import KeepsTuning

EVIDENCE = "cpu_tiers.tools.host.audit_evidence"


class KeepsFlavor(KeepsTuning):
    """Has Nova's fake libvirt keep what Nova writes of the flavor into a guest."""

    elements = ("metadata",)


class HostCommands(CommandLine):
    """The command line on the host ``one``, with the nova.conf of its nova-compute.

    :ivar multiplier: a ``vcpu_share_multiplier`` in place of the one of nova-compute.
    """

    multiplier: int | None = None

    def __init__(self, cloud: Computes) -> None:
        super().__init__(cloud)
        self.folder = Path(cloud.useFixture(fixtures.TempDir()).path)

    def nova_conf(self) -> Path:
        path = super().nova_conf()
        path.write_text(
            f"{path.read_text()}\n[libvirt]\nreport_vcpu_shares = true\n"
            f"least_weight_without_tier = {CONF.libvirt.least_weight_without_tier}\n"
            + (f"vcpu_share_multiplier = {self.multiplier}\n" if self.multiplier else "")
            + f"[DEFAULT]\ncompute_driver = {CONF.compute_driver}\n"
            f"cpu_allocation_ratio = {CONF.cpu_allocation_ratio}\n"
            f"[compute]\ncpu_shared_set = {CONF.compute.cpu_shared_set}\n"
            f"provider_config_location = {self.folder}\n"
        )
        return path

    @property
    def _connection(self) -> Any:
        return self.cloud.computes["one"].driver._host.get_connection()

    def audit(self, *, status: int) -> dict[str, dict[str, Any]]:
        """Return the findings of an audit by their kind, and expect its exit status.

        Guests of the fake libvirt are no processes, so each has a finding ``unread``.
        """
        guests = [
            RunningDomain(name=domain.name(), xml=domain.XMLDesc(0).encode(), shares=None)
            for domain in self._connection.listAllDomains(VIR_CONNECT_LIST_DOMAINS_ACTIVE)
        ]
        capabilities = self._connection.getCapabilities().encode()
        arguments = ("--hostname", "one", "--interval", "0", "--ignore", "unread")
        with (
            mock.patch(f"{EVIDENCE}.read_domains", return_value=guests),
            mock.patch(f"{EVIDENCE}.read_capabilities", return_value=capabilities),
        ):
            rows = self.run("host", "audit", *arguments, status=status).rows
        return {row["kind"]: row for row in rows}

    def write_file(self) -> None:
        """Write the provider.yaml of the host."""
        capabilities = self.folder.with_suffix(".xml")
        capabilities.write_text(self._connection.getCapabilities())
        where = ("--capabilities", str(capabilities), "--hostname", "one", "--disk-gb", "0")
        file = ("-f", "provider-yaml", "--file", str(self.folder / "cpu-tiers.yaml"))
        command = ["--config-file", str(self.nova_conf()), "inventory", "show", *where, *file]
        assert app.main(command) == 0

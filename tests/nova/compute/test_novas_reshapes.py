"""Reshapes of Nova's own that are due when our driver starts to report something, too.

Nova's functional tests run here word for word, with our driver as the compute driver. What they
restart is a host that begins to report VCPU_SHARES or its NUMA nodes in the same start.
"""

from typing import Any

import pytest
from nova.conf import CONF
from nova.tests.functional.libvirt import base, test_reshape

from tests.nova.computes import OURS
from tests.nova.numa.hosts import Hosts

if not hasattr(test_reshape, "SevResphapeTests"):
    pytest.skip("Nova reshapes AMD SEV from release 32 on", allow_module_level=True)


class OptionsOff(Hosts):
    """Hosts with our driver and with none of our options."""

    microversion = base.ServersTestBase.microversion  # Nova's tests name no networks
    test_create_servers_with_amd_sev_mixed = None  # asks less of the driver than the other test

    def restart_compute_service(self, *args: Any, **kwargs: Any) -> Any:
        """Restart a host, as Nova's tests do when a reshape is due."""
        assert CONF.compute_driver == OURS
        self.switch_on()
        return super().restart_compute_service(*args, **kwargs)

    def switch_on(self) -> None:
        """Switch on what the host reports from this restart on."""


class Shares(OptionsOff):
    def switch_on(self) -> None:
        self.reporting(True)


class Nodes(OptionsOff):
    def switch_on(self) -> None:
        self.nodes(True)


class TestSevWithOptionsOff(test_reshape.SevResphapeTests, OptionsOff):
    pass


class TestSevWithShares(test_reshape.SevResphapeTests, Shares):
    pass


class TestSevWithNodes(test_reshape.SevResphapeTests, Nodes):
    pass


class TestVgpuWithShares(test_reshape.VGPUReshapeTests, Shares):
    pass

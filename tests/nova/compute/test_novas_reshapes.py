"""Reshapes of Nova's own that are due when our driver starts to report something, too.

Nova's functional tests run here word for word, with our driver as the compute driver. What they
restart is a host that begins to report VCPU_SHARES or its NUMA nodes in the same start.
"""

from typing import Any

import pytest
from nova.conf import CONF
from nova.tests.functional.libvirt import base, test_reshape

from tests.nova.computes import OURS, Computes
from tests.nova.numa.hosts import NODES

if not hasattr(test_reshape, "SevResphapeTests"):
    pytest.skip("Nova reshapes AMD SEV from release 32 on", allow_module_level=True)


class NovasReshapes(Computes):
    """Hosts with our driver, and with none of our options until their first restart."""

    kind = NODES
    reports_shares = False
    """Whether hosts report VCPU_SHARES from the restart on."""
    reports_nodes = False
    """Whether hosts report their NUMA nodes from the restart on."""
    microversion = base.ServersTestBase.microversion  # Nova's tests name no networks
    test_create_servers_with_amd_sev_mixed = None  # asks less of the driver than the other test

    def restart_compute_service(self, *args: Any, **kwargs: Any) -> Any:
        """Restart a host, as Nova's tests do when a reshape is due."""
        assert CONF.compute_driver == OURS
        if self.reports_shares:
            self.reporting(True)
        if self.reports_nodes:
            self.nodes(True)
        return super().restart_compute_service(*args, **kwargs)


class TestSevWithOptionsOff(test_reshape.SevResphapeTests, NovasReshapes):
    pass


class TestSevWithShares(test_reshape.SevResphapeTests, NovasReshapes):
    reports_shares = True


class TestSevWithNodes(test_reshape.SevResphapeTests, NovasReshapes):
    reports_nodes = True


class TestVgpuWithShares(test_reshape.VGPUReshapeTests, NovasReshapes):
    reports_shares = True

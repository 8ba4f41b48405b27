"""The first host, which starts to report shares while servers run on it, again and again."""

from tests.cloud.configuration import REPORT
from tests.cloud.faults import Fault
from tests.cloud.holdings import Held
from tests.cloud.rest import Cloud
from tests.cloud.tiers import SHARES

CONF = "/etc/nova/nova-compute.conf"
LOG = "/var/log/nova-compute.log"
DUMP = "/run/placement.sql"
TABLES = "resource_providers inventories resource_provider_traits consumers allocations"
"""What a start changes, but not the names of classes, which Placement keeps in memory."""

MOMENTS = ("", "Starting compute node", "lack CUSTOM_VCPU_SHARES")
"""The lines of the log after which a fault begins; or the fault begins before the start."""


class StartingHost:
    """Starts nova-compute with and without shares; Placement forgets each start."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._do(f"cp {CONF} {CONF}.off; (cat {CONF}.off; echo '{REPORT}') > {CONF}.on")
        self.stop()
        self._do(f"mariadb-dump --user=root placement {TABLES} > {DUMP}")

    def forget(self) -> None:
        """Have the data of Placement as before all starts, and no nova-compute."""
        self.stop()
        self._do(f"mariadb --user=root placement < {DUMP}")

    def stop(self) -> None:
        """Stop nova-compute."""
        self._do("supervisorctl stop nova-compute || true")

    def start(self, *, reports_shares: bool) -> None:
        """Start nova-compute."""
        self._do(f"cp {CONF}.{'on' if reports_shares else 'off'} {CONF}")
        self._do(f"echo $(($(wc -l < {LOG}) + 1)) > /run/line; supervisorctl start nova-compute")

    def start_with(self, fault: Fault, moment: str) -> bool:
        """Start nova-compute, have a fault begin at a moment; return whether the moment came."""
        if not moment:
            fault.begin(self.cloud)
            self.start(reports_shares=True)
            return True
        self.start(reports_shares=True)
        has_come = self.has_logged(moment)
        fault.begin(self.cloud)
        return has_come

    def has_logged(self, line: str, seconds: int = 60) -> bool:
        """Tell whether the log of this start gets a line within a time."""
        command = f"grep -q -m 1 '{line}' <(tail -n +$(</run/line) -F {LOG} 2>/dev/null)"
        return self.cloud.on("compute1", command, seconds=seconds)[0] == 0

    def end(self) -> str:
        """Return whether nova-compute goes on after its start, or its last words."""
        command = (
            f"tail -n +$(</run/line) {LOG} | grep -o 'nova-compute does not start.*' | tail -1"
        )
        return self.cloud.on("compute1", command)[1] or "goes on"

    def _do(self, command: str) -> None:
        status, output = self.cloud.on("compute1", command)
        assert status == 0, f"{command}\n{output}"


def shares_on(held: Held, host: str) -> list[int]:
    """Return the shares that each consumer of a host has."""
    return sorted(each.get(SHARES, 0) for (_, name), each in held.items() if name == host)

"""``cpu-tiers-status upgrade check``: what to decide before an upgrade.

As ``nova-status`` does it, with oslo.upgradecheck: exit status 0 nothing to do,
1 there is something to decide, 2 a check could not be made.
"""

import sys
from collections.abc import Callable, Sequence

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands
from oslo_upgradecheck.upgradecheck import main as run

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.placement.session import connect
from cpu_tiers.placement.survey import HostReport, survey

_MOST_NAMES = 50


class Checks(UpgradeCommands):
    """The checks, on the Placement of nova.conf."""

    display_title = "cpu-tiers upgrade check results"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Keep the configuration, which is read only afterwards."""
        super().__init__()
        self._conf = conf
        self._found: tuple[HostReport, ...] | CpuTiersError | None = None

    def _on_hosts(self, check: Callable[[Sequence[HostReport]], Result]) -> Result:
        if self._found is None:
            self._found = self._survey()
        if isinstance(self._found, CpuTiersError):
            return Result(Code.FAILURE, str(self._found))
        return check(self._found)

    def _survey(self) -> tuple[HostReport, ...] | CpuTiersError:
        try:
            with connect(self._conf) as client:
                return survey(client)
        except CpuTiersError as error:
            return error

    def _numa(self) -> Result:
        return self._on_hosts(check_numa)

    def _shares(self) -> Result:
        return self._on_hosts(check_shares)

    _upgrade_checks = (("NUMA reporting", _numa), ("VCPU_SHARES reporting", _shares))


def check_numa(hosts: Sequence[HostReport]) -> Result:
    """Warn of hosts for which nobody has decided whether they are NUMA-aware.

    Spec: numa-topology-with-rps, "Optionally configured NUMA resources".
    """
    undecided = [host.name for host in hosts if host.is_numa_aware is None]
    if not undecided:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"{_of_all(undecided, hosts)} not decided: set [compute]"
        " enable_numa_reporting_to_placement to true (servers with a NUMA topology) or false"
        f" (servers without) on {_names(undecided)}, before its default changes",
    )


def check_shares(hosts: Sequence[HostReport]) -> Result:
    """Warn where some hosts report shares and some do not.

    A scheduler that asks for shares finds none of the latter.
    """
    can = [host for host in hosts if host.has_vcpu]
    without = [host.name for host in can if not host.has_shares]
    if not without or len(without) == len(can):
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"{_of_all(without, can)} without shares: set [libvirt] report_vcpu_shares = true on"
        f" {_names(without)}, before you set [filter_scheduler] query_placement_for_vcpu_shares",
    )


def _of_all(names: Sequence[str], hosts: Sequence[HostReport]) -> str:
    return f"{len(names)} of {len(hosts)} hosts"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check`` and return its exit status."""
    conf = cfg.ConfigOpts()
    return run(conf, "nova", Checks(conf), list(sys.argv[1:] if argv is None else argv))

"""The ladder: the step on which a host and a cloud stand (docs/index.rst). Pure.

A remedy that does not work on a step is not printed on the step. So commands and checks ask this
module, and none of them decides by an option or a trait of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Step(IntEnum):
    """A step of the ladder, with its name in the output of commands."""

    LOOK = 0
    NOVAS_DRIVER = 1
    WEIGHER = 2
    DRIVER = 3
    NUMA = 4

    def __str__(self) -> str:
        """Return the number and the name, as in the output of commands."""
        return f"{self.value}, {_NAMES[self]}"

    @property
    def has_driver(self) -> bool:
        """Tell whether a host on this step runs the driver of cpu-tiers.

        Only this driver gives a guest the weight of ``quota:cpu_shares_multiplier``, and only this
        driver reads ``[libvirt]`` ``report_vcpu_shares`` and ``least_weight_without_tier``.
        """
        return self >= Step.DRIVER

    @property
    def requests_shares(self) -> bool:
        """Tell whether nova-scheduler of a cloud on this step requests the shares of a multiplier.

        On the steps before, only ``resources:CUSTOM_VCPU_SHARES`` of a flavor requests shares.
        """
        return self >= Step.DRIVER


_NAMES = {
    Step.LOOK: "no tiers",
    Step.NOVAS_DRIVER: "tiers with Nova's own driver",
    Step.WEIGHER: "the weigher",
    Step.DRIVER: "the driver and requests of shares",
    Step.NUMA: "NUMA nodes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFacts:
    """How nova-scheduler serves tiers, by its nova.conf.

    :param loads_weigher: ``weight_classes`` names the weigher of cpu-tiers. Without the weigher,
        no option of cpu-tiers has an effect.
    :param requests_shares: an option is on that concerns shares or the driver of the hosts.
    :param requests_nodes: ``query_placement_for_numa`` is on.
    """

    loads_weigher: bool = False
    requests_shares: bool = False
    requests_nodes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """What Placement shows of all hosts of a cloud together, where no nova.conf tells the step.

    :param has_shares: the class VCPU_SHARES exists.
    :param has_trait: a host has the trait of the driver of cpu-tiers. The trait stays in Placement
        after a host has gone back to Nova's own driver.
    :param has_nodes: a host has NUMA nodes.
    """

    has_shares: bool
    has_trait: bool
    has_nodes: bool

    @property
    def highest_step(self) -> Step:
        """The highest step on which a host can stand; lower if a trait has only stayed."""
        return step_of_host(
            reports_shares=self.has_shares,
            has_driver=self.has_shares and self.has_trait,
            reports_nodes=self.has_nodes,
        )


def step_of_host(
    *, reports_shares: bool, has_driver: bool | None, reports_nodes: bool = False
) -> Step:
    """Return the step of a host: the reporter of its shares, and the driver of its guests.

    :param reports_shares: the host has an inventory of VCPU_SHARES.
    :param has_driver: whether nova-compute runs the driver of cpu-tiers; ``None`` if only
        Placement was asked. The traits of the driver do not tell: the traits stay in Placement
        after a host has gone back to Nova's own driver.
    :param reports_nodes: the host has NUMA nodes in Placement, which only the driver of cpu-tiers
        reports, and which stop a start of Nova's own driver while servers use the nodes.
    """
    if reports_nodes and has_driver is not False:
        return Step.NUMA
    if has_driver:
        return Step.DRIVER
    return Step.NOVAS_DRIVER if reports_shares else Step.LOOK


def step_of_cloud(hosts: Iterable[Step], scheduler: SchedulerFacts) -> Step:
    """Return the step of a cloud, from the steps of its hosts and from its nova-scheduler.

    A cloud is on a step when nova-scheduler is: a multiplier requests nothing before, whatever
    driver the hosts have. A cloud whose hosts have NUMA nodes is on the last step nevertheless.
    """
    highest = max(hosts, default=Step.LOOK)
    if highest is Step.NUMA or (scheduler.loads_weigher and scheduler.requests_nodes):
        return Step.NUMA
    if not scheduler.loads_weigher:
        return min(highest, Step.NOVAS_DRIVER)
    return Step.DRIVER if scheduler.requests_shares else Step.WEIGHER

"""What nova-scheduler knows of the hosts with candidates beside Placement's answer."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.nova_weighers import CLASSES, NOT_IN_PLACEMENT, HostStates
from cpu_tiers.tools.compute_api import ComputeApiUnavailable
from cpu_tiers.tools.compute_services import read_reported_amounts
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.explanation import Explanation
from cpu_tiers.weights.forest import Summary

_OF_NOVA = (
    "an allocation ratio of CPUs that only Placement has, and the CPUs of [DEFAULT]"
    " reserved_host_cpus: Nova's CPU weigher counts the ratio of nova-compute, also for them"
)
_OF_SNAPSHOT = (
    "what nova-compute reports beside Placement: the free space of the disk, the versions of"
    " hypervisors and the numbers of servers"
)

Values = Mapping[str, Mapping[str, float]]


class WeighedHosts(NamedTuple):
    """The hosts with candidates, as Nova's weighers know them.

    :param values: what the weighers compare, by weigher and root provider.
    :param aggregates: the multipliers and shapes of the hosts, by the name of the host.
    :param unknown: what the values leave out.
    """

    values: Values
    aggregates: HostAggregates = HostAggregates()
    unknown: tuple[str, ...] = ()

    def by_name(self, names: Mapping[str, str]) -> dict[str, Mapping[str, float]]:
        """Return the values by weigher and the name of the host, from the names by root."""
        return {
            weigher: {name: values[root] for root, name in names.items()}
            for weigher, values in self.values.items()
        }

    @property
    def left_out(self) -> list[str]:
        """Return what the first line of an answer must say about the order of the hosts."""
        return ["multipliers of host aggregates"] if self.aggregates.unknown else []


def weighed_hosts(
    cloud: CloudSource, client: PlacementClient, explanation: Explanation
) -> WeighedHosts:
    """Return what Nova's weighers know of the hosts of an explanation with candidates.

    The command asks Nova if several hosts have candidates: nova-scheduler weighs no single host.
    """
    roots, summaries = explanation.candidates, explanation.answer.provider_summaries
    if len(roots) < 2:
        return WeighedHosts(_free(summaries, roots))
    if (known := client.known_cloud) is not None:
        values = HostStates(host for host in known.hosts if host.root in roots).values
        of_classes = {weigher: values[weigher] for weigher in CLASSES}
        return WeighedHosts(of_classes, cloud.aggregates, (_OF_SNAPSHOT,))
    reported, reason = _reported(cloud, roots)
    if reason:
        unknown = f"the free memory, CPUs and disk that nova-computes report: {reason}"
        return WeighedHosts(_free(summaries, roots), cloud.aggregates, (unknown,))
    weighers = (*CLASSES, *NOT_IN_PLACEMENT)
    values = {weigher: {root: reported[root][weigher] for root in roots} for weigher in weighers}
    cpus = _sums(summaries, roots, (VCPU,), lambda _, amounts: amounts["capacity"])
    values["cpu"] = {root: cpus[root] - used for root, used in values["cpu"].items()}
    return WeighedHosts(values, cloud.aggregates, (_OF_NOVA,))


def _reported(
    cloud: CloudSource, roots: Collection[str]
) -> tuple[Mapping[str, Mapping[str, float]], str]:
    """Return what nova-computes have reported, or else why it is not known."""
    if reason := cloud.service_states.unknown:
        return {}, reason
    try:
        reported = read_reported_amounts(cloud.services())
    except ComputeApiUnavailable as error:
        return {}, str(error)
    others = [root for root in roots if root not in reported]
    return reported, f"Nova names no compute node {others[0]}" if others else ""


def _free(summaries: Mapping[str, Summary], roots: Collection[str]) -> Values:
    """Return the free amounts in Placement, which differ by allocation ratios."""

    def free(name: str, amounts: Mapping[str, int]) -> int:
        return (0 if name == PCPU else amounts["capacity"]) - amounts["used"]

    return {weigher: _sums(summaries, roots, names, free) for weigher, names in CLASSES.items()}


def _sums(
    summaries: Mapping[str, Summary],
    roots: Collection[str],
    classes: Iterable[str],
    amount_of: Callable[[str, Mapping[str, int]], float],
) -> dict[str, float]:
    """Return the sum of an amount of classes over the providers of each host."""
    sums = dict.fromkeys(roots, 0.0)
    for summary in summaries.values():
        if (root := summary["root_provider_uuid"]) in sums:
            resources = summary["resources"]
            parts = (amount_of(name, resources[name]) for name in classes if name in resources)
            sums[root] += sum(parts)
    return sums

"""Kinds of hosts and schedulers that a test can have, and what Nova's fake libvirt lacks."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import fixtures
from lxml import etree
from nova.api.openstack.compute.routes import APIRouterV21
from nova.tests.fixtures import libvirt as fakelibvirt

WEIGHER = "cpu_tiers.ResourceProviderWeigher"
OURS = "cpu_tiers.LibvirtDriver"
FAKE = "nova.tests.fixtures.libvirt"


def default_hardware() -> None:
    """Return nothing: Nova's fixture then makes a host of 16 CPUs and 16 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How the services of a test are configured, and which hardware its hosts have.

    :param driver: ``[DEFAULT] compute_driver`` of the hosts. With Nova's own driver the
        arguments of ``start_host`` are resource classes and totals of a provider.yaml.
    :param weighers: the weighers that nova-scheduler loads.
    :param scheduler_options: options of ``[filter_scheduler]``.
    :param filters: filters beside those that Nova enables by default.
    :param options: options by group, ``DEFAULT`` included, set before the first host starts.
    :param hardware: makes the ``HostInfo`` of a host from the arguments of ``start_host``.
    :param copies_disks: whether Nova copies the disks of a server that moves; the fake
        libvirt has none.
    """

    driver: str = OURS
    weighers: tuple[str, ...] = ("nova.scheduler.weights.all_weighers",)
    scheduler_options: Mapping[str, Any] = field(
        default_factory=lambda: {"query_placement_for_vcpu_shares": False}
    )
    filters: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hardware: Callable[..., Any] = default_hardware
    copies_disks: bool = True


REPORTS_SHARES = Kind()
"""Hosts report shares, and the scheduler does not request any."""

STARTS_TO_REPORT = Kind(
    options={
        "libvirt": {"report_vcpu_shares": False},
        "DEFAULT": {"initial_cpu_allocation_ratio": 1.0},
    }
)
"""Hosts do not report shares yet; ``report`` has them begin."""


def nodes_of_seven() -> Any:
    """Return a host of two NUMA nodes with seven CPUs each."""
    return fakelibvirt.HostInfo(cpu_nodes=2, cpu_sockets=1, cpu_cores=7, cpu_threads=1)


NODES_OF_SEVEN = Kind(
    weighers=(WEIGHER,),
    scheduler_options={"query_placement_for_vcpu_shares": True},
    filters=("NUMATopologyFilter",),
    options={"compute": {"cpu_shared_set": "0-1,7-8", "cpu_dedicated_set": "2-6,9-13"}},
    hardware=nodes_of_seven,
    copies_disks=False,
)
"""Hosts with shared and dedicated CPUs on two NUMA nodes."""


BEFORE_CPU_TIERS = replace(
    NODES_OF_SEVEN,
    scheduler_options={"query_placement_for_vcpu_shares": False},
    options={
        **NODES_OF_SEVEN.options,
        "libvirt": {"report_vcpu_shares": False},
        "DEFAULT": {"initial_cpu_allocation_ratio": 16.0},
    },
)
"""The same hosts, with 64 VCPU and 10 PCPU, while all options of cpu-tiers are off."""


class OneRouter(fixtures.Fixture):
    """Has nova-api make its routes and controllers once for ``/v2`` and ``/v2.1``.

    To make them takes a large part of a test's set-up. Both paths have the same
    routes: what differs is a filter in front of them.
    """

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        make = APIRouterV21.factory
        routers: list[Any] = []

        def factory(*args: Any, **kwargs: Any) -> Any:
            if not routers:
                routers.append(make(*args, **kwargs))
            return routers[0]

        self.useFixture(fixtures.MockPatchObject(APIRouterV21, "factory", factory))


class KeepsTuning(fixtures.Fixture):
    """Has Nova's fake libvirt keep how a guest is tuned, as a real libvirt does."""

    elements: tuple[str, ...] = ("cputune", "numatune", "memoryBacking")

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        parse, describe = fakelibvirt.Domain._parse_definition, fakelibvirt.Domain.XMLDesc

        def parse_and_keep(domain: Any, xml: str) -> Any:
            root = etree.fromstring(xml)
            return {**parse(domain, xml), **{name: root.find(name) for name in self.elements}}

        def describe_all(domain: Any, flags: int) -> str:
            root = etree.fromstring(describe(domain, flags))
            kept = [e for name in self.elements if (e := domain._def[name]) is not None]
            for element in kept:
                for part in root.findall(element.tag):  # the fake has a part of some elements
                    root.remove(part)
                root.append(copy.deepcopy(element))
            return etree.tostring(root, encoding="unicode")

        self.useFixture(fixtures.MonkeyPatch(f"{FAKE}.Domain._parse_definition", parse_and_keep))
        self.useFixture(fixtures.MonkeyPatch(f"{FAKE}.Domain.XMLDesc", describe_all))

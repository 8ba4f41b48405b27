"""Which functions of Nova each service wraps, by the options of its nova.conf."""

import functools
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest
from nova import service
from nova.objects import RequestSpec
from nova.scheduler.host_manager import HostManager, HostState
from nova.scheduler.manager import SchedulerManager
from nova.scheduler.weights import WeighedHost

from cpu_tiers import extensions
from cpu_tiers.conf import api as api_options
from cpu_tiers.conf import compute, filter_scheduler, libvirt, quota, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.api import features as api
from cpu_tiers.nova.compute.features import COMPUTE
from cpu_tiers.nova.features import Feature, Service
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
from cpu_tiers.nova.seams import Seam, SeamMismatch
from tests.nova.wrapping import all_seams, wrapped

SHARES = "filter_scheduler.query_placement_for_vcpu_shares"
QUERY = "filter_scheduler.query_placement_for_numa"
NODES = "compute.enable_numa_reporting_to_placement"
POLICIES = "compute.extend_cpu_policies"
GIVES_BACK = "filter_scheduler.give_back_oversold_claims"
LACKING = "filter_scheduler.name_lacking_constraints"
RECORD = "filter_scheduler.decision_record_file"
TRAITS = "filter_scheduler.require_host_traits"
REFUSE = "api.refuse_faulty_flavors"
QUOTA = "quota.count_vcpu_shares"
PORTS = "filter_scheduler.query_placement_for_port_traits"
TIER_CHANGE = "compute.live_tier_change"
LEAST = "libvirt.least_weight_without_tier"
MULTIPLIER = "filter_scheduler.resource_provider_weight_multiplier"
SAME_HOST = "filter_scheduler.resource_provider_same_host_weight_multiplier"
SAME_AGGREGATE = "filter_scheduler.resource_provider_same_aggregate_weight_multiplier"
SAME_PROJECT = "filter_scheduler.resource_provider_same_project_weight_multiplier"
EVERYTHING = (
    *(SHARES, QUERY, NODES, POLICIES, TRAITS, REFUSE, PORTS, GIVES_BACK, LACKING, RECORD),
    LEAST,
    QUOTA,
    TIER_CHANGE,
)

CPUS = {
    "nova.scheduler.utils.ResourceRequest._translate_pinning_policies",
    "nova.virt.hardware.get_emulator_thread_policy_constraint",
    "nova.virt.hardware.numa_get_constraints",
}
ADMISSION = {
    "nova.compute.api.API._validate_and_build_base_options",
    "nova.compute.api.API._validate_flavor_image_numa_pci",
    "nova.compute.api.API._validate_numa_rebuild",
}
TIERS = {
    "nova.compute.rpcapi.ComputeAPI.revert_resize",
    "nova.conductor.api.ComputeTaskAPI.resize_instance",
}
SCORES = {
    "nova.scheduler.host_manager.HostState.consume_from_request",
    "nova.scheduler.manager.SchedulerManager._get_all_host_states",
}
CLAIMS = {
    "nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates",
    "nova.scheduler.utils.ResourceRequest.from_request_spec",
}
PINS = {"nova.virt.hardware.numa_fit_instance_to_host"}
DRIVER = {
    "nova.compute.resource_tracker.ResourceTracker._update_to_placement",
    "nova.virt.libvirt.migration._update_quota_xml",
}


def start_scheduler() -> None:
    ResourceProviderWeigher()


@pytest.fixture(autouse=True)
def conf() -> Iterator[None]:
    """Register the options, and clear them after the test."""
    for module in (api_options, compute, filter_scheduler, libvirt, quota, weigher):
        options.register(module)
    yield
    for name in (*EVERYTHING, MULTIPLIER, SAME_HOST, SAME_AGGREGATE, SAME_PROJECT):
        group, option = name.split(".")
        CONF.clear_override(option, group)


def switch_on(*names: str) -> None:
    for name in names:
        group, option = name.split(".")
        values = {RECORD: "/nowhere/decisions", TIER_CHANGE: "refuse"}
        CONF.set_override(option, values.get(name, True), group)


@pytest.mark.parametrize(
    ("start", "switches", "functions"),
    [
        pytest.param(api.API.start, (), set(), id="nova-api"),
        pytest.param(
            api.API.start,
            (POLICIES,),
            CPUS | ADMISSION,
            id="nova-api, CPU policies",
        ),
        pytest.param(api.API.start, (REFUSE,), ADMISSION, id="nova-api, faulty flavors"),
        pytest.param(api.API.start, (QUOTA,), set(), id="nova-api, no unified limits"),
        pytest.param(api.API.start, (TIER_CHANGE,), TIERS, id="nova-api, tiers"),
        pytest.param(COMPUTE.start, (TIER_CHANGE,), DRIVER, id="nova-compute, tiers"),
        pytest.param(start_scheduler, (), SCORES, id="nova-scheduler: only what scores need"),
        pytest.param(start_scheduler, (NODES,), SCORES, id="nova-scheduler, for nova-compute"),
        pytest.param(start_scheduler, (SHARES,), SCORES | CLAIMS, id="nova-scheduler, shares"),
        pytest.param(start_scheduler, (TRAITS,), SCORES | CLAIMS, id="nova-scheduler, traits"),
        pytest.param(start_scheduler, (PORTS,), SCORES | CLAIMS, id="nova-scheduler, ports"),
        pytest.param(
            start_scheduler,
            (GIVES_BACK,),
            SCORES | {"nova.scheduler.client.report.SchedulerReportClient.claim_resources"},
            id="nova-scheduler, excess claims",
        ),
        pytest.param(
            start_scheduler,
            (LACKING,),
            SCORES
            | {"nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates"},
            id="nova-scheduler, lacking constraints",
        ),
        pytest.param(
            start_scheduler,
            (RECORD,),
            SCORES
            | {
                "nova.filters.BaseFilterHandler.get_filtered_objects",
                "nova.scheduler.manager.SchedulerManager.select_destinations",
                "nova.scheduler.utils.claim_resources",
                "nova.scheduler.utils.resources_from_request_spec",
                "nova.weights.BaseWeightHandler.get_weighed_objects",
            },
            id="nova-scheduler, decision record",
        ),
        pytest.param(
            start_scheduler,
            (QUERY,),
            SCORES
            | PINS
            | {
                "nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates",
                "nova.scheduler.manager.SchedulerManager._get_alternate_hosts",
                "nova.scheduler.manager.SchedulerManager._get_sorted_hosts",
                "nova.scheduler.utils.claim_resources",
                "nova.scheduler.utils.resources_from_request_spec",
            },
            id="nova-scheduler, NUMA query",
        ),
        pytest.param(start_scheduler, (POLICIES,), SCORES | CPUS, id="nova-scheduler, policies"),
        pytest.param(COMPUTE.start, (), DRIVER, id="nova-compute: the weight of guests"),
        pytest.param(COMPUTE.start, (SHARES, QUERY), DRIVER, id="nova-compute, for a scheduler"),
        pytest.param(COMPUTE.start, (LEAST,), DRIVER, id="nova-compute, the least weight"),
        pytest.param(
            COMPUTE.start,
            (NODES,),
            DRIVER
            | PINS
            | {
                "nova.compute.resource_tracker.ResourceTracker._move_claim",
                "nova.compute.resource_tracker.ResourceTracker.instance_claim",
            },
            id="nova-compute, NUMA reporting",
        ),
        pytest.param(COMPUTE.start, (POLICIES,), DRIVER | CPUS, id="nova-compute, policies"),
        pytest.param(
            COMPUTE.start,
            (PORTS,),
            DRIVER
            | {
                "nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates",
                "nova.scheduler.client.report.SchedulerReportClient"
                ".remove_resources_from_instance_allocation",
                "nova.scheduler.utils.ResourceRequest.from_request_groups",
                "nova.scheduler.utils.fill_provider_mapping_based_on_allocation",
            },
            id="nova-compute, ports",
        ),
    ],
)
def test_a_service_wraps_the_functions_that_the_options_need(
    start: Callable[[], None], switches: tuple[str, ...], functions: set[str]
) -> None:
    switch_on(*switches)
    start()
    assert set(wrapped()) == functions


def test_nova_api_counts_shares_only_for_unified_limits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    switch_on(QUOTA)
    api.API.start()
    (message,) = caplog.messages
    assert message == (
        "[quota] count_vcpu_shares has no effect: [quota] driver is nova.quota.DbQuotaDriver; set"
        " driver = nova.quota.UnifiedLimitsDriver, or remove count_vcpu_shares, and restart"
        " nova-api"
    )
    CONF.set_override("driver", quota.UNIFIED_LIMITS, "quota")
    try:
        api.API.start()
    finally:
        CONF.clear_override("driver", "quota")
    assert wrapped() == [
        "nova.compute.api.API._check_quota_unshelve_offloaded",
        "nova.scheduler.utils.ResourceRequest.from_request_spec",
    ]


def test_a_feature_that_is_off_stops_no_service(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The weigher is loaded, and counts nothing: its multiplier is 0."""
    monkeypatch.delattr(HostState, "consume_from_request")
    weigher = ResourceProviderWeigher()
    (message,) = caplog.messages
    assert "HostState.consume_from_request was expected with the parameters" in message
    assert message.endswith(
        "nova-scheduler starts without the feature weigher, which no option of nova.conf needs"
    )
    host = HostState("one", "one", None)
    host.uuid, host.aggregates = "1", []
    assert weigher.weigh_objects([WeighedHost(host, 0.0)], RequestSpec()) == [0.0]
    monkeypatch.undo()
    assert wrapped() == []


def test_only_nearness_to_the_aggregates_of_a_host_needs_the_aggregates_of_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(HostManager, "_get_aggregates_info")
    switch_on(MULTIPLIER, SAME_PROJECT, SAME_HOST)
    start_scheduler()
    assert set(wrapped()) == SCORES
    switch_on(SAME_AGGREGATE)
    with pytest.raises(SeamMismatch, match=r"_get_aggregates_info does not.*feature nearness"):
        start_scheduler()
    monkeypatch.undo()
    start_scheduler()


def test_a_refusal_names_the_option_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(HostState, "consume_from_request")
    monkeypatch.delattr(SchedulerManager, "_get_alternate_hosts")
    switch_on(SHARES, QUERY, MULTIPLIER)
    with pytest.raises(SeamMismatch) as caught:
        ResourceProviderWeigher()
    of_weigher, of_query = str(caught.value).splitlines()
    assert "HostState.consume_from_request was expected" in of_weigher
    assert of_weigher.endswith(
        "The feature weigher needs it ([filter_scheduler] weight_classes names the weigher)."
        " Without the feature, nova-scheduler has the features vCPU shares, lacking constraints"
    )
    assert "The feature NUMA query needs it ([filter_scheduler] query_placement_for_numa)." in (
        of_query
    )
    monkeypatch.undo()
    assert wrapped() == []


def test_a_wrapper_of_another_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Profiled:
        """A callable without a name."""

        def __call__(self, *args: Any, **kwargs: Any) -> None:
            """Do nothing."""

    switch_on(MULTIPLIER)
    monkeypatch.setattr(HostState, "consume_from_request", Profiled())
    with pytest.raises(SeamMismatch, match=rf"those of {__name__}.Profiled, which wraps"):
        ResourceProviderWeigher()


def test_a_translator_of_another_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(namespace: str) -> Mapping[str, Any]:
        return {"licences": lambda server: []}

    monkeypatch.setattr(extensions, "load", load)
    start_scheduler()
    assert set(wrapped()) == SCORES | CLAIMS


def test_nova_api_before_the_configuration_is_read() -> None:
    switch_on(POLICIES)
    api.start()
    assert wrapped() == ["nova.service.setup_profiler"]
    service.setup_profiler("nova-api", "host")
    assert set(wrapped()) == CPUS | ADMISSION


def test_every_seam_belongs_to_a_feature() -> None:
    services = (api.API, SCHEDULER, COMPUTE)
    of_features = {
        seam for part in services for feature in part.features for seam in feature.seams
    }
    assert all_seams() - of_features == {api.CONFIGURED}


def test_a_start_is_a_single_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake = ModuleType("fake_nova")
    fake.plain, fake.kept = (lambda text: text), (lambda text: text)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_nova", fake)

    def wrap_again(original: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(original)(lambda text: original(text))

    for name in ("kept", "plain"):
        seam = Seam(module="fake_nova", path=name, parameters="text", wrap=wrap_again)
        setattr(fake, name.upper(), seam)
    features = [
        Feature(name="more", wrappers=("fake_nova:KEPT", "fake_nova:PLAIN")),
        Feature(name="less", wrappers=("fake_nova:PLAIN",)),
        # A feature that is off is not imported.
        Feature(name="off", wrappers=("no_module:SEAM",), condition=lambda _: False),
    ]
    part = Service(name="nova-test", features=tuple(features))
    with caplog.at_level(logging.INFO, "cpu_tiers"):
        part.start()
        part.start()
    assert caplog.messages == [
        "cpu-tiers in nova-test has the features more, less and wraps fake_nova.kept,"
        f" fake_nova.plain of Nova {version('nova')}"
    ]

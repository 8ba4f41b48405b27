"""A function of Nova has one wrapper, which takes the steps of the features that are on."""

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import wrapt
from nova.scheduler import utils
from nova.scheduler.client.report import SchedulerReportClient
from nova.scheduler.host_manager import HostState
from nova.scheduler.manager import SchedulerManager
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.conf import compute, filter_scheduler, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.compute.features import COMPUTE
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
from cpu_tiers.nova.seams import steps_of
from tests.nova.seams_page import name_of
from tests.nova.wrapping import all_seams

PORTS, SHARES, QUERY = (
    f"query_placement_for_{what}" for what in ("port_traits", "vcpu_shares", "numa")
)
OPTIONS = {
    **dict.fromkeys((PORTS, SHARES, QUERY, "require_host_traits"), True),
    "decision_record_file": "/nowhere/decisions",
}


@pytest.fixture
def switch_on() -> Iterator[Callable[..., None]]:
    """Set options of ``[filter_scheduler]`` until the end of the test."""
    options.register(compute)
    options.register(filter_scheduler)
    options.register(weigher)
    set_now: list[str] = []

    def switch(*names: str) -> None:
        for name in names:
            CONF.set_override(name, OPTIONS[name], filter_scheduler.GROUP)
            set_now.append(name)

    yield switch
    for name in set_now:
        CONF.clear_override(name, filter_scheduler.GROUP)


def steps(function: Any) -> list[str]:
    """Return the modules of the steps of the only wrapper around a function of Nova."""
    inner: Any = getattr(function, "__wrapped__", None)  # Nova has wrappers of its own
    while hasattr(inner, "__wrapped__"):
        assert "cpu_tiers" not in inner.__code__.co_filename
        inner = inner.__wrapped__
    return [name_of(seam).partition(".")[0] for seam in steps_of(function)]


def test_the_order_with_all_options(switch_on: Callable[..., None]) -> None:
    switch_on(*OPTIONS)
    ResourceProviderWeigher()
    assert {
        "candidates": steps(SchedulerReportClient.get_allocation_candidates),
        "claim": steps(utils.claim_resources),
        "consume": steps(HostState.consume_from_request),
        "request": steps(ResourceRequest.from_request_spec.__func__),
        "scheduler_request": steps(utils.resources_from_request_spec),
        "sorted_hosts": steps(SchedulerManager._get_sorted_hosts),
    } == {
        "candidates": ["lacking_constraints", "joined_answers", "custom_names", "port_queries"],
        "claim": ["next_candidate", "decisions"],
        "consume": ["candidate_order", "numa_fit", "scores"],
        "request": ["port_traits", "host_traits", "resource_request"],
        "scheduler_request": ["decisions", "numa_query"],
        "sorted_hosts": ["next_candidate", "candidate_order"],
    }


def test_a_wrapper_takes_no_step_of_an_option_that_is_off(
    switch_on: Callable[..., None],
) -> None:
    switch_on(SHARES)
    ResourceProviderWeigher()
    assert steps(SchedulerReportClient.get_allocation_candidates) == [
        "lacking_constraints",
        "custom_names",
    ]
    assert steps(ResourceRequest.from_request_spec.__func__) == ["resource_request"]
    assert steps(HostState.consume_from_request) == ["scores"]
    assert steps(SchedulerManager._get_sorted_hosts) == []


def test_two_services_in_a_single_process_share_a_wrapper(switch_on: Callable[..., None]) -> None:
    switch_on(PORTS)
    COMPUTE.start()
    wrapper = SchedulerReportClient.get_allocation_candidates
    assert steps(wrapper) == ["custom_names", "port_queries"]
    switch_on(SHARES)
    ResourceProviderWeigher()
    assert SchedulerReportClient.get_allocation_candidates is wrapper
    assert steps(wrapper) == ["lacking_constraints", "custom_names", "port_queries"]


def test_another_tool_may_wrap_the_function_between_two_starts(
    switch_on: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_on(PORTS)
    COMPUTE.start()
    seen: list[str] = []

    def see(function: Callable[..., Any], _self: Any, args: Any, kwargs: Any) -> Any:
        seen.append("the tool")
        return function(*args, **kwargs)

    inner = vars(SchedulerReportClient)["get_allocation_candidates"]
    monkeypatch.setattr(
        SchedulerReportClient, "get_allocation_candidates", wrapt.FunctionWrapper(inner, see)
    )
    switch_on(SHARES)
    ResourceProviderWeigher()
    assert [seam.path for seam in steps_of(inner)] == [
        "SchedulerReportClient.get_allocation_candidates"
    ] * len(["lacking_constraints", "custom_names", "port_queries"])
    client = SchedulerReportClient.__new__(SchedulerReportClient)
    monkeypatch.setattr(client, "get", lambda *_, **__: seen.append("Placement"), raising=False)
    request = SimpleNamespace(
        to_querystring=lambda: "resources=VCPU:1", _rg_by_id={}, cpu_pinning_requested=False
    )
    with pytest.raises(AttributeError):  # Nova reads the status of the answer
        client.get_allocation_candidates(SimpleNamespace(global_id="req-1"), request)
    assert seen == ["the tool", "Placement"]


def test_no_two_seams_of_a_function_have_an_equal_place() -> None:
    counted = Counter((str(seam), seam.place) for seam in all_seams() if seam.wrap)
    assert set(counted.values()) == {1}

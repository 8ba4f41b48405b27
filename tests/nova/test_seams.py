"""Wrapping functions: verified first, once, and all or none."""

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest
import wrapt

from cpu_tiers.conf import compute, filter_scheduler, quota, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.api import features
from cpu_tiers.nova.compute import driver
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
from cpu_tiers.nova.seams import (
    Seam,
    SeamMismatch,
    install,
    is_installed,
    remove,
    verify,
)
from tests.nova.computes import END_PROCESS, ProcessEnded, process_ended
from tests.nova.wrapping import all_seams, wrapped


class Service:
    def name(self, suffix: str) -> str:
        return f"service{suffix}"

    @classmethod
    def made(cls, number: int) -> str:
        return f"{cls.__name__} {number}"

    @staticmethod
    def plain(text: str) -> str:
        return text


def double(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(*args: Any) -> Any:
        return original(*args) * 2

    return wrapper


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a service, with a class and a function."""
    fake = ModuleType("fake_nova")
    fake.Service = type("Service", (), dict(vars(Service)))  # type: ignore[attr-defined]
    fake.plain = lambda text: text  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_nova", fake)
    return fake


def seam(path: str, parameters: str) -> Seam:
    return Seam(module="fake_nova", path=path, parameters=parameters, wrap=double)


NAME = seam("Service.name", "self, suffix")
MADE = seam("Service.made", "cls, number")
PLAIN = seam("plain", "text")
STATIC = seam("Service.plain", "text")


def test_methods_of_all_kinds_and_functions(module: ModuleType) -> None:
    install([NAME, MADE, PLAIN, STATIC])
    assert module.Service().name("!") == "service!service!"
    assert module.Service.made(1) == "Service 1Service 1"
    assert module.plain("a") == module.Service.plain("a") == module.Service().plain("a") == "aa"


def test_a_wrapped_class_method_still_knows_the_class(module: ModuleType) -> None:
    install([MADE])
    special: Any = type("Special", (module.Service,), {})
    assert special.made(2) == "Special 2Special 2"


def test_again_changes_nothing(module: ModuleType) -> None:
    install([NAME])
    install([NAME, PLAIN])
    install([NAME, PLAIN])
    assert module.Service().name("") == "service" * 2
    assert module.plain("a") == "aa"


def test_several_seams_around_a_single_function(module: ModuleType) -> None:
    def shout(original: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(original)(lambda text: original(text) + "!")

    loud = Seam(module="fake_nova", path="plain", parameters="text", wrap=shout, place=-1)
    install([PLAIN])
    wrapper = module.plain
    install([loud, PLAIN])
    assert module.plain is wrapper
    assert module.plain("a") == "aa!"


def test_many_threads_wrap_once(module: ModuleType) -> None:
    ready = threading.Barrier(8)

    def start() -> None:
        ready.wait()
        install([NAME])

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert module.Service().name("") == "service" * 2


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param("text", id="the parameters of this release"),
        pytest.param("text, quiet", id="the parameters of the releases before"),
    ],
)
def test_a_function_with_different_parameters_in_different_releases(
    module: ModuleType, parameters: str
) -> None:
    others = tuple(names for names in ("text, quiet", "text") if names != parameters)
    install(
        [
            Seam(
                module="fake_nova",
                path="plain",
                parameters=parameters,
                wrap=double,
                other_parameters=others,
            )
        ]
    )
    assert module.plain("a") == "aa"


def test_none_of_the_parameters_of_a_seam_fit(module: ModuleType) -> None:
    of_two_releases = Seam(
        module="fake_nova",
        path="plain",
        parameters="text, quiet",
        wrap=double,
        other_parameters=("words",),
    )
    with pytest.raises(SeamMismatch, match="parameters text, quiet or words, but its parameters"):
        install([of_two_releases])
    assert module.plain("a") == "a"


@pytest.mark.parametrize(
    ("function", "parameters", "wrong"),
    [
        pytest.param(
            lambda text, quiet=False: text,
            "text, quiet=False",
            "text, quiet",
            id="a default",
        ),
        pytest.param(
            lambda text, quiet=True: text,
            "text, quiet=True",
            "text, quiet=False",
            id="a default that was turned around",
        ),
        pytest.param(
            lambda text, *, quiet: text,
            "text, *, quiet",
            "text, quiet",
            id="a parameter that is given by name only",
        ),
        pytest.param(
            lambda text, /, quiet: text,
            "text, /, quiet",
            "text, quiet",
            id="a parameter that is given by position only",
        ),
        pytest.param(lambda *text: text, "*text", "text", id="any number of parameters"),
    ],
)
def test_defaults_and_kinds_of_parameters_count(
    module: ModuleType,
    function: Callable[..., Any],
    parameters: str,
    wrong: str,
) -> None:
    module.plain = function  # type: ignore[attr-defined]
    with pytest.raises(SeamMismatch, match=f"its parameters are {re.escape(parameters)}"):
        install([seam("plain", wrong)])
    assert module.plain is function
    install([seam("plain", parameters)])
    assert module.plain is not function


def test_annotations_do_not_count(module: ModuleType) -> None:
    def plain(text: str, quiet: "bool" = False) -> str:
        return text

    module.plain = plain  # type: ignore[attr-defined]
    install([seam("plain", "text, quiet=False")])
    assert module.plain("a") == "aa"


def test_an_outer_wrapper_of_another_does_not_hide_ours(module: ModuleType) -> None:
    install([PLAIN])
    module.plain = double(module.plain)  # type: ignore[attr-defined]
    install([PLAIN])
    assert module.plain("a") == "aaaa"


def test_a_wrapper_of_wrapt_still_knows_the_instance(module: ModuleType) -> None:
    """The vendor's wrapper is called once, with what it gets without cpu-tiers."""
    seen: list[tuple[Any, tuple[Any, ...]]] = []

    def see(function: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        seen.append((instance, args))
        return function(*args, **kwargs)

    service = module.Service()
    special: Any = type("Special", (module.Service,), {})
    calls: dict[str, tuple[Callable[[], Any], Any, str]] = {
        "Service.name": (lambda: service.name("!"), service, "service!"),
        "Service.made": (lambda: special.made("!"), special, "Special !"),
        "Service.plain": (lambda: service.plain("!"), None, "!"),
        "plain": (lambda: module.plain("!"), None, "!"),
    }
    for path in calls:
        wrapt.wrap_function_wrapper(module, path, see)
    for times in (1, 2):
        for call, instance, answer in calls.values():
            assert call() == answer * times
            assert seen.pop() == (instance, ("!",))
        assert seen == []
        install([NAME, MADE, PLAIN, STATIC])
    remove([NAME, MADE, PLAIN, STATIC])
    assert service.name("!") == "service!"
    assert seen == [(service, ("!",))]


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        pytest.param(seam("plain", "text, more"), "its parameters are text", id="fewer"),
        pytest.param(seam("Service.name", "self"), "its parameters are self, suffix", id="more"),
        pytest.param(seam("Service.name", "self, word"), "self, suffix", id="another name"),
        pytest.param(seam("Service.gone", "self"), "it does not exist", id="no such method"),
        pytest.param(seam("Gone.name", "self"), "it does not exist", id="no such class"),
        pytest.param(
            Seam(module="fake_nova.gone", path="plain", parameters="text", wrap=double),
            "it does not exist",
            id="no such module",
        ),
    ],
)
def test_a_mismatch_is_refused_and_nothing_is_wrapped(
    module: ModuleType, wrong: Seam, found: str
) -> None:
    with pytest.raises(SeamMismatch) as caught:
        install([PLAIN, wrong])
    assert f"cpu-tiers does not fit Nova {version('nova')}: {wrong}" in str(caught.value)
    assert found in str(caught.value)
    assert module.plain("a") == "a"


def test_a_function_that_is_only_verified_is_left_alone(module: ModuleType) -> None:
    plain = module.plain
    assert install([Seam(module="fake_nova", path="plain", parameters="text")]) == ()
    assert module.plain is plain
    assert vars(plain) == {}


def test_a_removed_seam_leaves_the_remaining_seams(module: ModuleType) -> None:
    def shout(original: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(original)(lambda text: original(text) + "!")

    plain = module.plain
    loud = Seam(module="fake_nova", path="plain", parameters="text", wrap=shout, place=-1)
    install([loud, PLAIN])
    assert module.plain("a") == "aa!"
    remove([PLAIN])
    assert (is_installed(PLAIN), is_installed(loud)) == (False, True)
    assert module.plain("a") == "a!"
    remove([PLAIN, loud])
    assert module.plain is plain


def test_a_removed_seam_leaves_novas_own_attribute(module: ModuleType) -> None:
    before = {name: vars(module.Service)[name] for name in ("made", "name", "plain")}
    install([NAME, MADE, STATIC])
    remove([NAME, MADE, STATIC])
    assert {name: vars(module.Service)[name] for name in before} == before


def test_a_seam_under_the_wrapper_of_another_tool_is_removed(module: ModuleType) -> None:
    """The wrapper of the tool stays, and so does ours beneath, which takes no step any more."""
    install([PLAIN])
    module.plain = double(module.plain)  # type: ignore[attr-defined]
    remove([PLAIN])
    assert not is_installed(PLAIN)
    assert module.plain("a") == "aa"
    install([PLAIN])
    assert module.plain("a") == "aaaa"


CPUS = (
    "nova.scheduler.utils.ResourceRequest._translate_pinning_policies",
    "nova.virt.hardware.get_emulator_thread_policy_constraint",
    "nova.virt.hardware.numa_get_constraints",
)
PINS = (
    "nova.virt.hardware._numa_cells_support_network_metadata",
    "nova.virt.hardware.numa_fit_instance_to_host",
)
TIER_CHANGES = (
    "nova.compute.manager.ComputeManager.inject_network_info",
    "nova.scheduler.client.report.SchedulerReportClient.get_allocs_for_consumer",
    "nova.scheduler.client.report.SchedulerReportClient.get_providers_in_tree",
    "nova.scheduler.client.report.SchedulerReportClient.post",
)

SERVICES: Mapping[str, tuple[Callable[[], object], Sequence[str]]] = {
    "nova-api": (
        features.API.start,
        (
            *CPUS,
            *TIER_CHANGES,
            "nova.compute.rpcapi.ComputeAPI.inject_network_info",
            "nova.compute.rpcapi.ComputeAPI.revert_resize",
            "nova.conductor.api.ComputeTaskAPI.resize_instance",
            "nova.scheduler.client.report.SchedulerReportClient.get_provider_traits",
            "nova.compute.api.API._check_quota_unshelve_offloaded",
            "nova.compute.api.API._validate_and_build_base_options",
            "nova.compute.api.API._validate_flavor_image_numa_pci",
            "nova.compute.api.API._validate_numa_rebuild",
            "nova.limit.placement._get_enforcer",
            "nova.scheduler.utils.ResourceRequest.from_request_spec",
        ),
    ),
    "nova-api before nova.conf is read": (features.start, ["nova.service.setup_profiler"]),
    "nova-scheduler": (
        ResourceProviderWeigher,
        (
            *CPUS,
            *PINS,
            "nova.filters.BaseFilterHandler.get_filtered_objects",
            "nova.pci.stats.PciDeviceStats.apply_requests",
            "nova.scheduler.client.report.SchedulerReportClient.claim_resources",
            "nova.scheduler.client.report.SchedulerReportClient.get",
            "nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates",
            "nova.scheduler.client.report.SchedulerReportClient.get_allocs_for_consumer",
            "nova.scheduler.client.report.SchedulerReportClient.post",
            "nova.scheduler.host_manager.HostState.consume_from_request",
            "nova.scheduler.manager.SchedulerManager._get_all_host_states",
            "nova.scheduler.manager.SchedulerManager._get_alternate_hosts",
            "nova.scheduler.manager.SchedulerManager._get_sorted_hosts",
            "nova.scheduler.manager.SchedulerManager.select_destinations",
            "nova.scheduler.utils.ResourceRequest.from_request_spec",
            "nova.scheduler.utils.claim_resources",
            "nova.scheduler.utils.resources_from_request_spec",
            "nova.weights.BaseWeightHandler.get_weighed_objects",
        ),
    ),
    "nova-compute": (
        lambda: driver.LibvirtDriver(None),
        (
            *CPUS,
            *PINS,
            *TIER_CHANGES,
            "nova.virt.driver.ComputeDriver.get_instance_driver_metadata",
            "nova.virt.libvirt.driver.LibvirtDriver._get_guest_config_meta",
            "nova.virt.libvirt.driver.LibvirtDriver.inject_network_info",
            "nova.virt.libvirt.guest.Guest.set_metadata",
            "nova.pci.stats.PciDeviceStats.apply_requests",
            "nova.compute.resource_tracker.ResourceTracker._move_claim",
            "nova.compute.resource_tracker.ResourceTracker._update_to_placement",
            "nova.compute.resource_tracker.ResourceTracker.instance_claim",
            "nova.scheduler.client.report.SchedulerReportClient."
            "remove_resources_from_instance_allocation",
            "nova.scheduler.client.report.SchedulerReportClient.get_providers_in_tree",
            "nova.scheduler.client.report.SchedulerReportClient.get",
            "nova.scheduler.client.report.SchedulerReportClient.get_allocation_candidates",
            "nova.scheduler.utils.ResourceRequest.from_request_groups",
            "nova.scheduler.utils.fill_provider_mapping_based_on_allocation",
            "nova.virt.libvirt.driver.LibvirtDriver.__init__",
            "nova.virt.libvirt.driver.LibvirtDriver._get_pcpu_available",
            "nova.virt.libvirt.driver.LibvirtDriver._get_vcpu_available",
            "nova.virt.libvirt.driver.LibvirtDriver._update_guest_cputune",
            "nova.virt.libvirt.driver.LibvirtDriver.update_provider_tree",
            "nova.virt.libvirt.migration._update_quota_xml",
        ),
    ),
}
"""What starts our part of each service, and the functions of Nova that it needs."""

RECORD = "decision_record_file"
SWITCHES = {
    RECORD: filter_scheduler.GROUP,
    "query_placement_for_vcpu_shares": filter_scheduler.GROUP,
    "query_placement_for_numa": filter_scheduler.GROUP,
    "query_placement_for_port_traits": filter_scheduler.GROUP,
    "give_back_oversold_claims": filter_scheduler.GROUP,
    "name_lacking_constraints": filter_scheduler.GROUP,
    "resource_provider_weight_multiplier": filter_scheduler.GROUP,
    "enable_numa_reporting_to_placement": compute.GROUP,
    "extend_cpu_policies": compute.GROUP,
    "count_vcpu_shares": quota.GROUP,
}


@pytest.fixture
def everything_on() -> Iterator[None]:
    """Switch all features on."""
    for module in (compute, filter_scheduler, quota, weigher):
        options.register(module)
    for name, group in SWITCHES.items():
        CONF.set_override(name, "/nowhere/decisions" if name == RECORD else True, group)
    CONF.set_override("driver", quota.UNIFIED_LIMITS, quota.GROUP)
    CONF.set_override("live_tier_change", "refuse", compute.GROUP)
    yield
    CONF.clear_override("live_tier_change", compute.GROUP)
    CONF.clear_override("driver", quota.GROUP)
    for name, group in SWITCHES.items():
        CONF.clear_override(name, group)


@pytest.mark.usefixtures("everything_on")
@pytest.mark.parametrize(
    ("service", "path"), [(name, path) for name, (_, paths) in SERVICES.items() for path in paths]
)
def test_a_service_does_not_start_over_another_function(
    monkeypatch: pytest.MonkeyPatch, service: str, path: str
) -> None:
    start, _ = SERVICES[service]
    monkeypatch.setattr(END_PROCESS, process_ended)
    with monkeypatch.context() as tomorrow:
        tomorrow.setattr(path, lambda another: None)
        with pytest.raises((SeamMismatch, ProcessEnded)) as caught:
            start()
    assert f"{path} was expected with the parameters" in str(caught.value)
    assert f"but its parameters are another, those of {__name__}." in str(caught.value)
    assert "which wraps the function of Nova without functools.wraps" in str(caught.value)
    assert wrapped() == []


def test_no_seam_is_missing_above() -> None:
    needed = {path for _, paths in SERVICES.values() for path in paths}
    assert {str(seam) for seam in all_seams()} == needed


def test_all_seams_fit_the_installed_nova() -> None:
    verify(tuple(all_seams()))

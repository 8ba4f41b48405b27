"""Scores of a request on its host states, and host states without scores."""

from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import pytest
from nova import objects

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.notes import host_of
from cpu_tiers.nova.scheduler import scores
from cpu_tiers.weights import make_forest
from tests.nova.scheduler.reporting_hosts import TWO, ReportingHosts
from tests.nova.scheduler.weighed_hosts import spec

SMALL = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"


class TestWeighed(ReportingHosts):
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **ReportingHosts.kind.scheduler_options,
        "resource_provider_weight_multiplier": 1.0,
        "resource_provider_scoring": "boring",
        "resource_provider_traits": ["HW_NUMA_ROOT", SMALL],
    }

    def test_traits_of_nodes_are_asked_for(self) -> None:
        """Free: 8 VCPU and 4096 MiB in all, of which a server takes 2 and 512."""
        one, two = self.start_host("one"), self.start_host("two")
        forests = []

        def kept(*args: Any, **values: Any) -> Any:
            forests.append(make_forest(*args, **values))
            return forests[-1]

        with mock.patch("cpu_tiers.nova.scheduler.scores.make_forest", kept):
            body = self._build_server(flavor_id=self.flavor("f", TWO, vcpus=2), networks="none")
            self.api.post_server({"server": {**body, "min_count": 2}})
            for server in self.api.get_servers():
                self._wait_for_state_change(server, "ACTIVE")
        (forest,) = forests
        explained = [forest.explain(host) for host in (one, two)]
        assert [host.trait_score for host in explained] == [1.0, 1.0]
        # one server each, then 6 VCPU and 3584 MiB are free: 1 - 2/6, 1 - 512/3584
        assert [host.resources["VCPU"] for host in explained] == [pytest.approx(2 / 3)] * 2
        assert [host.resources["MEMORY_MB"] for host in explained] == [pytest.approx(6 / 7)] * 2


def states(self: Any, context: Any, spec_obj: Any, summaries: Any) -> Any:
    """Stand in for Nova's ``_get_all_host_states``, which returns a generator expression."""
    self.calls += 1
    return (state for state in self.states)


def test_host_states_are_read_when_nova_asks_for_host_states() -> None:
    manager = SimpleNamespace(calls=0, states=[SimpleNamespace(uuid="one")])
    found = scores._attach_scores(states, manager, None, objects.RequestSpec(), {})
    assert manager.calls == 1  # and not when the first host state is needed
    assert isinstance(found, Iterator)
    (state,) = found
    assert host_of(state).scores is not None
    assert state.provider_summaries == {}


def test_a_rebuild_has_no_scores() -> None:
    manager = SimpleNamespace(calls=0, states=[SimpleNamespace(uuid="one")])
    (state,) = scores._attach_scores(states, manager, None, objects.RequestSpec(), None)
    assert (host_of(state).scores, state.provider_summaries) == (None, None)


CANDIDATE = {"allocations": {"one": {"resources": {"VCPU": 2}}}, "mappings": {"": ["one"]}}


@pytest.mark.parametrize("candidates", [[], [CANDIDATE]], ids=["no candidates", "a candidate"])
def test_a_host_state_of_somebody_else_is_consumed_as_by_nova(candidates: list[Any]) -> None:
    """HostManager subclasses and Nova's own tests make host states without our attributes."""
    state = SimpleNamespace(uuid="one", allocation_candidates=candidates)
    consume = partial(scores._claim, lambda self, spec_obj: "consumed")
    assert consume(state, objects.RequestSpec()) == "consumed"


def test_the_allocations_of_a_server_on_the_host_are_subtracted() -> None:
    summaries: dict[str, dict[str, Any]] = {
        uuid: {
            "root_provider_uuid": root,
            "parent_provider_uuid": None,
            "resources": {name: {"capacity": 8, "used": 0}},
            "traits": [],
        }
        for uuid, root, name in (("one", "one", "VCPU"), ("pool", "storage", "DISK_GB"))
    }
    options.register(filter_scheduler)
    options.register(weigher)
    request = scores.RequestScores(summaries, spec())
    # The mean of the resource score, 1 - 2 of 8 VCPU, and of the trait score, 0 without traits.
    assert request.of(["one"]) == [pytest.approx(0.75 / 2)]
    disk = {"pool": {"resources": {"DISK_GB": 1}}}  # of another tree
    request.claim("one", {"one": {"resources": {"VCPU": 2}}, **disk})
    assert request.of(["one"]) == [pytest.approx((1 - 2 / 6) / 2)]


def spread_over(*devices: int) -> tuple[dict[str, Any], list[Any]]:
    """Return the summaries and the candidates of a host with so many free units on its devices."""
    provider: dict[str, Any] = {
        "root_provider_uuid": "host",
        "parent_provider_uuid": None,
        "traits": [],
    }
    vcpus = {"VCPU": {"capacity": 8, "used": 0}}
    summaries: dict[str, Any] = {"host": {**provider, "resources": vcpus}}
    candidates = []
    for number, free in enumerate(devices):
        units = {"VGPU": {"capacity": 10, "used": 10 - free}}
        summaries[f"device {number}"] = {**provider, "resources": units}
        allocations = {
            "host": {"resources": {"VCPU": 1}},
            f"device {number}": {"resources": {"VGPU": 4}},
        }
        candidates.append({"allocations": allocations, "mappings": {}})
    return summaries, candidates


def fragmenting(summaries: Any) -> scores.RequestScores:
    """Return the scores of a request for 4 units of a device."""
    flavor = objects.Flavor(
        name="f",
        vcpus=1,
        memory_mb=512,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs={"resources:MEMORY_MB": "0", "resources1:VGPU": "4"},
    )
    level = objects.RequestLevelParams()
    spec = objects.RequestSpec(
        flavor=flavor, image=None, requested_resources=[], request_level_params=level, is_bfv=False
    )
    options.register(filter_scheduler)
    options.register(weigher)
    options.CONF.set_override("resource_provider_scoring", "fragmentation", "filter_scheduler")
    return scores.RequestScores(summaries, spec)


@pytest.fixture
def _literal_again() -> Iterator[None]:
    yield
    options.CONF.clear_override("resource_provider_scoring", "filter_scheduler")


@pytest.mark.usefixtures("_literal_again")
def test_the_best_candidate_of_a_host_is_claimed() -> None:
    """On device 0, the 3 units that are left would be of no use."""
    summaries, candidates = spread_over(7, 8)
    state = SimpleNamespace(uuid="host", allocation_candidates=list(candidates))
    (score,) = fragmenting(summaries).of_hosts([state])
    assert 0.0 < score < 1.0
    assert state.allocation_candidates == [candidates[1], candidates[0]]


@pytest.mark.usefixtures("_literal_again")
def test_a_candidate_that_cannot_be_read_changes_no_order() -> None:
    summaries, candidates = spread_over(9, 5)
    state = SimpleNamespace(uuid="host", allocation_candidates=[*candidates, {}])
    assert fragmenting(summaries).of_hosts([state]) == [0.0]
    assert state.allocation_candidates == [*candidates, {}]

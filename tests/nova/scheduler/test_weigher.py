"""The weigher in nova-scheduler: the hosts that get servers, and requests without scores."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from unittest import mock

import pytest
from nova.scheduler import utils
from nova.scheduler.weights import HostWeightHandler

from cpu_tiers.conf import weigher_types
from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.notes import HostNotes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.scores import RequestScores
from cpu_tiers.nova.scheduler.weigher import TRAIT_MULTIPLIER, ResourceProviderWeigher
from cpu_tiers.weights.soft_traits import SoftTraits
from tests.nova.computes import MULTIPLIER as MULTIPLIER_SPEC
from tests.nova.computes import SHARES
from tests.nova.faults import reading_is_an_error
from tests.nova.scheduler.weighed_hosts import (
    MULTIPLIER,
    Weighed,
    aggregate,
    host,
    spec,
    summary,
    weighed,
)

AVOIDED = "resource_provider_avoided_traits"
PREFERRED = "resource_provider_preferred_traits"


class TestScoring(Weighed):
    def setUp(self) -> None:
        super().setUp()
        self.start_host("gpu", **{SHARES: 800, "CUSTOM_GPU": 4})
        self.start_host("plain", **{SHARES: 800})

    def test_boring_spares_the_gpu(self) -> None:
        # plain (1 - 100/800) / 1 = 0.875, gpu (0.875 + 0) / 2 = 0.4375
        self.configure(resource_provider_scoring="boring")
        assert self.chosen(self.tier("gold", "100")) == "plain"

    def test_literal_fills_the_gpu_host(self) -> None:
        # plain 0.875, gpu (0.875 + 1) / 2 = 0.9375
        self.configure(resource_provider_scoring="literal")
        assert self.chosen(self.tier("gold", "100")) == "gpu"

    def test_a_negative_multiplier_prefers_the_worst(self) -> None:
        self.configure(resource_provider_scoring="boring", **{MULTIPLIER: -1.0})
        assert self.chosen(self.tier("gold", "100")) == "gpu"

    def test_a_server_that_requests_the_gpu_gets_the_gpu(self) -> None:
        self.configure(resource_provider_scoring="boring")
        assert self.chosen(self.flavor("gpu", {"resources:CUSTOM_GPU": "1"})) == "gpu"


class TestMultiplier(Weighed):
    def setUp(self) -> None:
        super().setUp()
        self.configure(resource_provider_scoring="boring")
        self.start_host("gpu", **{SHARES: 800, "CUSTOM_GPU": 4})
        self.start_host("plain", **{SHARES: 800})
        self.gold = self.tier("gold", "100")

    def aggregate(self, host: str, multiplier: str) -> None:
        aggregate = self.api.post_aggregate({"aggregate": {"name": host}})
        self.api.add_host_to_aggregate(aggregate["id"], host)
        metadata = {"set_metadata": {"metadata": {MULTIPLIER: multiplier}}}
        self.api.post_aggregate_action(aggregate["id"], metadata)

    def test_zero_reads_nothing(self) -> None:
        self.configure(**{MULTIPLIER: 0.0})
        with reading_is_an_error():
            self.boot_many(self.gold, 2)

    def test_zero_for_every_host_reads_nothing(self) -> None:
        for name in self.computes:
            self.aggregate(name, "0.0")
        with reading_is_an_error():
            self.boot(self.gold)

    def test_an_aggregate_overrides_the_option(self) -> None:
        # plain 0.0 x 0.875, gpu 1.0 x 0.4375
        self.aggregate("plain", "0.0")
        assert self.chosen(self.gold) == "gpu"

    def test_an_aggregate_overrides_zero(self) -> None:
        # plain 0.0 x 0.875, gpu 2.0 x 0.4375
        self.configure(**{MULTIPLIER: 0.0})
        self.aggregate("gpu", "2.0")
        assert self.chosen(self.gold) == "gpu"

    def test_an_aggregate_that_makes_no_sense_is_passed_over(self) -> None:
        self.aggregate("plain", "much")
        assert self.chosen(self.gold) == "plain"


@pytest.fixture
def weigher() -> Iterator[ResourceProviderWeigher]:
    """The weigher with a multiplier, so that scores count."""
    weigher = ResourceProviderWeigher()
    CONF.set_override(MULTIPLIER, 1.0, "filter_scheduler")
    yield weigher
    CONF.clear_override(MULTIPLIER, "filter_scheduler")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"cpu_tiers": HostNotes()}, id="a rebuild, which does not ask Placement"),
        pytest.param({}, id="not made by _get_all_host_states"),
    ],
)
def test_without_an_answer_all_hosts_are_alike(
    weigher: ResourceProviderWeigher, values: Mapping[str, Any]
) -> None:
    hosts = [host("one", **values), host("two", **values)]
    assert weigher.weigh_objects(weighed(*hosts), None) == [0.0, 0.0]
    assert weigher._weigh_object(hosts[0], None) == 0.0


def test_a_host_without_summary_costs_the_scores_and_not_the_request(
    weigher: ResourceProviderWeigher, caplog: pytest.LogCaptureFixture
) -> None:
    scores = RequestScores({"one": summary("one", 8)}, spec())
    hosts = weighed(*(host(uuid, cpu_tiers=HostNotes(scores=scores)) for uuid in ("one", "two")))
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        for _ in range(3):  # servers of the request
            assert weigher.weigh_objects(hosts, None) == [0.0, 0.0]
        scores.claim("one", {"one": {"resources": {"VCPU": 2}}})
    (message,) = caplog.messages
    assert message.startswith("Hosts are weighed without their scores in this request (request ")


def test_a_misspelt_name_is_said_at_the_start(
    weigher: ResourceProviderWeigher, caplog: pytest.LogCaptureFixture
) -> None:
    CONF.set_override("resource_provider_traits", ["HW_CPU_X86_AVX22"], "filter_scheduler")
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        type(weigher)()
    CONF.clear_override("resource_provider_traits", "filter_scheduler")
    assert caplog.messages == [
        "[filter_scheduler] resource_provider_traits: HW_CPU_X86_AVX22 counts for no host;"
        " did you mean HW_CPU_X86_AVX2?"
    ]


def soft(specs: Mapping[str, str], **traits: list[str]) -> list[Any]:
    """Return the weighed objects of hosts with these traits, for a flavor with extra specs."""
    request = spec()
    request.flavor.extra_specs = {**request.flavor.extra_specs, **specs}
    scores = RequestScores(
        {h: {**summary(h, 8), "traits": of} for h, of in traits.items()}, request
    )
    return weighed(*(host(name, cpu_tiers=HostNotes(scores=scores)) for name in traits))


def test_without_soft_traits_nothing_is_worked_out() -> None:
    """The multipliers have their defaults: 0.0 and 1000.0."""
    weigher = ResourceProviderWeigher()
    hosts = soft({}, one=["HW_CPU_X86_AVX2"], two=["CUSTOM_A"], three=[])
    with (
        reading_is_an_error(),
        mock.patch.object(SoftTraits, "_weights_of", side_effect=AssertionError),
        mock.patch.object(utils, "get_weight_multiplier", return_value=1000.0) as read,
    ):
        assert weigher.weigh_objects(hosts, None) == [0.0, 0.0, 0.0]
    assert read.call_count == 1  # of the first host, and not of each


def test_a_multiplier_of_0_for_soft_traits_reads_no_summary() -> None:
    weigher = ResourceProviderWeigher()
    hosts = soft({"trait:CUSTOM_A": "preferred"}, one=["CUSTOM_A"], two=["CUSTOM_PRESSURE_CPU"])
    CONF.set_override(TRAIT_MULTIPLIER, 0.0, "filter_scheduler")
    with mock.patch.object(SoftTraits, "of_hosts", side_effect=AssertionError):
        assert weigher.weigh_objects(hosts, None) == [0.0, 0.0]
    CONF.clear_override(TRAIT_MULTIPLIER, "filter_scheduler")


def test_with_default_options_no_trait_of_a_host_counts() -> None:
    hosts = soft({}, one=[], two=["CUSTOM_PRESSURE_CPU"], three=["PRESSURE_IO"])
    assert ResourceProviderWeigher().weigh_objects(hosts, None) == [0.0, 0.0, 0.0]


def test_a_soft_trait_of_a_shared_pool() -> None:
    """The first host takes its disk from the pool; the second has a disk of its own."""
    request = spec()
    request.flavor.extra_specs["trait:CUSTOM_SSD"] = "preferred:2"
    pool = {**summary("pool", 8), "traits": ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_SSD"]}
    summaries = {"one": summary("one", 8), "two": summary("two", 8), "pool": pool}
    notes = HostNotes(scores=RequestScores(summaries, request))
    hosts = [
        host(name, cpu_tiers=notes, allocation_candidates=[{"allocations": {name: {}, disk: {}}}])
        for name, disk in (("one", "pool"), ("two", "two"))
    ]
    assert ResourceProviderWeigher().weigh_objects(weighed(*hosts), None) == [2000.0, 0.0]


def test_malformed_metadata_of_a_large_aggregate_is_warned_of_once(
    weigher: ResourceProviderWeigher,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,000 hosts, two servers in the request: a shape is parsed once, a multiplier once each."""
    names = [f"host{n}" for n in range(1000)]
    scores = RequestScores({name: summary(name, 8) for name in names}, spec())
    hosts = [host(name, cpu_tiers=HostNotes(scores=scores)) for name in names]
    large = aggregate(
        1, resource_provider_shape="0=0,0=1", resource_provider_weight_multiplier="x"
    )
    small = aggregate(2, resource_provider_shape="0=0.5")
    for state in hosts:
        state.aggregates = [large]
    hosts[7].aggregates = [large, small]
    CONF.set_override("resource_provider_scoring", "requested-to-capacity", "filter_scheduler")
    parsed: list[str] = []

    class ParsedShape(weigher_types.ShapeType):
        def __call__(self, value: str) -> Any:
            parsed.append(value)
            return super().__call__(value)

    monkeypatch.setattr(weigher_types, "ShapeType", ParsedShape)
    for _ in range(2):
        weights = weigher.weigh_objects(weighed(*hosts), None)
    CONF.clear_override("resource_provider_scoring", "filter_scheduler")
    # 1 - 2/8 by nova.conf, and the shape of the small aggregate
    assert Counter(weights) == {0.75: 999, 0.5: 1}
    assert parsed == ["0=0,0=1", "0=0.5"]
    of_shapes = [line for line in caplog.messages if "has a malformed shape" in line]
    of_multipliers = [line for line in caplog.messages if "Could not decode" in line]
    assert (len(of_shapes), len(of_multipliers)) == (1, 2)


def test_weights_of_soft_traits() -> None:
    """Nova's own handler stretches no weight."""
    CONF.set_override(AVOIDED, "CUSTOM_PRESSURE_*", "filter_scheduler")
    specs = {"trait:CUSTOM_A": "preferred:2.5", "trait:CUSTOM_B": "avoided:x"}
    hosts = soft(specs, plain=[], one=["CUSTOM_A", "CUSTOM_PRESSURE_IO"], two=["CUSTOM_B"])
    states = [each.obj for each in hosts]
    weighers = [ResourceProviderWeigher()]
    best = HostWeightHandler().get_weighed_objects(weighers, states, None)
    weights = {each.obj.host: each.weight for each in best}
    CONF.clear_override(AVOIDED, "filter_scheduler")
    # 1000 x (2.5 - 1); the malformed extra spec counts nothing.
    assert weights == {"one": 1500.0, "plain": 0.0, "two": 0.0}


def test_soft_traits_are_not_requested() -> None:
    request = spec()
    request.flavor.extra_specs["trait:CUSTOM_A"] = "preferred:2"
    request.flavor.extra_specs["trait:HW_CPU_X86_AVX2"] = "avoided"
    query = utils.ResourceRequest.from_request_spec(request).to_querystring()
    assert query == "limit=1000&resources=VCPU%3A2"


def test_a_trait_in_both_options_stops_the_service() -> None:
    for option in (PREFERRED, AVOIDED):
        CONF.set_override(option, "PRESSURE_*", "filter_scheduler")
    with pytest.raises(InvalidInput, match=r"PRESSURE_\* is in both; leave one out"):
        ResourceProviderWeigher()
    for option in (PREFERRED, AVOIDED):
        CONF.clear_override(option, "filter_scheduler")


@pytest.mark.parametrize(
    ("shapes", "scores"),
    [
        pytest.param([], [0.25, 0.75], id="nova.conf: 1 - 6/8, 1 - 2/8"),
        pytest.param(["0=0,100=1"], [0.75, 0.75], id="of the aggregate of the first host: 6/8"),
        pytest.param(["0=0,100=1", "0=0.1"], [0.1, 0.75], id="the lower of two: 0.1, not 6/8"),
        pytest.param(["0=0,0=1"], [0.25, 0.75], id="malformed: as in nova.conf"),
    ],
)
def test_a_shape_of_an_aggregate(
    weigher: ResourceProviderWeigher, shapes: list[str], scores: list[float]
) -> None:
    """The server requests 2 VCPU; 4 of the first host are in use."""
    used, idle = summary("used", 8), summary("idle", 8)
    used["resources"]["VCPU"]["used"] = 4
    shared = RequestScores({"used": used, "idle": idle}, spec())
    hosts = [host(name, cpu_tiers=HostNotes(scores=shared)) for name in ("used", "idle")]
    hosts[0].aggregates = [
        aggregate(n, resource_provider_shape=shape) for n, shape in enumerate(shapes)
    ]
    CONF.set_override("resource_provider_scoring", "requested-to-capacity", "filter_scheduler")
    assert weigher.weigh_objects(weighed(*hosts), None) == scores
    CONF.clear_override("resource_provider_scoring", "filter_scheduler")


class TestSoftTraits(Weighed):
    """Gold requests 100 shares, and a score is half of 1 - 100 / free: no trait counts in it."""

    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **Weighed.scheduler_options,
        AVOIDED: ["PRESSURE_*", "CUSTOM_PRESSURE_*"],
    }

    def test_the_hosts_of_servers(self) -> None:
        hosts = {"big": 800, "small": 400}
        uuids = {name: self.start_host(name, **{SHARES: n}) for name, n in hosts.items()}
        gold = self.tier("gold", "100")
        assert self.chosen(gold) == "big"  # (1 - 100/800) / 2, (1 - 100/400) / 2
        self._create_trait("CUSTOM_PRESSURE_CPU")
        traits = [*self._get_provider_traits(uuids["big"]), "CUSTOM_PRESSURE_CPU"]
        self._set_provider_traits(uuids["big"], traits)
        assert self.chosen(gold) == "small"  # (1 - 100/700) / 2 - 1000, (1 - 100/400) / 2
        for value in ("preferred:0", "preferred:0.001"):
            # big (1 - 100/700) / 2, then (1 - 100/600) / 2 + 1; small (1 - 100/300) / 2
            specs = {MULTIPLIER_SPEC: "100", "trait:CUSTOM_PRESSURE_CPU": value}
            assert self.chosen(self.flavor(value, specs)) == "big"
        aggregate = self.api.post_aggregate({"aggregate": {"name": "big"}})
        self.api.add_host_to_aggregate(aggregate["id"], "big")
        metadata = {"set_metadata": {"metadata": {TRAIT_MULTIPLIER: "0.01"}}}
        self.api.post_aggregate_action(aggregate["id"], metadata)
        # big (1 - 100/500) / 2 - 0.01 = 0.39, small (1 - 100/300) / 2 = 0.33
        assert self.chosen(gold) == "big"


class TestOneRequest(Weighed):
    def test_each_server_sees_the_claims_of_earlier_servers(self) -> None:
        # big has 600 shares, small 400; free before each server, and 1 - 100 / free:
        #   600 400  5/6   3/4  big     500 400  4/5  3/4  big     400 400  equal: the first
        #   then one has 300: the other, and both have 300 left
        self.start_host("big", **{SHARES: 600})
        self.start_host("small", **{SHARES: 400})
        hosts = self.boot_many(self.tier("gold", "100"), 4)
        assert sorted(hosts) == ["big", "big", "big", "small"]

    def test_a_single_host_is_not_weighed(self) -> None:
        self.start_host("one", **{SHARES: 800})
        with reading_is_an_error():
            assert self.boot_many(self.tier("gold", "100"), 2) == ["one", "one"]

    def test_a_rebuild_has_no_answer_to_weigh(self) -> None:
        self.start_host("one", **{SHARES: 800})
        server = self.boot(self.tier("gold", "100"))
        self.start_host("two", **{SHARES: 800})
        with reading_is_an_error():
            self._rebuild_server(server, "a2459075-d96c-40d5-893e-577ff92e721c")
        assert self.allocated(server["id"]) == {"one": 100}

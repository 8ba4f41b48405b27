"""The weigher in nova-scheduler: the hosts that get servers, and requests without scores."""

import logging
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from nova import objects
from nova.scheduler.host_manager import HostState

from cpu_tiers.nova.notes import HostNotes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.scores import RequestScores
from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher
from tests.nova.cloud import STOCK
from tests.nova.computes import SHARES, Computes
from tests.nova.faults import reading_is_an_error

MULTIPLIER = "resource_provider_weight_multiplier"


class Weighed(Computes):
    """Only the shares and the GPUs of hosts count, so that a test can add up."""

    kind = STOCK
    microversion = "latest"
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        MULTIPLIER: 1.0,
        "resource_provider_resources": [SHARES, "CUSTOM_GPU"],
        "resource_provider_traits": ["CUSTOM_NONE"],
    }

    def chosen(self, flavor: str) -> str:
        """Boot a server; return the host that the scheduler chose."""
        return self.host_of(self.boot(flavor))

    def boot_many(self, flavor: str, number: int) -> list[str]:
        """Boot servers in one request; return their hosts, in the order of their creation."""
        server = self._build_server(flavor_id=flavor, networks="none")
        self.api.post_server({"server": {**server, "min_count": number}})
        servers = self.api.get_servers()
        return [self.host_of(self._wait_for_state_change(one, "ACTIVE")) for one in servers]


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
        for host in self.computes:
            self.aggregate(host, "0.0")
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


def weighed(*hosts: Any) -> list[Any]:
    return [SimpleNamespace(obj=host) for host in hosts]


def host(uuid: str, **values: Any) -> HostState:
    """Return a host state of Nova's own, with no attribute of cpu-tiers but ``values``."""
    state = HostState(uuid, uuid, "cell")
    state.uuid, state.aggregates = uuid, []
    vars(state).update(values)
    return state


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


def summary(root: str, free: int) -> dict[str, Any]:
    return {
        "root_provider_uuid": root,
        "parent_provider_uuid": None,
        "resources": {"VCPU": {"capacity": free, "used": 0}},
        "traits": [],
    }


def spec() -> objects.RequestSpec:
    """Return a request for a server of 2 vCPUs."""
    flavor = objects.Flavor(
        name="f",
        vcpus=2,
        memory_mb=512,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs={"resources:MEMORY_MB": "0"},
    )
    level = objects.RequestLevelParams()
    return objects.RequestSpec(
        flavor=flavor, image=None, requested_resources=[], request_level_params=level, is_bfv=False
    )


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

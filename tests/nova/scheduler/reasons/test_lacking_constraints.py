"""The fault of a server without a host names what the hosts lack."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest
from nova.scheduler.client import report
from nova.scheduler.client.report import SchedulerReportClient

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.scheduler.reasons import lacking_constraints
from cpu_tiers.nova.scheduler.reasons.lacking_constraints import is_empty
from tests.nova.cloud import Cloud

DROPPED = "Dropped, so that no answer waits: "


@pytest.mark.parametrize(
    ("value", "with_shares", "is_on"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True)],
)
def test_the_option_follows_the_shares(value: object, with_shares: bool, is_on: bool) -> None:
    options.register(filter_scheduler)
    group = filter_scheduler.GROUP
    values = {"name_lacking_constraints": value, "query_placement_for_vcpu_shares": with_shares}
    for name, given in values.items():
        CONF.set_override(name, given, group)
    try:
        (own,) = [each for each in SCHEDULER.features if each.name == "lacking constraints"]
        assert own.is_on(CONF) is is_on
    finally:
        for name in values:
            CONF.clear_override(name, group)


class TestFault(Cloud):
    def setUp(self) -> None:
        super().setUp()
        self.start_host("one", CUSTOM_GPU=8)
        self.restart_scheduler(name_lacking_constraints=True)

    def fault(self, **specs: str) -> str:
        """Boot a server that gets no host; return its fault."""
        flavor = self.flavor("wanted", specs)
        body = self._build_server(flavor_id=flavor, networks="none")
        server = self.api.post_server({"server": body})
        server = self._wait_for_state_change(server, "ERROR")
        message: str = server["fault"]["message"]
        return message

    def test_a_class(self) -> None:
        fault = self.fault(**{"resources:CUSTOM_GPU": "9"})
        assert fault == (
            "No valid host was found. A host would have room without one of these: 9 CUSTOM_GPU"
        )

    def test_a_trait(self) -> None:
        self.placement.put("/traits/CUSTOM_RARE", None, version="1.36")
        fault = self.fault(**{"trait:CUSTOM_RARE": "required"})
        assert fault.endswith("without one of these: the trait CUSTOM_RARE")

    def test_two_constraints_together(self) -> None:
        self.placement.put("/traits/CUSTOM_RARE", None, version="1.36")
        specs = {"trait:CUSTOM_RARE": "required", "resources:CUSTOM_GPU": "9"}
        assert self.fault(**specs) == (
            "No valid host was found. A host would have room without these two: 9 CUSTOM_GPU,"
            " the trait CUSTOM_RARE"
        )

    def test_three_constraints_together(self) -> None:
        for name in ("CUSTOM_RARE", "CUSTOM_RARER"):
            self.placement.put(f"/traits/{name}", None, version="1.36")
        specs = {"trait:CUSTOM_RARE": "required", "trait:CUSTOM_RARER": "required"}
        specs["resources:CUSTOM_GPU"] = "9"
        assert self.fault(**specs) == "No valid host was found. "

    def test_placement_fails_after_the_first_answer(self) -> None:
        get, asked = SchedulerReportClient.get, []

        def busy(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            if "limit=1&" in f"{url}&" and url.startswith("/allocation_candidates"):
                asked.append(url)
                kwargs["version"] = "9.99"  # which Placement refuses with 406
            return get(client, url, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(f"{report.__name__}.SchedulerReportClient.get", busy))
        fault = self.fault(**{"resources:CUSTOM_GPU": "9"})
        assert fault == "No valid host was found. "
        assert len(asked) == 1  # nova-conductor waits for the answer


class TestDedicated(Cloud):
    """Servers with dedicated CPUs, for which nova-scheduler sends two queries."""

    def setUp(self) -> None:
        super().setUp()
        # 6 PCPU; VCPU of 2 CPUs, so at most 2 for a server.
        self.flags(cpu_dedicated_set="0-5", cpu_shared_set="6-7", group="compute")
        self.start_host("one", CUSTOM_VCPU_SHARES=800)
        self.placement.put("/traits/CUSTOM_RARE", None, version="1.36")

    def ends_in(self, vcpus: int, state: str, **specs: str) -> str:
        """Boot a server that gets into a state; return its fault."""
        flavor = self._create_flavor(
            vcpu=vcpus, extra_spec={"hw:cpu_policy": "dedicated", **specs}
        )
        body = self._build_server(flavor_id=flavor, networks="none")
        server = self._wait_for_state_change(self.api.post_server({"server": body}), state)
        return str(server.get("fault", {}).get("message"))

    def check_faults(self) -> None:
        # 8 of 6 PCPU, and 8 VCPU of which a server gets 2.
        fault = self.ends_in(8, "ERROR")
        assert fault.endswith("without one of these: 8 PCPU, 8 VCPU")
        fault = self.ends_in(2, "ERROR", **{"trait:CUSTOM_RARE": "required"})
        assert fault.endswith("without one of these: the trait CUSTOM_RARE")
        # Without VCPU the trait is missing, and without the trait VCPU.
        fault = self.ends_in(8, "ERROR", **{"trait:CUSTOM_RARE": "required"})
        assert fault.endswith("without these two: 8 PCPU, the trait CUSTOM_RARE")

    def test_both_queries_are_empty(self) -> None:
        self.restart_scheduler(name_lacking_constraints=True)
        self.check_faults()

    def test_no_second_query_for_pcpu(self) -> None:
        self.flags(disable_fallback_pcpu_query=True, group="workarounds")
        self.restart_scheduler(name_lacking_constraints=True)
        assert self.ends_in(8, "ERROR").endswith("without one of these: 8 PCPU")

    def test_both_queries_are_empty_with_shares(self) -> None:
        self.restart_scheduler(name_lacking_constraints=True, query_placement_for_vcpu_shares=True)
        self.check_faults()

    def test_only_the_second_query_is_empty(self) -> None:
        self.restart_scheduler(name_lacking_constraints=True)
        self.ends_in(6, "ACTIVE")


def test_a_placement_that_hangs_costs_the_reason_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lacking_constraints, "REASONS", TimeBudget("The reason", seconds=0.1))
    monkeypatch.setattr(lacking_constraints, "_is_first_of_two", lambda _: False)
    ends = threading.Event()
    client = SimpleNamespace(get=lambda *_, **__: ends.wait(60))
    group = SimpleNamespace(resources={"CUSTOM_VCPU_SHARES": 100})
    request = SimpleNamespace(
        _rg_by_id={None: group},
        to_querystring=lambda: "resources=CUSTOM_VCPU_SHARES%3A100%2CVCPU%3A1",
    )
    empty: tuple[Any, ...] = ([], {}, "1.36")
    assert lacking_constraints.SEAM.wrap is not None
    wrapped = lacking_constraints.SEAM.wrap(lambda *_: empty)
    start = time.monotonic()
    for _ in range(20):
        assert wrapped(client, Context(), request) is empty
    assert time.monotonic() - start < 2  # the budget once, not 20 times
    warnings = [each.getMessage() for each in caplog.records if each.name.endswith("in_time")]
    assert warnings == [DROPPED + "The reason: not done in 0.1 seconds (1 since the last warning)"]
    ends.set()


class Context:
    global_id = "req-1"


@pytest.mark.parametrize(
    ("answer", "empty"),
    [
        pytest.param(([], {}, "1.36"), True, id="no candidate"),
        pytest.param(([{}], {}, "1.36"), False, id="a candidate"),
        pytest.param(None, False, id="no connection"),
        pytest.param((None, None, None), False, id="refused"),
    ],
)
def test_empty(answer: object, empty: bool) -> None:
    assert is_empty(answer) is empty

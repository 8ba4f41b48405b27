"""What a host reports, by its options and by what Placement has.

And what a start of nova-compute does where the consumers of the host are not known.
"""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import oslo_messaging
import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception

from cpu_tiers.conf import compute, libvirt
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.nova import options
from cpu_tiers.nova.compute import shares_inventory
from cpu_tiers.nova.compute.report_decision import (
    ReportDecision,
    StartingConsumers,
    decide,
    read_consumers,
    refusing_unknown_servers,
)
from cpu_tiers.nova.compute.start_refusal import MoveRefused
from cpu_tiers.nova.options import CONF
from tests.nova.broken_answers import DATABASE_FAULTS
from tests.nova.compute.reports import NO_ALLOCATIONS, SHARES, host_report, record, shares_file

ON_ROOT = {"one": {"VCPU": record(8), "MEMORY_MB": record(16384)}}
ON_NODES = {"one": {"DISK_GB": record(100)}, "one_NUMA0": {"VCPU": record(8)}}
WITH_SHARES = {"one": {"VCPU": record(8), SHARES: record(800)}}

OF_SHARES = ReportDecision(nodes=False, no_numa=False, shares=True)
OF_NODES = ReportDecision(nodes=True, no_numa=False, shares=False)

Configure = Callable[..., None]


@pytest.fixture
def configure() -> Iterator[Configure]:
    """Set ``enable_numa_reporting_to_placement`` and options of ``[libvirt]``."""
    options.register(compute)
    options.register(libvirt)

    def set_options(nodes: bool | None = None, **of_libvirt: Any) -> None:
        CONF.set_override("enable_numa_reporting_to_placement", nodes, group="compute")
        for name, value in of_libvirt.items():
            CONF.set_override(name, value, group="libvirt")

    yield set_options
    CONF.clear_override("enable_numa_reporting_to_placement", group="compute")
    for name in ("report_vcpu_shares", "file_backed_memory"):
        CONF.clear_override(name, group="libvirt")


@pytest.mark.parametrize("startup", [True, False])
@pytest.mark.parametrize("providers", [ON_ROOT, {"one": {}}], ids=["CPUs", "new host"])
def test_without_options_nothing_is_reported(
    configure: Configure, providers: Any, startup: bool
) -> None:
    configure()
    host = host_report(providers, startup=startup)
    assert decide(host) == ReportDecision(nodes=False, no_numa=False)


def test_foreign_inventories_are_not_read_without_options(configure: Configure) -> None:
    configure()
    host = host_report({"one": {"CUSTOM_X": {"total": 3}}}, startup=True)
    assert decide(host) == ReportDecision(nodes=False, no_numa=False)


@pytest.mark.parametrize(
    ("option", "providers", "startup", "nodes", "no_numa"),
    [
        pytest.param(False, ON_ROOT, True, False, True, id="false keeps NUMA servers away"),
        pytest.param(True, ON_ROOT, True, True, False, id="a start moves CPUs to the nodes"),
        pytest.param(True, ON_ROOT, False, False, False, id="a host that missed its start waits"),
        pytest.param(True, ON_NODES, False, True, False, id="nodes stay outside of a start"),
        pytest.param(True, {"one": {}}, False, True, False, id="a new host has nobody to move"),
        pytest.param(None, ON_NODES, False, True, False, id="unset while running: nodes stay"),
        pytest.param(False, ON_NODES, False, True, False, id="false while running: nodes stay"),
    ],
)
def test_numa_nodes(
    configure: Configure,
    option: bool | None,
    providers: Any,
    startup: bool,
    nodes: bool,
    no_numa: bool,
) -> None:
    configure(option)
    decision = decide(host_report(providers, startup=startup))
    assert (decision.nodes, decision.no_numa) == (nodes, no_numa)


@pytest.mark.parametrize("option", [None, False])
def test_nodes_cannot_be_turned_off_at_a_start(configure: Configure, option: bool | None) -> None:
    configure(option)
    with pytest.raises(exception.InvalidConfiguration, match=r"one_NUMA0\), and that cannot be"):
        decide(host_report(ON_NODES, startup=True))


def test_nodes_that_were_emptied_are_no_obstacle(configure: Configure) -> None:
    configure(None)
    assert not decide(host_report({**ON_ROOT, "one_NUMA0": {}}, startup=True)).nodes


def test_file_backed_memory_excludes_nodes(configure: Configure) -> None:
    configure(True, file_backed_memory=1024)
    with pytest.raises(exception.InvalidConfiguration, match="belongs to no NUMA node"):
        decide(host_report(ON_ROOT, startup=True))
    assert not decide(host_report(ON_ROOT)).nodes  # and is no matter while nodes wait


class TestShares:
    @pytest.fixture
    def lacking(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have a server lack shares, whatever Nova's database says."""
        shortfalls = (Flavor(name="gold", vcpus=1, memory_mb=1),)
        monkeypatch.setattr(shares_inventory, "find_missing_shares", lambda *_: shortfalls)

    @pytest.mark.usefixtures("lacking")
    def test_a_start_can_add_shares_to_servers(self, configure: Configure) -> None:
        configure(report_vcpu_shares=True)
        assert decide(host_report(ON_ROOT, startup=True)).shares

    @pytest.mark.usefixtures("lacking")
    def test_a_host_that_missed_the_report_at_the_start_waits(
        self, configure: Configure, caplog: pytest.LogCaptureFixture
    ) -> None:
        configure(report_vcpu_shares=True)
        assert not decide(host_report(ON_ROOT)).shares
        assert f"one reports {SHARES} after a restart of nova-compute" in caplog.text

    @pytest.mark.usefixtures("lacking")
    def test_a_host_that_reports_shares_goes_on(self, configure: Configure) -> None:
        configure(report_vcpu_shares=True)
        assert decide(host_report(WITH_SHARES)).shares

    def test_a_host_without_shortfalls_need_not_wait(
        self, configure: Configure, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        configure(report_vcpu_shares=True)
        monkeypatch.setattr(shares_inventory, "find_missing_shares", lambda *_: ())
        assert decide(host_report(ON_ROOT)).shares

    def test_a_host_with_unknown_allocations_waits(
        self, configure: Configure, caplog: pytest.LogCaptureFixture
    ) -> None:
        configure(report_vcpu_shares=True)
        away = ConnectFailure("no route")
        assert not decide(host_report(ON_ROOT, in_placement=away)).shares
        assert f"one reports no {SHARES} in this run: " in caplog.text

    @pytest.mark.parametrize("fault", DATABASE_FAULTS)
    def test_a_host_with_unknown_servers_waits(
        self, configure: Configure, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        configure(report_vcpu_shares=True)
        raising = mock.Mock(side_effect=lambda *_: DATABASE_FAULTS[fault](lambda: None))
        monkeypatch.setattr(shares_inventory, "find_missing_shares", raising)
        assert not decide(host_report(ON_ROOT)).shares

    def test_turned_off_at_a_start_is_refused(self, configure: Configure) -> None:
        configure(report_vcpu_shares=False)
        with pytest.raises(exception.InvalidConfiguration, match="which must not vanish"):
            decide(host_report(WITH_SHARES, startup=True))

    def test_turned_off_while_running_the_shares_are_kept(self, configure: Configure) -> None:
        configure(report_vcpu_shares=False)
        decision = decide(host_report(WITH_SHARES))
        assert not decision.shares
        assert decision.kept_shares == {"uuid of one": record(800)}

    @pytest.mark.parametrize("startup", [True, False])
    def test_shares_of_a_file_are_left_to_nova(self, configure: Configure, startup: bool) -> None:
        configure(report_vcpu_shares=False)
        host = host_report(WITH_SHARES, startup=startup, files={"one": shares_file()})
        assert decide(host) == ReportDecision(nodes=False, no_numa=False)


@pytest.fixture(params=DATABASE_FAULTS)
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Nova's database not answer."""
    raising = mock.Mock(side_effect=lambda *_: DATABASE_FAULTS[request.param](lambda: None))
    monkeypatch.setattr(shares_inventory, "find_missing_shares", raising)


@pytest.mark.parametrize("fault", NO_ALLOCATIONS)
@pytest.mark.parametrize("decision", [OF_SHARES, OF_NODES], ids=["shares", "nodes"])
def test_a_start_without_an_answer_of_placement_reshapes_nothing(
    fault: Exception, decision: ReportDecision
) -> None:
    host = host_report(ON_ROOT, startup=True, in_placement=fault)
    assert read_consumers(host, decision) is None
    assert not host.as_if_running().is_starting


@pytest.mark.usefixtures("away")
def test_a_start_without_an_answer_of_the_database_reshapes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read_consumers(host_report(ON_ROOT, startup=True), OF_SHARES) is None
    assert "Whether servers on one need a reshape is not known: " in caplog.text


@pytest.mark.usefixtures("away")
def test_the_database_is_not_asked_for_shares_that_are_not_reported() -> None:
    assert read_consumers(host_report(ON_ROOT, startup=True), OF_NODES) == StartingConsumers()


@pytest.mark.parametrize(
    ("startup", "allocations", "shares"),
    [
        pytest.param(False, None, True, id="nova-compute runs"),
        pytest.param(True, {}, True, id="Nova has read the allocations for the second call"),
        pytest.param(True, None, False, id="every option is off"),
    ],
)
def test_placement_is_not_asked_where_nothing_is_reshaped(
    startup: bool, allocations: dict[str, Any] | None, shares: bool
) -> None:
    away = ConnectFailure("reset")
    host = host_report({"one": {}}, startup=startup, allocations=allocations, in_placement=away)
    decision = ReportDecision(nodes=False, no_numa=False, shares=shares)
    assert read_consumers(host, decision) == StartingConsumers()


@pytest.mark.parametrize("fault", DATABASE_FAULTS)
def test_a_reshape_without_the_database_is_refused_with_a_message(fault: str) -> None:
    expected = "Nova's database does not tell the servers on one .* start nova-compute again"
    with (
        pytest.raises(MoveRefused, match=expected),
        refusing_unknown_servers(host_report(ON_ROOT, startup=True)),
    ):
        DATABASE_FAULTS[fault](lambda: None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(
            oslo_messaging.RemoteError("OperationalError", "lost connection", ["Traceback"]),
            "Remote error: OperationalError lost connection",
            id="without the traceback in nova-conductor",
        ),
        pytest.param(oslo_messaging.MessagingTimeout(), "MessagingTimeout()", id="no text"),
    ],
)
def test_the_message_is_a_single_line(error: Exception, reason: str) -> None:
    host = host_report(ON_ROOT, startup=True)
    with pytest.raises(MoveRefused) as caught, refusing_unknown_servers(host):
        raise error
    assert f"the servers on one ({reason}). Nothing was changed" in str(caught.value)


def test_another_reason_of_a_failed_reshape_stays() -> None:
    full = MoveRefused(error="no room")
    with (
        pytest.raises(MoveRefused) as caught,
        refusing_unknown_servers(host_report(ON_ROOT, startup=True)),
    ):
        raise full
    assert caught.value is full

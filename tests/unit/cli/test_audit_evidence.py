"""Sources that cannot be read become findings, and the audit continues."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.placement.errors import PlacementMisconfigured, PlacementUnavailable
from cpu_tiers.tools.host import audit_evidence
from cpu_tiers.tools.host.audit_evidence import GatheredEvidence, gather
from cpu_tiers.tools.host.checks.finding import Kind
from cpu_tiers.tools.tiers.domain import HostCgroups

CAPABILITIES = (
    b"<capabilities><host><cpu><arch>x86_64</arch></cpu><topology><cells num='1'><cell id='0'>"
    b"<memory unit='KiB'>1048576</memory><cpus num='2'><cpu id='0'/><cpu id='1'/></cpus>"
    b"</cell></cells></topology></host></capabilities>"
)
GUEST = (
    "<domain><name>web</name><uuid>web-uuid</uuid><vcpu>1</vcpu>"
    "<cputune><shares>100</shares></cputune></domain>"
)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A host of two CPUs with a guest, without Placement and without visible processes."""
    guests = [SimpleNamespace(name="web", xml=GUEST, shares=None)]
    monkeypatch.setattr(audit_evidence, "read_capabilities", lambda _: CAPABILITIES)
    monkeypatch.setattr(audit_evidence, "read_domains", lambda _: guests)
    monkeypatch.setattr(audit_evidence, "read_hostname", lambda _: "one")
    cgroups = HostCgroups(version=1, guests={}, above={}, faults=())
    monkeypatch.setattr(audit_evidence, "read_host", lambda _: cgroups)
    monkeypatch.setattr(audit_evidence, "connect", failing(PlacementMisconfigured("no section")))
    return monkeypatch


def failing(error: Exception) -> object:
    @contextmanager
    def connect(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        if isinstance(error, PlacementMisconfigured):
            raise error
        yield SimpleNamespace(find_provider=fail)

    def fail(*_: object) -> None:
        raise error

    return connect


def gathered(hostname: str | None = None, conf: cfg.ConfigOpts | None = None) -> GatheredEvidence:
    return gather(
        "qemu:///system",
        conf or read_config(["/dev/null"]),
        embedded=False,
        hostname=hostname,
        interval=0,
    )


@pytest.mark.parametrize(("given", "name"), [(None, "one"), ("two", "two")])
def test_the_host_name(host: pytest.MonkeyPatch, given: str | None, name: str) -> None:
    assert gathered(given).hostname == name


def test_a_guest_without_a_process_is_a_finding(host: pytest.MonkeyPatch) -> None:
    gathering = gathered()
    (finding,) = gathering.unread
    assert (finding.kind, finding.where, finding.uuid) == (Kind.UNREAD, "guest web", "web-uuid")
    assert "run the audit as root" in finding.found
    # without Placement nothing is compared with allocations, and that is no finding
    assert gathering.evidence.allocated is None
    # neither cpu_shared_set nor cpu_dedicated_set: dedicated vCPUs may be on both CPUs
    assert list(gathering.evidence.dedicated_cpus) == [0, 1]


def test_a_guest_that_ended_is_no_finding(
    host: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lists = [[SimpleNamespace(name="web", xml=GUEST, shares=None)], []]
    host.setattr(audit_evidence, "read_domains", lambda _: lists.pop(0))
    assert gathered().unread == []
    assert "Guest web ended during the audit." in caplog.messages


def test_a_domain_that_cannot_be_parsed_is_left_out(host: pytest.MonkeyPatch) -> None:
    guests = [
        SimpleNamespace(name="broken", xml="no XML", shares=None),
        SimpleNamespace(name="web", xml=GUEST, shares=None),
    ]
    host.setattr(audit_evidence, "read_domains", lambda _: guests)
    gathering = gathered()
    assert [domain.name for domain in gathering.evidence.host.domains] == ["web"]
    assert "guest broken" in [finding.where for finding in gathering.unread]


def test_cgroups_that_cannot_be_read_are_a_finding(host: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> HostCgroups:
        raise CpuTiersError("no cgroups are mounted")

    host.setattr(audit_evidence, "read_host", fail)
    gathering = gathered()
    assert [(f.where, f.found) for f in gathering.unread] == [
        ("cgroups", "no cgroups are mounted")
    ]
    assert gathering.evidence.cgroups is None


def test_a_placement_that_does_not_answer_is_a_finding(host: pytest.MonkeyPatch) -> None:
    host.setattr(audit_evidence, "connect", failing(PlacementUnavailable("no answer")))
    assert ("Placement", "no answer") in [(f.where, f.found) for f in gathered().unread]

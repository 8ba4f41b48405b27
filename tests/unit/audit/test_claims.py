import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.providers import Excess
from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.sold import HostShares
from tests.unit.audit.hosts import SHARED, evidence, guest, summary

GOLD = guest("gold", 200, SHARED, SHARED, multiplier="100")
MIXED = guest("mixed", 150, SHARED, CpuSet({2}), CpuSet({3}), multiplier="50")
PINNED = guest("pinned", 100, CpuSet({2}), multiplier="100")


@pytest.mark.parametrize(
    ("domain", "held", "found"),
    [
        pytest.param(GOLD, {"gold-uuid": 200}, None, id="2 x 100"),
        pytest.param(
            GOLD,
            {"gold-uuid": 100},
            (200, "100"),
            id="too few",
        ),
        pytest.param(GOLD, {"gold-uuid": 0}, (200, "0"), id="VCPU alone"),
        pytest.param(GOLD, {}, (200, "nothing on this host"), id="none"),
        pytest.param(MIXED, {"mixed-uuid": 50}, None, id="1 of 3 is shared: 1 x 50"),
        pytest.param(PINNED, {"pinned-uuid": 0}, None, id="none is shared"),
        pytest.param(PINNED, {"pinned-uuid": 7}, (0, "7"), id="too many"),
    ],
)
def test_claims(domain: Domain, held: dict[str, int], found: tuple[int, str] | None) -> None:
    host = evidence(domain, allocated=HostShares(capacity=800, held=held))
    expected = []
    if found is not None:
        text = f"it requests {found[0]} {VCPU_SHARES}, and {found[1]} is allocated to it"
        expected = [("claim", f"guest {domain.name}", text)]
    assert summary(host) == expected


def test_a_guest_that_placement_has_on_another_host() -> None:
    allocated = HostShares(capacity=800, held={}, elsewhere={"gold-uuid": ("two",)})
    (finding,) = audit(evidence(GOLD, allocated=allocated))
    assert finding.found.endswith("is allocated to it; Placement has it on two")
    assert finding.do is not None
    assert "its allocations are on another host than the server: openstack" in finding.do
    assert "allocation delete gold-uuid, then cpu-tiers allocation heal" in finding.do


def test_a_pinned_guest_where_nova_conf_has_neither_set() -> None:
    pinned = guest("pinned", 100, CpuSet({0}), multiplier="100")
    allocated = HostShares(capacity=800, held={"pinned-uuid": 0})
    assert summary(evidence(pinned, allocated=allocated, dedicated=CpuSet(range(4)))) == []


def test_a_host_that_reports_no_shares_is_not_judged() -> None:
    assert summary(evidence(GOLD, allocated=HostShares(capacity=None, held={}))) == []


def test_allocations_beyond_the_capacity_are_reported() -> None:
    """Also on a host that reports no shares."""
    excesses = (Excess("compute1", "VCPU", 13, 12),)
    allocated = HostShares(capacity=None, held={}, excesses=excesses)
    assert summary(evidence(GOLD, allocated=allocated)) == [
        ("overcommitted", "provider compute1", "13 VCPU are allocated, of 12")
    ]

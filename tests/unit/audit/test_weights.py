from dataclasses import replace

import pytest

from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.host.checks.finding import Kind
from cpu_tiers.tools.tiers.domain import (
    DEFAULT_WEIGHT,
    Domain,
    GuestCgroup,
    HostCgroups,
    Version,
)
from tests.unit.audit.hosts import SHARED, cgroups, evidence, guest, only, summary

GOLD = guest("gold", 100, multiplier="100")


def test_nothing_is_wrong() -> None:
    old = guest("old", 25)  # of a Nova that does not write extra specs
    assert summary(evidence(GOLD, old, found=cgroups(gold=100, old=25))) == []
    assert summary(evidence(guest("plain", None), found=cgroups(plain=100))) == []
    assert summary(evidence(guest("plain", None), found=cgroups(version=1, plain=1024))) == []


@pytest.mark.parametrize("weight", [1, 2])
def test_a_flavor_with_a_weight_of_1(weight: int) -> None:
    """cpu-tiers gives the guest 2, and Nova itself 1 (decision D70)."""
    least = guest("least", weight, multiplier="1")
    assert summary(evidence(least, found=cgroups(least=weight))) == []
    wrong = "its cgroup has weight 3, it must have weight 2"
    assert wrong in summary(evidence(least, found=cgroups(least=3)))[0]


@pytest.mark.parametrize(
    ("domain", "found", "what", "weight"),
    [
        pytest.param(
            GOLD,
            cgroups(gold=400),
            "its cgroup has weight 400, it must have weight 100",
            100,
            id="changed behind libvirt's back",
        ),
        pytest.param(
            guest("gold", 30, SHARED, SHARED, multiplier="100"),
            cgroups(gold=30),
            "its XML has weight 30, its flavor weight 200;"
            " its cgroup has weight 30, it must have weight 200",
            200,
            id="changed through libvirt: 2 vCPUs x 100",
        ),
        pytest.param(
            guest("gold", 30),
            cgroups(gold=100),
            "its cgroup has weight 100, it must have weight 30",
            30,
            id="old",
        ),
        pytest.param(
            GOLD, cgroups(), "", None, id="a guest whose cgroup was not found is not judged"
        ),
    ],
)
def test_a_wrong_weight(domain: Domain, found: HostCgroups, what: str, weight: int | None) -> None:
    host = evidence(domain, found=found)
    if not what:
        assert summary(host) == []
        return
    finding = only(host)
    assert (finding.kind, finding.where, finding.found) == (Kind.WEIGHT, "guest gold", what)
    assert (finding.uuid, finding.weight) == ("gold-uuid", weight)


def test_a_faulty_flavor_gives_no_tier() -> None:
    faulty = guest("gold", 30, multiplier="garbage")
    fault, weight = audit(evidence(faulty, guest("silver", 50), found=cgroups(gold=30, silver=50)))
    assert (fault.kind, fault.where, fault.weight) == (Kind.FLAVOR, "guest gold", None)
    assert "got 'garbage'; give a decimal number" in fault.found
    assert (weight.kind, weight.weight) == (Kind.WEIGHT, None)  # for a person to decide
    assert weight.found.startswith("its XML has weight 30, its flavor no weight")


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        pytest.param("100", "the guest weighs 200, and the server requests 100 shares", id="less"),
        pytest.param("200", "", id="the pair"),
        pytest.param(None, "", id="nova-scheduler may claim by the weight"),
    ],
)
def test_a_claim_that_differs_from_the_weight(claim: str | None, found: str) -> None:
    specs = {"quota:cpu_shares": "200", "hw:numa_nodes": "2"}
    specs |= {} if claim is None else {"resources:CUSTOM_VCPU_SHARES": claim}
    paired = replace(guest("gold", 200, SHARED, SHARED), extra_specs=specs)
    findings = audit(evidence(paired, found=cgroups(gold=200)))
    assert [finding.kind for finding in findings] == [Kind.FLAVOR] * bool(found)
    assert all(found in finding.found for finding in findings)


@pytest.mark.parametrize(
    ("domain", "found", "what"),
    [
        (
            guest("least", 1),
            cgroups(version=1, least=2),
            "it must have weight 1, cgroup v1 allows 2 to 262144; its cgroup has weight 2",
        ),
        (
            guest("most", 20000),
            cgroups(most=100),
            "it must have weight 20000, cgroup v2 allows 1 to 10000; its cgroup has weight 100",
        ),
    ],
)
def test_a_range_that_was_exceeded(domain: Domain, found: HostCgroups, what: str) -> None:
    assert summary(evidence(domain, found=found)) == [
        ("weight-range", f"guest {domain.name}", what)
    ]


def test_a_kernel_that_does_not_weigh() -> None:
    assert summary(evidence(GOLD, found=cgroups(gold=None))) == [
        ("no-weight", "guest gold", "it has no cgroup with a weight of its own")
    ]


def test_a_process_that_somebody_moved() -> None:
    """cgroup v2 lets nobody move the thread of a vCPU alone."""
    moved = GuestCgroup(path="/", weight=None, policies={}, foreign_path="/jobs")
    found = replace(cgroups(), guests={GOLD.uuid or "": moved})
    what = "it has no cgroup with a weight of its own: its process is in cgroup /jobs"
    assert summary(evidence(GOLD, found=found)) == [("no-weight", "guest gold", what)]


def test_untiered_beside_tiers() -> None:
    assert summary(evidence(GOLD, guest("plain", None))) == [
        ("untiered", "guest plain", "it has no tier; guests of this host with a tier: 1")
    ]


@pytest.mark.parametrize(
    ("version", "weights"),
    [
        pytest.param(1, "cgroup v1, 1024 (v2: 100)", id="an upgrade to v2 comes"),
        pytest.param(2, "cgroup v2, 100 (v1: 1024)", id="other hosts have v1"),
    ],
)
def test_the_default_weight_depends_on_the_version(version: Version, weights: str) -> None:
    plain = guest("plain", None)
    found = cgroups(version=version, gold=100, plain=DEFAULT_WEIGHT[version])
    assert only(evidence(GOLD, plain, found=found)).found == (
        f"it has no tier and the default weight of {weights}; guests of this host with a tier: 1"
    )


def test_the_least_weight_without_a_tier() -> None:
    """[libvirt] least_weight_without_tier: a guest from before gets the weight by --fix."""
    started, before = (
        replace(guest(name, shares), extra_specs={})
        for name, shares in (("started", 2), ("before", None))
    )
    found = cgroups(version=1, gold=100, started=2, before=1024)
    finding = only(evidence(GOLD, started, before, found=found, untiered=2))
    assert (finding.kind, finding.where, finding.weight) == (Kind.WEIGHT, "guest before", 2)
    assert finding.found == (
        "its XML has no weight, nova.conf gives a guest without a tier weight 2;"
        " its cgroup has weight 1024, it must have weight 2"
    )
    # turned off again: what is right then is for a person to decide, as a flavor has no weight
    off = audit(evidence(started, found=cgroups(started=2)))
    assert [(one.kind, one.weight) for one in off] == [(Kind.WEIGHT, None)]


OLD_DEFAULT = guest("old", 4096, SHARED, SHARED, SHARED, SHARED)
"""Nova 25 and older gave each guest without a tier 1024 for each vCPU: 4 x 1024."""


@pytest.mark.parametrize(("version", "weight"), [(2, 100), (1, 1024)])
def test_the_default_of_old_releases_of_nova_is_no_promise(version: Version, weight: int) -> None:
    found = cgroups(version=version, old=4096, gold=100)
    kinds = {f.kind: f for f in audit(evidence(GOLD, OLD_DEFAULT, found=found)) if f.uuid}
    assert kinds.keys() >= {Kind.UNTIERED, Kind.WEIGHT}
    assert kinds[Kind.UNTIERED].uuid == kinds[Kind.WEIGHT].uuid == "old-uuid"
    assert kinds[Kind.WEIGHT].weight == weight  # what --fix gives the guest
    assert "weight 4096, Nova's default before Nova 26" in kinds[Kind.WEIGHT].found


def test_the_default_of_old_releases_on_a_host_without_tiers() -> None:
    assert summary(evidence(OLD_DEFAULT, found=cgroups(old=4096))) == []


def test_the_default_weight_of_another_vcpu_count_is_a_tier() -> None:
    # 3 vCPUs x 1024 is the default of 3 vCPUs, not of 4
    other = replace(OLD_DEFAULT, shares=3072)
    assert summary(evidence(GOLD, other, found=cgroups(old=3072, gold=100))) == []

from oslo_upgradecheck.upgradecheck import Code

from cpu_tiers.cli.status import check_numa, check_shares
from cpu_tiers.placement.survey import HostSurvey


def host(
    name: str, aware: bool | None = None, *, vcpu: bool = True, shares: bool = False
) -> HostSurvey:
    return HostSurvey(
        name=name, is_numa_aware=aware, has_pcpu=False, has_vcpu=vcpu, has_shares=shares
    )


def test_undecided_hosts_are_named() -> None:
    result = check_numa([host("a", True), host("b"), host("c", False), host("d")])
    assert result.code == Code.WARNING
    assert str(result.details).startswith("2 of 4 hosts undecided: on b, d, set [compute]")


def test_decided_hosts_are_fine_and_so_is_none() -> None:
    assert check_numa([host("a", True), host("b", False)]).code == Code.SUCCESS
    assert check_numa([]).code == Code.SUCCESS


def test_many_hosts_are_counted() -> None:
    details = str(check_numa([host(f"h{number:03}") for number in range(60)]).details)
    assert "h049 and 10 more, set" in details


def test_shares_on_some_hosts_alone() -> None:
    result = check_shares([host("a", shares=True), host("b"), host("c", vcpu=False)])
    assert result.code == Code.WARNING
    assert str(result.details).startswith("1 of 2 hosts without shares")


def test_shares_everywhere_or_nowhere() -> None:
    assert check_shares([host("a", shares=True), host("c", vcpu=False)]).code == Code.SUCCESS
    assert check_shares([host("a"), host("b")]).code == Code.SUCCESS

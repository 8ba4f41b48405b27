from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from cpu_tiers.conf import filter_scheduler, weight_classes
from cpu_tiers.tools.cloud.status import Checks
from cpu_tiers.tools.cloud.upgrade_checks import (
    check_numa,
    check_provider_files,
    check_shares,
    check_step,
    check_uncounted_nodes,
    check_weigher,
    register,
)
from cpu_tiers.tools.frame.provider_files import ProviderFiles, RootNames
from cpu_tiers.tools.placement.inventories import HostSurvey
from cpu_tiers.tools.tiers.ladder import Step


def host(
    name: str,
    aware: bool | None = None,
    *,
    vcpu: bool = True,
    shares: bool = False,
    tells_nodes: bool = True,
) -> HostSurvey:
    return HostSurvey(
        name=name,
        is_numa_aware=aware,
        has_pcpu=False,
        has_vcpu=vcpu,
        has_shares=shares,
        tells_nodes=tells_nodes,
    )


def test_undecided_hosts_are_named() -> None:
    (text,) = check_numa([host("a", True), host("b"), host("c", False), host("d")])
    assert text.startswith("2 of 4 hosts undecided: on b, d, set [compute]")


def test_decided_hosts_pass_and_a_cloud_without_hosts_passes() -> None:
    assert not list(check_numa([host("a", True), host("b", False)]))
    assert not list(check_numa([]))


def test_hosts_that_an_older_release_has_reported() -> None:
    old, new = host("a", True, tells_nodes=False), host("b", True)
    (text,) = check_numa([old, new, host("c", False, tells_nodes=False)])
    assert text.startswith("1 of 3 hosts reported by an older cpu-tiers: ")
    assert "start nova-compute on a before nova-scheduler" in text


def test_many_hosts_are_counted() -> None:
    (text,) = check_numa([host(f"h{number:03}") for number in range(60)])
    assert "h049 and 10 more, set" in text


def test_shares_on_some_hosts_alone() -> None:
    (text,) = check_shares([host("a", shares=True), host("b"), host("c", vcpu=False)])
    assert text.startswith("1 of 2 hosts without shares")


def test_shares_everywhere_or_nowhere() -> None:
    assert not list(check_shares([host("a", shares=True), host("c", vcpu=False)]))
    assert not list(check_shares([host("a"), host("b")]))


def scheduler(folder: Path, *lines: str) -> cfg.ConfigOpts:
    """Return the configuration of a nova-scheduler with these lines of [filter_scheduler]."""
    path = folder / "nova.conf"
    path.write_text("\n".join(["[filter_scheduler]", *lines]))
    conf = cfg.ConfigOpts()
    Checks(conf)
    conf(["--config-file", str(path)])
    return conf


OURS = "weight_classes = nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher"
NOVAS = "weight_classes = nova.scheduler.weights.all_weighers"
WEIGHS = "resource_provider_weight_multiplier = 100.0"
SHARES, NUMA = "query_placement_for_vcpu_shares = true", "query_placement_for_numa = true"


@pytest.mark.parametrize("lines", [(), (NOVAS,), (OURS, WEIGHS), (OURS, SHARES, NUMA)])
def test_a_scheduler_with_the_weigher_or_without_options(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    assert not list(check_weigher(scheduler(tmp_path, *lines)))


@pytest.mark.parametrize("lines", [(), (NOVAS,)])
def test_options_that_no_weigher_loads(tmp_path: Path, lines: tuple[str, ...]) -> None:
    (text,) = check_weigher(scheduler(tmp_path, SHARES, NUMA, *lines))
    assert text.startswith(
        "[filter_scheduler] query_placement_for_vcpu_shares, query_placement_for_numa: no effect"
    )


def test_a_weigher_that_weighs_nothing(tmp_path: Path) -> None:
    (text,) = check_weigher(scheduler(tmp_path, OURS))
    assert text.startswith("[filter_scheduler] resource_provider_weight_multiplier is 0.0: ")
    nearness = "resource_provider_same_host_weight_multiplier = 1.0"
    assert not list(check_weigher(scheduler(tmp_path, OURS, nearness)))


@pytest.mark.parametrize("step", [Step.LOOK, Step.NOVAS_DRIVER, Step.WEIGHER])
def test_hosts_with_novas_driver_are_told_no_option_of_ours(step: Step) -> None:
    """Nova's own driver reads neither option: a file reports the shares, and no nodes are."""
    hosts = [host("a", shares=True), host("b")]
    assert not list(check_numa(hosts, step))
    (text,) = check_shares(hosts, step)
    assert "on b, write the provider.yaml (cpu-tiers inventory show" in text
    assert "report_vcpu_shares" not in text


def test_the_files_of_this_machine() -> None:
    files = ProviderFiles(folder="/f", root=RootNames(name="a"))
    (text,) = check_provider_files(files, 200, needs_file=True)
    assert text.startswith("/f: no file gives host a its shares, and servers hold 200 ")
    assert not list(check_provider_files(files, 200, needs_file=False))


def test_an_option_with_a_wrong_value(tmp_path: Path) -> None:
    checks = Checks(scheduler(tmp_path, "query_placement_for_numa = perhaps"))
    result = dict(Checks._upgrade_checks)["Weigher of nova-scheduler"](checks)
    assert result.code == Code.FAILURE
    assert "perhaps" in str(result.details)


def driven(name: str, aware: bool | None = None) -> HostSurvey:
    """Return a host whose driver of cpu-tiers reports shares."""
    trait = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
    return replace(host(name, aware, shares=True), functions=frozenset({trait}))


FILE = host("file", shares=True)


@pytest.mark.parametrize(
    ("hosts", "lines", "step"),
    [
        pytest.param([host("a")], (NOVAS,), "0, no tiers", id="look"),
        pytest.param([host("a")], (SHARES, NUMA), "0, no tiers", id="options without effect"),
        pytest.param([FILE, host("a")], (), "1, tiers with Nova's own driver", id="a file"),
        pytest.param([FILE], (OURS,), "2, the weigher", id="a file and the weigher"),
        pytest.param([driven("b")], (NOVAS,), "1, tiers with", id="a trait that stays is no step"),
        pytest.param([FILE, driven("b")], (OURS,), "2, the weigher", id="half of the way back"),
        pytest.param([FILE], (OURS, SHARES), "3, the driver", id="requests of shares"),
        pytest.param([driven("a", True)], (OURS,), "4, NUMA nodes", id="NUMA nodes"),
        pytest.param([driven("a", False)], (OURS, NUMA), "4, NUMA nodes", id="queries for nodes"),
    ],
)
def test_the_step_of_a_cloud(
    tmp_path: Path, hosts: list[HostSurvey], lines: tuple[str, ...], step: str
) -> None:
    result = check_step(hosts, scheduler(tmp_path, *lines))
    assert result.code == Code.SUCCESS
    assert str(result.details).startswith(f"step {step}")


def test_the_numbers_of_a_step(tmp_path: Path) -> None:
    hosts = [FILE, driven("b"), driven("c", True), host("d")]
    assert str(check_step(hosts, scheduler(tmp_path, OURS)).details).endswith(
        ": of 4 hosts, 3 report shares, 1 report NUMA nodes, and 2 have the trait of the driver of"
        " cpu-tiers, which stays on a host that goes back to Nova's own driver; nova-scheduler"
        " loads the weigher"
    )
    wrong = scheduler(tmp_path, "query_placement_for_numa = perhaps")
    with pytest.raises(ValueError, match="perhaps"):
        check_step(hosts, wrong)


@pytest.mark.parametrize(
    ("hosts", "flavors", "asks_nodes", "named"),
    [
        pytest.param(
            [host("a", shares=True), host("b", True, shares=True), host("c", False, shares=True)],
            ["huge"],
            False,
            "2 of 3 hosts report their shares as one amount: a, c.",
            id="hosts that do not report their nodes",
        ),
        pytest.param([host("a", shares=True)], [], False, None, id="no such flavor"),
        pytest.param(
            [host("a", True, shares=True)], ["huge"], False, None, id="nodes have shares"
        ),
        pytest.param([host("a")], ["huge"], False, None, id="no host sells shares"),
        pytest.param(
            [host("a", shares=True)], ["huge"], True, None, id="servers go to nodes only"
        ),
    ],
)
def test_tiers_on_nodes_that_nobody_counts(
    hosts: list[HostSurvey], flavors: list[str], asks_nodes: bool, named: str | None
) -> None:
    conf = cfg.ConfigOpts()
    register(conf)
    conf.register_opt(weight_classes.OPTION, filter_scheduler.GROUP)
    conf.set_override("query_placement_for_numa", asks_nodes, filter_scheduler.GROUP)
    texts = list(check_uncounted_nodes(hosts, flavors, conf))
    assert len(texts) == (named is not None)
    for text in texts:
        assert text.startswith("servers of huge stand on NUMA nodes, and ")
        assert named is not None
        assert named in text

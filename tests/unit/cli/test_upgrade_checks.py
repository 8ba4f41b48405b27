"""Hosts without the traits that nova-scheduler requires are named before an upgrade."""

import pytest
from oslo_config import cfg

from cpu_tiers.model.names import MULTIPLIER_TRAIT, POLICY_TRAITS
from cpu_tiers.tools.cloud.upgrade_checks import check_host_traits, register
from cpu_tiers.tools.placement.inventories import HostSurvey

WEIGHT = MULTIPLIER_TRAIT
ALL = (WEIGHT, *POLICY_TRAITS)
SHARES = ("filter_scheduler", "query_placement_for_vcpu_shares")
TRAITS = ("filter_scheduler", "require_host_traits")
POLICIES = ("compute", "extend_cpu_policies")


def host(name: str, *traits: str, vcpu: bool = True) -> HostSurvey:
    return HostSurvey(
        name=name,
        is_numa_aware=None,
        has_pcpu=not vcpu,
        has_vcpu=vcpu,
        has_shares=False,
        functions=frozenset(traits),
    )


HOSTS = (
    host("all", *ALL),
    host("shares", WEIGHT),
    host("before", WEIGHT, *POLICY_TRAITS[:2]),
    host("none"),
    host("pinned", *POLICY_TRAITS, vcpu=False),
)


def conf(*switches: tuple[str, str]) -> cfg.ConfigOpts:
    opts = cfg.ConfigOpts()
    register(opts)
    opts([])
    for group, option in switches:
        opts.set_override(option, True, group)
    return opts


@pytest.mark.parametrize(
    "switches",
    [
        pytest.param((SHARES, POLICIES), id="no trait is required"),
        pytest.param((TRAITS,), id="no flavor needs a function"),
    ],
)
def test_off_is_off(switches: tuple[tuple[str, str], ...]) -> None:
    assert not list(check_host_traits(HOSTS, conf(*switches)))


def test_hosts_with_the_traits_pass_and_a_cloud_without_hosts_passes() -> None:
    options = conf(TRAITS, SHARES, POLICIES)
    assert not list(check_host_traits([host("all", *ALL)], options))
    assert not list(check_host_traits([], options))


def test_hosts_without_the_trait_of_the_multiplier() -> None:
    (text,) = check_host_traits(HOSTS, conf(TRAITS, SHARES))
    # Servers with a weight have shared vCPUs, so the host "pinned" does not count.
    assert text == (
        f"1 of 4 hosts without {WEIGHT}: none. [filter_scheduler] require_host_traits is on, so"
        " none of these hosts gets a new server, or a server by a resize, of a flavor with"
        " quota:cpu_shares_multiplier. On these hosts, set [DEFAULT] compute_driver ="
        " cpu_tiers.LibvirtDriver and [libvirt] report_vcpu_shares = true, and restart"
        " nova-compute; or set require_host_traits = false until then"
    )


def test_hosts_of_an_older_release_lack_only_the_new_traits() -> None:
    (text,) = check_host_traits(HOSTS[2:3], conf(TRAITS, POLICIES))
    assert text.startswith(
        "1 of 1 hosts without CUSTOM_COMPUTE_CPU_REALTIME_MASK or"
        " CUSTOM_COMPUTE_NUMA_EVEN_MEMORY: before. "
    )
    weight, policies = check_host_traits(HOSTS, conf(TRAITS, SHARES, POLICIES))
    assert weight.startswith(f"1 of 4 hosts without {WEIGHT}: none. ")
    every = " or ".join(POLICY_TRAITS)
    assert policies.startswith(f"3 of 5 hosts without {every}: shares, before, none. ")
    assert "hw:numa_cpus.N without hw:numa_mem.N. On these hosts, set" in policies

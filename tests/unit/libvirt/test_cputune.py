"""The weight of a domain, and where its threads run."""

from dataclasses import replace

import pytest
from lxml import etree
from lxml.etree import _Element

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.cputune import elements, set_shares
from cpu_tiers.model.compute import ComputeHost
from tests.unit.libvirt.guests import HOST, ISOLATED, MIXED, NO_SHARED_SET, REALTIME, guest


def cputune(guest: Guest) -> _Element:
    (element,) = elements(guest)
    return element


def pins(guest: Guest) -> list[tuple[str | None, str | None]]:
    return [(pin.get("vcpu"), pin.get("cpuset")) for pin in cputune(guest).findall("vcpupin")]


def emulator(guest: Guest) -> str | None:
    (pin,) = cputune(guest).findall("emulatorpin")
    return pin.get("cpuset")


def test_dedicated_vcpus_are_pinned_and_shared_vcpus_float_over_the_node() -> None:
    # node 0 is on host cell 1, whose shared CPUs are 8-11, and node 1 on cell 0, with 0-3
    assert pins(MIXED) == [
        *(("0", "8-11"), ("1", "8-11"), ("2", "12")),
        *(("3", "0-3"), ("4", "0-3"), ("5", "0-3"), ("6", "0-3"), ("7", "4")),
    ]


def test_pins_follow_the_vcpus_where_nodes_take_turns() -> None:
    assert pins(ISOLATED) == [("0", "4"), ("1", "6"), ("2", "15"), ("3", "13")]


def share(guest: Guest, host: ComputeHost) -> Guest:
    assert guest.topology is not None
    topology = replace(guest.topology, emulator_threads_policy="share")
    return replace(guest, topology=topology, host=host)


@pytest.mark.parametrize(
    ("guest", "cpus"),
    [
        pytest.param(MIXED, "0-4,8-12", id="no policy: over the CPUs of all vCPUs"),
        pytest.param(REALTIME, "0-3", id="no policy: not over those of real-time vCPUs"),
        pytest.param(ISOLATED, "5", id="isolate: on the reserved CPU"),
        pytest.param(share(ISOLATED, HOST), "0-3,8-11", id="share: over cpu_shared_set"),
        pytest.param(
            share(ISOLATED, NO_SHARED_SET), "4,6,13,15", id="share, without that set: no policy"
        ),
    ],
)
def test_emulator_threads(guest: Guest, cpus: str) -> None:
    assert emulator(guest) == cpus


def test_real_time_vcpus_have_a_fifo_scheduler() -> None:
    (sched,) = cputune(REALTIME).findall("vcpusched")
    assert dict(sched.items()) == {"vcpus": "1-2", "scheduler": "fifo", "priority": "7"}


def test_a_guest_without_real_time_vcpus_has_no_scheduler() -> None:
    assert cputune(MIXED).find("vcpusched") is None


def test_a_mixed_guest_weighs_by_shared_and_dedicated_vcpus() -> None:
    assert cputune(MIXED).findtext("shares") == "20"  # 2.5 x 8


def test_a_guest_without_topology_and_tier_has_no_tuning() -> None:
    assert not list(elements(guest()))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("<domain/>", id="no cputune"),
        pytest.param("<domain><cputune/></domain>", id="no shares"),
        pytest.param("<domain><cputune><shares>2048</shares></cputune></domain>", id="others"),
    ],
)
def test_a_domain_gets_the_given_weight(given: str) -> None:
    domain = etree.fromstring(given)
    set_shares(domain, 200)
    expected = "<domain><cputune><shares>200</shares></cputune></domain>"
    assert etree.tostring(domain, encoding="unicode") == expected


def test_a_quota_of_the_domain_stays() -> None:
    domain = etree.fromstring("<domain><cputune><quota>5</quota></cputune></domain>")
    set_shares(domain, 200)
    assert domain.findtext("cputune/quota") == "5"

from collections.abc import Iterable
from pathlib import Path

import pytest
from lxml import etree
from lxml.builder import E
from lxml.etree import _Element

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.libvirt.domain import BUILT_IN, write_domain
from tests.unit.libvirt.guests import HOST, ISOLATED, LARGE_PAGES, MIXED, REALTIME

SCHEMA = Path("/usr/share/libvirt/schemas/domain.rng")


def guest(vcpus: int = 1, /, **extra_specs: str) -> Guest:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    flavor = Flavor(name="gold", vcpus=vcpus, memory_mb=4096, extra_specs=specs)
    return Guest(name="gold", flavor=flavor, arch="x86_64", host=HOST)


@pytest.mark.parametrize(
    ("vcpus", "specs", "shares"),
    [
        pytest.param(1, {"quota__cpu_shares_multiplier": "100.0"}, "100", id="the spec's gold"),
        pytest.param(10, {"quota__cpu_shares_multiplier": "2.5"}, "25", id="10 x 2.5"),
        pytest.param(10, {"quota__cpu_shares": "100"}, "100", id="shares are per domain"),
        pytest.param(
            4,
            {"quota__cpu_shares_multiplier": "25", "hw__cpu_policy": "dedicated"},
            "100",
            id="a dedicated domain has its weight all the same: 4 x 25",
        ),
        pytest.param(1, {}, None, id="no tier, no element: the kernel's default"),
    ],
)
def test_shares(vcpus: int, specs: dict[str, str], shares: str | None) -> None:
    domain = etree.fromstring(write_domain(guest(vcpus, **specs)))
    assert domain.findtext("cputune/shares") == shares
    assert (domain.find("cputune") is None) == (shares is None)


def test_shared_vcpus_float_over_the_shared_cpus() -> None:
    vcpu = etree.fromstring(write_domain(guest(2))).find("vcpu")
    assert vcpu is not None
    assert (vcpu.text, vcpu.get("cpuset")) == ("2", "0-3,8-11")


def test_vcpus_pinned_to_single_cpus_do_not_float_together() -> None:
    vcpu = etree.fromstring(write_domain(ISOLATED)).find("vcpu")
    assert vcpu is not None
    assert dict(vcpu.items()) == {"placement": "static"}


def test_both_share_specs() -> None:
    with pytest.raises(ConflictingExtraSpecs):
        write_domain(guest(quota__cpu_shares="1", quota__cpu_shares_multiplier="1"))


def quota(_: Guest) -> Iterable[_Element]:
    """A plugin as another distribution may bring it."""
    return [E.cputune(E.period("100000"), E.quota("50000")), E.title("a guest")]


def test_a_second_plugin_adds_to_the_element_of_the_first_plugin() -> None:
    plugins = {**BUILT_IN, "quota": quota}
    domain = etree.fromstring(write_domain(guest(quota__cpu_shares="7"), plugins))
    (cputune,) = domain.findall("cputune")
    assert [child.tag for child in cputune] == ["shares", "period", "quota"]
    assert domain.findtext("title") == "a guest"


def test_another_plugin_adds_an_attribute() -> None:
    plugins = {**BUILT_IN, "current": lambda _: [E.vcpu(current="1")]}
    vcpu = etree.fromstring(write_domain(guest(2), plugins)).find("vcpu")
    assert vcpu is not None
    assert (vcpu.text, vcpu.get("current"), vcpu.get("placement")) == ("2", "1", "static")


@pytest.mark.parametrize(
    ("element", "part"),
    [
        (E.cputune(E.shares("1")), "cputune/shares"),
        (E.vcpu("9", placement="auto"), "vcpu/@placement"),
        (E.memory("1"), "memory"),
        (E.name("mine"), "name"),
    ],
)
def test_two_plugins_of_a_single_part(element: _Element, part: str) -> None:
    plugins = {**BUILT_IN, "rude": lambda _: [element]}
    with pytest.raises(ExtensionError, match=f"'rude' of cpu_tiers.domain_xml both write {part};"):
        write_domain(guest(quota__cpu_shares="7"), plugins)


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed (libvirt0)")
@pytest.mark.parametrize(
    "guest",
    [
        pytest.param(guest(1, quota__cpu_shares_multiplier="2.5"), id="shared"),
        pytest.param(guest(64, quota__cpu_shares_multiplier="2.5"), id="64 vCPUs"),
        pytest.param(MIXED, id="mixed, two nodes"),
        pytest.param(REALTIME, id="real-time"),
        pytest.param(ISOLATED, id="dedicated, isolated emulator threads"),
        pytest.param(LARGE_PAGES, id="large pages"),
    ],
)
def test_valid_against_libvirts_schema(guest: Guest) -> None:
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    schema.assertValid(etree.fromstring(write_domain(guest)))

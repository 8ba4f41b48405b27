from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.tiers.domain import Domain

UUID = "c7a5fdbd-edaf-9455-926a-d65c16db1809"
GUEST = f"""<domain type='kvm' id='3'>
  <name>instance-0000001a</name>
  <uuid>{UUID}</uuid>
  <metadata>
    <other:instance xmlns:other="urn:other"><other:flavor name="theirs"/></other:instance>
    <nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
      <nova:flavor name="gold" id="42">
        <nova:vcpus>4</nova:vcpus>
        <nova:extraSpecs>
          <nova:extraSpec name="quota:cpu_shares_multiplier">100.0</nova:extraSpec>
          <nova:extraSpec name="hw:empty"/>
        </nova:extraSpecs>
      </nova:flavor>
    </nova:instance>
  </metadata>
  <vcpu placement='static' cpuset='0-3,^2'>4</vcpu>
  <cputune>
    <shares>400</shares>
    <vcpupin vcpu='3' cpuset='7'/>
    <emulatorpin cpuset='8-9'/>
  </cputune>
</domain>
"""


def parse(text: str) -> Domain:
    return parse_domain(text.encode(), where="guest.xml")


def domain(inner: str) -> Domain:
    return parse(f"<domain><name>g</name>{inner}</domain>")


def test_a_guest_of_nova() -> None:
    floats = CpuSet({0, 1, 3})
    assert parse(GUEST) == Domain(
        name="instance-0000001a",
        uuid=UUID,
        shares=400,
        vcpu_sets=(floats, floats, floats, CpuSet({7})),
        emulator_set=CpuSet({8, 9}),
        flavor="gold",
        extra_specs={"quota:cpu_shares_multiplier": "100.0", "hw:empty": ""},
    )


def test_before_release_32_nova_wrote_no_extra_specs() -> None:
    start, end = GUEST.index("<nova:extraSpecs>"), GUEST.index("</nova:flavor>")
    old = parse(GUEST[:start] + GUEST[end:])
    assert (old.flavor, old.extra_specs) == ("gold", None)
    none = parse(GUEST[:start] + "<nova:extraSpecs/>" + GUEST[end:])
    assert none.extra_specs == {}


def test_a_domain_that_nova_did_not_make() -> None:
    assert domain("<vcpu>2</vcpu>") == Domain(name="g", vcpu_sets=(None, None))


@pytest.mark.parametrize(
    ("inner", "sets"),
    [
        pytest.param("<vcpu current='1'>4</vcpu>", (None,), id="one of four is plugged in"),
        pytest.param(
            "<vcpu current='2'>3</vcpu><vcpus><vcpu id='0' enabled='yes'/>"
            "<vcpu id='1' enabled='no'/><vcpu id='2' enabled='yes'/></vcpus>"
            "<cputune><vcpupin vcpu='1' cpuset='1'/><vcpupin vcpu='2' cpuset='2'/></cputune>",
            (None, CpuSet({2})),
            id="the first and the last are",
        ),
    ],
)
def test_vcpus_that_are_plugged_in(inner: str, sets: tuple[CpuSet | None, ...]) -> None:
    assert domain(inner).vcpu_sets == sets


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "not XML", id="empty"),
        pytest.param(
            "<capabilities/>",
            "a document with the root element 'cap",
            id="another document",
        ),
        pytest.param("<domain><vcpu>1</vcpu></domain>", "a domain without a name", id="no name"),
        pytest.param("<domain><name>g</name></domain>", "no <vcpu>", id="no vCPU"),
    ],
)
def test_a_text_that_is_no_domain(text: str, fault: str) -> None:
    with pytest.raises(InvalidInput, match=f"^guest.xml: {fault}"):
        parse(text)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        domain(
            "<vcpu cpuset='all'>99999999</vcpu><cputune><shares>0</shares>"
            "<vcpupin vcpu='x' cpuset='3-1'/></cputune>"
        )
    assert [fault.where for fault in caught.value.faults] == [
        "guest.xml, shares",
        "guest.xml, line 1, cpuset",
        "guest.xml, vcpupin",
        "guest.xml, line 1, cpuset",
        "guest.xml, vcpu",
    ]


def test_entities_are_never_resolved(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1")
    text = f'<!DOCTYPE d [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(InvalidInput, match="a document type"):
        parse(f"{text}<domain><name>g</name><vcpu>&s;</vcpu></domain>")


def test_the_process_that_libvirt_started() -> None:
    # libvirt 9.0 with Debian's user libvirt-qemu; other labels are of AppArmor
    read = domain(
        "<vcpu>1</vcpu><devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices>"
        "<seclabel type='dynamic' model='apparmor'><label>libvirt-1</label></seclabel>"
        "<seclabel type='dynamic' model='dac'><label>+64055:+109</label></seclabel>"
    )
    assert (read.emulator, read.owner) == ("/usr/bin/qemu-system-x86_64", "64055")
    named = "<seclabel type='static' model='dac'><label>qemu:kvm</label></seclabel>"
    assert domain(f"<vcpu>1</vcpu>{named}").owner == "qemu"
    assert domain("<vcpu>1</vcpu><seclabel type='none' model='dac'/>").owner is None


def test_quotas() -> None:
    read = domain(
        "<vcpu>1</vcpu><cputune><quota>20000</quota><emulator_quota>-1</emulator_quota>"
        "<global_quota>50000</global_quota></cputune>"
    )
    assert read.quotas == {"global_quota": 50_000, "quota": 20_000}

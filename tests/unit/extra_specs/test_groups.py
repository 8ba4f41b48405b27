import os_resource_classes as orc
import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators import ServerRequest


def parse(extra_specs: dict[str, str]) -> OwnGroups:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=extra_specs)
    return ServerRequest(flavor).own_groups


def test_groups_by_suffix() -> None:
    own = parse(
        {
            "resources:VGPU": "1",
            "resources:VCPU": "0",
            "trait:HW_CPU_X86_AVX2": "required",
            "trait:CUSTOM_SLOW": "forbidden",
            "resources1:CUSTOM_FPGA": "2",
            "resources_net-1:NET_BW_EGR_KILOBIT_PER_SEC": "1000",
            "trait_net-1:CUSTOM_PHYSNET_A": "required",
            "group_policy": "isolate",
            "hw:cpu_policy": "shared",
            "traits_are_fun": "an aggregate's key, no trait",
        }
    )
    assert own.group_policy == "isolate"
    assert own.groups == (
        RequestGroup(
            suffix="",
            resources={"VGPU": 1, "VCPU": 0},
            required=frozenset({"HW_CPU_X86_AVX2"}),
            forbidden=frozenset({"CUSTOM_SLOW"}),
        ),
        RequestGroup(suffix="1", resources={"CUSTOM_FPGA": 2}),
        RequestGroup(
            suffix="_net-1",
            resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000},
            required=frozenset({"CUSTOM_PHYSNET_A"}),
        ),
    )


def test_amounts_add_up_over_groups() -> None:
    own = parse({"resources1:VCPU": "2", "resources2:VCPU": "3", "resources:PCPU": "0"})
    assert own.amount("VCPU") == 5
    assert own.amount("PCPU") == 0
    assert own.amount("VGPU") is None


@pytest.mark.parametrize(
    ("key", "value", "given"),
    [
        ("resources:VCPU", "four", "'four'"),
        ("resources:VCPU", "-1", "'-1'"),
        ("resources:VCPU", "25.5", "'25.5'"),
        ("resources:VCPU", "", "''"),
        ("resources:VCPU", "2147483648", "'2147483648'"),
        ("resources:VCPU", "1" * 5000, "1111"),
        ("resources:vcpu", "1", "unknown resource class 'vcpu'"),
        ("resources:CUSTOM_lower", "1", "unknown resource class"),
        ("resources:VCPU_SHARE", "1", "unknown resource class 'VCPU_SHARE'"),
        ("resources:", "1", "malformed key"),
        ("resources", "1", "malformed key"),
        ("resources!:VCPU", "1", "malformed key"),
        ("resources" + "x" * 65 + ":VCPU", "1", "malformed key"),
        ("trait:HW_CPU_X86_AVX2", "yes", "'yes'"),
        ("trait:HW_NO_SUCH_TRAIT", "required", "unknown trait 'HW_NO_SUCH_TRAIT'"),
        ("trait:", "required", "malformed key"),
        ("group_policy", "any", "'any'"),
    ],
)
def test_faults(key: str, value: str, given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse({key: value})
    (fault,) = caught.value.faults
    assert fault.where == f"flavor f, extra spec {key}"
    assert given in fault.given


def test_all_faults_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse({"resources:VCPU": "x", "trait:NOPE": "maybe", "group_policy": "?"})
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize("key", ["resources:VCPU_SHARES", "resources_A:VCPU_SHARES"])
def test_the_specs_own_name_of_the_class_is_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for classes in (orc.STANDARDS, [*orc.STANDARDS, "VCPU_SHARES"]):  # also one day
        monkeypatch.setattr(orc, "STANDARDS", classes)
        with pytest.raises(InvalidInput, match="its name in Placement is CUSTOM_VCPU_SHARES"):
            parse({key: "10"})

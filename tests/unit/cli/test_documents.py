import json
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.tools.frame.documents import read_flavor, read_image, read_port

# As `openstack flavor show -f json` prints it.
GOLD = {
    "OS-FLV-DISABLED:disabled": False,
    "OS-FLV-EXT-DATA:ephemeral": 5,
    "access_project_ids": None,
    "description": None,
    "disk": 40,
    "id": "6d6d0d0f-4f8e-4f5a-9d0b-3a1a2a6e4f10",
    "name": "gold",
    "os-flavor-access:is_public": True,
    "properties": {"quota:cpu_shares_multiplier": "100.0"},
    "ram": 4096,
    "rxtx_factor": 1.0,
    "swap": 512,
    "vcpus": 1,
}


def write(tmp_path: Path, document: object) -> str:
    path = tmp_path / "document.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_flavor(tmp_path: Path) -> None:
    assert read_flavor(write(tmp_path, GOLD)) == Flavor(
        name="gold",
        vcpus=1,
        memory_mb=4096,
        root_gb=40,
        ephemeral_gb=5,
        swap_mb=512,
        extra_specs={"quota:cpu_shares_multiplier": "100.0"},
    )


def test_older_clients_print_no_swap_as_an_empty_text(tmp_path: Path) -> None:
    assert read_flavor(write(tmp_path, {**GOLD, "swap": ""})).swap_mb == 0


@pytest.mark.parametrize(
    ("change", "where", "given"),
    [
        ({"vcpus": "four"}, "flavor gold, vcpus", "'four'"),
        ({"vcpus": "4"}, "flavor gold, vcpus", "'4'"),
        ({"vcpus": 0}, "flavor gold, vcpus", "0"),
        ({"vcpus": -2}, "flavor gold, vcpus", "-2"),
        ({"vcpus": 1.5}, "flavor gold, vcpus", "1.5"),
        ({"vcpus": None}, "flavor gold, vcpus", "None"),
        ({"ram": True}, "flavor gold, memory_mb", "True"),
        ({"disk": 10**40}, "flavor gold, root_gb", "1000"),
        ({"properties": "quota:cpu_shares=5"}, "flavor gold", "quota:cpu_shares"),
        ({"properties": None}, "flavor gold", "None"),
        ({"properties": {"a": ["b"]}}, "flavor gold, property a", "['b']"),
    ],
)
def test_faults(tmp_path: Path, change: dict[str, Any], where: str, given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_flavor(write(tmp_path, {**GOLD, **change}))
    (fault,) = caught.value.faults
    assert fault.where == where
    assert given in fault.given


def test_faults_of_sizes_and_properties_at_once(tmp_path: Path) -> None:
    document: dict[str, Any] = {**GOLD, "vcpus": 0, "ram": 0, "properties": {"a": [], "b": {}}}
    with pytest.raises(InvalidInput) as caught:
        read_flavor(write(tmp_path, document))
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("", "not JSON"),
        ("<html>", "not JSON"),
        ("[]", "a JSON list"),
        ("null", "a JSON NoneType"),
        ('{"vcpus": NaN}', "NaN is not JSON"),
        ('{"vcpus": 1, "vcpus": 2}', "keys are repeated in an object: vcpus"),
        # comparing each key with each took half an hour
        ("{" + '"vcpus": 1, ' * 200_000 + '"ram": 1}', "keys are repeated in an object: vcpus"),
        ('{"name": "\\ud800"}', "surrogates not allowed"),
        ("[" * 100_000, "not JSON"),
        ('{"vcpus": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_no_flavor(tmp_path: Path, text: str, given: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read_flavor(path)
    (fault,) = caught.value.faults
    assert fault.where == path
    assert given in fault.given


@pytest.mark.parametrize("path", ["/no/such/file.json", "/", "a\0b"])
def test_files_that_cannot_be_read(path: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_flavor(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "flavor.json"
    path.write_bytes(b"\xff\xfe\xfa{}")
    with pytest.raises(InvalidInput, match="not JSON"):
        read_flavor(str(path))


def test_image_has_the_properties_that_decide(tmp_path: Path) -> None:
    document = {
        "name": "cirros",
        "min_ram": 0,
        "properties": {
            "os_hidden": False,
            "stores": "local",
            "hw_cpu_policy": "shared",
            "trait:HW_CPU_X86_VMX": "required",
            "hw_vif_multiqueue_enabled": True,  # as newer clients print the text "true"
            "hw_firmware_stateless": False,
        },
    }
    properties = {
        "hw_cpu_policy": "shared",
        "trait:HW_CPU_X86_VMX": "required",
        "hw_vif_multiqueue_enabled": "true",
        "hw_firmware_stateless": "false",
    }
    assert read_image(write(tmp_path, document)) == Image(name="cirros", properties=properties)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"properties": {"trait:HW_CPU_X86_VMX": True}},
            "property trait:HW_CPU_X86_VMX: got True",
        ),
        ({"properties": {"hw_cpu_policy": ["shared"]}}, "property hw_cpu_policy: got"),
        ({"properties": "hw_cpu_policy='shared'"}, "give a JSON object"),
        ({"hw_cpu_policy": "shared"}, "no properties"),
        ({"name": "", "properties": {}}, "the name is ''"),
        ({"name": None, "properties": {}}, "the name is None"),
    ],
)
def test_an_image_with_properties_in_the_wrong_place_is_refused(
    tmp_path: Path, document: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_image(write(tmp_path, document))


ASKS = {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, "required": ["CUSTOM_PHYSNET_0"]}


@pytest.mark.parametrize(
    ("printed", "request_"),
    [
        pytest.param(ASKS, ASKS, id="an object"),
        pytest.param(json.dumps(ASKS), ASKS, id="as text"),
        pytest.param("", None, id="an empty text"),
        pytest.param(None, None, id="nothing"),
        pytest.param([1], [1], id="no object: the translator says so"),
    ],
)
def test_port(tmp_path: Path, printed: object, request_: object) -> None:
    document = {
        "id": "5a2d0dd5",
        "binding_profile": {"allocation": "0f0aa8a0"},
        "binding_vnic_type": "normal",
        "resource_request": printed,
    }
    assert read_port(write(tmp_path, document)) == Port(
        id="5a2d0dd5", resource_request=request_, binding_profile={"allocation": "0f0aa8a0"}
    )


def test_a_neutron_without_the_extension(tmp_path: Path) -> None:
    assert read_port(write(tmp_path, {"id": "p1"})) == Port(id="p1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "the id is None"),
        ({"id": " "}, "the id is ' '"),
        ({"resource_request": "{'resources': {}}"}, "port p1, resource_request: got "),
        ({"resource_request": '{"a": 1, "a": 2}'}, "port p1, resource_request: got "),
        ({"binding_profile": "[1]"}, "port p1, binding_profile: got .*give an object"),
        ({"binding_profile": 7}, "port p1, binding_profile: got 7; give an object"),
    ],
)
def test_bad_ports(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write(tmp_path, {"id": "p1", **change})
    with pytest.raises(InvalidInput, match=message):
        read_port(path)

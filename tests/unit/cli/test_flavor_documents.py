"""The output of ``openstack flavor show`` and ``flavor list``, of several clients."""

import json
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.documents import read_flavors

# As `openstack flavor list --long -f json` of python-openstackclient 10.5.0 prints a row.
ROW: dict[str, Any] = {
    "ID": "6d6d0d0f-4f8e-4f5a-9d0b-3a1a2a6e4f10",
    "Name": "gold",
    "RAM": 4096,
    "Disk": 40,
    "Ephemeral": 5,
    "VCPUs": 2,
    "Is Public": True,
    "Swap": 512,
    "RXTX Factor": 1.0,
    "Properties": {"quota:cpu_shares_multiplier": "100.0"},
}
GOLD = Flavor(
    name="gold",
    vcpus=2,
    memory_mb=4096,
    root_gb=40,
    ephemeral_gb=5,
    swap_mb=512,
    extra_specs={"quota:cpu_shares_multiplier": "100.0"},
)


def read(tmp_path: Path, document: object) -> tuple[list[Flavor], list[str]]:
    path = tmp_path / "flavors.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    faults = FaultList()
    flavors = list(read_flavors(str(path), faults))
    return flavors, [str(fault).replace(str(path), "F") for fault in faults.faults]


def test_a_list(tmp_path: Path) -> None:
    silver = {**ROW, "Name": "silver", "Properties": {}}
    flavors, faults = read(tmp_path, [ROW, silver])
    assert (flavors[0], flavors[1].name, flavors[1].extra_specs) == (GOLD, "silver", {})
    assert faults == []
    assert read(tmp_path, []) == ([], [])


def test_a_single_flavor(tmp_path: Path) -> None:
    shown = {"name": "gold", "vcpus": 2, "ram": 4096, "disk": 40, "swap": 512}
    shown |= {"OS-FLV-EXT-DATA:ephemeral": 5, "properties": ROW["Properties"]}
    assert read(tmp_path, shown) == ([GOLD], [])


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("quota:cpu_shares_multiplier='100.0'", {"quota:cpu_shares_multiplier": "100.0"}),
        ("hw:cpu_policy='mixed', hw:cpu_dedicated_mask='0-1,^0'", None),
        ("", {}),
    ],
)
def test_older_clients_print_properties_as_text(
    tmp_path: Path, text: str, specs: dict[str, str] | None
) -> None:
    (flavor,), faults = read(tmp_path, [{**ROW, "Properties": text, "Swap": ""}])
    expected = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1,^0"}
    assert flavor.extra_specs == (expected if specs is None else specs)
    assert (flavor.swap_mb, faults) == (0, [])


def test_faults_of_rows_beside_good_rows(tmp_path: Path) -> None:
    short = {key: value for key, value in ROW.items() if key != "Properties"}
    rows = [short, 7, ROW, {**ROW, "Name": ""}, {**ROW, "VCPUs": "2", "RAM": 0}]
    flavors, faults = read(tmp_path, [*rows, {**ROW, "Properties": "a='b', c"}])
    assert flavors == [GOLD]
    advice = "give the output of openstack flavor list --long -f json"
    assert faults == [
        f"F, flavor 1: no column Properties; {advice}",
        f"F, flavor 2: a JSON int; {advice}",
        "F, flavor 4: the name is ''; give a name",
        "flavor gold, vcpus: got '2'; give a whole number from 1 to 2147483647",
        "flavor gold, memory_mb: got 0; give a whole number from 1 to 2147483647",
        "flavor gold: properties are \"a='b', c\"; give a JSON object, as newer openstack"
        " clients print it",
    ]


def test_a_size_that_is_missing_is_named_as_in_the_file(tmp_path: Path) -> None:
    flavors, faults = read(tmp_path, {"name": "gold", "vcpus": 0, "memory_mb": 4096})
    advice = "give the output of openstack flavor show FLAVOR -f json"
    assert flavors == []
    assert faults == [
        f"flavor gold: no ram; {advice}",
        "flavor gold, vcpus: got 0; give a whole number from 1 to 2147483647",
    ]


@pytest.mark.parametrize("document", ["no json", "7", "null", '{"name": 1}'])
def test_no_flavor_at_all(tmp_path: Path, document: str) -> None:
    flavors, faults = read(tmp_path, document)
    assert (flavors, len(faults)) == ([], 1)
    assert faults[0].startswith("F")


def test_flavors_of_novas_api(tmp_path: Path) -> None:
    """The bodies of ``GET /flavors/{id}`` and ``/flavors/detail``, and the flavor of a server."""
    sizes: dict[str, Any] = {"vcpus": 2, "ram": 4096, "disk": 40, "swap": 512}
    sizes["extra_specs"] = ROW["Properties"]
    body = {"id": "1", "name": "gold", **sizes, "OS-FLV-EXT-DATA:ephemeral": 5}
    of_server = {"original_name": "gold", **sizes, "ephemeral": 5}
    for document in (body, {"flavor": body}, {"flavors": [body]}, of_server):
        assert read(tmp_path, document) == ([GOLD], [])


def test_extra_specs_twice(tmp_path: Path) -> None:
    """None of the two is left out unseen."""
    twice = {"name": "gold", "vcpus": 2, "ram": 512, "extra_specs": {}, "properties": {"a": "b"}}
    assert read(tmp_path, twice) == ([], ["F: extra_specs and properties; give one of them"])

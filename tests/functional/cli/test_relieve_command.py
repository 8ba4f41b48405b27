"""``cpu-tiers plan relieve`` on a snapshot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]
SHORT = {"kind": "short", "where": "guest web0", "uuid": "id-0", "found": "", "do": ""}


def test_relief(plan: Run) -> None:
    assert plan(cloud(), "relieve").startswith("Nothing to mend")
    document: Any = cloud()
    document["providers"][0]["inventories"]["VCPU"]["total"] = 3  # of 4 that are allocated
    text = plan(document, "relieve")
    assert text.startswith("Over capacity now: 1 VCPU of cn0. 1 migration mends all.")
    document["providers"][1]["inventories"]["VCPU"]["total"] = 4
    assert "1 VCPU of cn0" in plan(document, "relieve", "cn0", status=3)


def test_servers_that_an_audit_names_as_short(plan: Run, save: Run) -> None:
    audit = save([SHORT, {**SHORT, "kind": "untiered", "uuid": "id-1"}], "cn0.json")
    text = plan(cloud(hosts=3), "relieve", "--audit", audit)
    assert text.startswith("1 server short of the CPU time that is due to it. 1 migration mends")
    assert "web0    cn0" in text
    assert plan(cloud(hosts=3), "relieve", "cn1", "--audit", audit).startswith("Nothing to mend")


def test_servers_that_an_audit_names_as_too_much_for_a_node(plan: Run, save: Run) -> None:
    node = {**SHORT, "kind": "oversold", "where": "CPU 0-7", "uuid": None}
    audit = save([node, {**SHORT, "kind": "oversold"}], "cn0.json")
    text = plan(cloud(hosts=3), "relieve", "--audit", audit)
    assert text.startswith("1 server too much for CPUs, such as a NUMA node, that are oversold.")
    assert "web0    cn0" in text


def test_two_audits_of_a_host(plan: Run, tmp_path: Path) -> None:
    """Files of the same name add up, in either order."""
    arguments: list[object] = []
    for number, uuids in enumerate((["id-0"], [])):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = [{**SHORT, "uuid": uuid} for uuid in uuids]
        (folder / "cn0.json").write_text(json.dumps(rows))
        arguments += ["--audit", folder / "cn0.json"]
    assert plan(cloud(hosts=3), "relieve", *arguments).startswith("1 server short")


def test_traits_that_a_flavor_avoids(plan: Run) -> None:
    document: Any = cloud(hosts=3)
    document["providers"][0]["traits"] = document["providers"][2]["traits"] = ["CUSTOM_LOUD"]
    document["server_flavors"][0]["extra_specs"] = {"trait:CUSTOM_LOUD": "avoided"}
    text = plan(document, "relieve")
    assert text.startswith("1 server on a host that does not suit it. 1 migration mends all.")
    assert "web0    cn0   cn1" in text  # cn2 is loud, too


def test_traits_that_nova_conf_avoids(plan: Run) -> None:
    document: Any = cloud()
    document["providers"][0]["traits"] = ["CUSTOM_PRESSURE_CPU"]
    conf = "resource_provider_avoided_traits = CUSTOM_PRESSURE_*\n"
    words = " ".join(plan(document, "relieve", conf=conf, status=3).split())
    assert words.startswith("cn0 has CUSTOM_PRESSURE_CPU, which nova.conf avoids: --audit says")
    assert plan(document, "relieve", "cn1", conf=conf).startswith("Nothing to mend")

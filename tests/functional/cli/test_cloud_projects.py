"""``cloud show --group-by project``: Nova and Keystone say whose the servers are."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.compute_api import IN_PROGRESS
from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.conftest import CANNED
from tests.functional.placement.providing import provide

Command = Callable[..., Any]
ACME, OTHER = "acme-id", "other-id"
A, B, C, MOVE = (f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 5))
SERVERS, PROJECTS = "GET /servers/detail.*", "GET /v3/projects"
MIGRATIONS, HYPERVISORS = "GET /os-migrations.*", "GET /os-hypervisors.*"


def server(project: str, uuid: str) -> dict[str, Any]:
    return {
        "id": uuid,
        "name": "web",
        "tenant_id": project,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": "one",
    }


@pytest.fixture
def cloud(
    client: PlacementClient, monkeypatch: pytest.MonkeyPatch, faults: list[tuple[str, str]]
) -> Callable[[], None]:
    """Provide a host with servers of two projects; return what lets Nova and Keystone answer.

    Nova has two pages, and the link to the second page has an address elsewhere.
    """
    client.create_resource_class("CUSTOM_VCPU_SHARES")
    host = provide(client, "one", VCPU=16, CUSTOM_VCPU_SHARES=1600)
    for consumer, vcpus, shares in ((A, 1, 100), (B, 2, 200), (C, 4, 0), (MOVE, 1, 100)):
        amounts = {"VCPU": vcpus, **({"CUSTOM_VCPU_SHARES": shares} if shares else {})}
        claim = {
            "allocations": {host: {"resources": amounts}},
            "project_id": "of-placement",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        client._exchange.request("PUT", f"/allocations/{consumer}", json=claim)
    link = f"https://elsewhere.example.org/servers?marker={B}"
    service = {"host": "one", "id": "s"}
    pages = {
        "first": {
            "servers": [server(ACME, A), server(ACME, B)],
            "servers_links": [{"rel": "next", "href": link}],
        },
        "last": {"servers": [server(OTHER, C)]},
        "migrations": {"migrations": []},
        "hypervisors": {
            "hypervisors": [
                {
                    "id": host,
                    "hypervisor_hostname": "one",
                    "state": "up",
                    "status": "enabled",
                    "service": service,
                }
            ]
        },
        "projects": {
            "projects": [{"id": ACME, "name": "acme"}, {"id": OTHER, "name": "=cmd()\x1b[2J"}]
        },
    }
    for name, page in pages.items():
        body = json.dumps(page).encode()
        monkeypatch.setitem(CANNED, name, (200, "application/json", body))

    def answer() -> None:
        faults[:] = [
            (f"{SERVERS}marker={B}", "last"),
            (SERVERS, "first"),
            *[(MIGRATIONS, "migrations")] * len(IN_PROGRESS),
            (HYPERVISORS, "hypervisors"),
            (PROJECTS, "projects"),
        ]

    answer()
    return answer


def test_a_bill(
    run: Command, cloud: Callable[[], None], placement_conf: Path, seen: list[str]
) -> None:
    ungrouped = ("--config-file", placement_conf, "cloud", "show", "--tier", "gold=100")
    show = (*ungrouped, "--group-by", "project")
    seen.clear()
    rows = json.loads(run(*show, "-f", "json").stdout)
    # 8 VCPU and 400 shares in all
    keys = ("project", "name", "tier", "servers", "vcpus", "shares", "part_of_shares")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (ACME, "acme", "gold", 2, 3, 300, 0.75),
        (OTHER, "=cmd()\x1b[2J", "no tier", 1, 4, 0, 0.0),
        (None, None, "gold", 1, 1, 100, 0.25),
    ]
    assert [row["part_of_vcpus"] for row in rows] == [0.375, 0.5, 0.125]
    nova = [line for line in seen if re.match(SERVERS, line)]
    assert [line.partition("marker=")[2] for line in nova] == ["", B]
    assert len([line for line in seen if line.startswith(PROJECTS)]) == 1
    assert len([line for line in seen if re.match(MIGRATIONS, line)]) == len(IN_PROGRESS)
    cloud()
    with_bill = sorted(line for line in seen if line != PROJECTS)
    seen.clear()
    run(*ungrouped, "-f", "json")
    assert with_bill == sorted(seen)  # only the names of projects are further requests
    cloud()
    (first, *_) = csv.DictReader(io.StringIO(run(*show, "-f", "csv").stdout))
    assert (first["project"], first["servers"], first["shares"]) == (ACME, "2", "300")
    cloud()
    text = run(*show).stdout
    table = text[text.index("What is sold to each project") :]
    lines = [line.split() for line in table.splitlines()[3:6]]
    assert lines[0] == ["acme", "gold", "2", "3", "300", "75", "%", "0"]
    assert lines[1][1:] == ["no", "tier", "1", "4", "0", "0"]
    assert lines[2] == ["not", "of", "a", "server", "gold", "1", "1", "100", "25", "%", "0"]
    assert "\x1b" not in text


@pytest.mark.usefixtures("cloud")
def test_a_service_that_does_not_answer(
    run: Command,
    placement_conf: Path,
    faults: list[tuple[str, str]],
    seen: list[str],
    tmp_path: Path,
) -> None:
    show = ("--config-file", placement_conf, "cloud", "show", "--group-by", "project")
    faults[-1] = (PROJECTS, "JSON 403")
    done = run(*show, "-f", "json")
    assert [row["name"] for row in json.loads(done.stdout)] == [None] * 3
    assert "Projects have no names in the answer: GET /v3/projects: Keystone" in done.stderr
    seen.clear()
    faults[:] = [(HYPERVISORS, "JSON 403")]
    refused = run(*show, status=1)
    assert "Nova's API cannot be asked for hypervisors" in refused.stderr
    assert not [line for line in seen if "/inventories" in line]
    path = tmp_path / "cloud.json"
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors")
    refused = run("cloud", "show", "--snapshot", path, "--group-by", "project", status=1)
    assert "the snapshot has no projects" in refused.stderr

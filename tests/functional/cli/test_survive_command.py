"""``cpu-tiers plan survive``, and the same question to other commands, on a snapshot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]


def test_survivors(plan: Run) -> None:
    assert plan(cloud(), "survive").startswith("Yes: if any one of 2 hosts fails")
    lost = plan(cloud(), "drain", "cn0", "--keep", 1, status=3)
    assert "Afterwards 1 further host may not fail" in " ".join(lost.split())
    kept = plan(cloud(hosts=3), "drain", "cn0", "--keep", 1)
    assert "Afterwards 1 further host may fail: every server finds a place." in " ".join(
        kept.split()
    )


def test_moves_after_which_each_host_may_fail(plan: Run) -> None:
    document: Any = cloud(hosts=3)
    document["consumers"]["id-2"] = {"cn2": {"VCPU": 6, "MEMORY_MB": 16}}
    document["servers"]["id-2"] = {
        "name": "web2",
        "flavor": 1,
        "state": "ACTIVE",
        "host": "cn2",
        "volume": True,
    }
    document["server_flavors"].append(document["flavors"][1])
    # If cn2 fails, its server of 6 finds 4 and 4; with web0 and web1 on one host, a host is empty.
    words = " ".join(plan(document, "survive", status=3).split())
    assert words.startswith(
        "No: 1 of 3 hosts may not fail. The worst is cn2: 1 of its 1 server would find no place."
        " After 1 migration, every server finds a place if any one host fails."
    )
    assert "Without a place: web2: finds no place if cn2 fails" in words
    # So the servers of a further host that is emptied go where cn2 may still fail.
    document["providers"].append({**document["providers"][1], "uuid": "cn3", "name": "cn3"})
    document["consumers"]["id-3"] = {"cn3": {"VCPU": 4, "MEMORY_MB": 16}}
    document["servers"]["id-3"] = {
        "name": "web3",
        "flavor": 0,
        "state": "ACTIVE",
        "host": "cn3",
        "volume": True,
    }
    document["providers"].append({**document["providers"][1], "uuid": "cn4", "name": "cn4"})
    answer = json.loads(plan(document, "drain", "cn3", "--keep", 1, "-f", "json"))
    assert "Afterwards 1 further host may fail: every server finds a place." in answer["verdict"]


def test_the_metric_of_survivors(run: Run, save: Run, tmp_path: Path) -> None:
    conf, document = save("[DEFAULT]\n", "nova.conf"), cast(Any, cloud())
    show = ["--config-file", conf, "cloud", "show", "-f", "json", "--survive"]

    def metrics() -> dict[str, float]:
        path = tmp_path / "cloud.prom"
        run(*show, "--prometheus", path, "--snapshot", save(document, "cloud.json"))
        return {
            name.removeprefix("cpu_tiers_cloud_"): float(value)
            for line in path.read_text().splitlines()
            if not line.startswith("#")
            for name, value in [line.rsplit(" ", 1)]
        }

    found = metrics()
    assert (found["hosts_may_not_fail"], found["homeless_servers"]) == (0, 0)
    document["providers"][1]["inventories"]["VCPU"]["total"] = 7  # 3 left, not 4
    found = metrics()
    assert (found["hosts_may_not_fail"], found["homeless_servers"]) == (1, 1)
    result = run(*show, "--snapshot", save(document, "cloud.json"), status=1)
    assert "--survive: given without --prometheus" in result.stderr

"""``cpu-tiers plan`` on a snapshot: verdict, moves, script and exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]


def test_what_was_not_read_is_said_first(plan: Run) -> None:
    given = cloud(unread=("zone", "image"))
    words = " ".join(plan(given, "room", "large").split())
    assert (
        "Proven for what is known: no plan has fewer moves. Not known: zone, image of the servers"
    ) in words
    assert words.index("Not known") < words.index("web")
    assert plan(given, "survive").startswith("Yes, for what is known: if any one of 2 hosts")
    assert plan(cloud(), "survive").startswith("Yes: if any one of 2 hosts")


def test_no_plan(plan: Run) -> None:
    """A server without any place, in a cloud of two: nothing less is proven."""
    given = cloud(hosts=3)
    options = ("--exclude", "cn1", "--exclude", "cn2")
    answer = json.loads(plan(given, "drain", "cn0", *options, "-f", "json", status=3))
    assert answer["proven"] is True
    words = plan(given, "drain", "cn0", *options, status=3)
    assert "No plan: web0 cannot leave, whatever else moves. Proven." in " ".join(words.split())


def test_the_script(plan: Run) -> None:
    *_, disable, step, _ = plan(cloud(), "drain", "cn0", "-f", "shell").splitlines()
    assert disable == "disable cn0"
    # 16 MiB: 300 s, and 2 x 0.16 s
    assert step == "step 1 '' live id-0 cn0 compute1 301 0"
    text = plan(cloud(state="SHUTOFF"), "drain", "cn0", "--cold", "-f", "shell", "--parallel", 2)
    assert "\nparallel=2\n" in text
    assert text.splitlines()[-2] == "step 1 '' cold id-0 cn0 compute1 301 0"
    assert "disable cn" not in plan(cloud(), "room", "large", "-f", "shell")


def test_excluded_hosts_and_servers(plan: Run) -> None:
    hosts = cloud(hosts=4)
    (move,) = json.loads(plan(hosts, "drain", "cn0", "--only", "cn3", "-f", "json"))["moves"]
    assert move["to"] == "cn3"
    options = ("--exclude", "cn3", "--exclude", "cn2", "-f", "json")
    (move,) = json.loads(plan(hosts, "drain", "cn0", *options))["moves"]
    assert move["to"] == "cn1"
    text = plan(hosts, "drain", "cn0", "--exclude", "web0", status=3)
    assert "web0: --exclude leaves it where it is" in text
    # Room for 6 CPUs on each of two hosts with 4 of 8 free: neither server may go.
    plan(cloud(), "room", "large", "--exclude", "cn0", "--exclude", "id-1", status=3)


def test_a_server_that_stays(plan: Run) -> None:
    text = plan(cloud(state="SHUTOFF"), "drain", "cn0", status=3)
    assert "1 server cannot leave" in text
    assert "web0: it is powered off: --cold lets it move" in text
    answer = json.loads(plan(cloud(state="SHUTOFF"), "drain", "cn0", "-f", "json", status=3))
    (stay,) = answer["stay"]
    assert stay["server"] == "id-0"


def test_the_page(plan: Run, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    plan(cloud(hosts=3), "drain", "cn0", "--html", page)
    text = page.read_text()
    assert "all can leave" in text
    # cn0 has 4 of 8 CPUs before, and none after
    assert '<meter min="0" max="1" value="0.5000"></meter> 4 of 8' in text
    assert '<meter min="0" max="1" value="0.0000"></meter> 0 of 8' in text
    assert len(text) < 10_000  # no chart, no library of charts


def test_hosts_and_flavors_that_there_are_not(run: Run, save: Run) -> None:
    path = save(cloud(), "cloud.json")
    result = run("plan", "drain", "cn9", "--snapshot", path, status=1)
    assert "cn9: the cloud has no such host" in result.stderr
    result = run("plan", "room", "huge", "--snapshot", path, status=1)
    assert "not a flavor of the snapshot" in result.stderr
    result = run("plan", "survive", "--zone", "az1", "--snapshot", path, status=1)
    assert "a snapshot has no servers, images, ports and names of aggregates" in result.stderr
    result = run("plan", "drain", "cn0", "--exclude", "web7", "--snapshot", path, status=1)
    assert "web7: the cloud has no such host or server" in result.stderr
    run("plan", "room", "small", "--count", "0", "--snapshot", path, status=2)

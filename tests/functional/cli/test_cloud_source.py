"""Commands that read a snapshot: the same answers as from the cloud, and clear refusals."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.placement.providing import provide

Command = Callable[..., Any]

GOLD = {
    "name": "gold", "vcpus": 2, "memory_mb": 1024, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0,
    "extra_specs": {"trait:HW_CPU_X86_AVX2": "required"},
}  # fmt: skip


@pytest.fixture
def snapshot(run: Command, client: PlacementClient, placement_conf: Path, tmp_path: Path) -> str:
    """The file of a snapshot with a flavor, and of three hosts, one without its trait."""
    for number, traits in enumerate(([], ["HW_CPU_X86_AVX2"], ["HW_CPU_X86_AVX2"])):
        size = {"VCPU": 8 + number, "MEMORY_MB": 9999, "DISK_GB": 99}
        provide(client, f"host-{number}", ["COMPUTE_NODE", *traits], **size)
    path = tmp_path / "cloud.json"
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors")
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "flavors": [GOLD]}))
    return str(path)


def answer_of(run: Any) -> str:
    """Return an answer in a line, without what Nova and a snapshot do not say of hosts."""
    answer = " ".join(run.stdout.split())
    reason = r"are down: .*?(?=\"|Nova's weighers|$)"
    reported = r"(what nova-compute reports|the free memory, CPUs and disk that).*"
    return re.sub(reported, "", re.sub(reason, "are down", answer))


def test_a_snapshot_gives_the_answers_of_the_live_cloud(
    run: Command, flavor: Command, placement_conf: Path, snapshot: str, seen: list[str]
) -> None:
    file = flavor({"trait:HW_CPU_X86_AVX2": "required"}, vcpus=2, ram=1024, disk=1)
    for name in ("explain", "capacity"):
        for arguments in (("-f", "json"), ("--all",)):
            live = run("--config-file", placement_conf, name, file, *arguments)
            seen.clear()
            by_file = run(name, file, "--snapshot", snapshot, *arguments)
            assert answer_of(by_file) == answer_of(live)
            named = run(name, "--flavor", "gold", "--snapshot", snapshot, *arguments)
            assert answer_of(named) == answer_of(live)
            assert seen == []
    assert "1 lacks HW_CPU_X86_AVX2" in run("explain", file, "--snapshot", snapshot).stdout
    check = ("flavor", "check", flavor({}, vcpus=11), "--hosts")
    live = run("--config-file", placement_conf, *check, status=3)
    found = run(*check, "--snapshot", snapshot, status=3)
    assert found.stdout == live.stdout
    assert "VCPU" in live.stdout


def test_the_time_of_a_snapshot(run: Command, snapshot: str, tmp_path: Path) -> None:
    """The time stays when a snapshot is masked; a file without it, from before, is read."""
    document = json.loads(Path(snapshot).read_text())
    age = datetime.now(UTC) - datetime.fromisoformat(document["taken"])
    assert timedelta(0) <= age < timedelta(minutes=5)
    old, masked, page = (tmp_path / name for name in ("old.json", "masked.json", "page.html"))
    old.write_text(json.dumps({**document, "taken": "2026-11-23T09:30:00+01:30"}))
    run("cloud", "snapshot", masked, "--snapshot", old, "--mask")
    assert json.loads(masked.read_text())["taken"] == "2026-11-23T08:00:00Z"
    for command in (
        "capacity --flavor flavor-1",
        "flavor check --all",
        f"cloud show --html {page}",
    ):
        said = run(*command.split(), "--snapshot", masked).stderr
        assert f"{masked}: snapshot of 2026-11-23 08:00 UTC\n" in said
    assert f"The snapshot {masked} of 2026-11-23 08:00 UTC." in page.read_text()
    simulated = run("simulate", masked, "--draw=1", "--no-numa")
    assert "snapshot of 2026-11-23 08:00 UTC" in simulated.stderr
    del document["taken"]
    old.write_text(json.dumps(document))
    assert "snapshot of" not in run("cloud", "show", "--snapshot", old).stderr


def test_all_flavors_of_a_snapshot(run: Command, snapshot: str) -> None:
    found = run("flavor", "check", "--all", "--hosts", "--snapshot", snapshot)
    assert "flavors: 1, faults: 0" in found.stderr


def test_a_snapshot_is_masked_later(run: Command, snapshot: str, tmp_path: Path) -> None:
    masked = tmp_path / "masked.json"
    run("cloud", "snapshot", masked, "--snapshot", snapshot, "--mask")
    assert "host-0" not in masked.read_text()
    again = tmp_path / "again.json"
    run("cloud", "snapshot", again, "--snapshot", masked)
    assert json.loads(again.read_text()) == json.loads(masked.read_text())
    assert json.loads(again.read_text())["masked"] is True
    without = run("cloud", "snapshot", again, "--snapshot", masked, "--no-flavors").stderr
    assert "providers: 3, consumers: 0, flavors: 0" in without
    arguments = ("capacity", "--snapshot", masked, "-f", "json")
    (flavor,) = json.loads(run(*arguments, "--flavor", "flavor-1").stdout)
    # 9 // 2 and 10 // 2 by VCPU, and none where the trait is missing.
    assert [host["more"] for host in flavor["hosts"]] == [0, 4, 5]
    assert [host["host"] for host in flavor["hosts"]] == ["host-1", "host-2", "host-3"]
    wrong = run(*arguments, "--flavor", "gold", status=1)
    assert "not a flavor of the snapshot, whose names are masked" in wrong.stderr


def broken(text: str) -> list[tuple[str, str]]:
    """Return files that are no snapshots, each with its error."""
    document = json.loads(text)
    return [
        (text[: len(text) // 2], "; give the whole file of cpu-tiers cloud snapshot"),
        ("no JSON", "not JSON (Expecting value"),
        ("[]", "got a list; give an object"),
        ("{}", "format 'None'; give a file of cpu-tiers cloud snapshot"),
        (json.dumps({**document, "version": 4}), "a snapshot of version 4, newer than version 3"),
        (json.dumps({**document, "version": 0}), "a snapshot of version 0, not 3"),
        (json.dumps({**document, "flavors": []}), "the snapshot has no flavors; give the flavor"),
        (" " * (128 * 2**20 + 1), "a longer file; a file has at most"),
    ]


def test_files_that_are_no_snapshots(run: Command, save: Command, snapshot: str) -> None:
    for text, message in broken(Path(snapshot).read_text()):
        path = save(text, "broken.json")
        found = run("capacity", "--flavor", "gold", "--snapshot", path, status=1)
        *others, error = found.stderr.splitlines()
        assert message in error
        assert [line for line in others if ": snapshot of 2" not in line] == []


def test_commands_and_arguments_that_need_the_live_cloud(run: Command, snapshot: str) -> None:
    found = run("explain", "--server", "x", "--snapshot", snapshot, status=1)
    assert "a snapshot has no servers, images, ports" in found.stderr
    arguments = ("cloud", "snapshot", "out", "--snapshot", snapshot)
    both = run("--placement", "embedded", *arguments, status=1)
    assert "--placement embedded is given, too" in both.stderr
    for name in ("inventory sync", "networking sync", "placement check", "reshape apply"):
        found = run(*name.split(), "--snapshot", snapshot, status=2)
        assert "the command writes to Placement, so a snapshot is not enough" in found.stderr
    for name in ("reshape plan", "allocation heal"):
        found = run(*name.split(), "--snapshot", snapshot, status=2)
        assert "the command also reads Nova's database" in found.stderr

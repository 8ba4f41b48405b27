"""Reading the record of nova-scheduler, also of a file with other lines."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.cloud.decisions import decisions_about, text_of

SERVER, OTHER = "5c1f0ad4-0000-4000-8000-000000000001", "5c1f0ad4-0000-4000-8000-000000000002"


def hosts(*names: str, number: int | None = None) -> dict[str, Any]:
    return {"number": len(names) if number is None else number, "names": names}


def decision(time: str, *servers: str, **others: Any) -> dict[str, Any]:
    nothing = {"rounds": [], "selected": [], "fault": "No valid host was found."}
    common = {"time": time, "seconds": 0.2, "request_id": "req-1", "flavor": "gold"}
    return {**common, "servers": servers, "candidates": hosts(), **nothing, **others}


def lines(*documents: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in documents)


def test_of_both_files_in_order(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    file.write_text(lines(decision("3", SERVER), decision("4", OTHER), decision("5", SERVER)))
    file.with_name("decisions.1").write_text(lines(decision("1", OTHER, SERVER)))
    assert [each["time"] for each in decisions_about(file, SERVER)] == ["1", "3", "5"]
    assert decisions_about(file, "other") == []


def test_lines_about_other_servers_and_broken_lines_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "decisions"
    whole = lines(decision("1", SERVER))
    half = lines({"servers": [SERVER], "time": "2"}, {**decision("2", SERVER), "rounds": [5]})
    weights = [{"host": "a", "weight": 10**400, "parts": {}}]
    of_server = {"server": SERVER, "filters": [], "weights": weights, "claims": []}
    half += lines(decision("2", SERVER, rounds=[of_server]))
    file.write_text(f'{SERVER}\n[{"{"}\n"{SERVER}"\n' + half + whole + whole[:-20])
    with caplog.at_level(logging.WARNING):
        assert [each["time"] for each in decisions_about(file, SERVER)] == ["1"]
    (record,) = caplog.records
    assert record.getMessage() == f"{file}: 6 lines about the server are no decisions"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CpuTiersError, match=r"the decisions cannot be read: .*none"):
        decisions_about(tmp_path / "none", SERVER)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # nobody writes, and the command does not wait
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(CpuTiersError, match=f"read: {path} is no regular file; give the file"):
            decisions_about(path, SERVER)


def test_the_text_names_each_filter_weigher_and_claim() -> None:
    said = [
        {"filter": "ComputeFilter", "left": 3, "removed": hosts()},
        {"filter": "NUMATopologyFilter", "left": 1, "removed": hosts("a", "b", number=12)},
    ]
    weights = [{"host": "c", "weight": 1.5, "parts": {"RAMWeigher": 0.5, "Ours": 1.0, "IO": 0.0}}]
    claims = [
        {"providers": ["p1", "p2"], "granted": False},
        {"providers": ["p1"], "granted": True},
    ]
    one = {"server": SERVER, "filters": said, "weights": weights, "claims": claims}
    selected = [{"host": "c", "alternates": ["d"]}]
    others = {"candidates": hosts("a", "b", "c"), "rounds": [one], "selected": selected}
    assert text_of([decision("1", SERVER, **others, fault=None)]).splitlines() == [
        "1 req-1: flavor gold, 0.2 s",
        "  hosts with candidates: 3 (a, b, c)",
        "  NUMATopologyFilter left 1, removed 12 (a, b and 10 more)",
        "  weight of c: 1.5 (RAMWeigher +0.5, Ours +1)",
        "  claim refused: p1, p2",
        "  claim granted: p1",
        f"  {SERVER}: c (alternates: d)",
    ]
    assert text_of([decision("2", SERVER)]).splitlines() == [
        "2 req-1: flavor gold, 0.2 s",
        "  hosts with candidates: 0",
        "  fault: No valid host was found.",
    ]

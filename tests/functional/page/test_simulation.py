"""The page of a simulation: its data, and what its charts show."""

from dataclasses import replace
from typing import Any

from cpu_tiers.tools.page.document import PageChart
from cpu_tiers.tools.page.simulation import simulation_page
from cpu_tiers.tools.simulation.run import Moment, Outcome


def outcome(refused: int) -> Outcome:
    return Outcome(
        taken={"large": 4 - refused, "small": 6},
        refused={"large": refused},
        first_refused=None,
        free={"VCPU": 8, "DISK_GB": 0},
        stranded={"VCPU": 2},
        whole_hosts=1,
        course=(Moment(0, 0.0, 1, 0, 1), Moment(9, 9.0, 10 - refused, refused, 7, 2)),
    )


RESULTS = {"nova": [outcome(1), outcome(3)], "</script>": [outcome(0), outcome(0)]}
TIERS = {"large": "gold", "small": "no tier"}


def rows(name: str, **wanted: Any) -> list[Any]:
    data = simulation_page(RESULTS, TIERS).datasets[name]
    return [row for row in data if wanted.items() <= row.items()]


def test_the_data() -> None:
    # 1 of 4 large servers, and 3 of 4
    parts = [row["part"] for row in rows("tiers", policy="nova", label="gold")]
    assert parts == [0.25, 0.75]
    assert {row["label"] for row in rows("flavors")} == {"large"}  # no small server was refused
    assert [row["part"] for row in rows("stranded", policy="nova", label="VCPU")] == [0.25, 0.25]
    assert rows("stranded", label="DISK_GB") == []
    assert [row["servers"] for row in rows("seeds", policy="nova")] == [1, 3]
    course = rows("course", policy="nova", seed=1, request=10)
    assert {row["kind"]: row["servers"] for row in course} == {
        "running": 7,
        "refused": 3,
        "empty": 2,
    }


def test_each_chart_names_the_data_and_no_name_of_the_cloud_is_markup() -> None:
    page = simulation_page(RESULTS, TIERS, ["The verdict."])
    charts = [part for of in page.sections for part in of.parts if isinstance(part, PageChart)]
    assert len(charts) == 7
    for chart in charts:
        assert chart.specification()["description"] == chart.summary
    assert page.texts[0] == "The verdict."
    assert "10 requests for servers under 2 policies, with 2 seeds" in page.texts[1]
    assert "</script>:" not in page.html()


def test_a_simulation_without_requests() -> None:
    assert "0 requests" in simulation_page({"nova": []}, {}).texts[0]


def test_nothing_refused_and_nothing_stranded_has_no_chart() -> None:
    page = simulation_page({"nova": [replace(outcome(0), stranded={})]}, TIERS)
    assert [section.key for section in page.sections] == ["seeds", "time"]

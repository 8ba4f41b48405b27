"""Every number on the page is what the code says, and adds up."""

import ast
import csv
import operator
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cpu_tiers.weights import SCORINGS, Forest, make_forest

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "scores.rst").read_text()
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
}


def table(title: str) -> list[dict[str, str]]:
    """Return the rows of the csv-table with that title, by column."""
    block = PAGE.split(f".. csv-table:: {title}", 1)[1].lstrip().split("\n\n")
    lines = [block[0].removeprefix(":header:"), *block[1].splitlines()]
    header, *rows = csv.reader((line.strip() for line in lines), skipinitialspace=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def calculate(node: ast.expr) -> float:
    """Return what a sum, difference or quotient of numbers comes to."""
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](calculate(node.left), calculate(node.right))
    return float(ast.literal_eval(node))


def forest(scoring: str) -> Forest:
    """Return the forest of the hosts that the page lists."""
    request = re.search(r"asks for (.+?), and for\s+the trait (\w+)", PAGE, re.DOTALL)
    assert request is not None
    requested = {name: int(n) for n, name in re.findall(r"(\d+)\s+([A-Z_]+)", request[1])}
    assert len(requested) == 3
    summaries = {
        row["Host"]: {
            "resources": {
                name: {"capacity": int(row[name]), "used": 0}
                for name in ("VCPU", "CUSTOM_VCPU_SHARES", "MEMORY_MB", "VGPU")
                if row[name]
            },
            "traits": row["Traits"].split(),
            "root_provider_uuid": row["Host"],
        }
        for row in table("Hosts: what is free, and the traits")
    }
    return make_forest(summaries, requested, {request[2]}, scoring=SCORINGS[scoring])


ROWS = table("Scores")
SUMS = re.findall(
    # hosts and scoring:  what  formula = result
    r"^    ([\w, ]+): +(\S+(?: \S+)*)  +(\S.*) = ([\d.]+)$",
    PAGE,
    re.MULTILINE,
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['Scoring']} {row['Host']}")
def test_the_scores(row: dict[str, str]) -> None:
    host = forest(row["Scoring"]).explain(row["Host"])
    stated = [float(row[column]) for column in ("Resource score", "Trait score", "Score")]
    assert [host.resource_score, host.trait_score, host.score] == pytest.approx(stated)


@pytest.mark.parametrize("scoring", ["literal", "boring"])
def test_the_hosts_stand_best_first(scoring: str) -> None:
    scores = forest(scoring).scores()
    stated = [row["Host"] for row in ROWS if row["Scoring"] == scoring]
    assert sorted(scores, key=scores.__getitem__, reverse=True) == stated


@pytest.mark.parametrize(("whose", "what", "formula", "result"), SUMS)
def test_the_arithmetic(whose: str, what: str, formula: str, result: str) -> None:
    assert calculate(ast.parse(formula, mode="eval").body) == pytest.approx(float(result))
    names = re.findall(r"\w+", whose)
    for scoring in {"literal", "boring"} & set(names) or ("literal", "boring"):
        for name in {"plain", "gpu", "small"} & set(names):
            host = forest(scoring).explain(name)
            numbers = {
                "resource score": host.resource_score,
                "trait score": host.trait_score,
                "score": host.score,
                **host.resources,
            }
            assert numbers[what] == pytest.approx(float(result))


def test_no_sum_of_the_page_is_overlooked() -> None:
    assert len(SUMS) == 17  # 6 parts, then 3 numbers for plain, 5 for gpu, 3 for small

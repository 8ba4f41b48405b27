"""The table on the operators' page is what the code says."""

import csv
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "entitlement.rst").read_text()
WEIGHTS = {"Gold": 100, "Silver": 50, "Bronze": 25}


def rows() -> list[dict[str, str]]:
    block = PAGE.split(".. csv-table:: CPUs that each guest gets\n", 1)[1].split("\n\n")
    lines = [block[0].strip().removeprefix(":header:"), *block[1].splitlines()]
    header, *cells = csv.reader((line.strip() for line in lines), skipinitialspace=True)
    return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['CPUs']} CPUs")
def test_the_specs_six_guests(row: dict[str, str]) -> None:
    cpus = frozenset(range(int(row["CPUs"])))
    guests = {"Gold": 1, "Silver": 2, "Bronze": 3}
    host = {
        f"{tier}{i}": Contender(weight=WEIGHTS[tier], threads=Counter([cpus]))
        for tier, count in guests.items()
        for i in range(count)
    }
    floors, entitlements = floor_cpus(host), entitlement_cpus(host)
    for tier in guests:
        assert floors[f"{tier}0"] == Fraction(row[f"{tier}, floor"])
        assert entitlements[f"{tier}0"] == Fraction(row[f"{tier}, entitlement"])

"""Embedded flavors as Nova writes them, texts that are no flavors, and the flavors of servers that
were created and deleted, in real databases of Nova with two cells v2. ``test_flavor_findings``
reads the rows of servers that exist.
"""

import datetime
import json
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
import pytest
from nova import context, objects, test
from nova.db.main import api as main_db

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.documents import read_flavors
from cpu_tiers.tools.nova.stored_flavors import embedded_flavor
from cpu_tiers.tools.simulation.requests import Arrival, read_arrivals
from tests.nova.command_line import streams
from tests.nova.stored_rows import make_flavor, store_server

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def text(specs: dict[str, str], vcpus: int = 2) -> str:
    """Return the text that Nova's Instance.create writes to instance_extra."""
    objects.register_all()
    flavor = make_flavor(context.get_admin_context(), "gold", specs, vcpus)
    return json.dumps({"cur": flavor.obj_to_primitive(), "old": None, "new": None})


def test_the_text_of_nova() -> None:
    specs = {"quota:cpu_shares": "7"}
    expected = Flavor(name="gold", vcpus=2, memory_mb=512, root_gb=1, extra_specs=specs)
    assert embedded_flavor(text(specs)) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", r"embedded flavor: Nova's database has '' \(JSONDecodeError\); resize the server"),
        ("{}", r"has '\{\}' \(KeyError\)"),
        ('{"cur": null}', r"\(TypeError\)"),
        (text({}, vcpus=0), "flavor gold, vcpus: got 0; give a whole number from 1"),
    ],
)
def test_a_text_that_is_no_flavor(given: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        embedded_flavor(given)


class TestHistory(test.TestCase):
    USES_DB = True
    NUMBER_OF_CELLS = 2

    def setUp(self) -> None:
        name = self._testMethodName  # see Computes.setUp
        self.addCleanup(setattr, self, name, getattr(self, name))
        super().setUp()
        self.useFixture(fixtures.MockPatch("cpu_tiers.tools.nova.stored_flavors.PAGE", 2))
        self.admin = context.get_admin_context()
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)

    def store(
        self, cell: str, flavor: str, created: int, ended: int | None = None, image: str = "i"
    ) -> None:
        """Write a server that came, and may have gone, so many seconds after the start.

        :param image: empty for a server from a volume.
        """
        with context.target_cell(self.admin, self.cell_mappings[cell]) as cell_context:
            specs = {"quota:cpu_shares_multiplier": "100"}
            server = store_server(cell_context, flavor, make_flavor(cell_context, flavor, specs))
            values: dict[str, Any] = {"created_at": START + datetime.timedelta(seconds=created)}
            values |= {"launched_at": values["created_at"], "image_ref": image}
            if ended is not None:
                values["terminated_at"] = START + datetime.timedelta(seconds=ended)
            main_db.instance_update(cell_context, server.uuid, values)
            if ended is not None:
                objects.Instance.get_by_uuid(cell_context, server.uuid).destroy()

    def archive(self, cell: str) -> None:
        with context.target_cell(self.admin, self.cell_mappings[cell]) as cell_context:
            main_db.archive_deleted_rows(context=cell_context, max_rows=1000)

    def run_command(self, *arguments: str) -> tuple[list[Arrival], list[Any], str]:
        """Return the requests and the flavors as ``cpu-tiers simulate`` reads them."""
        table, document = self.folder / "requests.csv", self.folder / "flavors.json"
        argv = ["cloud", "requests", str(table), str(document), *arguments]
        with mock.patch("cpu_tiers.tools.nova.cloud.configure"), streams() as (out, error):
            code = app.main(argv)
        assert code == 0, out.getvalue() + error.getvalue()
        faults = FaultList()
        flavors = list(read_flavors(str(document), faults))
        assert not faults.faults
        names = [flavor.name for flavor in flavors]
        lines = table.read_text().splitlines()
        return read_arrivals(lines, names, where="x"), flavors, error.getvalue()

    def test_servers_of_all_cells_that_exist_are_deleted_and_are_archived(self) -> None:
        self.store("cell1", "archived", 20, 50)
        self.archive("cell1")
        self.store("cell1", "gold", 10)
        self.store("cell1", "gold", 40, 45)
        self.store("cell1", "gold", 60, 80, image="")
        self.store("cell2", "silver", 30, 90)
        arrivals, flavors, _ = self.run_command()
        assert arrivals == [
            Arrival(time=0, flavor="gold"),
            Arrival(time=10, flavor="archived", lifetime=30),
            Arrival(time=20, flavor="silver", lifetime=60),
            Arrival(time=30, flavor="gold", lifetime=5),
            Arrival(time=50, flavor="gold (2)", lifetime=20),
        ]
        # The root disk of the last server is a volume.
        assert [(flavor.name, flavor.root_gb) for flavor in flavors] == [
            ("gold", 1), ("archived", 1), ("silver", 1), ("gold (2)", 0),
        ]  # fmt: skip
        assert flavors[0].extra_specs == {"quota:cpu_shares_multiplier": "100"}
        _, masked, _ = self.run_command("--mask")
        assert [flavor.name for flavor in masked] == [f"flavor-{number}" for number in range(1, 5)]
        assert "gold" not in json.dumps((self.folder / "flavors.json").read_text())

    def test_a_server_without_a_flavor_or_without_a_host_is_left_out(self) -> None:
        self.store("cell1", "gold", 10)
        with context.target_cell(self.admin, self.cell_mappings["cell1"]) as cell_context:
            flavor = make_flavor(cell_context, "lost", {})
            lost = store_server(cell_context, "lost", flavor)  # was never launched
            broken = store_server(cell_context, "broken", flavor)
            main_db.instance_update(cell_context, broken.uuid, {"launched_at": START})
            main_db.instance_extra_update_by_uuid(cell_context, broken.uuid, {"flavor": "{}"})
            assert lost.uuid != broken.uuid
        arrivals, _, error = self.run_command()
        assert [arrival.flavor for arrival in arrivals] == ["gold"]
        assert "Servers left out, because of their flavors: 1" in error

"""The flavors and servers that break rules, in real databases of Nova with two cells v2."""

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import fixtures
import pytest
from nova import context, objects, test
from oslo_upgradecheck.upgradecheck import Code, Result

from cpu_tiers import in_time
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.cloud.status import check_flavors, check_pinned
from cpu_tiers.tools.nova.stored_flavors import each_in_time, inspect_cells, inspect_flavors
from cpu_tiers.tools.placement.inventories import HostSurvey
from tests.nova.stored_rows import NOTHING, make_flavor, store_server

FINDINGS = "cpu_tiers.tools.nova.stored_flavors"
BOOT = "no server can be created or resized with the flavor with"
API = "[api] refuse_faulty_flavors = true"
SHARES = "[filter_scheduler] query_placement_for_vcpu_shares = true"
NUMA = "[filter_scheduler] query_placement_for_numa = true"
NO_SHARES = f"with {SHARES}, the servers are moved, and each claims no {VCPU_SHARES}"
STORED = "the servers are moved with the CPUs and NUMA nodes that Nova has stored for them"
NOT_CPU_SHARES = "extra spec quota:cpu_shares: got '16384'; give a whole number from 1 to 10000"


class TestTwoCells(test.TestCase):
    USES_DB = True
    NUMBER_OF_CELLS = 2

    def setUp(self) -> None:
        name = self._testMethodName  # see Computes.setUp
        self.addCleanup(setattr, self, name, getattr(self, name))
        super().setUp()
        # Pages of two rows, so that each list has several pages.
        self.useFixture(fixtures.MockPatch("cpu_tiers.tools.nova.stored_flavors.PAGE", 2))
        self.admin = context.get_admin_context()
        self.lines: list[str] = []

    def store(
        self, cell: str, name: str, specs: Mapping[str, str], image: Mapping[str, str] = NOTHING
    ) -> str:
        """Write a server to a cell; return its name in a message."""
        with context.target_cell(self.admin, self.cell_mappings[cell]) as cell_context:
            flavor = make_flavor(cell_context, f"of-{name}", specs)
            return f"{name} ({store_server(cell_context, name, flavor, image).uuid})"

    def result(self) -> Result:
        return check_flavors(inspect_flavors(self.lines.append), list(inspect_cells(self.tell)))

    def tell(self, line: str) -> None:
        self.lines.append(line)

    def test_servers_and_flavors_are_named_with_the_consequence(self) -> None:
        flavors = len(objects.FlavorList.get_all(self.admin))  # Nova's fixture made some
        for name, specs in (
            ("old-habit", {"quota:cpu_shares": "16384"}),
            ("gold", {"quota:cpu_shares_multiplier": "100"}),
            ("three", {"hw:numa_nodes": "3"}),
        ):
            make_flavor(self.admin, name, specs).create()
        web = self.store("cell1", "web", {"quota:cpu_shares": "16384"})
        for number in range(3):
            self.store("cell1", f"good-{number}", {"quota:cpu_shares": "10000"})
        gone = self.store("cell1", "gone", {"quota:cpu_shares": "0"})
        with context.target_cell(self.admin, self.cell_mappings["cell1"]) as cell_context:
            objects.Instance.get_by_uuid(cell_context, gone[6:-1]).destroy()
        mixed = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}
        image = {"hw_cpu_policy": "shared", "os_distro": "debian"}
        both = self.store("cell2", "both", mixed, image)
        self.store("cell2", "mixed", mixed)
        self.store("cell0", "never", {"quota:cpu_shares": "0"})
        result = self.result()
        assert result.code == Code.WARNING
        assert str(result.details).split(".\n") == [
            f"2 of {flavors + 3} flavors and 2 of 6 servers break rules of cpu-tiers",
            f"flavor old-habit, {NOT_CPU_SHARES}: {BOOT} {API} or {SHARES}",
            "flavor three, 3 NUMA nodes: 2 vCPUs and 512 MiB; nodes of unequal size need"
            f" hw:numa_cpus.N and hw:numa_mem.N: {BOOT} {API} or {NUMA}",
            f"flavor of-web, {NOT_CPU_SHARES}: {NO_SHARES}: {web}",
            "flavor of-both and image of the server: the flavor has hw:cpu_policy=mixed, the"
            " image hw_cpu_policy=shared; the image may not ask for another policy than the"
            f" flavor: with {NUMA}, {STORED}: {both}",
        ]
        cell2 = f"cell cell2 ({self.cell_mappings['cell2'].uuid})"
        assert self.lines[-1] == f"{cell2}: 2 servers read"

    def test_flavors_with_a_tier_on_numa_nodes_are_named(self) -> None:
        tier = {"quota:cpu_shares_multiplier": "100"}
        for name, specs in (
            ("huge", {**tier, "hw:mem_page_size": "large"}),
            ("cells", {**tier, "hw:numa_nodes": "2"}),
            ("floats", tier),
            ("plain", {"hw:numa_nodes": "2"}),
            ("faulty", {**tier, "hw:numa_nodes": "many"}),
        ):
            make_flavor(self.admin, name, specs).create()
        assert inspect_flavors(self.lines.append).selling_nodes == ("cells", "huge")

    def test_a_cell_without_an_answer_is_named_and_the_next_is_read(self) -> None:
        self.cell_mappings["cell1"].database_connection = "mysql+pymysql://nova:secret@host/nova"
        self.cell_mappings["cell1"].save()
        web = self.store("cell2", "web", {"quota:cpu_shares": "0"})
        result = self.result()
        assert result.code == Code.FAILURE
        error, _, server = str(result.details).split(".\n")
        assert error.startswith(f"cell cell1 ({self.cell_mappings['cell1'].uuid}) does not answer")
        assert server.endswith(f"{NO_SHARES}: {web}")
        assert "secret" not in str(result.details)

    def test_nothing_to_say(self) -> None:
        self.store("cell1", "web", {"quota:cpu_shares": "10000"})
        assert self.result().code == Code.SUCCESS

    def test_pinned_servers_on_a_host_without_pcpu(self) -> None:
        for number in range(2):
            self.store("cell1", f"pinned-{number}", {"hw:cpu_policy": "dedicated"})
        self.store("cell2", "by-amount", {"resources:PCPU": "2"})
        self.store("cell2", "by-image", {}, {"hw_cpu_policy": "dedicated"})
        self.store("cell1", "floats", {"hw:numa_nodes": "2"})
        self.store("cell1", "odd", {"hw:cpu_policy": "odd"})
        cells = list(inspect_cells(self.tell))
        assert [dict(cell.pinned) for cell in cells] == [{"node1": 2}, {"node1": 2}]
        host: dict[str, Any] = {"is_numa_aware": None, "has_vcpu": True, "has_shares": False}
        old, other, new = (
            HostSurvey(name=name, has_pcpu=pcpu, **host)
            for name, pcpu in (("node1", False), ("node2", False), ("node1", True))
        )
        assert list(check_pinned([other, new], cells)) == []
        (text,) = check_pinned([other, old], cells)
        assert "servers with dedicated CPUs: node1 (4). The servers hold" in text


def test_each_item_has_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_time, "_STEP_SECONDS", 0.1)
    waits: list[None] = []
    never = threading.Event()

    def slow() -> Iterator[int]:
        for number in itertools.count():
            time.sleep(0.25)
            yield number
            if number == 2:
                never.wait()

    items = each_in_time(slow(), 0.5, lambda: waits.append(None))
    assert [next(items) for _ in range(3)] == [0, 1, 2]  # 0.75 s in all
    with pytest.raises(TimeoutError, match="no answer in time"):
        next(items)
    never.set()
    assert len(waits) >= 6  # two in each wait of 0.25 s, and more in the last
    assert list(each_in_time([1, 2], 10, lambda: None)) == [1, 2]

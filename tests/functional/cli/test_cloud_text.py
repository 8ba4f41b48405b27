"""The text of ``cloud show``, in terminals of several widths."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from cpu_tiers.tools.cloud.cloud_text import print_cloud
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.terminal import accept_any_text
from cpu_tiers.tools.page.cloud import cloud_page
from cpu_tiers.tools.sold.sold import sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from tests.functional.page.clouds import cloud_of
from tests.unit.cloud_model.clouds import provider


def text_of(names: list[str], *, width: int = 80, show_all: bool = False) -> str:
    """Return the text of a cloud; the second host is over its capacity."""
    console = Console(file=io.StringIO(), width=width, no_color=True)
    print_cloud(console, cloud_of(names), show_all=show_all)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_tables() -> None:
    lines = [" ".join(line.split()) for line in text_of(["a", "b"]).splitlines()]
    assert lines[0] == "Hosts with CPUs: 2, consumers: 2"
    assert "VCPU 8 7 ! 12 % █████████░ 1" in lines  # 7 of 8: 8.75 of 10 cells
    assert "MEMORY_MB 200 30 85 % ██░░░░░░░░" in lines  # 1.5 cells
    assert "gold 1 5 500" in lines
    assert "no tier 1 2 0" in lines
    assert "b VCPU 4 5" in lines
    # The host that is over its capacity comes first: 5 of 4, 500 of 800, 0 of 100.
    assert lines[-2:] == ["b ! -25 % 38 % 100 %", "a 50 % 100 % 70 %"]


def test_a_search_that_was_cut_short_gives_the_least_number() -> None:
    rooms = [TierRoom(tier="gold", flavor="gold.1", more=1234, is_exact=False)]
    console = Console(file=io.StringIO(), width=80)
    print_cloud(console, cloud_of(["a"]), rooms, show_all=False)
    assert isinstance(console.file, io.StringIO)
    assert "gold.1   at least 1,234" in console.file.getvalue()


def test_what_a_tier_is_sold_and_what_servers_without_a_tier_leave_of_it() -> None:
    host = provider("a", VCPU=4, CUSTOM_VCPU_SHARES=800)
    gold, plain = {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}, {"VCPU": 2}
    consumers = {"gold": {"a": gold}, "plain": {"a": plain}}
    cloud = sold_cloud(Snapshot(providers=(host,), consumers=consumers), [])
    rooms = [TierRoom(tier="gold", flavor="gold.1", more=1, shares=100, vcpus=1)]
    console = Console(file=io.StringIO(), width=80, no_color=True)
    print_cloud(console, cloud, rooms, show_all=False)
    assert isinstance(console.file, io.StringIO)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    # 100 of 800 of 4 CPUs; beside 700 x 65/64 / 4 = 177.7 on each CPU, 100 of 277.7
    assert "gold 1 4 0.500 0.360 V" in lines
    # 100 and 1024 of 800 shares with version 1, and 100 and 100 with version 2
    assert "a 800 100 1 71 % 100 %" in lines
    page = cloud_page(cloud, ["gold"], [], "Placement", rooms=rooms).html()
    number = '<td class="number">'
    (row,) = re.findall(rf"<tr><td>gold{number}.*", page)
    assert re.findall(r"<td[^>]*>([^<]+)", row) == ["gold", "1", "4", "0.5", "0.36", "V"]


def test_a_qualified_name_is_shortened_by_the_common_domain() -> None:
    names = [f"{name}.rack-1.a-long-name-of-a-cloud.example.org" for name in ("a", "b")]
    text = text_of(names)
    assert "Hosts are named without .rack-1.a-long-name-of-a-cloud.example.org" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "b VCPU 4 5" in lines
    assert "b ! -25 % 38 % 100 %" in lines
    apart = text_of(["a.rack-1.of-a-cloud.example.org", "b.rack-2.of-a-cloud.example.org"])
    assert " a.rack-1 " in apart
    long = [f"a-name-of-a-host-without-a-domain-{number}" for number in range(2)]
    assert all(f" {name} " in text_of(long) for name in long)  # whole, with fewer classes


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_too_long(width: int) -> None:
    names = ["x" * 150, "主機" * 75, *(f"host-{number}" for number in range(20))]
    text = text_of(names, width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "and 12 more (--all shows them)" in text
    assert "host-19" in text_of(names, width=width, show_all=True)


def test_a_server_on_two_hosts() -> None:
    providers = provider("one.example.org", VCPU=4), provider("two.example.org", VCPU=4)
    held = {"moved": {"one.example.org": {"VCPU": 1}, "two.example.org": {"VCPU": 1}}}
    console = Console(file=io.StringIO(), width=80)
    cloud = sold_cloud(Snapshot(providers=providers, consumers=held), [])
    print_cloud(console, cloud, show_all=False)
    assert isinstance(console.file, io.StringIO)
    text = " ".join(console.file.getvalue().split())
    assert (
        "Moves that are not over, or have failed moved on one, two: of several hosts, and the"
        " server is on one of them. openstack server show moved says on which" in text
    )


def test_a_terminal_that_is_not_utf8() -> None:
    """The text has no letter that the encoding lacks, and a name never stops the output."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="iso-8859-1")
    accept_any_text(file)
    console = Console(file=file, width=80, no_color=True)
    print_cloud(console, cloud_of(["a", "雲"]), show_all=False)
    console.file.flush()
    text = file.buffer.getvalue().decode("iso-8859-1")
    assert "VCPU | 8 | 7 | ! 12 % | #########. | 1" in [
        " ".join(line.split()) for line in text.splitlines()
    ]
    assert "? " in text


def test_a_name_is_no_markup() -> None:
    text = text_of(["[red]a[/red]", "\x1b[31mb"])
    assert "[red]a[/red]" in text
    assert "\\x1b[31mb" in text


@pytest.mark.parametrize(
    ("used", "of_class", "of_host"),
    [(0, "VCPU 0 0 - ░░░░░░░░░░", "a -"), (5, "VCPU 0 5 ! - ██████████ 1", "a ! -")],
)
def test_no_capacity(used: int, of_class: str, of_host: str) -> None:
    console = Console(file=io.StringIO(), width=80)
    consumers = {"x": {"a": {"VCPU": used}}} if used else {}
    cloud = sold_cloud(Snapshot(providers=(provider("a", VCPU=0),), consumers=consumers), [])
    print_cloud(console, cloud, show_all=False)
    assert isinstance(console.file, io.StringIO)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert of_class in lines
    assert lines[-1] == of_host

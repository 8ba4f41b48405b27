"""``host show``, on files."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]

CONF = "[DEFAULT]\ncpu_allocation_ratio = 2.0\n[compute]\ncpu_shared_set = 0-3\n"
"""4 CPUs: 8 VCPU and 800 VCPU_SHARES."""


def domain(name: str, shares: int | None, cpuset: str = "0-3", vcpus: int = 1) -> str:
    cputune = "" if shares is None else f"<cputune><shares>{shares}</shares></cputune>"
    return (
        f"<domain><name>{name}</name><uuid>{name}-uuid</uuid>"
        '<metadata><i:instance xmlns:i="http://openstack.org/xmlns/libvirt/nova/1.1">'
        f'<i:flavor name="m1.{name}"/></i:instance></metadata>'
        f"<vcpu cpuset='{cpuset}'>{vcpus}</vcpu>{cputune}</domain>"
    )


SIX = {"gold": 100, "silver1": 50, "silver2": 50, "bronze1": 25, "bronze2": 25, "bronze3": 25}


@pytest.fixture
def show(run: Command, save: Command, capabilities: str) -> Command:
    """Run ``host show`` on a host with these domains."""

    def show(
        *domains: str, options: tuple[str, ...] = (), conf: str = CONF, status: int = 0
    ) -> Any:
        files = [save(text, f"{i}.xml") for i, text in enumerate(domains)]
        arguments = (*(("--domain", *files) if files else ()), *options)
        return run(
            *("--config-file", save(conf, "nova.conf")),
            *("host", "show", "--capabilities", capabilities, *arguments),
            status=status,
        )

    return show


def rows(result: Any) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_the_specs_six_guests_on_four_cpus(show: Command) -> None:
    found = rows(show(*(domain(n, w) for n, w in SIX.items()), options=("-f", "json")))
    # entitlement: Gold gets 1 of 4 CPUs; 3 by 175: 50 x 3/175 = 6/7, 25 x 3/175 = 3/7
    assert {name: found[name]["entitlement_cpus"] for name in SIX} == pytest.approx(
        {"gold": 1.0, **dict.fromkeys(("silver1", "silver2"), 6 / 7)}
        | dict.fromkeys(("bronze1", "bronze2", "bronze3"), 3 / 7)
    )
    # Beside Gold, two Silver have a CPU each, and three Bronze have 2 CPUs: 100 / 137.5. Beside
    # Silver, Gold and Silver have a CPU each: 50 / 87.5. Beside Bronze, 150 on 3 CPUs: 25 / 75.
    assert {name: found[name]["floor_cpus"] for name in SIX} == pytest.approx(
        {"gold": 8 / 11, **dict.fromkeys(("silver1", "silver2"), 4 / 7)}
        | dict.fromkeys(("bronze1", "bronze2", "bronze3"), 1 / 3)
    )
    # 8 VCPU - 6 leaves 2, 800 shares - 275 would leave more
    newcomers = [found[f"one more {tier}"] for tier in ("gold", "silver", "bronze")]
    assert [row["more"] for row in newcomers] == [2, 2, 2]
    # one more Gold: 2 CPUs for both, 2 by 175: 50 x 2/175 and 25 x 2/175. Beside Gold, the other
    # Gold has a CPU, and 175 are on 3 CPUs: 100 / (100 + 175/3)
    assert newcomers[0]["entitlement_cpus"] == 1.0
    assert newcomers[0]["floor_cpus"] == pytest.approx(300 / 475)
    # two more: 4 CPUs by 300 + 175; beside Gold, 375 are on 4 CPUs, and none has a CPU alone: two
    # Gold have one each, 175 are on 2: 100 / 187.5
    assert newcomers[0]["with_all"]["gold"] == pytest.approx(
        {"floor_cpus": 100 / 187.5, "entitlement_cpus": 400 / 475}
    )
    silver = found["silver1"]
    assert {
        tier: pair["entitlement_cpus"] for tier, pair in silver["with_one"].items()
    } == pytest.approx(
        # one more Silver: 3 CPUs by 225; one more Bronze: 3 by 200
        {"gold": 100 / 175, "silver": 150 / 225, "bronze": 150 / 200}
    )
    assert silver["with_all"]["gold"]["entitlement_cpus"] == pytest.approx(200 / 475)
    assert {key: silver[key] for key in list(silver)[:7]} == {
        "name": "silver1",
        "uuid": "silver1-uuid",
        "flavor": "m1.silver1",
        "tier": "silver",
        "multiplier": 50.0,
        "shares": 50,
        "vcpus": 1,
    }


def test_an_untiered_guest_and_services_take_part(show: Command) -> None:
    options = ("--default-weight", "1024", "--beside", "system.slice=1024x1", "-f", "json")
    found = rows(
        show(domain("gold", 100, "0"), domain("plain", None, "0", vcpus=2), options=options)
    )
    # CPU 0 alone is contended: the service has the others. 100 and 1024 of 1124.
    gold, plain = found["gold"], found["plain"]
    assert gold["entitlement_cpus"] == pytest.approx(100 / 1124)
    assert plain["entitlement_cpus"] == pytest.approx(1024 / 1124)
    # the service, as heavy as both guests, may be on CPU 0 as well
    assert gold["floor_cpus"] == pytest.approx(50 / 1124)
    assert plain["floor_cpus"] == pytest.approx(512 / 1124)
    assert (plain["tier"], plain["multiplier"], plain["shares"]) == (None, None, 1024)


def test_an_empty_host_and_tiers_of_our_own(show: Command) -> None:
    options = ("--tier", "platinum=150x2", "--tier", "huge=1x5", "-f", "json")
    found = rows(show(options=options))
    # 300 of 800 shares each: 2; and 5 vCPUs are more than the host's 4 CPUs
    assert [found[f"one more {tier}"]["more"] for tier in ("platinum", "huge")] == [2, 0]
    assert found["one more platinum"]["entitlement_cpus"] == 2.0
    assert found["one more huge"]["floor_cpus"] is None


def test_a_host_that_reports_numa_nodes_counts_as_a_whole(show: Command) -> None:
    numa = CONF + "enable_numa_reporting_to_placement = true\n"
    found = rows(show(options=("-f", "json"), conf=numa))
    # 800 shares on all nodes together: 8 by 100, and 8 VCPU bound the others
    assert [found[f"one more {tier}"]["more"] for tier in ("gold", "silver")] == [8, 8]


def test_the_own_threads_of_qemu(show: Command) -> None:
    conf = CONF + "[libvirt]\nemulator_overhead_percent = 25\n"
    domains = (domain("gold", 100, cpuset="0"), domain("bronze", 25, cpuset="0"))
    found = rows(show(*domains, options=("-f", "json"), conf=conf))
    # 0.8 and 0.2 of CPU 0, of which QEMU has a fifth
    for figure in ("floor_cpus", "entitlement_cpus"):
        assert {name: found[name][figure] for name in ("gold", "bronze")} == pytest.approx(
            {"gold": 0.64, "bronze": 0.16}
        )
    # 80 of 400 shares are reserved. 640 can be claimed, and the guests have 125.
    assert found["one more gold"]["more"] == 5


def test_a_table_for_a_person(show: Command) -> None:
    shown = show(domain("gold", 100))
    lines = [line.split("|")[1:-1] for line in shown.stdout.splitlines() if "gold" in line]
    cells = [cell.strip() for cell in lines[0]]
    assert cells[:9] == ["gold", "gold-uuid", "m1.gold", "gold", "100", "100", "1", "1", "1"]
    # 7 more fit. Entitlements: 4 CPUs by 800, by 100 + 350, and by 100 + 175, which is 1.45 for
    # Gold. Floors: 100 beside 700 / 4, 350 / 4 and 175 / 4
    assert cells[9:] == [
        *("", "gold 1, silver 1, bronze 1"),
        "gold 0.364 to 0.5, silver 0.533 to 0.889, bronze 0.696 to 1",
    ]


@pytest.mark.parametrize(
    ("domains", "options", "messages"),
    [
        pytest.param(
            ("<domain/>", "no XML"),
            (),
            ["0.xml: a domain without a name", "1.xml: not XML"],
            id="every file is named",
        ),
        pytest.param((domain("g", 1, "64"),), (), ["domain g: a vCPU on CPU 64"], id="CPUs"),
        pytest.param((domain("g", 1),) * 2, (), ["domain g: given 2 times"], id="twice"),
        pytest.param((), ("--tier", "gold"), ["--tier: got 'gold'"], id="a tier without a number"),
        pytest.param(
            (),
            ("--tier", "g=0", "--tier", "h=1", "--tier", "h=2"),
            ["flavor of --tier g=0, extra spec", "--tier: h is given twice"],
            id="tiers",
        ),
        pytest.param(
            (),
            ("--beside", "s=1", "--beside", "t=0x1", "--default-weight", "0"),
            ["--beside: got 's=1'", "weight of a cgroup: got 0", "--default-weight: got 0"],
            id="weights",
        ),
    ],
)
def test_bad_input(
    show: Command, domains: tuple[str, ...], options: tuple[str, ...], messages: list[str]
) -> None:
    result = show(*domains, options=options, status=1)
    for message in messages:
        assert message in result.stderr
    assert result.stdout == ""


def test_files_and_libvirt_are_not_mixed(run: Command, save: Command) -> None:
    path = save(domain("g", 1), "g.xml")
    result = run("host", "show", "--connect", "test:///default", "--domain", path, status=1)
    assert "--domain: given together with --connect" in result.stderr

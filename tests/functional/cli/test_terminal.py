"""What each command prints on terminals of several widths: no line is wider than the terminal."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from wcwidth import wcswidth

from cpu_tiers.tools.frame.command_table import commands
from tests.draws import in_turn
from tests.functional.cli.fork_server import ForkServer

COMMANDS = sorted(commands())
WIDTHS = (60, 80, 100, 200)
TRIED = [
    (name, columns)
    for number, name in enumerate(COMMANDS)
    for columns in in_turn([*WIDTHS[number % 4 :], *WIDTHS[: number % 4]])
]
"""Each command on one of the terminals a day."""
LONG = "a-host-with-a-name-that-is-longer-than-sixty-columns.compute.example.org"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
UUID = "4c0f0b8e-7d4f-4b0e-9d0e-2f6f7b1f9a{:02}"
PLAIN = {"total": 9, "reserved": 0, "min_unit": 1, "max_unit": 9, "step_size": 1}


def provider(number: int) -> dict[str, Any]:
    return {
        "uuid": UUID.format(number),
        "name": f"{number}-{LONG}",
        "parent_uuid": None,
        "inventories": {
            name: {**PLAIN, "total": total, "max_unit": total, "allocation_ratio": 1.0}
            for name, total in {"VCPU": 8 - number % 3, "MEMORY_MB": 65536, "DISK_GB": 999}.items()
        },
        "traits": ["COMPUTE_NODE", "HW_CPU_X86_AVX512VPOPCNTDQ"][: 1 + number % 2],
        "aggregates": [],
    }


SNAPSHOT = {
    "format": "cpu-tiers cloud snapshot",
    "version": 1,
    "masked": False,
    "providers": [provider(number) for number in range(20)],
    "consumers": {},
    "flavors": [],
}
SUMMARIES = {
    UUID.format(number): {
        "resources": {"VCPU": {"capacity": 8, "used": number}},
        "traits": ["HW_CPU_X86_AVX512VPOPCNTDQ", "CUSTOM_" + "A_LONG_NAME_" * 8],
        "parent_provider_uuid": None,
        "root_provider_uuid": UUID.format(number),
    }
    for number in range(3)
}
CANDIDATES = {
    "allocation_requests": [
        {"allocations": {uuid: {"resources": {"VCPU": 1}}}, "mappings": {"": [uuid]}}
        for uuid in SUMMARIES
    ],
    "provider_summaries": SUMMARIES,
}
DOMAIN = f"""<domain type='kvm'><name>instance-00000001</name><uuid>{UUID.format(1)}</uuid>
<metadata><nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>
<nova:flavor name='{LONG}'/></nova:instance></metadata><memory>1048576</memory><vcpu>2</vcpu>
<cputune><shares>200</shares></cputune></domain>"""
AGENT = {
    "agent_type": "NIC Switch agent",
    "binary": "neutron-sriov-nic-agent",
    "host": LONG,
    "configuration": {
        "device_mappings": {"physnet-of-the-second-floor": ["enp129s0f0", "enp129s0f1"]},
        "resource_provider_bandwidths": {"enp129s0f0": {"egress": 10**7, "ingress": 10**7}},
        "resource_provider_inventory_defaults": {
            "allocation_ratio": 1.0, "min_unit": 1, "step_size": 1, "reserved": 0
        },
        "resource_provider_hypervisors": {"enp129s0f0": LONG, "enp129s0f1": LONG},
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def a_terminal_with_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def files(
    save: Callable[..., str], flavor: Callable[..., str], capabilities: str
) -> dict[str, str]:
    """Files by the names that the arguments of the commands have."""
    return {
        "FLAVOR": flavor(
            {
                "quota:cpu_shares_multiplier": "100",
                "trait:HW_CPU_X86_AVX512VPOPCNTDQ": "required",
                "hw:numa_nodes": "1",
            },
            name=LONG,
        ),
        "WRONG": save(
            {
                "name": LONG,
                "vcpus": 0,
                "ram": "much",
                "properties": {f"trait:CUSTOM_{n}_{'LONG_' * 20}": "perhaps" for n in range(300)},
            },
            "wrong.json",
        ),
        "SNAPSHOT": save(SNAPSHOT, "snapshot.json"),
        "CANDIDATES": save(CANDIDATES, "candidates.json"),
        "CAPABILITIES": capabilities,
        "DOMAIN": save(DOMAIN, "domain.xml"),
        "AGENT": save(AGENT, "agent.json"),
        "CONF": save("[compute]\nenable_numa_reporting_to_placement = true\n", "nova.conf"),
    }


ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "allocation heal": ("allocation heal --plan",),
    "capacity": ("capacity FLAVOR --snapshot SNAPSHOT --no-numa", "capacity WRONG"),
    "cloud requests": ("cloud requests OUT OUT",),
    "cloud show": ("cloud show --snapshot SNAPSHOT", "cloud show --snapshot SNAPSHOT --all"),
    "cloud snapshot": ("cloud snapshot OUT --snapshot SNAPSHOT --no-flavors",),
    "demo": ("demo",),
    "domain show": ("domain show FLAVOR --capabilities CAPABILITIES",),
    "explain": (
        "explain FLAVOR --snapshot SNAPSHOT",
        "explain FLAVOR --snapshot SNAPSHOT --no-numa --all",
        "explain WRONG --all",
    ),
    "flavor check": ("flavor check FLAVOR WRONG --hosts --snapshot SNAPSHOT",),
    "flavor pair": ("flavor pair FLAVOR -f table", "flavor pair WRONG"),
    "flavor show": ("flavor show FLAVOR",),
    "host audit": ("host audit --connect test:///nowhere",),
    "host pressure": ("--placement embedded host pressure LONG --set CPU",),
    "host show": ("host show --capabilities CAPABILITIES --domain DOMAIN",),
    "host watch": ("host watch --connect test:///nowhere",),
    "inventory show": (
        "--config-file CONF inventory show --capabilities CAPABILITIES --hostname LONG",
    ),
    "inventory sync": (
        "--placement embedded inventory sync --capabilities CAPABILITIES --hostname LONG",
    ),
    "networking show": ("networking show AGENT",),
    "networking sync": ("--placement embedded networking sync AGENT",),
    "placement check": ("--placement embedded placement check --rounds 1",),
    "plan check": ("plan check WRONG",),
    "plan drain": ("plan drain NAMED --snapshot SNAPSHOT",),
    "plan relieve": ("plan relieve --snapshot SNAPSHOT",),
    "plan room": ("plan room FLAVOR --snapshot SNAPSHOT --no-numa", "plan room WRONG"),
    "plan survive": ("plan survive --snapshot SNAPSHOT",),
    "request show": ("request show FLAVOR",),
    "reshape apply": ("reshape apply WRONG --capabilities CAPABILITIES",),
    "reshape plan": ("reshape plan --host LONG",),
    "simulate": ("simulate SNAPSHOT --draw 50 --flavors FLAVOR --no-numa",),
    "weigh": (
        "weigh FLAVOR --candidates CANDIDATES",
        "weigh FLAVOR --snapshot SNAPSHOT --no-numa",
    ),
}


def test_each_command_is_tried() -> None:
    assert list(ARGUMENTS) == COMMANDS, "add the command to ARGUMENTS"


@pytest.mark.parametrize(("command", "columns"), TRIED)
def test_no_line_is_wider_than_the_terminal(
    fork_server: ForkServer, tmp_path: Path, files: Mapping[str, str], command: str, columns: int
) -> None:
    program = str(Path(sys.executable).with_name("cpu-tiers"))
    words = {**files, "OUT": str(tmp_path / "out.json"), "LONG": LONG, "NAMED": f"0-{LONG}"}
    for line in (*ARGUMENTS[command], f"{command} --{LONG}"):
        arguments = [words.get(word, word) for word in line.split()]
        _, lines = fork_server.run_in_terminal([program, *arguments], tmp_path, columns)
        assert "Traceback" not in "\n".join(lines)
        assert "".join(lines), line
        # A command to copy stays on one line.
        wide = [
            each
            for each in lines
            if wcswidth(ESCAPES.sub("", each)) > columns and not each.startswith("First: ")
        ]
        assert wide == [], line


@pytest.mark.parametrize("columns", WIDTHS)
def test_help(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))  # on a terminal, a pager shows the help
    for name in ("", *in_turn(COMMANDS)):  # tests/unit/cli/test_help_format.py has the others
        text = run(*filter(None, name.split()), "--help").stdout
        assert [line for line in text.splitlines() if len(line) > columns] == [], name


def test_formats_for_programs_are_never_wrapped(
    fork_server: ForkServer, tmp_path: Path, files: Mapping[str, str]
) -> None:
    program = str(Path(sys.executable).with_name("cpu-tiers"))
    command = [
        program,
        "capacity",
        files["FLAVOR"],
        "--snapshot",
        files["SNAPSHOT"],
        "-f",
        "value",
    ]
    _, lines = fork_server.run_in_terminal(command, tmp_path, 60)
    row = next(line for line in lines if line.startswith(LONG))
    assert len(row) > 2000
    _, lines = fork_server.run_in_terminal([*command[:-1], "json"], tmp_path, 60)
    # The warning that Nova was not asked stands before, on the standard error.
    (flavor,) = json.loads("\n".join(lines[lines.index("[") :]))
    assert len(flavor["hosts"]) == 20

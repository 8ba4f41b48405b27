"""``flavor check``, ``request show``, ``inventory show``, ``domain show``, ``weigh``."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from lxml import etree

from cpu_tiers.model.names import VCPU_SHARES, trait
from cpu_tiers.weights import SCORINGS

Command = Callable[..., Any]
GOLD = {"quota:cpu_shares_multiplier": "100.0"}
ASK = "[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n"


def test_request_show(run: Command, save: Command, flavor: Command) -> None:
    image = save({"name": "i", "properties": {"trait:HW_CPU_X86_VMX": "required"}}, "image.json")
    arguments = ("request", "show", flavor(GOLD, vcpus=2, swap=1), "--image", image)
    found = json.loads(
        run(*arguments, "--config-file", save(ASK, "nova.conf"), "-f", "json").stdout
    )
    assert {key: set(value[0].split(",")) for key, value in parse_qs(found["query"]).items()} == {
        "resources": {"VCPU:2", "MEMORY_MB:4096", "DISK_GB:41", f"{VCPU_SHARES}:200"},
        "required": {"HW_CPU_X86_VMX"},
    }
    assert found["groups"] == [
        {
            "suffix": "",
            "resources": {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 41, VCPU_SHARES: 200},
            "required": ["HW_CPU_X86_VMX"],
            "forbidden": [],
        }
    ]
    assert (found["same_subtree"], found["group_policy"], found["fallback_query"]) == (
        [],
        None,
        None,
    )


def test_request_show_with_ports(run: Command, save: Command, flavor: Command) -> None:
    port = {
        "id": "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11",
        "resource_request": {
            "request_groups": [
                {
                    "id": "bw",
                    "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000},
                    "required": ["in:CUSTOM_PHYSNET_1,CUSTOM_PHYSNET_0", "CUSTOM_A"],
                },
                {"id": "pps", "resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 5}},
            ],
            "same_subtree": ["bw", "pps"],
        },
    }
    other = {"id": "p2", "resource_request": json.dumps({"resources": {"CUSTOM_X": 1}})}
    plain = {"id": "p3", "resource_request": None}
    ports = [save(it, f"{index}.json") for index, it in enumerate((port, other, plain))]
    arguments = ("--config-file", save("", "nova.conf"), "-f", "json")
    it = flavor({"group_policy": "none"})
    shown = run("request", "show", it, *(f"--port={path}" for path in ports), *arguments)
    found = json.loads(shown.stdout)
    assert [group["suffix"] for group in found["groups"]] == ["", "bw", "pps", "p2"]
    assert found["groups"][1]["required"] == ["CUSTOM_A", "in:CUSTOM_PHYSNET_0,CUSTOM_PHYSNET_1"]
    assert (found["same_subtree"], found["group_policy"]) == ([["bw", "pps"]], "none")
    assert "requiredbw=in:CUSTOM_PHYSNET_0,CUSTOM_PHYSNET_1&" in found["query"]
    refused = run("request", "show", flavor({}), f"--port={ports[0]}", *arguments, status=1)
    assert "extra spec group_policy: not set, with 2 groups: bw, pps" in refused.stderr


def test_shares_are_asked_for_only_where_nova_conf_says_so(
    run: Command, flavor: Command, save: Command
) -> None:
    conf = save("", "nova.conf")
    result = run(
        "--config-file", conf, "request", "show", flavor(GOLD), "-f", "value", "-c", "query"
    )
    assert result.stdout == "resources=DISK_GB:40,MEMORY_MB:4096,VCPU:1\n"


def test_inventory_show_has_the_specs_6400_shares(
    run: Command, save: Command, capabilities: str
) -> None:
    conf = save(
        "[DEFAULT]\ncpu_allocation_ratio = 4.0\nram_allocation_ratio = 1.5\n"
        "disk_allocation_ratio = 2.0\nreserved_host_memory_mb = 1024\n"
        "[libvirt]\nreport_vcpu_shares = true\n",
        "nova.conf",
    )
    arguments = ("--capabilities", capabilities, "--hostname", "compute1", "--config-file", conf)
    result = run("inventory", "show", *arguments, "--disk-gb", "500", "-f", "json")

    def inventory(total: int, ratio: float, reserved: int, most: int) -> dict[str, object]:
        fields = {"total": total, "reserved": reserved, "min_unit": 1, "max_unit": most}
        return {**fields, "step_size": 1, "allocation_ratio": ratio}

    assert json.loads(result.stdout) == [
        {
            "name": "compute1",
            "parent": None,
            "inventories": {
                "VCPU": inventory(64, 4.0, 0, 64),
                VCPU_SHARES: inventory(6400, 4.0, 0, 6400),
                "MEMORY_MB": inventory(262144, 1.5, 1024, 262144),
                "DISK_GB": inventory(500, 2.0, 0, 500),
            },
            "traits": [],
        }
    ]
    assert result.stderr == ""


def test_the_disk_is_measured_where_instances_are_kept_and_said_so(
    run: Command, save: Command, capabilities: str, tmp_path: Path
) -> None:
    conf = save(f"[DEFAULT]\ninstances_path = {tmp_path}/not/yet\n", "nova.conf")
    arguments = ("--capabilities", capabilities, "--hostname", "h", "--config-file", conf)
    result = run("inventory", "show", *arguments, "-f", "json")
    expected = shutil.disk_usage(tmp_path).total // 2**30
    (root,) = json.loads(result.stdout)
    assert root["inventories"]["DISK_GB"]["total"] == expected
    assert f"DISK_GB is {expected}, the size of the file system of {tmp_path}" in result.stderr


def test_domain_show(run: Command, flavor: Command, capabilities: str, save: Command) -> None:
    conf = save("[compute]\ncpu_shared_set = 0-3\n", "nova.conf")
    result = run(
        *("domain", "show", flavor(GOLD, vcpus=4), "--capabilities", capabilities),
        *("--config-file", conf, "-f", "value", "-c", "xml"),
    )
    domain = etree.fromstring(result.stdout)
    vcpu = domain.find("vcpu")
    assert vcpu is not None
    assert (vcpu.text, vcpu.get("cpuset")) == ("4", "0-3")
    assert domain.findtext("cputune/shares") == "400"


def test_flavor_show(run: Command, flavor: Command, save: Command) -> None:
    """The example of use-pcpu-vcpu-in-one-instance: 3 + 5 CPUs over two nodes."""
    specs = {"hw:numa_nodes": "2", "resources:VCPU": "3", "resources:PCPU": "5"}
    image = save({"name": "i", "properties": {"hw_cpu_thread_policy": "require"}}, "image.json")
    arguments = ("flavor", "show", flavor(specs, vcpus=8, ram=512), "--image", image)
    assert json.loads(run(*arguments, "-f", "json").stdout) == {
        "flavor": "gold",
        "vcpus": 8,
        "cpu_policy": "mixed",
        "cpu_thread_policy": "require",
        "emulator_threads_policy": None,
        "host_cpu_overhead": 0,
        "page_size": None,
        "dedicated_cpus": "2-3,5-7",
        "realtime_cpus": "",
        "cells": [
            {"id": 0, "cpuset": "0-1", "pcpuset": "2-3", "memory_mb": 256},
            {"id": 1, "cpuset": "4", "pcpuset": "5-7", "memory_mb": 256},
        ],
    }
    assert "node 1: shared 4, dedicated 5-7, 256 MiB" in run(*arguments).stdout


PINNED = "[compute]\ncpu_shared_set = 0-3\ncpu_dedicated_set = 4-7,32-39\n"


def test_domain_show_pins_on_the_host(
    run: Command, flavor: Command, capabilities: str, save: Command
) -> None:
    specs = {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "2-3"}
    conf = save(f"{PINNED}[libvirt]\nrealtime_scheduler_priority = 5\n", "nova.conf")
    result = run(
        *("domain", "show", flavor(specs, vcpus=4), "--capabilities", capabilities),
        *("--config-file", conf, "-f", "value", "-c", "xml"),
    )
    domain = etree.fromstring(result.stdout)
    # on cell 0: cell 1 has no shared CPUs; emulator threads keep off the real-time vCPUs
    assert [pin.get("cpuset") for pin in domain.findall("cputune/vcpupin")] == [
        *("0-3", "0-3"),
        *("4", "5"),
    ]
    assert [pin.get("cpuset") for pin in domain.findall("cputune/emulatorpin")] == ["0-3"]
    (sched,) = domain.findall("cputune/vcpusched")
    assert dict(sched.items()) == {"vcpus": "2-3", "scheduler": "fifo", "priority": "5"}
    assert [node.get("nodeset") for node in domain.findall("numatune/memnode")] == ["0"]


def test_domain_show_of_a_server_that_does_not_fit(
    run: Command, flavor: Command, capabilities: str, save: Command
) -> None:
    # 9 dedicated CPUs in one node: the cells have 4 and 8
    arguments = (flavor({"hw:cpu_policy": "dedicated"}, vcpus=9), "--capabilities", capabilities)
    result = run(
        *("domain", "show", *arguments, "--config-file", save(PINNED, "nova.conf")), status=1
    )
    assert "host cell 0: it needs 9 dedicated CPUs, 4 are free" in result.stderr
    assert "host cell 1: it needs 9 dedicated CPUs, 8 are free" in result.stderr


def summary(root: str, capacity: int, *traits: str) -> dict[str, object]:
    return {
        "resources": {"VCPU": {"capacity": capacity, "used": 0}},
        "traits": traits,
        "parent_provider_uuid": None,
        "root_provider_uuid": root,
    }


def test_weigh_gives_the_specs_host_a_one_half(
    run: Command, flavor: Command, save: Command
) -> None:
    a, b, pool = (letter * 8 + "-0000-4000-8000-" + letter * 12 for letter in "abc")
    answer = {
        "allocation_requests": [],
        "provider_summaries": {
            b: summary(b, 2, "CUSTOM_SSD", "HW_CPU_X86_AVX2"),
            a: summary(a, 4, "CUSTOM_SSD", "HW_CPU_X86_AVX2"),
            pool: {
                **summary(pool, 1, "MISC_SHARES_VIA_AGGREGATE"),
                "resources": {"DISK_GB": {"capacity": 9, "used": 0}},
            },
        },
    }
    arguments = (
        *("weigh", flavor({"trait:CUSTOM_SSD": "required"}, vcpus=2)),
        *("--candidates", save(answer, "answer.json"), "--config-file", save("", "nova.conf")),
    )
    # A: 1 - 2/4 = 0.5, 1 of 2 traits; B: 1 - 2/2 = 0.0, 1 of 2 traits
    traits = {"CUSTOM_SSD": 1.0, "HW_CPU_X86_AVX2": 0.0}
    for scoring in SCORINGS:
        result = run(*arguments, "--scoring", scoring, "-f", "json")
        assert json.loads(result.stdout) == [
            {
                "host": a,
                "score": 0.5,
                "resource_score": 0.5,
                "trait_score": 0.5,
                "resources": {"VCPU": 0.5},
                "traits": traits,
            },
            {
                "host": b,
                "score": 0.25,
                "resource_score": 0.0,
                "trait_score": 0.5,
                "resources": {"VCPU": 0.0},
                "traits": traits,
            },
        ]
    table = run(*arguments).stdout
    assert table.index(a) < table.index(b)
    for shown in ("VCPU 0.5000", "CUSTOM_SSD 1.0000", "HW_CPU_X86_AVX2 0.0000"):
        assert shown in table


def test_weigh_reads_its_options_from_nova_conf(
    run: Command, flavor: Command, save: Command
) -> None:
    host = "a" * 8 + "-0000-4000-8000-" + "a" * 12
    resources = {name: {"capacity": 4, "used": 0} for name in ("VCPU", "VGPU", "MEMORY_MB")}
    answer = {
        "allocation_requests": [],
        "provider_summaries": {
            host: {**summary(host, 4, "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"), "resources": resources}
        },
    }
    conf = save(
        "[filter_scheduler]\nresource_provider_scoring = boring\n"
        "resource_provider_resources = VCPU,VGPU\nresource_provider_traits = CUSTOM_B,CUSTOM_C\n",
        "nova.conf",
    )
    arguments = ("--candidates", save(answer, "answer.json"), "--config-file", conf)
    (row,) = json.loads(run("weigh", flavor({}), *arguments, "-f", "json").stdout)
    # boring: VCPU 1 - 1/4, VGPU not asked for; 2 traits that nobody asked for: 1/(1+2)
    assert row["resources"] == {"VCPU": 0.75, "VGPU": 0.0}
    assert row["traits"] == {"CUSTOM_B": 0.0, "CUSTOM_C": 0.0}
    assert row["resource_score"] == pytest.approx(0.375)
    assert row["trait_score"] == pytest.approx(1 / 3)


def test_flavor_check(run: Command, flavor: Command) -> None:
    result = run("flavor", "check", flavor(GOLD), "-f", "json")
    assert json.loads(result.stdout) == []
    assert result.stderr == "flavors: 1, faults: 0\n"


def test_flavor_check_lists_every_fault_of_every_flavor(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor({**GOLD, "quota:cpu_shares": "100", "trait:NOPE": "maybe"})
    other = save("no json", "other.json")
    result = run("flavor", "check", path, other, "-f", "json", status=1)
    assert [(row["file"], row["where"]) for row in json.loads(result.stdout)] == [
        (path, "flavor gold, extra spec trait:NOPE"),
        (path, "flavor gold, extra spec trait:NOPE"),
        (
            path,
            "flavor gold, extra specs quota:cpu_shares_multiplier and quota:cpu_shares",
        ),
        (other, other),
    ]
    assert "flavors: 2, faults: 4" in result.stderr


PAGES = {"hw:mem_page_size": "2MB"}
BROKEN = ("flavor gold, NUMA node 0", "4095 MiB: not a multiple of the page size of 2048 kB")


@pytest.mark.parametrize(
    ("properties", "faults"),
    [
        pytest.param(
            {
                "hw:numa_nodes": "2",
                "hw:numa_cpus.0": "0,1",
                "hw:numa_cpus.1": "1",
                "hw:numa_mem.0": "1000",
                "hw:numa_mem.1": "3000",
            },
            [
                ("flavor gold, extra spec hw:numa_cpus.1", "'1'"),
                ("flavor gold, extra spec hw:numa_cpus.0", "no node has the vCPUs 2-3"),
                ("flavor gold, hw:numa_mem.N", "4000 MiB in all"),
            ],
            id="CPUs twice and missing, memory that does not add up",
        ),
        pytest.param(
            {"hw:numa_nodes": "2"},
            [("flavor gold, 2 NUMA nodes", "4 vCPUs and 4095 MiB")],
            id="nodes that do not divide",
        ),
        pytest.param({"hw:numa_nodes": "1"} | PAGES, [BROKEN], id="broken pages"),
        pytest.param(
            {"hw:numa_nodes": "x"},
            [("flavor gold, extra spec hw:numa_nodes", "got 'x'")],
            id="no number",
        ),
    ],
)
def test_flavor_check_looks_at_numa_nodes(
    run: Command, flavor: Command, properties: dict[str, str], faults: list[tuple[str, str]]
) -> None:
    path = flavor(properties, vcpus=4, ram=4095)
    result = run("flavor", "check", path, "-f", "json", status=1)
    assert [(row["where"], row["given"]) for row in json.loads(result.stdout)] == faults


def test_flavor_check_asks_as_the_scheduler_does(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor(PAGES, ram=4095)  # Nova makes one node of it; asked for where that is on
    on = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "nova.conf")
    run("flavor", "check", path)
    run("flavor", "check", path, "--config-file", on, "--no-numa")
    for asking in (("--numa",), ("--config-file", on)):
        result = run("flavor", "check", path, *asking, "-f", "json", status=1)
        (row,) = json.loads(result.stdout)
        assert (row["where"], row["given"]) == BROKEN


def test_request_show_with_numa_nodes(run: Command, save: Command, flavor: Command) -> None:
    small, non_numa = trait("MEMORY_PAGE_SIZE_SMALL"), trait("HW_NON_NUMA")
    numa = flavor({"hw:numa_nodes": "1"}, vcpus=8, ram=8192, disk=0)

    def shown(*arguments: str) -> tuple[set[str], set[str]]:
        found = json.loads(run("request", "show", *arguments, "-f", "json").stdout)
        return set(found["query"].split("&")), set((found["fallback_query"] or "").split("&"))

    fallback = {"resources=MEMORY_MB:8192,VCPU:8", f"required=!{non_numa},!HW_NUMA_ROOT"}
    memory = {"resources_MEM1=MEMORY_MB:8192", f"required_MEM1={small}"}
    roots = {"required_NUMA1=HW_NUMA_ROOT", "same_subtree=_MEM1,_PROC1,_NUMA1"}
    spec = {*memory, "resources_PROC1=VCPU:8", *roots, "group_policy=none"}
    assert shown(numa) == (spec, fallback)
    fast = {"required_PROC1=HW_NUMA_ROOT", "same_subtree=_MEM1,_PROC1", "group_policy=isolate"}
    fallback = {
        *("resources_HOST=MEMORY_MB:8192,VCPU:8", "required_HOST=!HW_NUMA_ROOT"),
        f"root_required=!{non_numa}",
    }
    assert shown(numa, "--form", "fast") == (
        {*memory, "resources_PROC1=VCPU:8", *fast},
        fallback,
    )
    plain = {"resources=MEMORY_MB:8192,VCPU:8"}
    assert shown(numa, "--no-numa") == (plain, {""})
    off = save("[filter_scheduler]\nquery_placement_for_numa = false\n", "nova.conf")
    assert shown(numa, "--config-file", off) == (plain, {""})


def test_request_show_without_numa_nodes(run: Command, save: Command, flavor: Command) -> None:
    arguments = ("request", "show", flavor({}, vcpus=8, ram=8192, disk=0), "-f", "json")
    on = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "nova.conf")
    plain = "resources=MEMORY_MB:8192,VCPU:8"
    assert json.loads(run(*arguments).stdout)["query"] == plain
    for asking in (("--numa",), ("--config-file", on)):
        found = json.loads(run(*arguments, *asking).stdout)
        assert found["query"] == f"{plain}&required=!HW_NUMA_ROOT"
        assert found["fallback_query"] is None

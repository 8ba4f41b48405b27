"""``cpu-tiers request show``."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from cpu_tiers.model.names import VCPU_SHARES

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
    shown = run("request", "show", flavor({}), f"--port={ports[0]}", *arguments)
    assert json.loads(shown.stdout)["group_policy"] == "none"  # as Nova assumes for ports
    groups = flavor({"resources1:VGPU": "1", "resources2:VGPU": "1"})
    refused = run("request", "show", groups, *arguments, status=1)
    assert "extra spec group_policy: not set, with 2 groups: 1, 2" in refused.stderr


def test_shares_are_requested_only_with_the_option_of_nova_conf(
    run: Command, flavor: Command, save: Command
) -> None:
    conf = save("", "nova.conf")
    result = run(
        "--config-file", conf, "request", "show", flavor(GOLD), "-f", "value", "-c", "query"
    )
    assert result.stdout == "resources=DISK_GB:40,MEMORY_MB:4096,VCPU:1\n"


def test_request_show_with_numa_nodes(run: Command, save: Command, flavor: Command) -> None:
    small, non_numa = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_HW_NON_NUMA"
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
    fast |= {"resources=CUSTOM_NUMA_SERVER:1", "root_required=CUSTOM_NUMA_NODES_1"}
    fallback = {
        "resources=MEMORY_MB:8192,VCPU:8",
        f"root_required=!{non_numa},!CUSTOM_NUMA_NODES_1",
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


def test_what_the_query_does_not_have(run: Command, save: Command, flavor: Command) -> None:
    """The device profile and the alias, of which nova.conf says nothing, have a line."""
    port = save({"id": "p", "binding_vnic_type": "remote-managed"}, "port.json")
    path = flavor({"pci_passthrough:alias": "a:1", "accel:device_profile": "fpga"})
    result = run("request", "show", path, "--port", port, "-f", "json")
    assert json.loads(result.stdout)["root_required"] == ["COMPUTE_REMOTE_MANAGED_PORTS"]
    line = " ".join(result.stderr.split())
    assert "not look at: pci_passthrough:alias a, accel:device_profile fpga." in line

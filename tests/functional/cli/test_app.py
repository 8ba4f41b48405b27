"""Bad input: exit status 1 (2 for usage), one clear message, no traceback."""

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("properties", "sizes", "message"),
    [
        ({}, {"vcpus": "four"}, "flavor gold, vcpus: got 'four'"),
        ({}, {"vcpus": 0}, "flavor gold, vcpus: got 0"),
        ({}, {"vcpus": -1}, "flavor gold, vcpus: got -1"),
        ({"quota:cpu_shares": "1", "quota:cpu_shares_multiplier": "1"}, {}, "both are set"),
        ({"quota:cpu_shares": "10001"}, {}, "from 1 to 10000"),
        ({"quota:cpu_shares_multiplier": "100"}, {"vcpus": 101}, "a weight of 10100"),
        ({"trait:HW_NOT_A_TRAIT": "required"}, {}, "unknown trait 'HW_NOT_A_TRAIT'"),
        ({"resources:": "1"}, {}, "resources:: malformed key"),
        ({"hw:cpu_policy": "mixed"}, {}, "set either hw:cpu_dedicated_mask or"),
        ({"hw:numa_nodes": "2"}, {}, "nodes of unequal size need hw:numa_cpus.N"),
        ({"hw:mem_page_size": "big"}, {}, "extra spec hw:mem_page_size: got 'big'"),
        ({"resources1:VGPU": "1", "resources2:VGPU": "1"}, {}, "set none, or set isolate"),
    ],
)
def test_flavors(
    run: Command, flavor: Command, properties: dict[str, str], sizes: dict[str, Any], message: str
) -> None:
    result = run("request", "show", flavor(properties, **sizes), status=1)
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no XML", "capabilities.xml: not XML"),
        ("<capabilities><host/></capabilities>", "no <host><topology><cells>"),
        ('<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><c>&x;</c>', "document type"),
    ],
)
def test_capabilities(run: Command, save: Command, text: str, message: str) -> None:
    path = save(text, "capabilities.xml")
    result = run("inventory", "show", "--capabilities", path, "--hostname", "h", status=1)
    assert message in result.stderr


@pytest.mark.parametrize(
    ("conf", "messages"),
    [
        ("[compute]\ncpu_shared_set = 60-70\n", ["cpu_shared_set: host h has no CPU 64-70"]),
        (
            "[compute]\ncpu_shared_set = 0-9\ncpu_dedicated_set = 8-12,99\n",
            ["cpu_dedicated_set: host h has no CPU 99", "CPU 8-9 is in both"],
        ),
        ("[compute]\ncpu_shared_set = all\n", ["'all'"]),
        ("[libvirt]\nvcpu_share_multiplier = 0\n", ["vcpu_share_multiplier"]),
        ("[DEFAULT]\nreserved_host_memory_mb = 999999\n", ["reserved 999999 of total 262144"]),
    ],
)
def test_nova_conf(
    run: Command, save: Command, capabilities: str, conf: str, messages: list[str]
) -> None:
    result = run(
        *("inventory", "show", "--capabilities", capabilities, "--hostname", "h"),
        *("--config-file", save(conf, "nova.conf")),
        status=1,
    )
    for message in messages:
        assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hostname", ""), "--hostname: got ''"),
        (("--hostname", "h" * 201), "1 to 200 characters"),
        (("--hostname", "h", "--disk-gb", "-1"), "--disk-gb: got -1"),
        (("--hostname", "h", "--config-file", "/no/such.conf"), "/no/such.conf"),
    ],
)
def test_arguments(
    run: Command, capabilities: str, arguments: tuple[str, ...], message: str
) -> None:
    result = run("inventory", "show", "--capabilities", capabilities, *arguments, status=1)
    assert message in result.stderr


def test_a_libvirt_that_cannot_be_asked(run: Command) -> None:
    uri = "qemu+unix:///system?socket=/no/such/socket"
    assert run("inventory", "show", "--connect", uri, "--hostname", "h", status=1).stderr


def test_no_placement_section(run: Command, capabilities: str, save: Command) -> None:
    result = run(
        *("inventory", "sync", "--capabilities", capabilities, "--hostname", "h"),
        *("--config-file", save("", "nova.conf")),
        status=1,
    )
    assert "[placement]" in result.stderr


def test_candidates(run: Command, flavor: Command, save: Command) -> None:
    path = save("<html>Bad gateway</html>", "answer.json")
    result = run("weigh", flavor({}), "--candidates", path, status=1)
    assert f"{path}: not JSON" in result.stderr
    path = save({"allocation_requests": [], "provider_summaries": {"x": 1}}, "answer.json")
    assert (
        "provider_summaries x" in run("weigh", flavor({}), "--candidates", path, status=1).stderr
    )


@pytest.mark.parametrize(
    "arguments",
    [(), ("--debug",), ("-v",), ("nonsense",), ("request", "show"), ("inventory", "show")],
)
def test_usage(run: Command, arguments: tuple[str, ...]) -> None:
    run(*arguments, status=2)

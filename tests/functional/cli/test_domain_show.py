"""``cpu-tiers domain show``."""

from collections.abc import Callable
from typing import Any

import pytest
from lxml import etree

Command = Callable[..., Any]


GOLD = {"quota:cpu_shares_multiplier": "100.0"}


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
    (iothread,) = domain.findall("cputune/iothreadpin")
    assert dict(iothread.items()) == {"iothread": "1", "cpuset": "0-3"}
    (sched,) = domain.findall("cputune/vcpusched")
    assert dict(sched.items()) == {"vcpus": "2-3", "scheduler": "fifo", "priority": "5"}
    assert [node.get("nodeset") for node in domain.findall("numatune/memnode")] == ["0"]


def test_domain_show_of_a_server_that_does_not_fit(
    run: Command, flavor: Command, capabilities: str, save: Command
) -> None:
    # 9 dedicated CPUs in one node: the cells have 4 and 8, and 9 cannot be divided by 2
    arguments = (flavor({"hw:cpu_policy": "dedicated"}, vcpus=9), "--capabilities", capabilities)
    result = run(
        *("domain", "show", *arguments, "--config-file", save(PINNED, "nova.conf")), status=1
    )
    assert "host cell 0: it needs 9 dedicated CPUs, 4 are free" in result.stderr
    assert "host cell 1: it needs 9 dedicated CPUs, 8 are free" in result.stderr
    assert "hw:numa_nodes" not in result.stderr


@pytest.mark.parametrize(("vcpus", "fits"), [(10, True), (16, False)])
def test_domain_show_of_a_server_that_fits_in_two_nodes(
    run: Command, flavor: Command, capabilities: str, save: Command, vcpus: int, fits: bool
) -> None:
    conf = save("[compute]\ncpu_dedicated_set = 4-11,32-37\n", "nova.conf")  # 8 and 6
    pinned = flavor({"hw:cpu_policy": "dedicated"}, vcpus=vcpus)
    arguments = ("domain", "show", pinned, "--capabilities", capabilities)
    result = run(*arguments, "--config-file", conf, status=1)
    assert ("with hw:numa_nodes=2 the server fits" in result.stderr) == fits


def test_domain_show_refuses_a_guest_that_the_host_would_not_start(
    run: Command, flavor: Command, capabilities: str, save: Command
) -> None:
    pinned = {"hw:cpu_policy": "dedicated"}
    realtime = {"hw:cpu_realtime": "yes", "hw:emulator_threads_policy": "share"}
    only_dedicated = "[compute]\ncpu_dedicated_set = 4-7\n"
    for specs, conf, message in (
        (pinned, "", "2 dedicated CPUs, 0 are free; [compute] cpu_dedicated_set has no CPU"),
        (pinned | realtime, only_dedicated, "[compute] cpu_shared_set: not set on the host"),
    ):
        arguments = ("domain", "show", flavor(specs, vcpus=2), "--capabilities", capabilities)
        result = run(*arguments, "--config-file", save(conf, "nova.conf"), status=1)
        assert message in result.stderr

"""Two hosts with real guests: plans are carried out word for word, as their script says.

The tests are steps of one life of a cloud, and run in their order. All guests use all CPU time
that they get, and all guests of a host run on its CPU 0.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cloud import two_hosts
from tests.cloud.holdings import GUESTS
from tests.cloud.page import Shell
from tests.cloud.rest import PLACEMENT, Cloud
from tests.cloud.tiers import SHARES

TIERS = {"gold": 100, "bronze": 25}
WHOLE = "whole"
"""A flavor of Bronze with nearly all memory of a host, which QEMU takes only when it is used."""

BOOT = "openstack --os-compute-api-version 2.90 server create --nic none --wait --image $IMAGE"
"""The first servers are forced to a host, for which Nova needs an administrator."""

CPU_TIMES = Path(__file__).with_name("cpu_times.py")
LOGS = {"compute1": "/run/cpu-times1", "compute2": "/run/cpu-times2"}
MIGRATE = "server migrate --live-migration"
LEAST_PART = 0.95
"""Of what a guest's weight promises beside the guests that run: the kernel's own noise."""


class Plans:
    """The cloud, and the commands of a person who plans."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.cloud = shell, Cloud(shell)
        self.servers: dict[str, str] = {}

    def boot(self, name: str, tier: str, host: str = "") -> None:
        at = f"--host {host}" if host else ""
        created = self.shell.output_of(f"{BOOT} --flavor my-{tier} {at} {name} -f value -c id")
        self.servers[name] = created.strip()

    def provider(self, host: str, what: str) -> Any:
        """Return what Placement has of a host."""
        found = self.cloud.get(PLACEMENT, f"/resource_providers?name={host}")
        (provider,) = found["resource_providers"]
        return self.cloud.get(PLACEMENT, f"/resource_providers/{provider['uuid']}/{what}")

    def carry_out(self, question: str) -> str:
        """Have the shell of the cloud run the script of a plan; return the script."""
        self.shell.output_of(f"cpu-tiers plan {question} -f shell > /root/plan.sh")
        self.shell.output_of("sh /root/plan.sh")
        return self.shell.output_of("cat /root/plan.sh; rm /root/plan.sh")

    def places(self) -> dict[str, tuple[str, int]]:
        """Return the host and the shares that each server holds, by its name."""
        found = {}
        for host in two_hosts.HOSTS:
            for uuid, held in self.provider(host, "allocations")["allocations"].items():
                (name,) = (name for name, own in self.servers.items() if own == uuid)
                assert name not in found, f"{name} holds resources of two hosts"
                found[name] = host, held["resources"][SHARES]
        return found

    def guests(self, host: str) -> dict[str, tuple[int, int]]:
        """Return the weight of each guest in libvirt and in the kernel, by the server's name."""
        status, output = self.cloud.on(host, f"python3 {GUESTS}")
        assert status == 0, output
        found = json.loads(output.splitlines()[-1])
        names = {uuid: name for name, uuid in self.servers.items()}
        return {names[uuid]: (each["shares"], each["weight"]) for uuid, each in found.items()}

    def kept(self, uuid: str) -> tuple[float, float]:
        """Return the CPU time that a guest got, and that its weight promised, in seconds."""
        got = due = 0.0
        for log in LOGS.values():
            text = self.shell.output_of(f"cat {log}")
            lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
            for before, after in pairwise(lines):
                spent = spent_of(before, after)
                if uuid not in spent:
                    continue
                weights = {each: after[each][0] for each in spent}
                got += spent[uuid] / 1e9
                due += sum(spent.values()) / 1e9 * weights[uuid] / sum(weights.values())
        return got, due


def spent_of(before: Mapping[str, list[int]], after: Mapping[str, list[int]]) -> Mapping[str, int]:
    """Return the nanoseconds of the guests that ran all the time between two lines."""
    return {each: after[each][1] - before[each][1] for each in after if each in before}


@pytest.fixture(scope="module")
def plans(shell: Shell, one_node_cloud: Path) -> Plans:
    """Two hosts, flavors, and no server."""
    two_hosts.start(shell, one_node_cloud, has_tiers=True)
    two_hosts.switch_on(shell)
    for host in two_hosts.HOSTS:
        shell.output_of(
            "openstack --os-placement-api-version 1.18 resource provider inventory list -f value"
            f" $(openstack resource provider list --name {host} -f value -c uuid)",
            f"...{SHARES}...",
        )
    plans = Plans(shell)
    memory = plans.provider("compute1", "inventories")["inventories"]["MEMORY_MB"]
    sizes = {**dict.fromkeys(TIERS, 128), WHOLE: memory["total"] - memory["reserved"] - 64}
    for name, size in sizes.items():
        # two_hosts has a flavor "gold", too.
        create = f"openstack flavor create my-{name} --vcpus 1 --ram {size} --disk 0"
        shares = TIERS.get(name, TIERS["bronze"])
        shell.output_of(f"{create} --property quota:cpu_shares_multiplier={shares}")
    return plans


@pytest.fixture
def watched(plans: Plans) -> Iterator[None]:
    """Have the CPU time of all guests written down."""
    for host, log in LOGS.items():
        on = "on compute2 " if host == "compute2" else ""
        plans.shell.output_of(f"{on}python3 {CPU_TIMES} > {log} 2>&1 & echo $! >> /run/cpu-times")
    yield
    plans.shell.output_of("kill $(</run/cpu-times); rm /run/cpu-times*")


def test_room(plans: Plans) -> None:
    """A server needs a whole host, and finds one after the plan."""
    plans.boot("g1", "gold", "compute1")
    plans.boot("b1", "bronze", "compute1")
    plans.boot("b2", "bronze", "compute2")
    assert plans.shell.run(f"{BOOT} --flavor my-{WHOLE} refused")[0] == 1
    plans.shell.output_of("openstack server delete refused --wait")
    script = plans.carry_out(f"room my-{WHOLE}")
    assert script.count(MIGRATE) == 1
    expected = {"g1": ("compute1", 100), "b1": ("compute1", 25), "b2": ("compute1", 25)}
    assert plans.places() == expected
    plans.boot("w1", WHOLE)
    assert plans.places() == {**expected, "w1": ("compute2", 25)}
    plans.shell.output_of("openstack server delete w1 --wait")


@pytest.mark.usefixtures("watched")
def test_drain(plans: Plans) -> None:
    """All servers leave a host, and Gold has its share of the CPU all the time."""
    script = plans.carry_out("drain compute1")
    assert script.count(MIGRATE) == 3
    expected = {"g1": ("compute2", 100), "b1": ("compute2", 25), "b2": ("compute2", 25)}
    assert plans.places() == expected
    got, due = plans.kept(plans.servers["g1"])
    assert due > 5, f"Gold was due {due} s"
    assert got >= LEAST_PART * due, f"Gold got {got} s of {due} s"
    shown = plans.shell.output_of("cpu-tiers --quiet plan drain compute1 -f json 2>/dev/null")
    assert json.loads(shown)["moves"] == []


def test_the_guests_afterwards(plans: Plans) -> None:
    """Libvirt and the control groups have what was sold."""
    assert plans.guests("compute1") == {}
    weights = {"g1": (100, 100), "b1": (25, 25), "b2": (25, 25)}
    assert plans.guests("compute2") == weights

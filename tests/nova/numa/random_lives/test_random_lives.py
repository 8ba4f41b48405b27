"""Random lives of servers, each on a cloud of its own, with all that can meet on a server.

A life is a run of a state machine of Hypothesis from a seed of its own. A life that fails ends,
the other lives go on, and the message has the steps of the life. Hypothesis does not make the life
shorter: each try would take as long as the life.

- ``CPU_TIERS_LIVES`` is the number of lives, ``CPU_TIERS_SEED`` the seed of the first. Without the
  number no life is lived.
- ``CPU_TIERS_STORIES`` is a file to which the steps of all lives are added.
"""

import os
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from cpu_tiers.nova.compute.numa import numa_pinning
from tests import draws
from tests.nova.numa.devices import SriovNeutron
from tests.nova.numa.random_lives.guests import Guest
from tests.nova.numa.random_lives.machine import RandomLife, Story
from tests.nova.numa.random_lives.twin import Twin

LIVES = int(os.environ.get("CPU_TIERS_LIVES") or 0)
STEP = 10**8
"""The distance between the seeds of two lives. The seed of a day is its date, and no two days have
the same lives."""
ONE_LIFE = settings(
    max_examples=2,  # the first is no life: see RandomLife.begin
    stateful_step_count=50,  # of which those that are not possible do nothing
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)


def live(number: int) -> Story:
    """Live the life of a seed; return what happened."""
    story = Story()

    def life() -> RandomLife:
        return RandomLife(story)

    seeded: Any = seed(number)(life)
    began = time.process_time()
    run_state_machine_as_test(seeded, settings=ONE_LIFE)
    took = time.process_time() - began
    if not story.failure:
        Twin(story).follow(story.record)
    both, end = time.process_time() - began, "fails" if story.failure else "ends well"
    steps = dict(sorted(story.steps.items()))
    times = f"{took:.0f} s of CPU time and {both - took:.0f} s of the twin"
    story.tell(f"{story.failure}life {number} {end}, {times}: {steps}")
    return story


@pytest.mark.skipif(not LIVES, reason="CPU_TIERS_LIVES does not say how many lives")
def test_random_lives() -> None:
    numbers = range(draws.SEED, draws.SEED + LIVES * STEP, STEP)
    stories = {number: live(number) for number in numbers}
    failed = [
        "\n".join([f"CPU_TIERS_SEED={number} CPU_TIERS_LIVES=1", *story.lines])
        for number, story in stories.items()
        if story.failure
    ]
    assert not failed, "\n\n".join(failed)


SMALL = Guest(
    policy="dedicated",
    nodes=1,
    vcpus_of_node=1,
    is_uneven=False,
    pages="",
    isolates=False,
    by_amounts=False,
    multiplier="",
    disk_gb=1,
    cards=False,
    gpus=False,
    affinity="",
)


def unchanged(instance: Any, flavor: Any, requests: Any) -> list[Any]:
    """Return PCI requests as Nova makes them."""
    return [requests]


def test_a_server_worse_off_than_the_twin_fails_the_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """nova-compute refuses a cold migration, as it would without the policy of the flavor."""
    monkeypatch.setattr(numa_pinning, "_with_policies", unchanged)
    story = Story()
    life = RandomLife(story, ("one", "two"))
    life.start(is_off=False)
    guest = replace(SMALL, cards=True, vcpus_of_node=2, affinity="socket")
    for _ in range(4):
        life.take("boot_one", guest=SMALL, ports=(), volume=False, case=None)
    port = SriovNeutron.PORTS[0]
    life.take("boot_one", guest=guest, ports=(port,), volume=False, case=None)
    life.take("migrate", life.residents[4], case=None)
    life.teardown()
    Twin(story, life.hosts).follow(story.record)
    assert "migrate" in story.failure, story.lines
    assert "VERIFY_RESIZE" in story.failure


def test_the_allocations_of_a_guest() -> None:
    """Two nodes with 3 vCPUs each, the first of each shared; a CPU for the emulator threads.

    Of shares 2 x 2.5 = 5; the weight is 6 x 2.5 = 15.
    """
    guest = Guest(
        policy="mixed",
        nodes=2,
        vcpus_of_node=3,
        is_uneven=False,
        pages="",
        isolates=True,
        by_amounts=False,
        multiplier="2.5",
        disk_gb=1,
        cards=False,
        gpus=False,
        affinity="",
    )
    assert guest.holds() == {"VCPU": 2, "PCPU": 5, "MEMORY_MB": 256}
    assert (guest.shares, guest.weight) == (5, "15")
    assert guest.specs()["hw:cpu_dedicated_mask"] == "^0,^3"

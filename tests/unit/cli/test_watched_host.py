"""Guests appear, run, wait and end on a machine that is a folder of files."""

from pathlib import Path

import pytest

from cpu_tiers.tools.host.watch import pending_changes
from cpu_tiers.tools.libvirt.connection import LibvirtUnavailable
from tests.unit.cgroup.layouts import KINDS, Kind
from tests.unit.cli.watched import GOLD, PLAIN, Machine


def totals(machine: Machine) -> dict[str, tuple[float, ...]]:
    """Return how long each guest ran and waited, what was due to it, and what was missing."""
    return {
        guest.domain.name: (
            guest.totals.ran,
            guest.totals.waited,
            round(guest.totals.due, 6),
            round(guest.totals.missing, 6),
        )
        for guest in machine.watched.reading.guests
    }


def test_a_machine_without_guests(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.read()
    assert (machine.watched.reading.guests, machine.described) == ((), [])
    assert machine.watched.reading.taken_at > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_guest_from_start_to_end(tmp_path: Path, kind: Kind) -> None:
    machine = Machine(tmp_path, kind)
    machine.start(GOLD)
    machine.spend(GOLD, 50, 50, 1)  # before the watch: no matter
    machine.read()
    assert totals(machine) == {"gold": (0, 0, 0, 0)}
    (guest,) = machine.watched.reading.guests
    # 100 of 400 shares of one CPU are sold; alone the guest has the CPU as its floor.
    assert (guest.tier, guest.rates, guest.sold, guest.floor) == ("gold", (0.25,), 0.25, 1)
    machine.spend(GOLD, 52, 58, 101)
    machine.read()
    assert totals(machine) == {"gold": (2, 8, 2.5, 0.5)}
    reading = machine.watched.reading
    assert (reading.due, reading.missing) == pytest.approx((2.5, 0.5))
    assert machine.watched.reading.waits["gold"].seconds == 8
    machine.stop(GOLD)
    machine.read()
    assert totals(machine) == {}
    assert machine.watched.reading.waits["gold"].runs[8] == 100  # 8 s / 100 runs: up to 0.1 s
    assert machine.described == [{GOLD}]  # libvirt was asked once
    assert machine.watched.reading.unread == 0


def test_a_wait_over_several_readings_is_not_lost(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.start(GOLD)
    machine.read()
    # In each interval the vCPU runs for 1 s, and wants to run all the time. The kernel counts 4 s
    # of waiting, then 15 s with a wait that ended, then 8 s: 5, 16 and 9 s of 10.
    machine.spend(GOLD, 1, 4, 1)
    machine.read()
    assert totals(machine)["gold"][2:] == (1.25, 0.25)
    machine.spend(GOLD, 2, 19, 2)
    machine.read()
    assert totals(machine)["gold"][2:] == (3.75, 1.75)
    machine.spend(GOLD, 3, 27, 3)
    machine.read()
    # 6 s were beyond the second interval, and one of them fills the third.
    assert totals(machine)["gold"][2:] == (6.25, 3.25)
    machine.spend(GOLD, 4, 27, 4)
    machine.read()
    # The vCPU sleeps for 9 s, by the kernel's count: 5 s of waiting are still left.
    assert totals(machine)["gold"][2:] == (7.75, 3.75)
    machine.read()
    assert totals(machine)["gold"][2:] == (7.75, 3.75)


def test_the_promises_change_with_the_guests(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "v1")
    machine.start(GOLD)
    machine.read()
    machine.start(PLAIN)
    machine.read()
    guests = {guest.domain.name: guest for guest in machine.watched.reading.guests}
    # 100 and 1024 of 1124 of the only CPU; what is due to Gold does not sink.
    assert (guests["gold"].floor, guests["gold"].due) == pytest.approx((100 / 1124, 0.25))
    assert (guests["plain"].floor, guests["plain"].due) == pytest.approx((1024 / 1124, 0))
    reading = machine.watched.reading
    assert (reading.shares, reading.weights) == (400, 2048)  # as the cgroups of the files have it
    assert machine.described == [{GOLD}, {PLAIN}]


@pytest.mark.parametrize("kind", ["v1", "v2 systemd"])
def test_foreign_cgroups_and_heavy_slices_weigh(tmp_path: Path, kind: Kind) -> None:
    machine = Machine(tmp_path, kind)
    machine.start(GOLD)
    machine.read()
    default = machine.layout.default  # of the guest's cgroup, and of the guests' slice
    assert machine.watched.reading.weights == default
    parent = machine.layout.paths[GOLD].rpartition("/")[0]
    machine.layout.weight(f"{parent}/batch", 500)
    machine.layout.file(f"{parent}/batch", "cgroup.procs", "cgroup.events", "populated 1\n")
    machine.layout.weight("/system.slice", default)
    machine.read(30)
    assert machine.watched.reading.weights == default  # weights are read once in a minute
    machine.read(30)
    assert machine.watched.reading.weights == default + 500
    machine.layout.weight("/system.slice", 3 * default)
    machine.read(60)
    assert machine.watched.reading.weights == 4 * (default + 500)


def test_the_least_weight_without_a_tier(tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[libvirt]\nleast_weight_without_tier = true\n")
    machine = Machine(tmp_path, "v1", str(conf))
    machine.start(GOLD)
    machine.start(PLAIN)
    machine.read()
    floors = {guest.domain.name: guest.floor for guest in machine.watched.reading.guests}
    assert floors == pytest.approx({"gold": 100 / 102, "plain": 2 / 102})


def test_libvirt_away_while_a_guest_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(tmp_path)
    machine.error = LibvirtUnavailable("libvirt is away")
    machine.start(GOLD)
    for _ in range(3):
        machine.read(1)
    assert (len(machine.described), machine.watched.reading.unknown) == (1, 1)
    machine.read(5)
    machine.read(5)  # the pause has doubled
    assert len(machine.described) == 2
    assert caplog.messages == ["New guests are not watched yet: libvirt is away"]
    machine.error = None
    machine.read(10)
    assert list(totals(machine)) == ["gold"]
    assert machine.watched.reading.unknown == 0


def test_a_tier_that_changes_while_the_guest_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The CPU time goes on; the tier and the promise are new within a minute of the weight."""
    machine = Machine(tmp_path)
    machine.start(GOLD)
    machine.read()
    machine.spend(GOLD, 2, 8, 100)
    machine.read()
    assert totals(machine) == {"gold": (2, 8, 2.5, 0.5)}
    machine.layout.weight(machine.layout.paths[GOLD], 200)
    machine.xml[GOLD] = machine.describe(GOLD).replace(
        "<shares>100</shares>", "<shares>200</shares>"
    )
    machine.error = LibvirtUnavailable("libvirt is away")
    machine.read(60)
    (guest,) = machine.watched.reading.guests
    assert (guest.tier, guest.sold) == ("gold", 0.25)
    assert "Guests with another weight keep their tiers: libvirt is away" in caplog.messages
    machine.error = None
    machine.read(60)
    (guest,) = machine.watched.reading.guests
    assert (guest.tier, guest.sold, guest.totals.ran) == ("", 0.5, 2)  # 200 of 400 shares
    assert machine.described == [{GOLD}] * 3
    machine.read(60)
    assert len(machine.described) == 3


def test_a_lower_tier_whose_weight_libvirt_refuses(tmp_path: Path) -> None:
    """The metadata have the new tier already: libvirt describes the guest again when told so."""
    machine = Machine(tmp_path)
    machine.start(GOLD)
    machine.read(60)
    machine.xml[GOLD] = machine.describe(GOLD).replace(
        "<shares>100</shares>", "<shares>40</shares>"
    )
    machine.read(60)
    (guest,) = machine.watched.reading.guests
    assert (guest.claim, machine.described) == (100, [{GOLD}])
    machine.watched.describes_again = True
    machine.read(60)
    (guest,) = machine.watched.reading.guests
    assert guest.claim == 40
    assert pending_changes([guest], {GOLD: 100}) == 1
    machine.read(60)
    assert machine.described == [{GOLD}] * 2


@pytest.mark.parametrize(
    ("held", "pending"),
    [
        pytest.param({GOLD: 100, PLAIN: 0}, 0, id="each holds what its tier requests"),
        pytest.param({GOLD: 200}, 1, id="Gold is to be twice as much"),
        pytest.param({GOLD: 100, PLAIN: 50}, 1, id="a guest without a tier is to have a tier"),
        pytest.param({}, 0, id="a migration holds the shares"),
        pytest.param({"another": 300}, 0, id="no guest of the host"),
    ],
)
def test_guests_whose_tier_has_still_to_change(
    tmp_path: Path, held: dict[str, int], pending: int
) -> None:
    machine = Machine(tmp_path)
    machine.start(GOLD)
    machine.start(PLAIN)
    machine.read()
    guests = machine.watched.reading.guests
    assert [guest.claim for guest in guests] == [100, 0]
    assert pending_changes(guests, held) == pending
    machine.watched.pending_changes = pending
    machine.read()
    assert machine.watched.reading.pending_changes == pending


def test_a_guest_that_was_started_again_is_new(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.start(GOLD)
    machine.spend(GOLD, 50, 50, 9)
    machine.read()
    machine.spend(GOLD, 1, 1, 1)  # less than before
    machine.read()
    assert totals(machine) == {"gold": (0, 0, 0, 0)}
    assert machine.described == [{GOLD}, {GOLD}]


def test_a_guest_that_does_not_fit_the_host_is_counted_without_promises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(tmp_path)
    machine.xml[GOLD] = (
        f"<domain><name>gold</name><uuid>{GOLD}</uuid><vcpu cpuset='9'>1</vcpu>"
        "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>"
    )
    machine.start(GOLD)
    machine.read()
    machine.spend(GOLD, 4, 6, 9)
    machine.read()
    assert totals(machine) == {"gold": (4, 6, 0, 0)}
    (message,) = (text for text in caplog.messages if "not known" in text)
    assert "a vCPU on CPU 9, which the host does not have" in message


def test_a_guest_that_cannot_be_read_is_no_end_of_the_watch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(tmp_path)
    machine.xml[PLAIN] = "<domain/>"
    machine.start(GOLD)
    machine.start(PLAIN)
    machine.read()
    assert list(totals(machine)) == ["gold"]
    assert "Guest plain is not watched" in caplog.text
    schedstat = tmp_path / "proc/1010/task/1011/schedstat"
    schedstat.write_text("garbage")
    machine.read()
    machine.read()
    assert totals(machine) == {}
    assert machine.watched.reading.unread >= 1
    assert sum("schedstat" in text or "/proc/1010" in text for text in caplog.messages) == 1

"""Drawn guests compete on this host and on cgroup v2: none gets less than its floor."""

import os
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import libvirt
import pytest

from cpu_tiers.tools.tiers.sold import Sale
from tests.draws import SEED, part
from tests.libvirt.cases import PROMISED, SPEC
from tests.libvirt.cgroup import default_weight
from tests.libvirt.contest import EMULATED, ContestWindow, contest_windows, percent
from tests.libvirt.contest_v2 import DEFAULT_WEIGHT, contest_windows_v2
from tests.libvirt.contestants import Contest, Contestant
from tests.libvirt.linux_guest import kernel_release
from tests.libvirt.promises import dues_of_contest, has_offender, sale_of
from tests.libvirt.random_contests import (
    CPUS,
    MOST_FOREIGN,
    Outcome,
    draw_contest,
    longest_run,
    noise,
    outcomes,
    shares_of,
    with_emulator_apart,
)
from tests.libvirt.servers import server

SECONDS = 8
SECONDS_ON_THE_HOST = 60
"""So long the host holds contests until other processes leave the CPU time of a window alone."""
DRAWN_ON_V2 = [draw_contest(Random(f"{SEED} v2 {number}")) for number in range(part(5))]

RESULT = Outcome(
    guest="floating-0",
    kind="floating",
    shares=100,
    vcpus=1,
    busy_emulator=False,
    floor=0.30,
    entitlement=0.50,
    noise=0.02,
    measured=0.30,
)

two_cpus = pytest.mark.skipif(
    not os.sched_getaffinity(0) >= {0, 1}, reason="the contests take two CPUs"
)


@two_cpus
def test_random_contests_on_the_local_host(hypervisor: libvirt.virConnect, tmp_path: Path) -> None:
    deadline = time.monotonic() + SECONDS_ON_THE_HOST
    number = valid = 0
    while not valid and time.monotonic() < deadline:
        contest = draw_contest(Random(f"{SEED} host {number}"))
        (window,) = contest_windows(hypervisor, tmp_path, contest, seconds=SECONDS)
        if window.foreign <= MOST_FOREIGN:
            valid += 1
            results = outcomes(
                contest, default_weight(), window,
                seconds=SECONDS, release=os.uname().release, emulated=EMULATED,
            )  # fmt: skip
            assert_floors(results, window)
        number += 1
    if not valid:
        pytest.skip(f"other processes took CPU time in each of {number} windows")


@pytest.fixture(scope="module")
def windows_v2(
    hypervisor: libvirt.virConnect, tmp_path_factory: pytest.TempPathFactory
) -> list[ContestWindow]:
    """The windows of the spec's contest and of drawn ones: the kernel boots once for all."""
    folder, contests = tmp_path_factory.mktemp("v2"), [SPEC, *DRAWN_ON_V2]
    windows = contest_windows_v2(hypervisor, folder, contests, seconds=SECONDS)
    return [window for (window,) in windows]


@two_cpus
def test_the_specs_six_guests_on_cgroup_v2(windows_v2: list[ContestWindow]) -> None:
    assert percent(windows_v2[0].cpus) == pytest.approx(PROMISED, abs=1)


@two_cpus
def test_drawn_guests_on_cgroup_v2(windows_v2: list[ContestWindow]) -> None:
    for contest, window in zip(DRAWN_ON_V2, windows_v2[1:], strict=True):
        results = outcomes(
            contest, DEFAULT_WEIGHT, window, seconds=SECONDS, release=kernel_release()
        )
        assert_floors(results, window)


def assert_floors(results: list[Outcome], window: ContestWindow) -> None:
    below = [result for result in results if result.is_below_floor(window.foreign)]
    assert not below, f"seed {SEED}: of {results}, below the floor: {below}"


def test_a_draw_is_repeatable_and_begins_with_the_lightest_guest() -> None:
    for number in range(200):
        contest = draw_contest(Random(number))
        assert contest == draw_contest(Random(number))
        assert 2 <= len(contest.contestants) <= 6
        assert all(1 <= guest.guest.flavor.vcpus <= 4 for guest in contest.contestants)
        weights = [shares_of(guest) or 1024 for guest in contest.contestants]
        assert weights == sorted(weights)
        assert all(1 <= weight <= 10_000 for weight in weights)


def test_the_floors_of_guests_that_are_emulated() -> None:
    """The main thread of the pinned guest may float over CPU 0, beside a heavy guest."""
    heavy = server("heavy", cpus=frozenset({0}), extra_specs={"quota:cpu_shares": "9900"})
    light = server("light", cpus=frozenset({1}), extra_specs={"quota:cpu_shares": "200"})
    pinned = with_emulator_apart(
        server(
            "pinned",
            cpus=frozenset({0}),
            pinned=frozenset({1}),
            extra_specs={"quota:cpu_shares": "200"},
        )
    )
    guests = (Contestant(guest=light), Contestant(guest=pinned), Contestant(guest=heavy))
    contest = Contest(title="three guests", contestants=guests)
    assert contest.floors(1024) == {"light": 0.5, "pinned": 0.5, "heavy": 1}
    # With the main thread, a thread of the pinned guest has 100 shares on each CPU, which count
    # as 98 or more: 98 / 9998 of CPU 0 and 98 / 298 of CPU 1 are less than half of CPU 1. For the
    # others it counts with 200.
    assert contest.emulated_floors(1024) == pytest.approx(
        {"light": 0.5, "pinned": 98 / 9998 + 98 / 298, "heavy": 9900 / 10100}
    )


def test_the_noise_of_a_window() -> None:
    # EEVDF: a slice of 1.4 ms and a tick of 4 ms. CFS: a slice of 12 ms and a tick of 4 ms.
    assert longest_run("6.18.44-fc") == pytest.approx(0.0054)
    assert longest_run("6.1.0-56-cloud-amd64") == pytest.approx(0.016)
    # Two runs of 5.4 ms and 10 ms for the clocks, of 10 s, on each of two CPUs.
    assert noise(2, 10, "6.6.0") == pytest.approx(2 * 0.0208 / 10)


def test_what_is_due_in_a_contest_and_what_of_it_is_missing() -> None:
    """Two CPUs are sold for 200 shares of Gold and 100 of Bronze, beside a third guest."""
    gold = server("gold", cpus=frozenset(CPUS), vcpus=2, extra_specs={"quota:cpu_shares": "200"})
    bronze = server("bronze", extra_specs={"quota:cpu_shares": "100"})
    untiered = server("untiered", extra_specs={})
    guests = tuple(Contestant(guest=guest) for guest in (bronze, gold, untiered))
    contest = Contest(title="three guests", contestants=guests)
    assert has_offender(contest)
    assert not has_offender(replace(contest, contestants=guests[:2]))
    assert sale_of(contest) == Sale(cpus=2, shares=Fraction(300))
    dues = dues_of_contest(contest, 1024)
    assert [dues[name].sold for name in ("gold", "bronze", "untiered")] == [
        Fraction(4, 3),
        Fraction(2, 3),
        0,
    ]
    # CPU 0 carries 100 beside 200 of Gold, and its part is 150 of the 300 shares. On a CPU that is
    # sold full, 100 of 150 are due.
    assert dues["bronze"].cpus == Fraction(100, 150)
    assert dues["untiered"].cpus == 0


@pytest.mark.parametrize(
    ("due", "measured", "missing", "lacks", "error"),
    [
        pytest.param(0.40, 0.37, 0.0, 0.0, None, id="less than a tenth"),
        pytest.param(0.40, 0.20, 0.19, 0.20, -0.05, id="the watch counts 0.19 of 0.20"),
        pytest.param(0.40, 0.355, 0.045, 0.045, None, id="hardly more than a tenth"),
    ],
)
def test_what_the_watch_counts(
    due: float, measured: float, missing: float, lacks: float, error: float | None
) -> None:
    result = replace(RESULT, due=due, measured=measured, missing=missing)
    assert (result.lacks, result.error_of_watch) == pytest.approx((lacks, error))
    assert result.watch_is_right


def test_the_ends_of_a_window() -> None:
    # 0.2 of a CPU in turns of 10 ms, of 10 s: a wait of 50 ms is 0.5 % of what is due, 0.002 of
    # 0.4 CPUs; the noise of 0.02 is ten times that. 0.2 are missing.
    result = replace(RESULT, due=0.4, measured=0.2, turn=0.001, noise=0.0)
    assert result.noise_of_watch == pytest.approx(0.01)
    assert replace(result, missing=0.189).watch_is_right
    assert not replace(result, missing=0.187).watch_is_right
    assert replace(result, noise=0.02).noise_of_watch == pytest.approx(0.11)


@pytest.mark.parametrize(
    ("measured", "foreign", "below"),
    [
        pytest.param(0.30, 0.0, False, id="at the floor"),
        pytest.param(0.29, 0.0, False, id="below by the noise, 0.02, or less"),
        pytest.param(0.27, 0.0, True, id="below by more than the noise"),
        pytest.param(0.27, 0.02, False, id="another process took the rest"),
    ],
)
def test_below_the_floor(measured: float, foreign: float, below: bool) -> None:
    assert replace(RESULT, measured=measured).is_below_floor(foreign) == below

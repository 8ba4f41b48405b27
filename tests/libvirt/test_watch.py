"""``host watch`` of running QEMU guests: what the kernel counts of them."""

import time
from pathlib import Path

import libvirt
import pytest

from tests.libvirt.contest import cpu_seconds, spinning, start
from tests.libvirt.watched import guest, watch


def test_counters_of_guests(hypervisor: libvirt.virConnect, tmp_path: Path) -> None:
    watched = watch(hypervisor)
    with (
        spinning(hypervisor, tmp_path, guest("gold", 400), [0]) as gold,
        spinning(hypervisor, tmp_path, guest("limited", 100), [0]) as limited,
    ):
        for domain in (gold, limited):
            start(domain, [0])
        limited.setSchedulerParameters({"vcpu_period": 100_000, "vcpu_quota": 2_000})
        watched.read()
        before = {domain.name(): cpu_seconds(domain)[0] for domain in (gold, limited)}
        time.sleep(3)
        watched.read()
        guests = {one.domain.name: one for one in watched.reading.guests}
        assert guests.keys() == before.keys()
        for domain in (gold, limited):
            spent = cpu_seconds(domain)[0] - before[domain.name()]
            assert guests[domain.name()].totals.ran == pytest.approx(spent, abs=0.3)
        # 400 and 100 of 500 of one CPU
        of_gold, of_limited = guests["watch-gold"], guests["watch-limited"]
        assert (of_gold.floor, of_limited.floor) == pytest.approx((0.8, 0.2))
        # 400 and 100 of the 800 shares of two CPUs are sold. Of the 400 shares of a CPU that is
        # sold full, Gold has all, so the whole CPU is due, although its floor is 0.8.
        assert (of_gold.sold, of_gold.due) == pytest.approx((1, 1))
        assert of_limited.sold == pytest.approx(0.25)
        assert (of_gold.tier, of_limited.tier) == ("gold", "")
        assert of_gold.totals.due <= 3.5
        assert of_gold.stalls.throttled == 0
        assert of_limited.totals.ran < 0.3  # a fiftieth of the time, and a few periods more
        assert of_limited.stalls.throttled > 0.5
        # Only its own quota stops the guest: 0.02 CPUs are due, and nothing is missing, except
        # for the two milliseconds of a period that has not ended.
        assert of_limited.due == pytest.approx(0.02)
        assert of_limited.totals.missing <= 0.002
        assert sum(watched.reading.waits["gold"].runs) == of_gold.totals.runs > 0
    watched.read()
    assert watched.reading.guests == ()
    assert watched.reading.unread == 0

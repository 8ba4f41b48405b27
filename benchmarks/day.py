"""A day of the alert rules with real guests, real breaks and a real Prometheus.

The guests of a host that is sold full spin on CPU 0, beside guests that want nothing or only their
own (:mod:`tests.day.guests`). ``cpu-tiers host watch`` counts, and Prometheus evaluates the rules
of ``etc/prometheus`` with windows of a sixtieth of their length: an hour passes in a minute. First
nothing is broken for some minutes, and no alert may fire. Then each break is planted
(:mod:`tests.day.breaks`): its alert has to fire within its window, and the alert or ``cpu-tiers
host audit`` has to name the cause. The table of docs/contributor/measured.rst is printed as CSV.

As root, on a machine with two CPUs and the Debian packages of the profile libvirt in
``bindep.txt``; ``tox -e day`` runs it in 13 minutes, on cgroup v1 or v2. On a machine with v1, as
long as no control group has ``cpu``, ``mount -t cgroup -o remount,net_prio cgroup
/sys/fs/cgroup/cpu`` gives that controller to v2, and likewise ``net_cls`` gives ``cpuset``. The
day then runs in ``unshare --mount`` where cgroup2 is mounted in place of ``/sys/fs/cgroup``.
"""

import argparse
import csv
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import libvirt

from tests.day.breaks import BREAKS, Break
from tests.day.guests import QUIET, DayGuests
from tests.day.host import Alert, DayHost, keep_off_the_guests, private_libvirtd, texts, wait_until

FACTOR = 60
_AGAIN_QUIET = 150.0
"""Seconds after a break until its alert has to be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a break led to.

    :param fired: the seconds until the alert fired; ``None`` if it did not in time.
    :param named: what named the cause; empty if nothing did.
    :param others: further alerts that fired meanwhile.
    """

    planted: Break
    fired: float | None
    named: str
    others: str

    @property
    def is_right(self) -> bool:
        """Tell whether the alert fired in time, and somebody named the cause."""
        return self.fired is not None and bool(self.named)


def quiet(host: DayHost, seconds: float) -> set[str]:
    """Return the alerts that fire while nothing is broken."""
    fired: dict[str, Alert] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fired |= {f"{one.name} {one.about}": one for one in host.alerts() if one.fires}
        time.sleep(0.5)
    for name, alert in fired.items():
        print(f"# in the quiet hours: {name}: {alert.text}", file=sys.stderr)
    return set(fired)


def hold(host: DayHost, guests: DayGuests, planted: Break) -> Outcome:
    """Plant a break, wait for its alert, ask the audit for the cause, and mend the break."""
    name, _ = planted.alert

    def own() -> list[Alert]:
        return [alert for alert in host.alerts() if alert.name == name]

    def fired() -> list[Alert]:
        return [one for one in own() if one.fires and planted.about in ("", one.about)]

    if wait_until(_AGAIN_QUIET, lambda: not own()) is None:
        print(f"# {name} is still on: {texts(own())}", file=sys.stderr)
    before = {(alert.name, alert.about) for alert in host.alerts() if alert.fires}
    with planted.plant(host, guests):
        seconds = wait_until(planted.seconds(FACTOR), fired)
        alerts, found = fired(), host.audit()
        others = [
            one for one in host.alerts() if one.fires and (one.name, one.about) not in before
        ]
    named = ""
    if planted.cause in found:
        named = f"audit: {planted.cause}: {found[planted.cause][0]}"
    elif any(planted.cause in alert.text for alert in alerts):
        named = next(alert.text for alert in alerts if planted.cause in alert.text)
    for alert in alerts:
        print(f"#   {alert.name}: {alert.text}", file=sys.stderr)
    print(f"#   the audit: {found}", file=sys.stderr)
    return Outcome(
        planted=planted,
        fired=seconds,
        named=named,
        others=texts([alert for alert in others if alert.name != name]),
    )


def run(options: argparse.Namespace) -> int:
    """Hold the day; return 1 if an alert was false, late or without a cause."""
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        folder = Path(name)
        uri = options.connect or stack.enter_context(private_libvirtd(folder))
        host = DayHost(uri, folder, FACTOR)
        guests = DayGuests(host.hypervisor, folder)
        stack.enter_context(guests.living())
        stack.enter_context(host.looking())
        host.check_rules()
        false = quiet(host, 60 * options.minutes)
        print(f"# quiet for {options.minutes:g} minutes, false: {sorted(false)}", file=sys.stderr)
        table = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
        table.writerow(["Break", "Alert", "After s", "Within s", "Cause named by", "Other alerts"])
        outcomes = []
        for planted in BREAKS:
            if options.only and not any(text in planted.title for text in options.only):
                continue
            print(f"# {planted.title}", file=sys.stderr)
            try:
                outcome = hold(host, guests, planted)
            except (OSError, AssertionError, libvirt.libvirtError):  # the others are of interest
                traceback.print_exc()
                outcome = Outcome(planted=planted, fired=None, named="", others="")
            outcomes.append(outcome)
            after = "-" if outcome.fired is None else f"{outcome.fired:.0f}"
            limit = f"{planted.seconds(FACTOR):.0f}"
            table.writerow(
                [planted.title, planted.alert[0], after, limit, outcome.named, outcome.others]
            )
            sys.stdout.flush()
        for error in guests.errors:
            print(f"# the life of a guest: {error}", file=sys.stderr)
    right = sum(outcome.is_right for outcome in outcomes)
    print(
        f"# {right} of {len(outcomes)} breaks, {len(false)} false alerts of {len(QUIET)} kinds",
        file=sys.stderr,
    )
    return int(right < len(outcomes) or bool(false))


def main() -> None:
    """Hold the day, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=6, help="without a break, before them")
    parser.add_argument("--only", nargs="+", help="only breaks with such a text in their titles")
    parser.add_argument("--connect", help="a libvirt that runs; without it, one for the day")
    options = parser.parse_args()
    keep_off_the_guests()
    sys.exit(run(options))


if __name__ == "__main__":
    main()

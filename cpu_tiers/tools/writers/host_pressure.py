"""``cpu-tiers host pressure``: a trait by which nova-scheduler avoids a host under pressure.

The trait is on the root provider of the host. Nova keeps custom traits that its driver does not
own.
"""

import logging
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn
from urllib.parse import urlsplit

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import is_custom
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement.errors import GenerationConflict, PlacementError, PlacementUnavailable
from cpu_tiers.placement.steps import Change, SetTraits
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.nova_conf_command import WRITES, NovaConfCommand
from cpu_tiers.tools.frame.numbers import number_from, seconds_from
from cpu_tiers.tools.host.watch import DEFAULT_ADDRESS, PREFIX
from cpu_tiers.tools.http.metrics import read_metrics
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import alike_roots
from cpu_tiers.tools.placement.writer import Progress, carry_out, write_all
from cpu_tiers.tools.writers.inventory import list_changes

LOG = logging.getLogger(__name__)

TRAIT = "CUSTOM_PRESSURE_"
METRICS = (
    f"{PREFIX}_reading_timestamp_seconds",
    f"{PREFIX}_host_due_seconds_total",
    f"{PREFIX}_host_missing_seconds_total",
)

LEAST_CPUS = 0.01
"""Less missing CPU time is no pressure, however little was due."""

SILENT_LOOKS = 3
"""So many looks in a row without a reading, and the trait is cleared."""


class HostPressure(NovaConfCommand, ListCommand):
    """Set or clear one trait CUSTOM_PRESSURE_NAME of a host; the other traits of the host stay.

    New servers avoid the host if nova.conf of nova-scheduler has, in [filter_scheduler],
    resource_provider_avoided_traits = CUSTOM_PRESSURE_*, and the weigher of cpu-tiers is loaded.

    With --watch, the command stays, and sets the trait while the guests of the host do not get
    the CPU time that is due to them. It clears the trait when less is missing, when the command
    ends, and after three looks without a reading. Guests that only a quota of their own stops, or
    that get what is due, are no pressure, however long they wait.
    """

    snapshot_refusal = WRITES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", metavar="HOST", help="name of the host's root provider")
        action = parser.add_mutually_exclusive_group(required=True)
        for option, text in (
            ("--set", f"give the host the trait {TRAIT}NAME, until somebody clears the trait"),
            ("--clear", f"remove the trait {TRAIT}NAME from the host"),
            ("--watch", f"set and clear the trait {TRAIT}NAME by the metrics, until Ctrl-C"),
        ):
            action.add_argument(option, type=_trait, metavar="NAME", help=text)
        parser.add_argument(
            "--metrics",
            type=_url,
            metavar="URL",
            default=f"http://{DEFAULT_ADDRESS}/metrics",
            help="metrics of `cpu-tiers host watch` on the host (default: %(default)s)",
        )
        parser.add_argument(
            "--interval",
            type=seconds_from(1),
            metavar="SECONDS",
            default=60.0,
            help="time between two looks at the metrics, 1 to 3600 seconds and no less than the"
            " interval of `host watch` (default: 60)",
        )
        for option, default in (("--set-above", 5.0), ("--clear-below", 1.0)):
            what = " ".join(option.strip("-").split("-"))
            text = f"{what} so much of the due CPU time that is missing (default: {default:g})"
            number = number_from(0, 100, "{least} to {most} percent")
            parser.add_argument(option, type=number, metavar="PERCENT", default=default, help=text)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if parsed_args.clear_below > parsed_args.set_above:
            given, allowed = f"more than {parsed_args.set_above:g}", "give at most --set-above"
            raise InvalidInput.of("--clear-below", given, allowed)
        with self.placement(self.nova_conf()) as client:
            host = _find_host(client, parsed_args.host)
            if parsed_args.watch:
                _Watch(client, host, parsed_args).run()
            trait = parsed_args.set or parsed_args.clear
            changes = change_trait(client, host, trait, is_set=bool(parsed_args.set))
        return list_changes(changes)


def change_trait(
    client: PlacementClient, host: Provider, trait: str, *, is_set: bool
) -> tuple[Change, ...]:
    """Add a trait to a provider or remove it, keep all other traits, and return the changes.

    :raises PlacementError: the attributes of the error tell whether the changes were made.
    """

    def attempt(progress: Progress) -> None:
        present = client.traits(host.uuid)
        after = present.names | {trait} if is_set else present.names - {trait}
        step = SetTraits(provider=host.name, before=present.names, after=after)
        progress.begin(step.changes)
        if step.changes:
            client.ensure_names(traits=after - present.names)
            progress.send(step.changes)
            write_all(client, host.uuid, step, present.generation)
            progress.confirm()

    return carry_out(client.retry_policy, attempt)


class _Watch:
    # Placement keeps whether the trait is set, also over a restart of the command.

    def __init__(self, client: PlacementClient, host: Provider, parsed_args: Namespace) -> None:
        self._client, self._host, self._arguments = client, host, parsed_args
        self._trait: str = parsed_args.watch
        self._last: tuple[float, ...] = ()
        self._silent = 0

    def run(self) -> NoReturn:
        """Look in each interval.

        :raises KeyboardInterrupt: the command was interrupted; says whether the trait is cleared.
        :raises PlacementError: the trait cannot be set.
        """
        self._client.ensure_names(traits={self._trait})
        LOG.info("%s of %s follows %s", self._trait, self._host.name, self._arguments.metrics)
        try:
            while True:
                try:
                    self.look()
                except (GenerationConflict, PlacementUnavailable) as error:
                    LOG.warning("%s of %s stays as it is: %s", self._trait, self._host.name, error)
                time.sleep(self._arguments.interval)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._clear()) from None
        except Exception:
            LOG.warning("%s", self._clear())
            raise

    def look(self) -> None:
        """Read the metrics, and change the trait if necessary."""
        percent = self._percent()
        self._silent = self._silent + 1 if percent is None else 0
        if self._silent >= SILENT_LOOKS:
            self._change(False, f"{self._silent} looks without a reading")
        elif percent is not None and percent > self._arguments.set_above:
            self._change(True, f"{percent:.0f} % of the CPU time due to guests, which is missing")
        elif percent is not None and percent < self._arguments.clear_below:
            self._change(False, f"{percent:.0f} % of the CPU time due to guests, which is missing")

    def _percent(self) -> float | None:
        """Return how much of what was due since the last look is missing, if it is known."""
        try:
            reading = read_metrics(self._arguments.metrics, METRICS)
        except InvalidInput as error:
            LOG.warning("%s", error)
            return None
        last, self._last = self._last or reading, reading
        seconds, due, missing = (now - before for now, before in zip(reading, last, strict=True))
        if seconds <= 0 or due < 0 or missing < 0:  # no new reading, or the watch has restarted
            return None
        return 100 * missing / due if missing > LEAST_CPUS * seconds else 0.0

    def _change(self, is_set: bool, reason: str) -> None:
        for change in change_trait(self._client, self._host, self._trait, is_set=is_set):
            LOG.info("%s, because of %s", change, reason)

    def _clear(self) -> str:
        trait, host = self._trait, self._host.name
        try:
            change_trait(self._client, self._host, trait, is_set=False)
        except (PlacementError, KeyboardInterrupt) as error:
            return (
                f"The watch has ended, and {trait} may stay on {host}: run cpu-tiers host pressure"
                f" {host} --clear {trait.removeprefix(TRAIT)} ({error})"
            )
        return f"The watch has ended, and {host} has no {trait}."


def _find_host(client: PlacementClient, name: str) -> Provider:
    provider = client.find_provider(name)
    if provider is None:
        roots = " or ".join(alike_roots(client, name))
        allowed = f"give {roots}" if roots else "check the name, or start nova-compute there"
        raise InvalidInput.of("HOST", f"Placement has no provider {name}", allowed)
    if provider.parent is not None:
        given = f"{name} is a part of a host"
        raise InvalidInput.of("HOST", given, "give the name of the host's root provider")
    return provider


def _trait(text: str) -> str:
    name = text.removeprefix(TRAIT)
    if name and is_custom(TRAIT + name) and not name.startswith(("CUSTOM_", "PRESSURE_")):
        return TRAIT + name
    raise ArgumentTypeError("give a NAME of A to Z, 0 to 9 and _, such as CPU")


def _url(text: str) -> str:
    with suppress(ValueError):
        if urlsplit(text).scheme in ("http", "https") and urlsplit(text).hostname:
            return text
    raise ArgumentTypeError("give a URL such as http://127.0.0.1:9777/metrics")

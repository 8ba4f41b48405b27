"""``cpu-tiers``: the application around the commands."""

import logging
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from cliff.app import App
from cliff.commandmanager import CommandManager

USAGE = 2
"""Exit status of a command line that cannot be read."""


class CpuTiersApp(App):
    """CPU performance tiers for OpenStack Nova."""

    def __init__(self) -> None:
        """Find the commands by their entry points."""
        logging.getLogger("stevedore").setLevel(logging.CRITICAL)  # a failed load is our error
        super().__init__(
            description="CPU performance tiers for OpenStack Nova: what a flavor asks of "
            "Placement, what a host reports to it, which host is best, and what a guest gets.",
            version=version("cpu-tiers"),
            command_manager=CommandManager("cpu_tiers.commands"),
            deferred_help=True,
        )

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: Any = None
    ) -> ArgumentParser:
        """Add the options that most commands read."""
        parser = super().build_option_parser(
            description, version, {"allow_abbrev": False, **(argparse_kwargs or {})}
        )
        parser.add_argument(
            "--config-file",
            action="append",
            default=[],
            metavar="FILE",
            help="nova.conf; may be given several times, the last wins "
            "(default: where Nova looks, such as /etc/nova/nova.conf)",
        )
        parser.add_argument(
            "--placement",
            choices=["config", "embedded"],
            default="config",
            help="the Placement of nova.conf's [placement] section, or one that runs inside "
            "this process and is gone afterwards (default: config)",
        )
        return parser

    def clean_up(self, cmd: Any, result: int, err: BaseException | None) -> None:
        """Say what Ctrl-C left half done, before the exit status 130 that cliff has for it."""
        super().clean_up(cmd, result, err)
        if isinstance(err, KeyboardInterrupt) and (said := str(err)):
            logging.getLogger(__name__).error("%s", said)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 refused, 2 usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    app = CpuTiersApp()
    options, command = app.parser.parse_known_args(arguments)
    if not command and not options.deferred_help:  # cliff would start an interactive shell
        with suppress(SystemExit):
            app.run(["--help"])
        return USAGE
    return app.run(arguments)

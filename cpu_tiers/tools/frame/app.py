"""The program ``cpu-tiers``, which finds and runs the commands, and the secrets in its output.

A service may repeat a request in its error, with the password in it, and ``--debug`` prints all
answers. So the streams of the command replace each secret of the configuration, wherever the text
comes from.
"""

import html
import io
import json
import logging
import re
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint, version
from io import TextIOWrapper
from typing import Any, TextIO, cast
from urllib.parse import quote, unquote, urlsplit

from cliff.app import App
from cliff.command import Command
from cliff.commandmanager import CommandManager
from oslo_config import cfg

from cpu_tiers.tools.frame.command_table import commands, description
from cpu_tiers.tools.frame.terminal import WrappingStream, accept_any_text, width, wrapped_lines

USAGE = 2
"""The exit status for wrong usage."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""The signals that interrupt a command. systemd sends SIGHUP to reload a service."""


class _Commands(CommandManager):
    """The commands of the program, each of which is imported when it is run.

    cliff's own manager reads entry points, and imports all commands to learn their names; cliff's
    help imports all commands to learn their descriptions.
    """

    def load_commands(self, namespace: str) -> None:
        self.group_list.append(namespace)
        self.commands.update(commands())

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, command in self.commands.items():
            yield name, _Listed(command) if isinstance(command, EntryPoint) else command


class _Listed:
    """A command in the list of the help."""

    def __init__(self, command: EntryPoint) -> None:
        self._command = command

    def load(self) -> type[Command]:
        """Return a command that has only a description."""

        class Described(Command):
            _description = description(self._command)

            def __init__(self, app: App, app_args: Namespace | None) -> None:
                super().__init__(app, app_args)  # without a name, for which cliff seeks hooks

            def take_action(self, parsed_args: object) -> None:
                raise NotImplementedError  # the list does not run a command

        return Described


class CpuTiersApp(App):
    """CPU performance tiers for OpenStack Nova."""

    def __init__(self) -> None:
        # stevedore logs a plugin that cannot be loaded; cpu_tiers.extensions raises an error,
        # which would appear twice.
        logging.getLogger("stevedore").setLevel(logging.CRITICAL)
        # keystoneauth1 warns that Keystone's versions cannot be read; then its request for a token
        # fails, too, with an error.
        logging.getLogger("keystoneauth.identity").setLevel(logging.ERROR)
        super().__init__(
            description="CPU performance tiers for OpenStack Nova: shows what a server requests "
            "from Placement, what a host reports to Placement, which host is best for a server, "
            "and how much CPU a guest gets.",
            version=version("cpu-tiers"),
            command_manager=_Commands("cpu_tiers.commands"),
            deferred_help=True,
        )

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: Any = None
    ) -> ArgumentParser:
        parser = super().build_option_parser(
            description, version, {"allow_abbrev": False, **(argparse_kwargs or {})}
        )
        parser.add_argument(
            "--config-file",
            action="append",
            default=[],
            metavar="FILE",
            help="path of nova.conf; may be repeated, and later files override earlier files "
            "(default: the files that nova-compute reads, such as /etc/nova/nova.conf and "
            "/etc/nova/nova-compute.conf)",
        )
        parser.add_argument(
            "--placement",
            choices=["config", "embedded"],
            default="config",
            help="config: the Placement service in the section [placement] of nova.conf; "
            "embedded: an empty Placement inside this process, deleted afterwards "
            "(default: config)",
        )
        return parser

    def configure_logging(self) -> None:
        """Log to standard error and to ``--log-file``, without secrets of the configuration."""
        super().configure_logging()
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.FileHandler):
                stream = cast(object, handler.stream)
                if not isinstance(stream, MaskingStream):  # a second command in the process
                    masking = MaskingStream(cast(TextIO, stream))
                    handler.setStream(cast(TextIOWrapper, masking))

    def clean_up(self, cmd: Any, result: int, err: BaseException | None) -> None:
        """Name an error that says nothing, which cliff prints as an empty line."""
        super().clean_up(cmd, result, err)
        if isinstance(err, MemoryError):
            self.LOG.error("out of memory: give the command more memory, or a smaller input")
        elif isinstance(err, KeyboardInterrupt) and not str(err):
            self.LOG.error("Interrupted.")
        elif err is not None and not str(err):
            self.LOG.error("%r", err)

    def print_help_if_requested(self) -> None:
        """Print the help, with the list of commands wrapped to the width of the terminal."""
        stdout, self.stdout = self.stdout, io.StringIO()
        try:
            super().print_help_if_requested()
        finally:
            text, self.stdout = self.stdout.getvalue(), stdout
            for line in text.splitlines():
                stdout.write("\n".join(_wrapped_entry(line)) + "\n")


def _wrapped_entry(line: str) -> list[str]:
    """Return the lines of a line of the help; a description stays in its column."""
    entry = re.match(r"  +\S+(?: \S+)*  +(?=\S)", line)
    indent = entry.end() if entry else 0
    first, *others = wrapped_lines(line[indent:], max(20, width() - indent))
    return [line[:indent] + first, *(" " * indent + other for other in others)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, which docs/cli/cpu-tiers.rst lists."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with masked_output():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    app = CpuTiersApp()
    options, command = app.parser.parse_known_args(arguments)
    # Without a command cliff would start an interactive shell.
    if not command and not options.deferred_help:
        with suppress(SystemExit):
            app.run(["--help"])
        return USAGE
    return run_until_signal(lambda: app.run(list(arguments)))


def run_until_signal(run: Callable[[], int]) -> int:
    """Run a command, and interrupt the command if SIGTERM or SIGHUP arrives.

    If the process was started with a signal ignored, as nohup(1) does, the signal stays ignored.

    :return: the exit status of ``run``, or 128 and the number of the signal, as of a program that
        the signal has ended.
    """
    awaited = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    arrived = 0

    def interrupt(number: int, _: object) -> None:
        nonlocal arrived
        arrived = number
        # timeout(1) sends the signal twice. The second one must not interrupt the report.
        for each in awaited:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in awaited:
        signal.signal(each, interrupt)
    try:
        status = run()
    except KeyboardInterrupt:
        if not arrived:
            raise
    finally:
        # After the signal the process ends with the status; a second signal must not end it first.
        for each in awaited if not arrived else ():
            signal.signal(each, signal.SIG_DFL)
    return 128 + arrived if arrived else status


MASK = "***"

_SHORTEST = 3
"""A shorter secret would be found in all words."""

_CONFS: list[cfg.ConfigOpts] = []
_TOKENS: set[str] = set()


def hide(conf: cfg.ConfigOpts) -> None:
    """Keep the values of the options that their owners call secret out of all output.

    Of a URL, such as ``[database] connection``, the secret is the password. Options that are
    registered later count as well: the type of the authentication decides about its options.
    """
    if conf not in _CONFS:
        _CONFS.append(conf)


def hide_tokens(session: Any) -> None:
    """Keep the tokens of requests out of all output: a service may repeat a token in its answer.

    :param session: a session of requests, which calls hooks before keystoneauth1 logs the answer.
    """

    def note(response: Any, *_: object, **__: object) -> None:
        token = response.request.headers.get("X-Auth-Token", "")
        _TOKENS.update(_secrets_in(token.decode() if isinstance(token, bytes) else token))

    session.hooks["response"].append(note)


def hide_url(url: str) -> None:
    """Keep the password of a URL out of all output."""
    _TOKENS.update(_secrets_in(url))


def _secrets(conf: cfg.ConfigOpts) -> Iterator[str]:
    for info, group in conf._all_opt_infos():  # oslo.config has no public way to list options
        option = info["opt"]
        if option.secret:
            try:
                section = conf if group is None else conf[group.name]
                yield from _secrets_in(section[option.dest])
            except (cfg.Error, ValueError):  # the files are not read yet, or the value is wrong
                continue


def _secrets_in(value: object) -> Iterable[str]:
    """Yield the secret of a value in all forms in which a text may have the secret."""
    secret, user = str(value or ""), None
    if "://" in secret:
        url = urlsplit(secret)
        secret, user = unquote(url.password or ""), url.username
    if len(secret) < _SHORTEST or secret == user:  # guest:guest is public
        return
    yield from (secret, quote(secret, safe=""), quote(secret), html.escape(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield repr(secret)[1:-1]


def masked(text: str) -> str:
    """Return a text without the secrets. A secret in the middle of a longer word is kept."""
    secrets = {secret for conf in _CONFS for secret in _secrets(conf)} | _TOKENS
    for secret in sorted(secrets, key=len, reverse=True):
        if secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


class MaskingStream:
    """A text stream without secrets; everything else is left to the stream below."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(masked(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream below."""
        return getattr(self._stream, name)


@contextmanager
def masked_output() -> Iterator[None]:
    """Replace secrets in what is printed, and wrap standard error if it is a terminal."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        accept_any_text(stream)
    is_terminal = sys.stderr.isatty()
    if is_terminal:
        sys.stderr = WrappingStream(sys.stderr)
    sys.stdout, sys.stderr = map(MaskingStream, (sys.stdout, sys.stderr))
    try:
        yield
    finally:
        if is_terminal:
            sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        _CONFS.clear()
        _TOKENS.clear()

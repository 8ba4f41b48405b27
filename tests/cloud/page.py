"""A page of the documentation, followed word for word in a shell."""

import doctest
import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PATIENCE = 90
"""Seconds until the stated output must appear, because a restarted service needs time."""

WAIT = 2

_BLOCK = re.compile(
    r"^( *)\.\. code-block:: (console|ini|yaml)\n(?:\1   :caption: (\S+)\n)?\n"
    r"((?:(?:\1   .*)?\n)+)",
    re.MULTILINE,
)
_SHELL = re.compile(r"^```shell\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command, and the output that the page states; an empty output states nothing."""

    command: str
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A terminal session of a page, or lines for a file."""

    text: str
    path: str = ""
    """The file to which the lines belong, if the page says so."""

    console: bool

    def steps(self, path: str = "") -> list[Step]:
        """Return the commands of the block; lines for a file are added to ``path``."""
        if self.console:
            return commands(self.text)
        path = self.path or path
        assert path, f"the block does not say to which file it belongs:\n{self.text}"
        return [Step(command=f"printf '%s\\n' {shlex.quote(self.text)} >> {path}")]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, by its path in the repository, in their order."""
    text = (ROOT / page).read_text()
    if page.endswith(".md"):
        return [
            Block(text=re.sub(r"^(?=\S)", "$ ", lines, flags=re.MULTILINE), console=True)
            for lines in _SHELL.findall(text)
        ]
    return [
        Block(text=dedent(indented).strip("\n"), path=path, console=kind == "console")
        for _, kind, path, indented in _BLOCK.findall(text)
    ]


def steps(page: str) -> list[Step]:
    """Return the commands of a page, and the additions to files as commands, in their order."""
    return [step for block in blocks(page) for step in block.steps()]


def commands(block: str) -> list[Step]:
    """Return the commands of a block of a terminal session, each with its output.

    A command goes on in the next line after a backslash, a pipe or ``&&``.
    """
    assert block.startswith(("$ ", "# ")), f"the block begins without a prompt:\n{block}"
    parts = re.findall(
        r"^[$#] ((?:.*(?:[\\|]|&&)\n)*.*)\n?((?:(?![$#] ).*(?:\n|\Z))*)", block, re.MULTILINE
    )
    return [Step(command=command, output=output) for command, output in parts]


class Page:
    """A page that a test follows block by block, each once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = blocks(name)

    def take(self, text: str) -> Block:
        """Return the first block with ``text`` that was not taken yet.

        :raises AssertionError: there is no such block.
        """
        found = [block for block in self._rest if text in block.text]
        assert found, f"{self._name} has no more block with: {text}"
        self._rest.remove(found[0])
        return found[0]

    def rest(self) -> list[str]:
        """Return the terminal sessions that were not taken."""
        return [block.text for block in self._rest if block.console]


class Shell:
    """A shell that keeps its variables from command to command."""

    END = "--- end of a command"

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Return the exit status and the output of a command."""
        assert self._process.stdin
        assert self._process.stdout
        end = f"status=$?; echo; echo '{self.END}' $status"
        print(f"{{ {command}\n}} </dev/null\n{end}", file=self._process.stdin)
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(self.END):
                return int(line.removeprefix(self.END)), "".join(lines).rstrip("\n")
            lines.append(line)
        raise AssertionError(f"the shell ended in: {command}\n{''.join(lines)}")

    def output_of(self, command: str, stated: str = "") -> str:
        """Return the output of a command that must not fail; wait for a stated output."""
        return self.follow(Step(command=command, output=stated))

    def follow(self, step: Step) -> str:
        """Run a step, until its output is the stated one; return the output.

        A command without a stated output runs once.

        :raises AssertionError: the command failed, or the output is another one.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            status, output = self.run(step.command)
            if not status and is_stated(step.output, output):
                return output
            late = not step.output or time.monotonic() > deadline
            assert not late, f"{step.command}\nended with {status}:\n{output}"
            time.sleep(WAIT)

    def close(self) -> None:
        """End the shell."""
        self._process.communicate()


def is_stated(stated: str, output: str) -> bool:
    """Tell whether an output is the stated one; ``...`` stands for any text."""
    if not stated.strip():
        return True
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(stated + "\n", output + "\n", options)

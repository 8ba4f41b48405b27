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

DOCS = Path(__file__).parents[2] / "docs"
PATIENCE = 90
"""Seconds until the stated output must appear, because a restarted service needs time."""

WAIT = 2

_BLOCK = re.compile(
    r"^\.\. code-block:: (console|ini)\n(?:   :caption: (\S+)\n)?\n((?:(?:   .*)?\n)+)",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command, and the output that the page states; an empty output states nothing."""

    command: str
    output: str = ""


def steps(page: str) -> list[Step]:
    """Return the commands of a page, and the additions to files as commands, in their order."""
    found: list[Step] = []
    for kind, path, indented in _BLOCK.findall((DOCS / page).read_text()):
        block = dedent(indented).strip("\n")
        if kind == "ini":
            assert path, f"a block of {page} does not say to which file it belongs:\n{block}"
            found.append(Step(command=f"printf '%s\\n' {shlex.quote(block)} >> {path}"))
        else:
            found += commands(block)
    return found


def commands(block: str) -> list[Step]:
    """Return the commands of a block of a terminal session, each with its output."""
    parts = re.split(r"^[$#] ", block, flags=re.MULTILINE)
    assert not parts[0], f"the block begins without a prompt:\n{block}"
    pairs = (part.partition("\n") for part in parts[1:])
    return [Step(command=command, output=output) for command, _, output in pairs]


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

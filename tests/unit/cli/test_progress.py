"""The progress line, on a terminal of the test."""

import os
import pty
import sys
import time
from collections.abc import Callable

import pytest

from cpu_tiers.tools.frame.terminal import ProgressLine, WrappingStream


def shown_by(act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a terminal shows as standard error."""
    main, terminal = pty.openpty()
    with monkeypatch.context() as patched, os.fdopen(terminal, "w") as stream:
        patched.setenv("TERM", "xterm")
        patched.setenv("COLUMNS", "60")
        patched.setattr("cpu_tiers.tools.frame.terminal.SILENT_SECONDS", 0.05)
        patched.setattr(sys, "stderr", WrappingStream(stream))
        act()
        sys.stderr.write("the end\n")
        text = ""
        while not text.endswith("the end\r\n"):
            text += os.read(main, 65536).decode()
    os.close(main)
    return text


def test_the_line_appears_late_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        with ProgressLine("asking Placement") as line:
            line.tell_number("providers", 3, 40)
            time.sleep(0.3)
            sys.stderr.write("a message\n")

    text = shown_by(act, monkeypatch)
    assert "providers: 3 of 40" in text
    assert "a message" in text
    # The line is erased (CSI 2K) before the message that follows the command.
    assert "\x1b[2K" in text[text.rindex("providers: 3") :]
    assert text.endswith("the end\r\n")


def test_a_fast_command_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        with ProgressLine("asking Placement"):
            pass

    assert shown_by(act, monkeypatch) == "the end\r\n"


def test_an_error_ends_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        with pytest.raises(KeyError), ProgressLine("asking Placement"):  # noqa: PT012
            time.sleep(0.2)
            raise KeyError

    assert shown_by(act, monkeypatch).endswith("the end\r\n")


def test_nothing_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cpu_tiers.tools.frame.terminal.SILENT_SECONDS", 0.0)
    with ProgressLine("asking Placement") as line:
        line.tell("now")
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")

"""SIGTERM ends a command as Ctrl-C does: with a report of which changes are written."""

import signal
from collections.abc import Callable

TERMINATED = 128 + signal.SIGTERM
"""The exit status after SIGTERM, 143, as of a program that the signal has ended."""


def run_until_sigterm(run: Callable[[], int]) -> int:
    """Run a command, and interrupt the command if SIGTERM arrives.

    If the process was started with SIGTERM ignored, the signal stays ignored.

    :return: the exit status of ``run``, or :data:`TERMINATED`.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return run()
    arrived = False

    def interrupt(*_: object) -> None:
        nonlocal arrived
        arrived = True
        # timeout(1) sends the signal twice. The second one must not interrupt the report.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        status = run()
    except KeyboardInterrupt:
        if not arrived:
            raise
    finally:
        # After the signal the process ends with the status; a second signal must not end it first.
        if not arrived:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return TERMINATED if arrived else status

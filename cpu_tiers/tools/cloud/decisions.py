"""What nova-scheduler recorded about a server, for ``cpu-tiers explain --decisions``."""

import json
import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.frame.terminal import wrapped

LOG = logging.getLogger(__name__)

Decision = Mapping[str, Any]
"""A document as ``docs/admin/decision-record.rst`` describes it."""


_NO_DECISION = (
    *(ValueError, TypeError, LookupError, AttributeError, RecursionError),
    ArithmeticError,  # a number may be larger than any float
)
"""The errors of a document of another form."""


def decisions_about(file: Path, server: str) -> list[Decision]:
    """Return the decisions about a server, the oldest first, also those of the older file.

    A line that is no decision, such as a line that is being written, is left out with a warning.

    :param server: the uuid of the server.
    :raises CpuTiersError: the file cannot be read.
    """
    older = file.with_name(f"{file.name}.1")
    files = [older, file] if older.exists() else [file]
    decisions = [decision for path in files for decision in _decisions(path, server)]
    return sorted(decisions, key=lambda decision: str(decision["time"]))


def _decisions(file: Path, server: str) -> Iterator[Decision]:
    unreadable = 0
    try:
        with open(file, encoding="utf-8", errors="replace", opener=_open_regular) as lines:
            for line in lines:
                if server not in line:  # faster than to parse each line
                    continue
                try:
                    document = json.loads(line)
                    text_of([document])  # a document that lacks a key is no decision
                except _NO_DECISION:
                    unreadable += 1
                    continue
                if server in document["servers"]:
                    yield document
    except OSError as error:
        raise CpuTiersError(f"the decisions cannot be read: {error}") from error
    if unreadable:
        LOG.warning("%s: %s lines about the server are no decisions", file, unreadable)


def _open_regular(path: str, flags: int) -> int:
    """Open a file for ``open``, without waiting for the writer of a pipe.

    :raises OSError: the file is a pipe, a device or a folder.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file; give the file of decision_record_file")
    return descriptor


def text_of(decisions: Sequence[Decision]) -> str:
    """Return the decisions for a terminal."""
    return "\n\n".join("\n".join(_lines(decision)) for decision in decisions)


def _lines(decision: Decision) -> Iterator[str]:
    yield wrapped(
        f"{decision['time']} {decision['request_id']}: flavor {decision['flavor']},"
        f" {decision['seconds']} s"
    )
    candidates = decision["candidates"]
    yield wrapped(f"hosts with candidates: {_hosts(candidates)}", indent="  ")
    for number, server_round in enumerate(decision["rounds"], start=1):
        if len(decision["rounds"]) > 1:
            yield f"  round {number}, server {server_round['server']}:"
        yield from _of_round(server_round)
    for server, selected in zip(decision["servers"], decision["selected"], strict=False):
        others = ", ".join(selected["alternates"]) or "none"
        yield wrapped(f"{server}: {selected['host']} (alternates: {others})", indent="  ")
    if decision["fault"]:
        yield wrapped(f"fault: {decision['fault']}", indent="  ")


def _of_round(server_round: Mapping[str, Any]) -> Iterator[str]:
    for said in server_round["filters"]:
        if said["removed"]["number"]:
            text = f"{said['filter']} left {said['left']}, removed {_hosts(said['removed'])}"
            yield wrapped(text, indent="  ")
    for host in server_round["weights"]:
        parts = ", ".join(f"{name} {part:+.4g}" for name, part in host["parts"].items() if part)
        yield wrapped(f"weight of {host['host']}: {host['weight']:.4g} ({parts})", indent="  ")
    for claim in server_round["claims"]:
        outcome = "granted" if claim["granted"] else "refused"
        yield wrapped(f"claim {outcome}: {', '.join(claim['providers'])}", indent="  ")


def _hosts(hosts: Mapping[str, Any]) -> str:
    more = hosts["number"] - len(hosts["names"])
    names = ", ".join(hosts["names"]) + (f" and {more} more" if more > 0 else "")
    return f"{hosts['number']} ({names})" if hosts["number"] else "0"

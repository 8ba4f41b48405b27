"""Repeating an operation when another client writes to Placement at the same time."""

from collections.abc import Callable
from typing import TypeVar

import tenacity

from cpu_tiers.placement.errors import DuplicateName, GenerationConflict

T = TypeVar("T")

ATTEMPTS = 4
"""The number of attempts of the decorator ``retries`` in ``nova.scheduler.client.report``."""


def with_fresh_reads(operation: Callable[[], T]) -> T:
    """Run ``operation`` again while another client writes between its reads and its writes.

    :param operation: reads what it needs from Placement each time, and then writes.
    :raises GenerationConflict: another client wrote during each attempt.
    :raises DuplicateName: another client has created a provider of the same name during
        each attempt, or long before.
    """
    # Placement detects the other write by the generations in the request, and by the
    # unique names of providers. Fresh reads bring the new generations.
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((GenerationConflict, DuplicateName)),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    return retrying(operation)

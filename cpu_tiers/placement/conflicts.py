"""What to do when somebody else writes at the same time: look again."""

from collections.abc import Callable
from typing import TypeVar

import tenacity

from cpu_tiers.placement.errors import DuplicateName, GenerationConflict

T = TypeVar("T")

ATTEMPTS = 4
"""As many as Nova makes."""


def with_fresh_reads(operation: Callable[[], T]) -> T:
    """Run ``operation``, which reads and then writes, until nobody is in between.

    :raises GenerationConflict: somebody was, each time.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((GenerationConflict, DuplicateName)),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    return retrying(operation)

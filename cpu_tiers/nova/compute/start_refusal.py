"""A refusal to start nova-compute ends the process (decision D83).

Nova hands an exception of the start on to the end of its program. With native threads the process
then stays, because a thread of Nova's libvirt host never ends. With eventlet oslo.service stops
the process with the status 0.
"""

import logging as py_logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from nova import exception
from oslo_log import log as logging

from cpu_tiers.nova.seams import SeamMismatch

LOG = logging.getLogger(__name__)


class ReportRefused(exception.InvalidConfiguration):
    """The options of cpu-tiers contradict each other, the host, or Placement's inventories."""


class MoveRefused(exception.ReshapeFailed):
    """The servers of a host do not fit into the inventories that the host is going to report."""


@contextmanager
def refusals_end_process(*kinds: type[Exception]) -> Iterator[None]:
    """End nova-compute if the context refuses to start; other exceptions pass unchanged.

    :param kinds: further exceptions that are refusals of cpu-tiers.
    """
    refusals: tuple[type[Exception], ...] = (SeamMismatch, ReportRefused, MoveRefused, *kinds)
    try:
        yield
        return
    except refusals as error:
        refusal = error
    # Not in the ``except``: oslo.log appends the error that is being handled to each message.
    end_process(refusal)


def end_process(refusal: Exception) -> NoReturn:
    """Log why nova-compute does not start, and end the process at once with the status 1.

    Nothing is lost: Nova has not yet written the report of the host, and serves no requests.
    """
    LOG.critical("nova-compute does not start: %s", refusal)
    py_logging.shutdown()
    os._exit(1)

"""Every failure of cpu-tiers while nova-scheduler looks for a host becomes NoValidHost.

nova-conductor handles NoValidHost in every operation, and leaves the server as it was. After
another exception of nova-scheduler, an evacuated server stays in its task state for ever, since
nova-conductor's ``rebuild_instance`` catches only NoValidHost and its like.
"""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from nova import exception

from cpu_tiers.errors import CpuTiersError

LOG = logging.getLogger(__name__)


_UNEXPLAINED = "cpu_tiers_unexplained"
"""The attribute of Nova's ResourceRequest whose empty answer has no reason of its own."""


def leave_unexplained(request: Any) -> None:
    """Have nova-scheduler look for no reason if the answer to a request is empty.

    nova-scheduler adds the answer to the answer of another request, or joins and selects the
    candidates of several queries.
    """
    setattr(request, _UNEXPLAINED, True)


def is_unexplained(request: Any) -> bool:
    """Tell whether an empty answer to a request has no reason of its own."""
    return getattr(request, _UNEXPLAINED, False)


@contextlib.contextmanager
def refusing(cause: str) -> Iterator[None]:
    """Turn each exception of the context into NoValidHost; exceptions of Nova pass unchanged.

    :param cause: what failed, for the log, such as ``the translators of flavor gold``.
    :raises nova.exception.NoValidHost: with the reason.
    """
    try:
        yield
    except exception.NovaException:
        raise
    except CpuTiersError as error:  # the user made a mistake: the fault of the server says which
        raise exception.NoValidHost(reason=str(error)) from error
    except Exception as error:
        LOG.exception("No host is chosen, because of a failure of %s: %r", cause, error)
        raise exception.NoValidHost(reason=f"failure of {cause}: {error!r}") from error

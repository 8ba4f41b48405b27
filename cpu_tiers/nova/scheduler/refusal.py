"""Every failure of cpu-tiers while nova-scheduler looks for a host becomes NoValidHost.

nova-conductor handles NoValidHost in every operation, and leaves the server as it was. After
another exception of nova-scheduler, an evacuated server stays in its task state for ever, since
nova-conductor's ``rebuild_instance`` catches only NoValidHost and its like.
"""

import contextlib
import logging
from collections.abc import Iterator

from nova import exception

from cpu_tiers.errors import CpuTiersError

LOG = logging.getLogger(__name__)


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

"""Which requests cpu-tiers may refuse in nova-scheduler, and how.

nova-scheduler refuses a faulty flavor where a server is created or gets another flavor. A server
that exists is moved whatever faults its flavor has (decision D72).

Every failure of cpu-tiers while nova-scheduler looks for a host becomes NoValidHost, which
nova-conductor handles in every operation, and leaves the server as it was. After another exception
of nova-scheduler, an evacuated server stays in its task state for ever, since nova-conductor's
``rebuild_instance`` catches only NoValidHost and its like.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import contextlib
from collections.abc import Iterator, Mapping

from nova import context, exception, objects
from oslo_log import log as logging

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import CpuTiersError, InvalidInput
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.nova.convert import field, name_of, to_flavor, to_image
from cpu_tiers.nova.notes import search_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.translators import ServerRequest, Translator
from cpu_tiers.translators.contract import as_existing

LOG = logging.getLogger(__name__)

REASONS = TimeBudget("reason why a server gets no host", seconds=5.0)
"""Bounds the time of the further queries for a server without candidates."""


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


def server_of(request_spec: objects.RequestSpec) -> ServerRequest:
    """Return the server of Nova's request spec.

    :raises InvalidInput: a size of the flavor is out of range.
    """
    return ServerRequest(
        flavor=to_flavor(request_spec.flavor),
        image=to_image(field(request_spec, "image")),
        query_vcpu_shares=CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares,
    )


def existing_server(request_spec: objects.RequestSpec, error: InvalidInput) -> ServerRequest:
    """Return the server of a move, as a server whose flavor no rule refuses; log its faults.

    :raises InvalidInput: the same error, if the request is not the move of a server that exists.
    """
    if is_admission(request_spec):
        raise error
    from cpu_tiers.nova.convert_numa import to_guest_cpus  # few servers have a faulty flavor

    search = search_of(request_spec)
    if not search.has_warned:
        search.has_warned = True
        LOG.warning(
            "The server is moved though its flavor %s is faulty, and claims nothing of the"
            " resource classes that the faults are about: %s",
            name_of(request_spec.flavor),
            error,
            instance_uuid=field(request_spec, "instance_uuid"),
        )
    novas = to_guest_cpus(field(request_spec, "numa_topology"), request_spec.flavor.vcpus)
    return as_existing(server_of(request_spec), novas)


def is_admission(request_spec: objects.RequestSpec) -> bool:
    """Tell whether a server is going to be created, or to get another flavor.

    nova-conductor restricts each move to the cell v2 of the server, or allows it to leave the
    cell; nova-conductor does neither for a boot.
    """
    destination = field(request_spec, "requested_destination")
    cell = field(destination, "cell") if destination else None
    if not cell:
        return not (destination and field(destination, "allow_cross_cell_move"))
    return _gets_another_flavor(request_spec, cell)


def _gets_another_flavor(request_spec: objects.RequestSpec, cell: objects.CellMapping) -> bool:
    """Tell whether nova-conductor has started a resize of the server.

    Only the database knows: the request spec of a resize has the new flavor only. A failed read
    counts as a move, which must go on.
    """
    server = str(field(request_spec, "instance_uuid"))
    waiting = {"migration_type": "resize", "status": "pre-migrating"}
    try:
        with context.target_cell(context.get_admin_context(), cell) as cell_context:
            filters = {"instance_uuid": server, **waiting}
            return bool(objects.MigrationList.get_by_filters(cell_context, filters).objects)
    except Exception as error:
        LOG.warning("Cannot read the migrations of the server: %r", error, instance_uuid=server)
        return False


def valid_translators(
    server: ServerRequest, translators: Mapping[str, Translator]
) -> Mapping[str, Translator]:
    """Return the translators that accept the flavor of an existing server.

    If a translator of another distribution refuses the flavor, the server claims nothing of that
    translator.
    """
    valid = {}
    for name, translator in translators.items():
        try:
            tuple(translator(server))
        except InvalidInput as error:
            LOG.warning("The translator %s claims nothing: %s", name, error)
        else:
            valid[name] = translator
    return valid

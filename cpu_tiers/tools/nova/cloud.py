"""The compute nodes of a cloud, for commands that ask Nova.

On the control plane, nova.conf has the API database, and every cell v2 can be read. A compute host
has no database: there the commands ask nova-conductor, and read the cell v2 of the host.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product

import nova.conf
from nova import config, context, exception, objects
from nova.baserpc import BaseAPI
from nova.conductor import rpcapi
from nova.context import RequestContext
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.objects import base
from oslo_db.exception import DBError
from oslo_messaging import InvalidTransportURL, MessagingException
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from cpu_tiers.conf import compute
from cpu_tiers.conf.read import config_files
from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.in_time import in_time
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.seams import install

CONF = nova.conf.CONF

_REFUSALS = (DBError, SQLAlchemyError, MessagingException, InvalidTransportURL)
"""The errors of databases and of the message bus."""

_DATABASE_SECONDS = 20.0
"""A command waits so long for a database to accept a connection."""

_CONNECTING = {"max_retries": 3, "retry_interval": 2}
"""Options of ``[database]`` and ``[api_database]`` for a command. By their defaults, which are for
services, Nova tries ten times to connect, and pauses for ten seconds after each attempt."""


class NovaUnavailable(CpuTiersError):
    """Nova's database or conductor does not answer, or nova.conf has a wrong address."""


class Cells:
    """All cells v2, by the API database: a request context for each."""

    def of_host(self, host: str) -> RequestContext:
        """Return the context of the cell v2 that has a host.

        :raises nova.exception.HostMappingNotFound: Nova does not know the host.
        """
        mapping = objects.HostMapping.get_by_host(context.get_admin_context(), host)
        return _in_cell(mapping.cell_mapping)

    def of_server(self, uuid: str) -> RequestContext:
        """Return the context of the cell v2 that has a server.

        :raises nova.exception.NotFound: Nova does not know the server.
        """
        admin = context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(admin, uuid)
        if mapping.cell_mapping is None:  # the server is being scheduled
            raise exception.InstanceNotFound(instance_id=uuid)
        return _in_cell(mapping.cell_mapping)

    def all(self) -> Iterator[RequestContext]:
        """Yield the context of each cell v2 except cell0, which has no hosts."""
        for cell in objects.CellMappingList.get_all(context.get_admin_context()):
            if not cell.is_cell0():
                yield _in_cell(cell)


class Conductor:
    """The cell v2 of this host, by its nova-conductor, as nova-compute reads it.

    :raises NovaUnavailable: there is no message bus.
    """

    def __init__(self) -> None:
        base.NovaObject.indirection_api = rpcapi.ConductorAPI()
        conductor = BaseAPI(topic=rpcapi.RPC_TOPIC)
        _answers(
            lambda: conductor.ping(context.get_admin_context(), "cpu-tiers"),
            2 * CONF.rpc_response_timeout,
            NovaUnavailable(
                "Nova cannot be asked: no message bus; check transport_url in nova.conf, or set"
                " [api_database] connection where there is a database"
            ),
        )

    def of_host(self, _host: str) -> RequestContext:
        """Return the context of this cell."""
        return context.get_admin_context()

    of_server = of_host

    def all(self) -> Iterator[RequestContext]:
        """Yield the context of this cell."""
        yield context.get_admin_context()


Cloud = Cells | Conductor
"""The cells v2 of Nova that a command can read."""


def _answers(ask: Callable[[], object], seconds: float, silence: NovaUnavailable) -> None:
    """Raise ``silence`` without an answer in time, as if a firewall drops the packets."""
    try:
        in_time(ask, seconds)
    except TimeoutError as error:
        raise silence from error


@contextmanager
def connect(files: Sequence[str]) -> Iterator[Cloud]:
    """Yield the cloud of a nova.conf.

    :param files: as :func:`configure`.
    :raises NovaUnavailable: at once, or later within the ``with`` block.
    """
    with asking():
        configure(files)
        if not CONF.api_database.connection:
            yield Conductor()
            return
        _accepts_connections(api_db.get_engine)
        yield Cells()


def _accepts_connections(get_engine: Callable[[], object]) -> None:
    _answers(
        get_engine,
        _DATABASE_SECONDS,
        NovaUnavailable(
            f"Nova cannot be asked: a database does not answer in {_DATABASE_SECONDS:.0f} seconds;"
            " check [api_database] connection in nova.conf, and the databases of `nova-manage"
            " cell_v2 list_cells`"
        ),
    )


@contextmanager
def asking() -> Iterator[None]:
    """Raise NovaUnavailable if a database or nova-conductor does not answer."""
    try:
        yield
    except _REFUSALS as error:
        raise NovaUnavailable(
            f"Nova cannot be asked: {reason_of(error)}; check [api_database] connection in"
            " nova.conf, or transport_url where that is not set"
        ) from error


def reason_of(error: Exception) -> str:
    """Return the reason of a database or message bus, without SQL statements and passwords."""
    if isinstance(error, ArgumentError):
        return "Could not parse SQLAlchemy URL"  # some releases add the URL
    if not isinstance(error, (*_REFUSALS, TimeoutError)):
        return type(error).__name__  # the message may have the URL with the password
    return first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error, or else its type."""
    return printable((str(error) or type(error).__name__).splitlines()[0])


def configure(files: Sequence[str], folders: Sequence[str] = ()) -> None:
    """Read Nova's configuration into ``nova.conf.CONF``, and install the seams of CPU policies.

    With the seams, a flavor means the same to a command as to Nova's services, whether ``[compute]
    extend_cpu_policies`` is on or not: a server may be older than the time when the option was
    turned off.

    :param files: the configuration files; if it is empty, those that Nova's own commands read.
    :param folders: folders with further configuration files.
    :raises SeamMismatch: this release of Nova has other functions than the seams expect.
    """
    for group, (option, value) in product(("database", "api_database"), _CONNECTING.items()):
        CONF.set_override(option, value, group)
    arguments = [argument for folder in folders for argument in ("--config-dir", folder)]
    config.parse_args(["cpu-tiers", *arguments], default_config_files=config_files(files))
    objects.register_all()
    options.register(compute)
    install(cpu_policies.SEAMS)


def compute_nodes_of_host(cloud: Cloud, host: str) -> tuple[ComputeNode, ...]:
    """Return the compute nodes of a nova-compute service; with libvirt there is one.

    :raises InvalidInput: Nova does not know the host.
    """
    try:
        cell = cloud.of_host(host)
        return _compute_nodes(cell, objects.ComputeNodeList.get_all_by_host(cell, host))
    except (exception.NotFound, exception.HostMappingNotFound) as error:
        raise InvalidInput.of(
            f"host {host}",
            "Nova has no compute host of that name",
            "give a host of `openstack compute service list --service nova-compute`",
        ) from error


def compute_nodes_of_server(cloud: Cloud, uuid: str) -> tuple[ComputeNode, ...]:
    """Return the compute node of a server; nothing if the server is on no host.

    :raises InvalidInput: Nova does not know the server.
    """
    try:
        cell_context = cloud.of_server(uuid)
        server = objects.Instance.get_by_uuid(cell_context, uuid)
    except (exception.NotFound, exception.InvalidUUID) as error:
        raise InvalidInput.of(
            f"server {uuid}", "Nova has no server of that uuid", "give the ID of `server list`"
        ) from error
    if server.host is None:
        return ()
    nodes = compute_nodes_of_host(cloud, server.host)
    return tuple(node for node in nodes if node.name == server.node)


def all_compute_nodes(cloud: Cloud) -> Iterator[ComputeNode]:
    """Yield every compute node of the cloud."""
    for cell in cloud.all():
        yield from _compute_nodes(cell, objects.ComputeNodeList.get_all(cell))


def _compute_nodes(
    cell: RequestContext, nodes: objects.ComputeNodeList
) -> tuple[ComputeNode, ...]:
    return tuple(
        ComputeNode(context=cell, host=node.host, name=node.hypervisor_hostname, uuid=node.uuid)
        for node in nodes
    )


def _in_cell(cell: objects.CellMapping) -> RequestContext:
    cell_context = context.get_admin_context()
    context.set_target_cell(cell_context, cell)
    _accepts_connections(partial(main_db.get_engine, context=cell_context))
    return cell_context

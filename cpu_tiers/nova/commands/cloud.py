"""The hosts of a cloud, reached from a command as Nova's own services reach them.

With the API database, as on the control plane, every cell is in reach. A
compute host has no database: there nova-conductor is asked, which knows the
cell of that host.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Any, Protocol

import nova.conf
from nova import config, context, exception, objects
from nova.baserpc import BaseAPI
from nova.conductor import rpcapi
from nova.objects import base
from oslo_db.exception import DBError
from oslo_messaging import InvalidTransportURL, MessagingException
from sqlalchemy.exc import SQLAlchemyError

from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.nova import cpu_policies
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.seams import install

CONF = nova.conf.CONF


class NovaUnavailable(CpuTiersError):
    """Nova's database or its conductor does not answer, or nova.conf does not lead there."""


class Cloud(Protocol):
    """Contexts that reach the part of Nova's database where something stands."""

    def of_host(self, host: str) -> Any:
        """Return the context of a host.

        :raises nova.exception.HostMappingNotFound: Nova does not know it.
        """

    def of_server(self, uuid: str) -> Any:
        """Return the context of a server.

        :raises nova.exception.NotFound: Nova does not know it.
        """

    def all(self) -> Iterator[Any]:
        """Yield a context for each part in which there are hosts."""


class Cells:
    """Nova by its API database: all cells."""

    def of_host(self, host: str) -> Any:
        """Return the context of the host's cell."""
        mapping = objects.HostMapping.get_by_host(context.get_admin_context(), host)
        return _in_cell(mapping.cell_mapping)

    def of_server(self, uuid: str) -> Any:
        """Return the context of the server's cell."""
        admin = context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(admin, uuid)
        if mapping.cell_mapping is None:  # it is being scheduled
            raise exception.InstanceNotFound(instance_id=uuid)
        return _in_cell(mapping.cell_mapping)

    def all(self) -> Iterator[Any]:
        """Yield the context of each cell; cell 0 has no hosts."""
        for cell in objects.CellMappingList.get_all(context.get_admin_context()):
            if not cell.is_cell0():
                yield _in_cell(cell)


class Conductor:
    """Nova by the conductor of this host's cell, as nova-compute asks it."""

    def __init__(self) -> None:
        """Have Nova's objects ask it instead of a database.

        :raises NovaUnavailable: there is no message bus.
        """
        base.NovaObject.indirection_api = rpcapi.ConductorAPI()
        _answers_in_time(BaseAPI(topic=rpcapi.RPC_TOPIC))

    def of_host(self, host: str) -> Any:
        """Return the context of this cell."""
        return context.get_admin_context()

    def of_server(self, uuid: str) -> Any:
        """Return the context of this cell."""
        return context.get_admin_context()

    def all(self) -> Iterator[Any]:
        """Yield the context of this cell."""
        yield context.get_admin_context()


def _answers_in_time(conductor: BaseAPI) -> None:
    """Give up on a bus that is not there, as oslo.messaging never does.

    It bounds the time for an answer, but not that for the connection.
    """
    answer: Future[object] = Future()

    def ask() -> None:
        try:
            answer.set_result(conductor.ping(context.get_admin_context(), "cpu-tiers"))
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()
    try:
        answer.result(timeout=2 * CONF.rpc_response_timeout)
    except TimeoutError as error:
        raise NovaUnavailable(
            "Nova cannot be asked: no message bus; check transport_url in nova.conf, or set"
            " [api_database] connection where there is a database"
        ) from error


@contextmanager
def connect(files: Sequence[str]) -> Iterator[Cloud]:
    """Yield the cloud that nova.conf describes.

    :param files: as for Nova's own commands; empty: where those look.
    :raises NovaUnavailable: now, or later within the context.
    """
    try:
        configure(files)
        yield Cells() if CONF.api_database.connection else Conductor()
    except (DBError, SQLAlchemyError, MessagingException, InvalidTransportURL) as error:
        raise NovaUnavailable(
            f"Nova cannot be asked: {_first_line(error)}; check [api_database] connection in"
            " nova.conf, or transport_url where that is not set"
        ) from error


def _first_line(error: Exception) -> str:
    """Return what it says, without the statement that a database failed at."""
    return printable((str(error) or type(error).__name__).splitlines()[0])


def configure(files: Sequence[str]) -> None:
    """Read Nova's whole configuration into the object that all of Nova reads.

    And have flavors mean here what they mean to its services.

    :raises SeamMismatch: we do not fit this Nova.
    """
    config.parse_args(["cpu-tiers"], default_config_files=list(files) or None)
    objects.register_all()
    install(cpu_policies.SEAMS, level=logging.DEBUG)  # a command talks to a person


def compute_nodes_of_host(cloud: Cloud, host: str) -> tuple[ComputeNode, ...]:
    """Return what a nova-compute runs: with libvirt, the host itself.

    :raises InvalidInput: Nova does not know it.
    """
    try:
        found = cloud.of_host(host)
        return _compute_nodes(found, objects.ComputeNodeList.get_all_by_host(found, host))
    except (exception.NotFound, exception.HostMappingNotFound) as error:
        raise InvalidInput.of(
            f"host {host}",
            "Nova has no compute host of that name",
            "give a host of `openstack compute service list --service nova-compute`",
        ) from error


def compute_nodes_of_server(cloud: Cloud, uuid: str) -> tuple[ComputeNode, ...]:
    """Return where a server is; nothing where it is on no host.

    :raises InvalidInput: Nova does not know it.
    """
    try:
        found = cloud.of_server(uuid)
        server = objects.Instance.get_by_uuid(found, uuid)
    except (exception.NotFound, exception.InvalidUUID) as error:
        raise InvalidInput.of(
            f"server {uuid}", "Nova has no server of that uuid", "give the ID of `server list`"
        ) from error
    if server.host is None:
        return ()
    compute_nodes = compute_nodes_of_host(cloud, server.host)
    return tuple(
        compute_node for compute_node in compute_nodes if compute_node.name == server.node
    )


def all_compute_nodes(cloud: Cloud) -> Iterator[ComputeNode]:
    """Yield every host of the cloud."""
    for found in cloud.all():
        yield from _compute_nodes(found, objects.ComputeNodeList.get_all(found))


def _compute_nodes(found: Any, compute_nodes: Any) -> tuple[ComputeNode, ...]:
    return tuple(
        ComputeNode(
            context=found,
            host=compute_node.host,
            name=compute_node.hypervisor_hostname,
            uuid=compute_node.uuid,
        )
        for compute_node in compute_nodes
    )


def _in_cell(cell: Any) -> Any:
    found = context.get_admin_context()
    context.set_target_cell(found, cell)
    return found

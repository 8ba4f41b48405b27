"""Neutron's ports, read and written through Nova's own client of Neutron."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keystoneauth1.exceptions import ClientException
from nova import exception
from nova.network import constants, neutron

from cpu_tiers.accounting.port_bindings import ALLOCATION, PortBinding
from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.model.port import Port
from cpu_tiers.tools.placement.port_healing import PortGone, PortNotRecorded

_FIELDS = ["id", "device_id", constants.RESOURCE_REQUEST, constants.BINDING_PROFILE]
_FAULTS = (ClientException, exception.NovaException, neutron.neutron_client_exc.NeutronException)


class NeutronUnavailable(CpuTiersError):
    """Neutron does not answer, or ``[neutron]`` of nova.conf is wrong."""


class Ports:
    """The ports of Neutron that request resources.

    Without the Neutron extension for ``resource_request``, no port does.

    :param context: of an administrator, because Neutron shows the
        ``resource_request`` of a port to nobody else.
    :raises NeutronUnavailable: now, or when ports are read.
    """

    def __init__(self, context: Any) -> None:
        """Connect to Neutron by ``[neutron]`` of nova.conf."""
        with _translated_errors():
            self._client = neutron.get_client(context, admin=True)

    def of_host(self, host: str) -> dict[str, tuple[Port, ...]]:
        """Return the ports that are bound on a host, by the uuid of their server.

        :param host: the name of its nova-compute.
        """
        return self._read({"binding:host_id": host})

    def of_server(self, uuid: str) -> tuple[Port, ...]:
        """Return the ports of a server."""
        return self._read({"device_id": uuid}).get(uuid, ())

    def _read(self, filters: Mapping[str, str]) -> dict[str, tuple[Port, ...]]:
        with _translated_errors():
            bodies = self._client.list_ports(**filters, fields=_FIELDS)["ports"]
        ports: dict[str, tuple[Port, ...]] = {}
        for body in bodies:
            if body.get(constants.RESOURCE_REQUEST):
                server = body.get("device_id") or ""
                ports[server] = (*ports.get(server, ()), _to_port(body))
        return ports

    def record(self, binding: PortBinding) -> None:
        """Write the providers of a port into its profile; all other keys of the profile stay.

        :raises PortGone: there is no such port.
        :raises PortNotRecorded: Neutron refuses, or does not answer.
        """
        profile = {**binding.port.binding_profile, ALLOCATION: binding.allocation}
        body = {"port": {constants.BINDING_PROFILE: profile}}
        try:
            self._client.update_port(binding.port.id, body)
        except _FAULTS as error:
            kind = PortGone if _is_not_found(error) else PortNotRecorded
            raise kind(_first_line(error)) from error


def _to_port(body: Mapping[str, Any]) -> Port:
    """Return a port.

    A profile that is no JSON object is kept as its ``allocation``, where
    :func:`~cpu_tiers.accounting.port_bindings.read_binding` refuses it.
    """
    profile = body.get(constants.BINDING_PROFILE) or {}
    return Port(
        id=body["id"],
        resource_request=body[constants.RESOURCE_REQUEST],
        binding_profile=profile if isinstance(profile, dict) else {ALLOCATION: profile},
    )


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise NeutronUnavailable(
            f"Neutron cannot be asked: {_first_line(error)}; check [neutron] in nova.conf, or"
            " leave ports out with --skip-ports"
        ) from error


def _is_not_found(error: Exception) -> bool:
    return getattr(error, "status_code", None) == 404


def _first_line(error: Exception) -> str:
    return printable((str(error) or type(error).__name__).splitlines()[0])

"""A Neutron port, with the fields that restrict the hosts for a server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.model.port_request import PortRequest, read_port_request


# cached_property needs a __dict__, which a subclass of a NamedTuple has and a NamedTuple has not.
class _Port(NamedTuple):
    id: str
    resource_request: object = None
    binding_profile: Mapping[str, object] = MappingProxyType({})


class Port(_Port):
    """A port of a server.

    :param id: the uuid of the port.
    :param resource_request: the field of this name from Neutron. It is read anew for
        each operation, because it may change in Neutron. ``None`` if the port requests
        no resources, or if this Neutron has no such field.
    :param binding_profile: ``binding:profile``; its key ``allocation`` names the
        providers that serve the port.
    """

    @cached_property
    def request(self) -> PortRequest:
        """The request groups of the port.

        :raises InvalidInput: see :func:`~cpu_tiers.model.port_request.read_port_request`.
        """
        return read_port_request(self.id, self.resource_request)

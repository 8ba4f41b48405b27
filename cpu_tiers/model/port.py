"""A Neutron port, as far as it decides where a server can run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.model.port_request import PortRequest, read_port_request


class _Port(NamedTuple):
    id: str
    resource_request: object = None
    binding_profile: Mapping[str, object] = MappingProxyType({})


class Port(_Port):
    """A port.

    :param id: its uuid.
    :param resource_request: as Neutron gives it, and never kept with the
        server: it may change in Neutron. ``None`` where the port asks for
        nothing, or Neutron knows no such thing.
    :param binding_profile: ``binding:profile``; its ``allocation`` tells which
        providers serve the port.
    """

    @cached_property
    def request(self) -> PortRequest:
        """What the port asks for.

        :raises InvalidInput: see :func:`~cpu_tiers.model.port_request.read_port_request`.
        """
        return read_port_request(self.id, self.resource_request)

"""The contract of a translator, for plugins of the namespace ``cpu_tiers.translators``.

A translator is a callable that takes a :class:`ServerRequest` and returns the request groups that
it adds to the query: values with a suffix, amounts by resource class, and required and forbidden
traits. A translator may also return a :class:`~cpu_tiers.model.request.SameSubtree` of groups. A
translator changes nothing, does no I/O and reads no configuration.

* Groups of the same suffix are merged: the merged group has the traits of all groups.
  If two translators request the same resource class in a group, an
  :class:`~cpu_tiers.errors.ExtensionError` names both translators.
* As in Nova, an amount that the flavor states itself (``resources[N]:CLASS``) replaces the amount
  of a translator for the same class, except in a group with a ``requester_id``.
* A group without resources must be in a :class:`~cpu_tiers.model.request.SameSubtree`.
* If the input cannot be translated, the translator raises an
  :class:`~cpu_tiers.errors.InvalidInput` with every fault.

A distribution adds a translator with an entry point of the namespace::

    [project.entry-points."cpu_tiers.translators"]
    my_name = "my_package.my_module:translate"
"""

from __future__ import annotations  # nova-scheduler reads no ports, and few NUMA nodes

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.cpu_policies import lacks_amounts
from cpu_tiers.extra_specs.groups import OwnGroups, read_groups
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus, guest_cpus
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.request import RequestGroup, SameSubtree

if TYPE_CHECKING:
    from cpu_tiers.extra_specs.numa import GuestNode
    from cpu_tiers.model.port import Port


# cached_property needs a __dict__, which a subclass of a NamedTuple has and a NamedTuple has not.
class _ServerRequest(NamedTuple):
    flavor: Flavor
    image: Image | None = None
    query_vcpu_shares: bool = False
    ports: tuple[Port, ...] = ()
    query_numa: bool = False
    as_fallback: bool = False
    existing: GuestCpus | None = None


class ServerRequest(_ServerRequest):
    """The server for which a query is made.

    The properties are computed once, because several translators use them.

    :param query_vcpu_shares: ``[filter_scheduler] query_placement_for_vcpu_shares``.
    :param ports: the ports as they are in Neutron now; they are read again for each move
        of the server.
    :param query_numa: ``[filter_scheduler] query_placement_for_numa``: request the NUMA nodes of
        the guest, and keep guests without NUMA nodes away from hosts that report their NUMA nodes.
    :param as_fallback: request a host that does not report its NUMA nodes.
    :param existing: the guest of a server that exists, and that no fault of its flavor may keep
        from being moved (decision D72); ``None`` for a server that is going to be created or
        resized. See :func:`as_existing`.
    """

    @cached_property
    def own_groups(self) -> OwnGroups:
        """The groups that the flavor states itself.

        :raises InvalidInput: with the faults of :func:`read_groups`, but not for a server that
            exists.
        """
        faults = FaultList()
        own_groups = read_groups(self.flavor, faults)
        if self.existing is None:
            faults.raise_if_any()
        return own_groups

    @cached_property
    def guest(self) -> GuestCpus:
        """The CPUs, the NUMA nodes and the memory pages of the guest.

        :raises InvalidInput: as :func:`guest_cpus`, but not for a server that exists.
        """
        if self.existing is not None:
            return self.existing
        try:
            own_groups = self.own_groups
        except InvalidInput:
            own_groups = None  # guest_cpus finds the same faults, and others beside them
        return guest_cpus(self.flavor, self.image, own_groups)

    @property
    def cpus(self) -> CpuCounts:
        """The numbers of shared and dedicated vCPUs.

        :raises InvalidInput: as ``guest``.
        """
        return self.guest.counts

    @property
    def nodes(self) -> tuple[GuestNode, ...]:
        """The guest's nodes if the query requests NUMA nodes, else none.

        :raises InvalidInput: as ``guest``.
        """
        return self.guest.nodes if self.query_numa and not self.as_fallback else ()

    def shared_of(self, node: GuestNode) -> int:
        """Return the number of shared vCPUs of a node."""
        return len(node.cpus - self.guest.dedicated)


def as_existing(server: ServerRequest, novas: GuestCpus) -> ServerRequest:
    """Return the server as a server that exists, whatever faults its flavor has.

    :param novas: the guest as Nova runs it, for a flavor or image whose CPUs cpu-tiers refuses.
    """
    guest = novas
    own_groups = read_groups(server.flavor, FaultList())  # without faulty extra specs, as Nova
    # Nova decides about amounts of VCPU and PCPU that cpu-tiers cannot read.
    if not lacks_amounts(server.flavor, own_groups):
        with suppress(InvalidInput):
            guest = guest_cpus(server.flavor, server.image, own_groups)
    return server._replace(existing=guest)


Translator = Callable[[ServerRequest], Iterable[RequestGroup | SameSubtree]]

_Function = TypeVar("_Function", bound=Translator)
_ALREADY_REQUESTED_BY = "already_requested_by"


def already_requested_by(*functions: str) -> Callable[[_Function], _Function]:
    """Mark a translator whose groups nova-scheduler requests without calling the translator.

    nova-scheduler calls every translator that does not have this mark, and refuses a
    resource class that both Nova and a translator request. The library and the commands
    make whole queries without Nova, and call all translators.

    :param functions: the dotted names of the functions that request the same groups:
        functions of Nova, or of cpu-tiers in nova-scheduler.
    """

    def mark(translator: _Function) -> _Function:
        setattr(translator, _ALREADY_REQUESTED_BY, functions)
        return translator

    return mark


def functions_that_request(translator: Translator) -> tuple[str, ...]:
    """Return the functions of :func:`already_requested_by`; none without the mark."""
    functions: tuple[str, ...] = getattr(translator, _ALREADY_REQUESTED_BY, ())
    return functions

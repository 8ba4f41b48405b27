"""What a translator is: the contract of ``cpu_tiers.translators``.

A translator is a callable that is given a :class:`ServerRequest` and returns
the request groups that it adds to the query, as plain values: group names
(``suffix``), amounts by resource class, required and forbidden traits; and
which of them stand in one subtree. It edits nothing, does no I/O and reads no
configuration.

* Groups of the same suffix are merged: traits are united, and a resource class
  may be claimed by one translator alone; two are an
  :class:`~cpu_tiers.errors.ExtensionError` that names both.
* What the flavor states itself (``resources[N]:CLASS``) replaces whatever a
  translator claims of that class, as in Nova; but not in a group that has a
  ``requester_id``.
* A group without resources must stand in a
  :class:`~cpu_tiers.model.request.SameSubtree`.
* Input that cannot be translated is an
  :class:`~cpu_tiers.errors.InvalidInput` with every fault.

Another distribution takes part through an entry point of the namespace::

    [project.entry-points."cpu_tiers.translators"]
    my_name = "my_package.my_module:translate"
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple, TypeVar

from cpu_tiers.extra_specs.groups import OwnGroups, parse_groups
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus, guest_cpus
from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.model.request import RequestGroup, SameSubtree


class _ServerRequest(NamedTuple):
    flavor: Flavor
    image: Image | None = None
    query_vcpu_shares: bool = False
    ports: tuple[Port, ...] = ()
    query_numa: bool = False
    as_fallback: bool = False


class ServerRequest(_ServerRequest):
    """The server that a query is made for.

    :param query_vcpu_shares: ``[filter_scheduler]
        query_placement_for_vcpu_shares``.
    :param ports: as they are now: for each move they are read from Neutron again.
    :param query_numa: ``[filter_scheduler] query_placement_for_numa``: ask for
        NUMA nodes, and keep servers without any from hosts that report theirs.
    :param as_fallback: ask for a host that does not report its NUMA nodes.

    What several translators need to know of it is worked out once.
    """

    @cached_property
    def own_groups(self) -> OwnGroups:
        """The groups that the flavor states itself.

        :raises InvalidInput: see :func:`~cpu_tiers.extra_specs.groups.parse_groups`.
        """
        return parse_groups(self.flavor)

    @cached_property
    def guest(self) -> GuestCpus:
        """What flavor and image decide about the guest's CPUs, nodes and pages.

        :raises InvalidInput: see :func:`~cpu_tiers.extra_specs.guest_cpus.guest_cpus`.
        """
        return guest_cpus(self.flavor, self.image, self.own_groups)

    @property
    def cpus(self) -> CpuCounts:
        """How many vCPUs are shared, and how many are dedicated.

        :raises InvalidInput: as ``guest``.
        """
        return self.guest.counts

    @property
    def nodes(self) -> tuple[GuestNode, ...]:
        """The guest's nodes where the query asks for them one by one, else none.

        :raises InvalidInput: as ``guest``.
        """
        return self.guest.nodes if self.query_numa and not self.as_fallback else ()

    def shared_of(self, node: GuestNode) -> int:
        """Return how many vCPUs of a node are shared."""
        return len(node.cpus - self.guest.dedicated)


Translator = Callable[[ServerRequest], Iterable[RequestGroup | SameSubtree]]

_Function = TypeVar("_Function", bound=Translator)
_ALREADY_REQUESTED_BY = "already_requested_by"


def already_requested_by(*functions: str) -> Callable[[_Function], _Function]:
    """Mark a translator whose groups nova-scheduler requests without calling the translator.

    nova-scheduler calls every translator that does not have this mark, and
    refuses a resource class that both Nova and a translator claim. The library
    and the commands, which make whole queries without Nova, call them all.

    :param functions: the functions of Nova, or of cpu-tiers inside of
        nova-scheduler, that request the same groups: dotted names, for the reader.
    """

    def mark(translator: _Function) -> _Function:
        setattr(translator, _ALREADY_REQUESTED_BY, functions)
        return translator

    return mark


def functions_that_request(translator: Translator) -> tuple[str, ...]:
    """Return the functions that :func:`already_requested_by` names; none without the mark."""
    functions: tuple[str, ...] = getattr(translator, _ALREADY_REQUESTED_BY, ())
    return functions

"""Seams that put the traits of ports into the form that Placement understands (decision D88).

Nova copies ``required`` of a port's resource request into the query for allocation candidates as
it stands. Placement answers 400 to two of the requests, and the server gets no host:

* A port that requests only traits becomes a group without resources: ``resources<port>=``.
  Placement takes such a group only without the empty parameter, and only in a ``same_subtree``.
* ``in:A,B``, any one of several traits, needs a parameter of its own and microversion 1.39. Nova
  joins all traits with commas and sends microversion 1.36.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import objects

from cpu_tiers.nova import port_queries, steps
from cpu_tiers.nova.convert import field, name_of
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import Function


def _mark_groups(
    original: Function, cls: type, request_spec: objects.RequestSpec, *args: Any, **kwargs: Any
) -> Any:
    """Note in Nova's request which groups of ports Placement would not understand."""
    request = original(cls, request_spec, *args, **kwargs)
    with refusing(f"the ports of a server of flavor {name_of(request_spec.flavor)}"):
        groups = field(request_spec, "requested_resources") or ()
        port_queries.mark(request, {group.requester_id for group in groups})
    return request


SEAMS = (steps.request(_mark_groups), *port_queries.SEAMS)

"""Seam that requires the traits of hosts that a new server needs (decision D76).

A server that needs a function of cpu-tiers, such as a weight by multiplier, gets a host that
reports the function as a trait. Only a boot and a resize to another flavor require the traits: a
server that exists is moved to any host.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.host_traits import traits_for_cpus, traits_for_weight
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import custom_names, steps
from cpu_tiers.nova.convert import field, name_of, to_flavor, to_image
from cpu_tiers.nova.options import CONF, extends_cpu_policies
from cpu_tiers.nova.scheduler.refusal import is_admission, refusing
from cpu_tiers.nova.seams import Function


def required_traits(request_spec: objects.RequestSpec) -> frozenset[str]:
    """Return the traits that the root provider of the server's host must have.

    A function that is off in nova-scheduler needs no trait, and a move requires no trait.
    """
    try:
        flavor = to_flavor(request_spec.flavor)
    except InvalidInput:
        return frozenset()  # a size is out of range, about which Nova decides
    required: frozenset[str] = frozenset()
    if CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares:
        required |= traits_for_weight(flavor)
    if extends_cpu_policies():
        required |= traits_for_cpus(flavor, to_image(field(request_spec, "image")))
    # Last, because a move of a server that needs no trait must not cost a query.
    return required if required and is_admission(request_spec) else frozenset()


def _require_traits(
    original: Function, cls: type, request_spec: objects.RequestSpec, *args: Any, **kwargs: Any
) -> Any:
    """Add the traits to the traits of the root provider.

    The NUMA query moves traits from the unsuffixed group to the root, and leaves the traits of
    the root as they are.
    """
    request = original(cls, request_spec, *args, **kwargs)
    with refusing(f"the traits of hosts for flavor {name_of(request_spec.flavor)}"):
        if traits := required_traits(request_spec):
            # A new set, since Nova's set may belong to the request spec, which is saved.
            request._root_required = request._root_required | traits
            custom_names.need(request, [RequestGroup(required=traits)])
    return request


SEAM = steps.request(_require_traits)

"""The rules that a flavor breaks, by the option of nova-scheduler that makes the rules count.

A cloud has servers and flavors that were made before an option of cpu-tiers was switched on. The
functions here call the same translators as nova-scheduler with the option, and return the faults
that the translators raise. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.translators import BUILT_IN, ServerRequest, claims, shares, translate

_SHARES = {"shares": shares.translate}
_NODES = {name: BUILT_IN[name] for name in ("numa", "sizes", "thread_policy", "image_traits")}

Amounts = Mapping[str, int]
Read = Callable[[], ServerRequest]
"""Returns the server, or raises an InvalidInput for a flavor that cannot be read."""


class BrokenRules(NamedTuple):
    """The rules of an option that a flavor breaks, by itself or together with an image.

    :param option: the option of ``[filter_scheduler]`` that makes the rules count.
    :param faults: a fault for each broken rule.
    :param moved_with: the resources that the option adds to the claim of an existing server in a
        move, by resource class; ``None`` if nova-scheduler refuses to move the server.
    """

    option: str
    faults: tuple[Fault, ...]
    moved_with: Amounts | None


class _Option(NamedTuple):
    """An option, and what nova-scheduler does with the option at a boot and at a move."""

    name: str
    boot: Callable[[ServerRequest], Amounts]
    move: Callable[[ServerRequest], Amounts]


def broken_rules(read: Read) -> Iterator[BrokenRules]:
    """Yield the options of which a server breaks rules, each with the broken rules.

    :param read: a flavor that cannot be read breaks rules of each option.
    """
    for option in _OPTIONS:
        try:
            option.boot(read())
        except InvalidInput as error:
            yield BrokenRules(option.name, error.faults, _moved_with(option, read))


def _moved_with(option: _Option, read: Read) -> Amounts | None:
    try:
        return option.move(read())
    except InvalidInput:
        return None


def _claim_shares(server: ServerRequest) -> Amounts:
    query = claims(server._replace(query_vcpu_shares=True), _SHARES)
    return {name: amount for group in query.groups for name, amount in group.resources.items()}


def _request_nodes(server: ServerRequest) -> Amounts:
    translate(server._replace(query_numa=True), _NODES)
    return {}  # CPUs and memory are claimed without the option, too


_OPTIONS = (
    _Option("query_placement_for_vcpu_shares", _claim_shares, _claim_shares),
    _Option("query_placement_for_numa", _request_nodes, _request_nodes),
)

"""What is proven of a plan: that it is the best, a bound, or that there is none. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cpu_tiers.tools.frame.terminal import count_of, join_names
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan, Question

_MOST_NAMES = 3


class Proof(NamedTuple):
    """What is proven.

    :param value: true for a plan that no other plan beats, and where it is proven that there is
        none; else the bound, if any.
    :param text: in words; empty where there is nothing to prove.
    """

    value: bool | int | None
    text: str


def proof_of(
    hosts: Hosts, question: Question, plan: Plan, unread: Sequence[str], *, is_most: bool
) -> Proof:
    """Return what is proven of a plan.

    :param hosts: the hosts before the plan.
    :param unread: what the proof stands on and was not read.
    """
    value, text = _proof(hosts, question, plan, is_most=is_most)
    if names := plan.open_hosts:
        several = "which of several places, such as pools, nova-scheduler takes of"
        unread = [*unread, f"{several} {join_names(names)}"]
    if unread and value is True:
        text = text.replace("Proven", "Proven for what is known", 1)
    return Proof(value, f"{text} {missing(unread)}".strip())


def missing(unread: Sequence[str]) -> str:
    """Return what an answer stands on and was not read, in a sentence; empty for nothing."""
    return f"Not known: {'; '.join(unread)}." if unread else ""


def _proof(
    hosts: Hosts, question: Question, plan: Plan, *, is_most: bool
) -> tuple[bool | int | None, str]:
    if lacking := no_place(hosts, question, plan):
        return True, f"No plan: {lacking}. Proven."
    if not plan.steps and not is_most:
        return plan.proven, ""
    if plan.proven is True:
        return True, "Proven: no plan " + ("makes more room." if is_most else "has fewer moves.")
    if plan.proven is None:
        return None, "Not proven: the plan is the best that the search found."
    if is_most:
        return (
            plan.proven,
            f"Not proven: no plan makes room for more than {plan.proven} in all.",
        )
    return plan.proven, f"Not proven: every plan has at least {count_of(plan.proven, 'move')}."


def no_place(hosts: Hosts, question: Question, plan: Plan) -> str:
    """Return why no plan reaches the goal; empty where a plan may."""
    if stuck := _names(plan.undone, hosts):
        return f"{stuck} cannot leave, whatever else moves"
    if question.wanted is None or hosts.is_cut:
        return ""
    is_short = plan.after < question.wanted
    if is_short and not any(hosts.ever(hosts.of_new(question.room))):
        return "no host could hold such a server, even without any other"
    if not _is_beyond(hosts, plan):
        return ""
    if plan.undone:
        return "each choice of migrations leaves a server where it is"
    return f"no choice of migrations makes room for {question.wanted:,}" if is_short else ""


def _names(undone: Sequence[Server], hosts: Hosts) -> str:
    """Return the servers that may not leave, or have no other place; not all if many."""
    stuck = [each.name for each in undone if each.stays or not has_other_place(hosts, each)]
    more = f" and {len(stuck) - _MOST_NAMES} more" if len(stuck) > _MOST_NAMES else ""
    return ", ".join(stuck[:_MOST_NAMES]) + more


def _is_beyond(hosts: Hosts, plan: Plan) -> bool:
    """Tell whether the bound is above the number of all servers that may move.

    Such a bound counts a server that is left, or room that is not made, in each plan.
    """
    movable = sum(1 for server in hosts.servers if server.request.queries and not server.stays)
    return not plan.is_proven and plan.bound is not None and plan.bound > movable


def has_other_place(hosts: Hosts, server: Server) -> bool:
    """Tell whether another host could hold a server, if the host had no others."""
    places = hosts.places(server.request)
    return any(root != server.host for root, _ in hosts.ever(places))

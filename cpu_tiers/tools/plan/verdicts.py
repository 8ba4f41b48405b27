"""The verdicts of the plans in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from cpu_tiers.tools.frame.terminal import count_of, join_names
from cpu_tiers.tools.plan.answer import amounts_text
from cpu_tiers.tools.plan.hosts import Server
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.plan.relief import Relief, over_capacity
from cpu_tiers.tools.plan.survive import Loss, Survival


def room_verdict(plan: Plan, flavor: str, wanted: int | None, *, is_no: bool) -> str:
    """Return for how many servers there is room before and after a plan."""
    now = f"{count_of(plan.before, 'server')} of flavor {flavor} now"
    if not plan.steps:
        if is_no:
            return f"There is room for {now}, and no migrations were found that make more room."
        return f"There is room for {now}, without any migration."
    moves = count_of(len(plan.steps), "migration")
    missing = f", fewer than {wanted}" if is_no else ""
    return f"{moves} make{_s(plan)} room for {plan.after} in place of {now}{missing}."


def drain_verdict(plan: Plan, hosts: Iterable[str], servers: int, kept: str) -> str:
    """Return whether hosts become empty.

    :param servers: the number of the servers of the hosts.
    :param kept: the verdict about further hosts that fail.
    """
    stays = (
        f"{count_of(len(plan.undone), 'server')} cannot leave" if plan.undone else "all can leave"
    )
    moves = f"{count_of(len(plan.steps), 'migration')} for {count_of(servers, 'server')}"
    return f"{moves} of {', '.join(hosts)}: {stays}. {kept}".strip()


def keep_verdict(survival: Survival, number: int, tried: int) -> str:
    """Return whether further hosts may fail together after a plan.

    :param tried: the number of the sets of hosts that were tried, if not all were; else 0.
    """
    what = count_of(number, "further host")
    note = f" (the {tried} fullest sets of hosts were tried)" if tried else ""
    if not survival.left:
        return f"Afterwards {what} may fail{note}: every server finds a place."
    worst = max(survival.left, key=lambda loss: len(loss.homeless))
    names = ", ".join(survival.plan.hosts.names[root] for root in worst.hosts)
    homeless = count_of(len(worst.homeless), "server")
    return f"Afterwards {what} may not fail{note}: of {names}, {homeless} would find no place."


def survive_verdict(survival: Survival, number: int, *, is_known: bool) -> str:
    """Return whether each host may fail, and else what has to change.

    :param number: the number of the hosts of which each may fail.
    :param is_known: whether all was read that the answer stands on.
    """
    plan, bad, left = survival
    if not number:
        return "No host to lose."
    if not bad:
        yes = "Yes" if is_known else "Yes, for what is known"
        return (
            f"{yes}: if any one of {count_of(number, 'host')} fails, every server finds a place."
        )
    worst = max(bad, key=lambda loss: len(loss.homeless))
    now = (
        f"No: {len(bad)} of {count_of(number, 'host')} may not fail. The worst is"
        f" {plan.hosts.names[worst.hosts[0]]}: {len(worst.homeless)} of its"
        f" {count_of(worst.servers, 'server')} would find no place."
    )
    moves = count_of(len(plan.steps), "migration")
    if not left:
        return f"{now} After {moves}, every server finds a place if any one host fails."
    after = f" After {moves}, {len(left)} may not fail." if plan.steps else ""
    return f"{now}{after}{_never_evacuated(bad)}{_to_keep_free(plan, left)}"


def _never_evacuated(bad: Iterable[Loss]) -> str:
    refused = {server.uuid for loss in bad for server in loss.homeless if server.homeless}
    servers = count_of(len(refused), "server")
    return f" Nova never evacuates {servers}, whatever room is left." if refused else ""


def _to_keep_free(plan: Plan, left: Iterable[Loss]) -> str:
    """Return what has to be free in addition, for the servers that Nova evacuates."""
    lacking = {loss.hosts[0]: [s for s in loss.homeless if not s.homeless] for loss in left}
    worst = max(lacking, key=lambda root: len(lacking[root]), default="")
    if not lacking.get(worst):
        return ""
    amounts = amounts_text(part for server in lacking[worst] for part in server.amounts)
    return (
        f" Keep {amounts} more free on other hosts than {plan.hosts.names[worst]}, in pieces of"
        " these servers."
    )


def relieve_verdict(relief: Relief, plan: Plan) -> tuple[str, bool]:
    """Return the faults, the faults that the plan mends, and whether a fault stays."""
    if not relief.faults:
        return "Nothing to mend: no host is over its capacity, and each suits its servers.", False
    rest = over_capacity(plan.hosts, relief.question.mends)
    rest += [*(["servers that cannot leave"] if plan.undone else []), *relief.marked]
    moves = f"{count_of(len(plan.steps), 'migration')} "
    mends = f"leave{_s(plan)} {'; '.join(rest)} as it is" if rest else f"mend{_s(plan)} all"
    return ". ".join([*relief.faults, moves + mends]) + ".", bool(rest)


def unmoved(plan: Plan) -> list[tuple[Server, str]]:
    """Return the servers that stay although they should leave, with the reasons."""
    rings = {move.server.uuid for move in plan.stuck}
    no_order = "it waits for a place in a ring of servers; the ring needs a free place between"
    undone = [
        (server, no_order if server.uuid in rings else server.stays or _no_place(plan, server))
        for server in plan.undone
    ]
    known = {server.uuid for server, _ in undone}
    others = [move.server for move in plan.stuck if move.server.uuid not in known]
    return [*undone, *((server, no_order) for server in others)]


NOVA_CHOOSES = "openstack server migrate without --host lets nova-scheduler choose"
"""What moves a server for which a request cannot name the host."""


def _no_place(plan: Plan, server: Server) -> str:
    takers = plan.hosts.chosen_by_nova(server) if server.request.queries else []
    if not takers:
        return "no host has room for it"
    return (
        "a shared pool gives its disk, so that no request can name its host, and"
        f" {join_names(takers)} have room: {NOVA_CHOOSES}"
    )


def _s(plan: Plan) -> str:
    return "s" if len(plan.steps) == 1 else ""

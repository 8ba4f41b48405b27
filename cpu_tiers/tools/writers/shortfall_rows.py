"""The rows and messages that show which resources servers lack on a host."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cpu_tiers.accounting.holdings import Portion, ProviderName
from cpu_tiers.tools.frame.formatting import FormattedValue

if TYPE_CHECKING:
    from cpu_tiers.accounting.healing import HealPlan
    from cpu_tiers.accounting.port_bindings import PortPlan

COLUMNS = ("host", "consumer", "server", "holder", "flavor", "adds", "fits", "reason", "goes_to")
HEAL_COLUMNS = (*COLUMNS, "port", "providers")


def rows(plans: Iterable["HealPlan"]) -> list[tuple[object, ...]]:
    """Return a row for each consumer that lacks resources."""
    return [
        (
            plan.host,
            addition.shortfall.consumer,
            addition.shortfall.owner.server,
            addition.shortfall.owner.name,
            addition.shortfall.owner.flavor.name,
            FormattedValue(dict(addition.shortfall.resources), resource_lines),
            not addition.limits,
            "; ".join(
                limit if provider == plan.host else f"{provider}: {limit}"
                for provider, limit in addition.limits.items()
            ),
            going_to(addition.goes_to),
        )
        for plan in plans
        for addition in plan.additions
    ]


def going_to(resources: Portion[ProviderName]) -> FormattedValue:
    """Return the amounts by provider as a value of the column ``goes_to``."""
    return FormattedValue(resources.to_json(), _lines)


def _lines(resources: Portion[ProviderName]) -> str:
    return "\n".join(
        f"{provider}: {', '.join(f'{name} {amount}' for name, amount in amounts.items())}"
        for provider, amounts in resources.items()
    )


def heal_rows(plans: Iterable["HealPlan"]) -> list[tuple[object, ...]]:
    """Return the rows of :func:`rows` with empty values in the columns of ports."""
    return [(*row, "", FormattedValue([], "\n".join)) for row in rows(plans)]


def port_rows(plan: "PortPlan") -> list[tuple[object, ...]]:
    """Return a row for each port that lacks resources."""
    return [
        (
            plan.host,
            verdict.owner.server,
            verdict.owner.server,
            verdict.owner.name,
            verdict.owner.flavor.name,
            FormattedValue(verdict.adds, resource_lines),
            not verdict.shortfall.limit,
            verdict.shortfall.limit,
            going_to(verdict.goes_to),
            verdict.shortfall.port.id,
            FormattedValue(list(verdict.providers), "\n".join),
        )
        for verdict in plan.verdicts
    ]


def port_refusals(plan: "PortPlan") -> list[str]:
    """Return an error message for each port that cannot be healed on its host."""
    return [str(v.shortfall.fault(v.owner.name)) for v in plan.verdicts if v.shortfall.limit]


def refusals(plans: Iterable["HealPlan"]) -> list[str]:
    """Return an error message for each shortfall that does not fit on its host."""
    return [
        str(fault) for plan in plans for addition in plan.additions for fault in addition.faults
    ]


def resource_lines(resources: Mapping[str, int]) -> str:
    """Return amounts as a table shows them: a line for each resource class."""
    return "\n".join(f"{name} {amount}" for name, amount in resources.items())

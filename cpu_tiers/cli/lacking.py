"""What servers lack, as the commands that ask Nova for it show it."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.cli.columns import Cell
from cpu_tiers.cli.options import ReadsNovaConf
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.session import connect

if TYPE_CHECKING:
    from cpu_tiers.nova.commands.cloud import Cloud
    from cpu_tiers.nova.commands.heal_plan import Plan
    from cpu_tiers.nova.commands.port_plan import PortPlan

COLUMNS = ("host", "consumer", "server", "holder", "flavor", "adds", "fits", "reason", "goes_to")
HEAL_COLUMNS = (*COLUMNS, "port", "providers")


class NovaMissing(CpuTiersError):
    """A command needs Nova, and this Python has none."""


class AsksNova(ReadsNovaConf):
    """A command that asks Nova and Placement, both by nova.conf."""

    @contextmanager
    def clients(self) -> Iterator[tuple["Cloud", PlacementClient]]:
        """Yield Nova and Placement.

        :raises NovaMissing: Nova is not installed here.
        """
        placement = connect(self.nova_conf(), embedded=self.wants_embedded)
        with self.cloud() as cloud, placement as client:
            yield cloud, client

    @contextmanager
    def cloud(self) -> Iterator["Cloud"]:
        """Yield Nova alone; Placement may be down.

        :raises NovaMissing: Nova is not installed here.
        """
        if find_spec("nova") is None or find_spec("nova.conf") is None:  # our wheel has a nova/
            raise NovaMissing(
                f"cpu-tiers {self.cmd_name} needs Nova: run the cpu-tiers that is installed"
                " beside Nova"
            )
        with _quiet():
            with warnings.catch_warnings(record=True):  # eventlet puts its own filters first
                from cpu_tiers.nova.commands import (  # each imports more of Nova
                    heal_plan,  # noqa: F401
                    numa_plan,  # noqa: F401
                    port_plan,  # noqa: F401
                )
                from cpu_tiers.nova.commands.cloud import connect as connect_nova
            with connect_nova(self.config_files) as cloud:
                yield cloud


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what Nova tells the log of a service of what goes well."""
    loggers = [logging.getLogger(name) for name in ("nova", "oslo_service")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def rows(plans: Iterable["Plan"]) -> list[tuple[object, ...]]:
    """Return a line for each consumer that lacks something."""
    return [
        (
            plan.host,
            gain.demand.consumer,
            gain.demand.holder.server,
            gain.demand.holder.name,
            gain.demand.holder.flavor.name,
            Cell(dict(gain.demand.resources), resource_lines),
            not gain.limits,
            "; ".join(
                limit if provider == plan.host else f"{provider}: {limit}"
                for provider, limit in gain.limits.items()
            ),
            going_to(gain.goes_to),
        )
        for plan in plans
        for gain in plan.gains
    ]


def going_to(resources: Portion) -> Cell:
    """Return what goes to which provider, laid out."""
    return Cell({name: dict(amounts) for name, amounts in resources.items()}, _lines)


def _lines(resources: Portion) -> str:
    return "\n".join(
        f"{provider}: {', '.join(f'{name} {amount}' for name, amount in amounts.items())}"
        for provider, amounts in resources.items()
    )


def heal_rows(plans: Iterable["Plan"]) -> list[tuple[object, ...]]:
    """Return the same, with the columns that ports have."""
    return [(*row, "", Cell([], "\n".join)) for row in rows(plans)]


def port_rows(plan: "PortPlan") -> list[tuple[object, ...]]:
    """Return a line for each port that lacks something."""
    return [
        (
            plan.host,
            verdict.holder.server,
            verdict.holder.server,
            verdict.holder.name,
            verdict.holder.flavor.name,
            Cell(verdict.adds, resource_lines),
            not verdict.need.limit,
            verdict.need.limit,
            going_to(verdict.goes_to),
            verdict.need.port.id,
            Cell(list(verdict.providers), "\n".join),
        )
        for verdict in plan.verdicts
    ]


def port_refusals(plan: "PortPlan") -> list[str]:
    """Return what a person is told of every port that cannot be healed in place."""
    return [str(v.need.fault(v.holder.name)) for v in plan.verdicts if v.need.limit]


def refusals(plans: Iterable["Plan"]) -> list[str]:
    """Return what a person is told of everything that does not fit."""
    return [str(fault) for plan in plans for gain in plan.gains for fault in gain.faults]


def resource_lines(resources: Mapping[str, int]) -> str:
    """Return amounts as a table shows them."""
    return "\n".join(f"{name} {amount}" for name, amount in resources.items())

"""The base class of the commands that ask Nova."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.session import connect

if TYPE_CHECKING:
    from cpu_tiers.nova.commands.cloud import Cloud


class NovaMissing(CpuTiersError):
    """A command needs Nova, and this Python has none."""


class NovaCommand(NovaConfCommand):
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

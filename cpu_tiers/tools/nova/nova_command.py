"""The base class of the commands that query Nova."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.frame.app import hide
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.placement.client import PlacementClient

if TYPE_CHECKING:
    from cpu_tiers.tools.nova.cloud import Cloud


class NovaMissing(CpuTiersError):
    """The command needs Nova, but Nova is not installed beside cpu-tiers."""


class NovaCommand(NovaConfCommand):
    """A command that queries Nova and Placement, both with the options in nova.conf.

    The openstack client has a session for Placement. Nova's database comes from nova.conf.
    """

    needs_nova_conf = True
    snapshot_refusal = "the command also reads Nova's database"

    @contextmanager
    def clients(self) -> Iterator[tuple["Cloud", PlacementClient]]:
        """Yield a client of Nova and a client of Placement."""
        conf = self.nova_conf()
        placement = self.placement(
            conf, gives_back_oversold=conf.filter_scheduler.give_back_oversold_claims
        )
        with self.cloud() as cloud, placement as client:
            yield cloud, client

    @contextmanager
    def cloud(self) -> Iterator["Cloud"]:
        """Yield a client of Nova without asking Placement, which may be down."""
        program = "openstack" if self.is_in_openstack_client else "cpu-tiers"
        require_nova(f"{program} {self.cmd_name}")
        with quiet():
            # Warnings are recorded, not filtered: eventlet puts filters of its own before ours
            # when Nova imports it. All modules that a command may need are imported here, so
            # that a later import inside of a command prints no warning either.
            with warnings.catch_warnings(record=True):
                from cpu_tiers.nova.options import CONF
                from cpu_tiers.tools.nova import heal_plan, port_plan  # noqa: F401
                from cpu_tiers.tools.nova.cloud import connect as connect_nova
            hide(CONF)
            with connect_nova(self.config_files) as cloud:
                yield cloud


def require_nova(command: str) -> None:
    """Check that Nova can be imported.

    :raises NovaMissing: Nova is not installed beside cpu-tiers.
    """
    # The wheel of cpu-tiers has a folder nova/ too (for nova/virt/cpu_tiers), so without
    # Nova find_spec("nova") may find that namespace. Only Nova itself has nova.conf.
    if find_spec("nova") is None or find_spec("nova.conf") is None:
        raise NovaMissing(
            f"{command} needs Nova: install cpu-tiers in the Python that has"
            " Nova, and run the command there"
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Show only warnings and errors of Nova, because a command is not a service with a log.

    Of oslo.db, only errors are shown: each attempt to connect is a warning, and the last one is
    the error of the command.
    """
    shown = {"nova": logging.WARNING, "oslo_service": logging.WARNING, "oslo_db": logging.ERROR}
    with ExitStack() as restored:
        for name, level in shown.items():
            logger = logging.getLogger(name)
            restored.callback(logger.setLevel, logger.level)
            logger.setLevel(level)
        yield

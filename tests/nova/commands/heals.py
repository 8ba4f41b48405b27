"""Hosts that report shares by provider.yaml, and ``cpu-tiers allocation heal`` beside them."""

from collections.abc import Mapping

from tests.nova.command_line import CommandLine
from tests.nova.computes import Computes
from tests.nova.kinds import STARTS_TO_REPORT


class Heals(Computes):
    """Hosts that report by provider.yaml, with Nova's own driver."""

    kind = STARTS_TO_REPORT

    def setUp(self) -> None:
        super().setUp()
        self.commands = CommandLine(self)
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.provider_yaml("$COMPUTE_NODE", 640)

    def heal(self, *arguments: str, status: int = 0) -> dict[str, Mapping[str, int]]:
        rows = self.commands.run("allocation", "heal", *arguments, status=status).rows
        return {row["consumer"]: row["adds"] for row in rows}

"""What the page of a cloud shows beside Placement: what was found and measured on hosts."""

from dataclasses import dataclass
from typing import NamedTuple


class AuditFinding(NamedTuple):
    """A finding of ``host audit``, which may have fixed what it found."""

    kind: str
    where: str
    found: str
    do: str
    fixed: bool


class GuestFigures(NamedTuple):
    """What a guest is promised and was given, by the metrics of its host.

    :param floor: in CPUs.
    :param owed: the floor of the guest while it wanted to run.
    :param ran: what it ran, in the unit of ``owed``: CPUs, or seconds of CPU time.
    """

    uuid: str
    name: str
    tier: str
    floor: float | None = None
    owed: float | None = None
    ran: float | None = None

    @property
    def short(self) -> float | None:
        """Return the part of what was owed that the guest did not get; ``None`` if unknown."""
        if self.owed is None or self.ran is None or not self.owed > 0:
            return None
        return max(0.0, 1 - self.ran / self.owed)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedHost:
    """What an audit or a watch says of a host.

    :param host: the name of the host's root provider.
    """

    host: str
    findings: tuple[AuditFinding, ...] = ()
    guests: tuple[GuestFigures, ...] = ()

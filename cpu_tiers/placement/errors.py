"""What can go wrong between us and Placement.

Every error tells which request failed, and, where several writes belong
together (:mod:`~cpu_tiers.placement.sync`), what is written and what is not.
"""

from collections.abc import Sequence

from cpu_tiers.errors import CpuTiersError


class HowFar:
    """How far a series of writes came, filled by :meth:`report`.

    ``unconfirmed`` was sent, but no answer told its fate.
    """

    written: tuple[object, ...] = ()
    unconfirmed: tuple[object, ...] = ()
    unwritten: tuple[object, ...] = ()
    _reported = False

    def report(
        self,
        *,
        written: Sequence[object] = (),
        unconfirmed: Sequence[object] = (),
        unwritten: Sequence[object] = (),
    ) -> None:
        """Say how far it came; ``str()`` tells it from then on."""
        self.written = tuple(written)
        self.unconfirmed = tuple(unconfirmed)
        self.unwritten = tuple(unwritten)
        self._reported = True

    def came_after(self, written: Sequence[object]) -> None:
        """Say that these had been written before."""
        self.report(
            written=[*written, *self.written],
            unconfirmed=self.unconfirmed,
            unwritten=self.unwritten,
        )

    def _with_account(self, message: str) -> str:
        """Return the message, then a line for each change that was meant."""
        lines = [message]
        if self._reported and not self.written and not self.unconfirmed:
            lines.append("Nothing was written.")
        for label, changes in (
            ("written", self.written),
            ("perhaps written", self.unconfirmed),
            ("not written", self.unwritten),
        ):
            lines.extend(f"{label}: {change}" for change in changes)
        return "\n".join(lines)


class Interrupted(HowFar, KeyboardInterrupt):
    """Somebody pressed Ctrl-C in the middle of a series of writes."""

    def __str__(self) -> str:
        """Return how far it came."""
        return self._with_account("Interrupted; run it again to finish.")


class PlacementError(HowFar, CpuTiersError):
    """A request to Placement, or a plan made from its answers, failed.

    :param method, path: the request that failed; None where none was sent.
    :param status: the HTTP status of the answer; None without an answer.
    :param details: Placement's own words, one for each of its ``errors``.
    """

    def __init__(
        self,
        message: str,
        *,
        method: str | None = None,
        path: str | None = None,
        status: int | None = None,
        details: Sequence[str] = (),
    ) -> None:
        """Keep the parts; the message stands for itself."""
        super().__init__(message)
        self.method = method
        self.path = path
        self.status = status
        self.details = tuple(details)

    def __str__(self) -> str:
        """Return the message, and how far a series of writes came."""
        return self._with_account(super().__str__())


class PlacementMisconfigured(PlacementError):
    """``[placement]`` in nova.conf does not lead to a Placement."""


class PlacementUnavailable(PlacementError):
    """No answer: no connection, a closed one, silence, or 503 and 504."""


class PlacementAnswerInvalid(PlacementError):
    """The answer is no JSON, or JSON of another shape than Placement's."""


class PlacementVersionTooOld(PlacementError):
    """The server lacks microversion 1.36, or a newer one that a query needs.

    :param maximum: the newest that it has, such as ``1.30``.
    """

    def __init__(self, message: str, *, maximum: str) -> None:
        """Keep the newest microversion of the server."""
        super().__init__(message, method="GET", path="/", status=200)
        self.maximum = maximum


class PlacementRefused(PlacementError):
    """Placement, or something in front of it, answered 4xx or 5xx.

    :param resent: the request was sent before, without an answer: what was
        refused may be the second time, after the first was carried out.
    """

    resent = False


class NotAuthorised(PlacementRefused):
    """401 or 403: the credentials are wrong, or lack the role."""


class GenerationConflict(PlacementRefused):
    """Somebody else wrote between our read and our write, again and again."""


class InventoryInUse(PlacementRefused):
    """An inventory cannot go, servers hold allocations of it.

    :param provider: the name of the provider, where it is known.
    :param resource_classes: the classes in use, as far as Placement names them.
    """

    provider: str | None = None
    resource_classes: tuple[str, ...] = ()


class ProviderInUse(PlacementRefused):
    """A provider cannot go, servers hold allocations of it."""


class InsufficientCapacity(PlacementRefused):
    """An allocation does not fit: too much, or out of the inventory's units."""


class DuplicateName(PlacementRefused):
    """A resource provider of this name exists already."""


class UnknownNames(PlacementError):
    """Standard names that this Placement does not know, and cannot be taught.

    :param names: the resource classes and traits.
    """

    def __init__(self, message: str, *, names: Sequence[str]) -> None:
        """Keep the names."""
        super().__init__(message)
        self.names = tuple(names)


class ProviderMismatch(PlacementError):
    """A provider of ours exists elsewhere in Placement.

    :param provider: the name of the provider.
    """

    def __init__(self, message: str, *, provider: str) -> None:
        """Keep the provider's name."""
        super().__init__(message)
        self.provider = provider


class ProviderNotFound(ProviderMismatch):
    """The provider of a host is not in Placement, or not by this name."""


class ReportingCannotBeDisabled(PlacementError):
    """What was reported for a host may not vanish: CPU shares, or its NUMA nodes.

    :param provider: the name of a provider that has them.
    """

    def __init__(self, message: str, *, provider: str) -> None:
        """Keep the provider's name."""
        super().__init__(message)
        self.provider = provider


class ConsumerMismatch(PlacementError):
    """A consumer holds other allocations than the operation takes for granted.

    :param consumer: its uuid.
    """

    def __init__(self, message: str, *, consumer: str) -> None:
        """Keep the consumer's uuid."""
        super().__init__(message)
        self.consumer = consumer

"""The errors of requests to Placement, with the written and the unwritten changes of a series."""

from collections.abc import Sequence

from cpu_tiers.errors import CpuTiersError


class WriteReport:
    """A report of a series of writes, as a part of errors.

    :ivar written: the changes that Placement has confirmed.
    :ivar unconfirmed: the changes that were sent, but not answered. They may be written.
    :ivar unwritten: the changes that Placement refused or that were not sent.
    """

    written: tuple[object, ...] = ()
    unconfirmed: tuple[object, ...] = ()
    unwritten: tuple[object, ...] = ()
    _reported = False

    def report(
        self,
        written: Sequence[object] = (),
        unconfirmed: Sequence[object] = (),
        unwritten: Sequence[object] = (),
    ) -> None:
        """Store the changes, for ``str()`` of the error."""
        self.written, self.unconfirmed = tuple(written), tuple(unconfirmed)
        self.unwritten, self._reported = tuple(unwritten), True

    def prepend_written(self, written: Sequence[object]) -> None:
        """Add changes of an earlier, successful series before the written changes."""
        self.written, self._reported = (*written, *self.written), True

    def _with_changes(self, message: str) -> str:
        lines = [message]
        if self._reported and not self.written and not self.unconfirmed:
            lines.append("Nothing was written.")
        lines += [f"written: {change}" for change in self.written]
        lines += [f"perhaps written: {change}" for change in self.unconfirmed]
        lines += [f"not written: {change}" for change in self.unwritten]
        return "\n".join(lines)


class Interrupted(WriteReport, KeyboardInterrupt):
    """Ctrl-C was pressed, or SIGTERM arrived, during a series of writes."""

    def __str__(self) -> str:
        """Return a line for each change of the series."""
        return self._with_changes("Interrupted; run the command again to finish.")


class PlacementError(WriteReport, CpuTiersError):
    """A request to Placement failed, or its data do not allow the operation.

    :param method, path: the failed request, if there is one.
    :param status: the HTTP status of the response; ``None`` without a response.
    :param details: the ``detail`` of each of the ``errors`` in Placement's response.
    :param parts: the further attributes of the class.
    :ivar resent: the request was repeated. If Placement carried out an earlier attempt whose
        answer was lost, the error may be about the repetition only.
    """

    resent = False

    def __init__(
        self,
        message: str,
        *,
        method: str | None = None,
        path: str | None = None,
        status: int | None = None,
        details: Sequence[str] = (),
        **parts: object,
    ) -> None:
        super().__init__(message)
        self.method, self.path, self.status = method, path, status
        self.details = tuple(details)
        vars(self).update(parts)

    def __str__(self) -> str:
        """Return the message, and a line for each change of a series of writes."""
        return self._with_changes(super().__str__())


class PlacementMisconfigured(PlacementError):
    """The section ``[placement]`` of nova.conf does not lead to Placement."""


class PlacementUnavailable(PlacementError):
    """The connection failed or timed out, or the status is 429, 500, 502, 503 or 504.

    A repeated request may succeed.

    :ivar retry_after: the header ``Retry-After`` of the response.
    :ivar needs_read: the request was a write. Before it is sent again, a read must tell whether
        Placement has carried it out.
    """

    retry_after = ""
    needs_read = False


class PlacementAnswerInvalid(PlacementError):
    """The body of a response is not JSON, or its JSON lacks keys that Placement sends."""


class PlacementAnswerCutOff(PlacementAnswerInvalid):
    """The body of a response is not JSON, though its content type does not name another format.

    A repeated GET may succeed.
    """


class PlacementVersionTooOld(PlacementError):
    """The server lacks microversion 1.36, or a newer microversion that a query needs.

    :ivar maximum: the newest microversion of the server, such as ``1.30``.
    """

    maximum: str


class PlacementRefused(PlacementError):
    """Placement, or a proxy in front of Placement, answered 4xx or 5xx."""


class NotAuthorised(PlacementRefused):
    """The status is 401 or 403: the credentials are wrong, or the user lacks the role."""


class GenerationConflict(PlacementRefused):
    """Another client wrote the same provider or consumer between a read and a write."""


class OversoldClaim(GenerationConflict):
    """Placement allocated more than the capacity, and the allocations were given back.

    It is a conflict with another claim at the same time, and the operation can be repeated.
    """


class DataChanged(GenerationConflict):
    """Another client has changed the data that a write was computed from."""


class InventoryInUse(PlacementRefused):
    """An inventory cannot be removed, because servers hold allocations of it.

    :ivar provider: the name of the provider, if it is known.
    :ivar resource_classes: the classes in use, or all that were to be removed.
    """

    provider: str | None = None
    resource_classes: tuple[str, ...] = ()


class ProviderInUse(PlacementRefused):
    """A provider cannot be deleted, because servers hold allocations of it."""


class InsufficientCapacity(PlacementRefused):
    """An allocation exceeds the capacity of an inventory, or does not match its units."""


class DuplicateName(PlacementRefused):
    """Another resource provider has this name."""


class UnknownNames(PlacementError):
    """Placement lacks standard names, which cannot be created through its API."""

    names: Sequence[str]


class ProviderMismatch(PlacementError):
    """A provider exists in Placement with another uuid or under another parent."""

    provider: str


class ProviderNotFound(ProviderMismatch):
    """Placement has no provider with the name of the host."""


class ReportingCannotBeDisabled(PlacementError):
    """A host reports CPU shares or NUMA nodes, and must not stop to report them."""

    provider: str


class ConsumerMismatch(PlacementError):
    """A consumer has unexpected allocations."""

    consumer: str

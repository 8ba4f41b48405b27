"""An HTTP response of Placement, with methods that check and read its JSON.

A response may come from a proxy or from another service. So the presence and the
type of each key are checked, and the error for a wrong key names the request and
the key.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from cpu_tiers.model.document import MAX_BYTES, claims_json, load_json
from cpu_tiers.model.inventory import MAX_CAPACITY
from cpu_tiers.placement.errors import PlacementAnswerCutOff, PlacementAnswerInvalid

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)  # without slots, for the cached property
class PlacementResponse:
    """The response to the request ``method path``.

    :param retry_after: the header ``Retry-After``.
    """

    method: str
    path: str
    status: int
    content_type: str
    content: bytes
    retry_after: str = ""

    def body(self) -> Any:
        """Return the parsed JSON of the body.

        :raises PlacementAnswerInvalid: the body is not JSON, or is longer than ``MAX_BYTES``.
        """
        return self._body

    @cached_property
    def _body(self) -> Any:
        # As Python objects, a hostile body takes 20 times its length.
        if len(self.content) > MAX_BYTES:
            raise self.invalid(f"longer than {MAX_BYTES} bytes (does a proxy answer?)")
        try:
            return load_json(self.content)
        except (ValueError, RecursionError) as error:
            is_cut_off = claims_json(self.content_type)
            raise self.invalid(
                f"not valid JSON, content type {self.content_type or 'missing'}"
                " (is this the endpoint of Placement, or does a proxy answer?)",
                PlacementAnswerCutOff if is_cut_off else PlacementAnswerInvalid,
            ) from error

    def expect_status(self, *statuses: int) -> None:
        """Check the status against the statuses of Placement for this request.

        This is for responses without a body, where the body cannot show whether
        Placement or a proxy answered.

        :raises PlacementAnswerInvalid: the status is not in ``statuses``.
        """
        if self.status not in statuses:
            allowed = " or ".join(map(str, statuses))
            raise self.invalid(
                f"not from Placement, which answers HTTP {allowed} (does a proxy answer?)"
            )

    def read(self, container: object, key: str, kind: type[T]) -> T:
        """Return ``container[key]``, checked to be of the type ``kind``.

        :raises PlacementAnswerInvalid: the key is missing, or its value has another type.
        """
        if not isinstance(container, dict) or key not in container:
            raise self.invalid(f"JSON without {key!r}")
        value = container[key]
        if not _is(value, kind):
            raise self.invalid(f"JSON whose {key!r} is not of type {kind.__name__}")
        if kind is int and abs(value) > MAX_CAPACITY:
            raise self.invalid(f"JSON whose {key!r} is larger than any amount of Placement")
        return value  # type: ignore[no-any-return]  # _is() made sure

    def invalid(
        self, what: str, kind: type[PlacementAnswerInvalid] = PlacementAnswerInvalid
    ) -> PlacementAnswerInvalid:
        """Return the error for a response that Placement would not send.

        :param what: a description of the response; it ends the message "the answer is …".
        """
        return kind(
            f"{self.method} {self.path}: the answer (HTTP {self.status}) is {what}",
            method=self.method,
            path=self.path,
            status=self.status,
        )


def _is(value: object, kind: type[Any]) -> bool:
    if isinstance(value, bool):
        return kind is bool  # In Python bool is a subclass of int; in JSON true is no number.
    return isinstance(value, int | float if kind is float else kind)

"""One HTTP answer of Placement, and how its JSON is read.

What comes over the wire may come from a proxy, or from another service: every
key is checked for its type, and a wrong one names the request and the key.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from cpu_tiers.placement.errors import PlacementAnswerInvalid

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResponse:
    """What came back for ``method path``."""

    method: str
    path: str
    status: int
    content_type: str
    content: bytes

    def body(self) -> Any:
        """Return the JSON of the body.

        :raises PlacementAnswerInvalid: it is no JSON.
        """
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise self.invalid(
                f"{self.content_type or 'something without a content type'} and no JSON"
                " (does the endpoint lead to Placement, or does a proxy answer for it?)"
            ) from error

    def must_be(self, *statuses: int) -> None:
        """Make sure that it was Placement that answered, where no body can tell.

        :raises PlacementAnswerInvalid: the status is none of ``statuses``.
        """
        if self.status not in statuses:
            allowed = " or ".join(map(str, statuses))
            raise self.invalid(
                f"not Placement's, which would be HTTP {allowed} (does a proxy answer for it?)"
            )

    def read(self, container: object, key: str, kind: type[T]) -> T:
        """Return ``container[key]``, which must be of this ``kind``.

        :raises PlacementAnswerInvalid: it is absent, or of another type.
        """
        if not isinstance(container, dict) or key not in container:
            raise self.invalid(f"JSON without {key!r}")
        value = container[key]
        if not _is(value, kind):
            raise self.invalid(f"JSON whose {key!r} is no {kind.__name__}")
        return value  # type: ignore[no-any-return]  # _is() made sure

    def invalid(self, what: str) -> PlacementAnswerInvalid:
        """Return the error that says ``what`` the answer is instead."""
        return PlacementAnswerInvalid(
            f"{self.method} {self.path}: the answer (HTTP {self.status}) is {what}",
            method=self.method,
            path=self.path,
            status=self.status,
        )


def _is(value: object, kind: type[Any]) -> bool:
    if isinstance(value, bool):
        return kind is bool  # to Python it is an int, to Placement it is not
    return isinstance(value, int | float if kind is float else kind)

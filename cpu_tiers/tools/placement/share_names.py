"""The name of VCPU_SHARES in the answers of Placement, and in what is written to Placement.

Everything above the requests knows one name, :data:`cpu_tiers.model.names.VCPU_SHARES`. A provider
keeps the other name of VCPU_SHARES, if it has it, until ``reshape rename``
(:mod:`~cpu_tiers.tools.placement.share_rename`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cpu_tiers.model.document import load_json
from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES, with_shares_named

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OTHER, _OURS = f'"{OTHER_SHARES}"'.encode(), f'"{VCPU_SHARES}"'.encode()


class ShareNames:
    """The names that a client of Placement has read.

    :ivar others: the uuids of the providers that have the other name.
    """

    def __init__(self) -> None:
        self.others: set[str] = set()

    def read(self, path: str, content: bytes) -> bytes:
        """Return the body of an answer with our name, and remember who has the other name."""
        if path.startswith("/resource_classes") or not (self.others or _OTHER in content):
            return content
        try:
            body = load_json(content)
        except (ValueError, RecursionError):
            return content  # whoever reads the body raises the error
        self.others.discard(_provider_of(path))  # its inventories may be without shares by now
        for provider, name in _names(body, _provider_of(path)):
            if provider:
                (self.others.add if name == OTHER_SHARES else self.others.discard)(provider)
        return content.replace(_OTHER, _OURS)

    def written(self, path: str, body: Any) -> Any:
        """Return a body to write, in which each provider has the name that it had when read."""
        return self._written(body, _provider_of(path)) if self.others else body

    def _written(self, body: Any, provider: str) -> Any:
        if not isinstance(body, Mapping):
            return body
        if provider in self.others and VCPU_SHARES in body:
            return with_shares_named(body, OTHER_SHARES)
        return {key: self._written(value, _inner(key, provider)) for key, value in body.items()}


def _names(body: Any, provider: str) -> Iterator[tuple[str, str]]:
    """Yield the names of VCPU_SHARES in a body, each with the uuid of its provider."""
    if isinstance(body, list):
        for item in body:
            yield from _names(item, provider)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if key in (VCPU_SHARES, OTHER_SHARES):
                yield provider, key
            yield from _names(value, _inner(key, provider))


def _inner(key: str, provider: str) -> str:
    """Return the provider of what is under a key: the innermost uuid, also below a consumer."""
    return key if re.fullmatch(_UUID, key) else provider


def _provider_of(path: str) -> str:
    found = re.match(rf"/resource_providers/({_UUID})/inventories", path)
    return found[1] if found else ""

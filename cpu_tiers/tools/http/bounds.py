"""Bounds of what a service answers over HTTP: the bytes, the time of the whole answer, the depth.

requests and urllib3 bound the time between two bytes, and neither the whole answer nor the number
of its lines ``100 Continue``. The bound of the time needs no thread: it is checked where a
response reads its socket. urllib3 documents ``pool_classes_by_scheme`` and ``ConnectionCls`` for
classes of one's own; ``response_class`` is that of ``http.client``.
"""

import io
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpu_tiers.model.document import MAX_BYTES

if TYPE_CHECKING:
    import requests
    from urllib3 import HTTPConnectionPool, PoolManager

_PIECE = 2**16


class AnswerRefused(OSError):
    """An answer exceeds a bound. A repeated request would get the same answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of an answer.

    :param length: the bytes, on the wire and decompressed.
    :param seconds: from the last byte of the request to the last byte of the answer. The time-out
        of the session still bounds the time to connect, and each wait for a byte.
    """

    length: int = MAX_BYTES
    seconds: float = 300.0

    def check_length(self, length: int) -> None:
        """Check a number of bytes.

        :raises AnswerRefused: there are too many.
        """
        if length > self.length:
            raise AnswerRefused(f"the answer has more than {self.length:,} bytes")


class _BoundedReader(io.RawIOBase):
    """Reads an answer from its socket, from the status line on."""

    def __init__(self, raw: Any, sock: Any, bounds: Bounds) -> None:
        self._raw, self._sock, self._bounds = raw, sock, bounds
        self._end = time.monotonic() + bounds.seconds
        self._timeout: float | None = sock.gettimeout()
        self._length = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        left = self._end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(left if self._timeout is None else min(left, self._timeout))
            count = self._raw.readinto(buffer)
        except TimeoutError as error:
            if time.monotonic() < self._end:
                raise
            said = f"the answer takes more than {self._bounds.seconds:g} seconds"
            raise AnswerRefused(said) from error
        self._length += count or 0
        self._bounds.check_length(self._length)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def pool_classes(bounds: Bounds) -> "Mapping[str, type[HTTPConnectionPool]]":
    """Return the pools whose responses have bounds, by the scheme of the URL."""
    from http.client import HTTPResponse

    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    class Response(HTTPResponse):
        def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(sock, *args, **kwargs)
            if isinstance(self.fp, io.BufferedReader):  # an answer in memory has ended already
                reader = _BoundedReader(self.fp.detach(), sock, bounds)
                self.fp = io.BufferedReader(reader)

    def bounded(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
        # Of the class that the pool has now: a program may have exchanged the class of urllib3.
        connection = type("Bounded", (pool.ConnectionCls,), {"response_class": Response})
        return type(pool.__name__, (pool,), {"ConnectionCls": connection})

    return {"http": bounded(HTTPConnectionPool), "https": bounded(HTTPSConnectionPool)}


def bound(session: "requests.Session", bounds: Bounds | None = None) -> None:
    """Give all answers to requests of a session bounds; call it again after a ``mount``."""
    bounds = bounds or Bounds()
    for adapter in session.adapters.values():
        manager: PoolManager | None = getattr(adapter, "poolmanager", None)
        if manager is not None:
            manager.clear()  # pools that are open have no bounds
            manager.pool_classes_by_scheme = dict(pool_classes(bounds))

    session.headers["Accept-Encoding"] = "gzip"

    def read(response: "requests.Response", *_: Any, **__: Any) -> None:
        # requests calls hooks before it reads the body. Without the header, urllib3 leaves the
        # body as it is: before release 2.6, urllib3 decompresses a piece without a bound.
        encoding = response.raw.headers.pop("Content-Encoding", "")
        pieces, length = [], 0
        try:
            for piece in _decompressed(response.iter_content(_PIECE), encoding.strip().lower()):
                length += len(piece)
                pieces.append(piece)
                bounds.check_length(length)
        except AnswerRefused:
            response.close()
            raise
        response._content = b"".join(pieces)

    hooks = session.hooks["response"]
    if all(getattr(hook, "__qualname__", "") != read.__qualname__ for hook in hooks):
        hooks.append(read)


def _decompressed(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a body in pieces of a bounded size.

    :raises AnswerRefused: the body has another encoding than it says, or an unknown encoding.
    """
    if encoding in ("", "identity"):
        yield from pieces
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise AnswerRefused(f"the answer has the encoding {encoding[:20]!r}, not gzip")
    decoder = _decoder()
    try:
        for piece in pieces:
            while piece:
                yield decoder.decompress(piece, _PIECE)
                piece = decoder.unconsumed_tail
                if decoder.eof and (piece := decoder.unused_data):  # another member of gzip
                    decoder = _decoder()
    except zlib.error as error:
        raise AnswerRefused(f"the answer is not {encoding}") from error


def _decoder() -> Any:
    """Return a decoder for gzip and zlib, by the header of the body."""
    return zlib.decompressobj(32 + zlib.MAX_WBITS)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; urllib3 keeps a cause only as an argument of the error."""
    waiting, known = [error], set[int]()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) not in known:
            known.add(id(cause))
            yield cause
            parts = (cause.__cause__, cause.__context__, *cause.args)
            waiting += [
                part
                for part in (*parts, getattr(cause, "reason", None))
                if isinstance(part, BaseException)
            ]


def bound_fault(error: BaseException) -> str | None:
    """Return which bound an answer exceeds, and what to do; ``None`` for another error."""
    for cause in causes(error):
        if isinstance(cause, AnswerRefused | RecursionError):
            text = str(cause)
            if isinstance(cause, RecursionError):
                text = "the answer has JSON that is nested too deep"
            return f"{text}: does another program answer at this address, or a proxy?"
    return None

"""Keeps the secrets of the configuration out of everything that a command prints.

A service may repeat a request in its error, with the password in it, and ``--debug`` prints all
answers. So the streams of the command replace each secret, wherever the text comes from.
"""

import html
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from urllib.parse import quote, unquote, urlsplit

from oslo_config import cfg

MASK = "***"

_SHORTEST = 3
"""A shorter secret would be found in all words."""

_CONFS: list[cfg.ConfigOpts] = []


def hide(conf: cfg.ConfigOpts) -> None:
    """Keep the values of the options that their owners call secret out of all output.

    Of a URL, such as ``[database] connection``, the secret is the password. Options that are
    registered later count as well: the type of the authentication decides about its options.
    """
    if conf not in _CONFS:
        _CONFS.append(conf)


def _secrets(conf: cfg.ConfigOpts) -> Iterator[str]:
    for info, group in conf._all_opt_infos():  # oslo.config has no public way to list options
        option = info["opt"]
        if option.secret:
            try:
                section = conf if group is None else conf[group.name]
                yield from _secrets_in(section[option.dest])
            except (cfg.Error, ValueError):  # the files are not read yet, or the value is wrong
                continue


def _secrets_in(value: object) -> Iterable[str]:
    """Yield the secret of a value in all forms in which a text may have the secret."""
    secret, user = str(value or ""), None
    if "://" in secret:
        url = urlsplit(secret)
        secret, user = unquote(url.password or ""), url.username
    if len(secret) < _SHORTEST or secret == user:  # guest:guest is public
        return
    yield from (secret, quote(secret, safe=""), quote(secret), html.escape(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield repr(secret)[1:-1]


def masked(text: str) -> str:
    """Return a text without the secrets. A secret in the middle of a longer word is kept."""
    secrets = {secret for conf in _CONFS for secret in _secrets(conf)}
    for secret in sorted(secrets, key=len, reverse=True):
        if secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


class MaskingStream:
    """A text stream without secrets; everything else is left to the stream below."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without the secrets."""
        self._stream.write(masked(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts without the secrets."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream below."""
        return getattr(self._stream, name)


@contextmanager
def masked_output() -> Iterator[None]:
    """Replace secrets in what is printed to standard output and standard error."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(MaskingStream, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        _CONFS.clear()

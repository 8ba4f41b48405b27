"""Redirects: a session follows them only within the host, the port and the scheme of the request.

keystoneauth1 follows a redirect to any address, and sends the token of the administrator, or in a
request to Keystone the password, along.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

import requests
from requests.exceptions import InvalidURL


class RedirectRefused(InvalidURL):
    """A response redirects to another host, another port, or from HTTPS to HTTP."""


def refuse_other_hosts(session: requests.Session) -> None:
    """Let all requests of a session raise :class:`RedirectRefused` instead of going elsewhere."""

    def check(response: requests.Response, *_: Any, **__: Any) -> None:
        url, location = response.url, response.headers.get("Location")
        if not location or not 300 <= response.status_code < 400:
            return
        is_there = False
        with suppress(ValueError):  # the location is no URL
            target = urljoin(url, location)
            # requests' own check of a redirect
            is_there = not session.should_strip_auth(url, target)  # type: ignore[no-untyped-call]
        if not is_there:
            response.close()  # requests would do so later, and later does not come
            raise RedirectRefused(
                f"{url} redirects to {location[:200]!a}, which is another host, port or scheme;"
                " the redirect is not followed, because the request has credentials"
            )

    session.hooks["response"].append(check)

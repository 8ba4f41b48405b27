"""Redirects: only within the host, the port and the scheme that a request was sent to.

keystoneauth1 follows a redirect to any address, and sends the token of the administrator, or in a
request to Keystone the password, along. A token that another host gets can do whatever the
administrator can do.
"""

from typing import Any
from urllib.parse import urljoin

import requests
from requests.exceptions import InvalidURL


class RedirectRefused(InvalidURL):
    """A response redirects to another host, another port, or from HTTPS to HTTP."""


def refuse_other_hosts(session: requests.Session) -> None:
    """Let all requests of a session raise :class:`RedirectRefused` instead of going elsewhere."""

    def check(response: requests.Response, *_: Any, **__: Any) -> None:
        location = response.headers.get("Location")
        if location and 300 <= response.status_code < 400:
            _check(session, response, location)

    session.hooks["response"].append(check)


def _check(session: requests.Session, response: requests.Response, location: str) -> None:
    try:
        target = urljoin(response.url, location)
        elsewhere = session.should_strip_auth(  # type: ignore[no-untyped-call]  # requests' own
            response.url, target
        )
    except ValueError:  # the location is no URL
        elsewhere = True
    if elsewhere:
        response.close()  # requests would do so later, and later does not come
        raise RedirectRefused(
            f"{response.url} redirects to {location[:200]!a}, which is another host, port or"
            " scheme; the redirect is not followed, because the request has credentials"
        )

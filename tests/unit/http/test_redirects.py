"""Where a redirect may lead, with requests' own session and an adapter that redirects."""

import io

import pytest
import requests
from requests.adapters import BaseAdapter

from cpu_tiers.tools.http.redirects import RedirectRefused, refuse_other_hosts


class Redirecting(BaseAdapter):
    """Redirects from ``/old``, and answers everywhere else."""

    def __init__(self, location: str, status: int) -> None:
        super().__init__()
        self.location, self.status = location, status
        self.tokens: list[str | None] = []

    def send(
        self, request: requests.PreparedRequest, *_: object, **__: object
    ) -> requests.Response:
        self.tokens.append(request.headers.get("X-Auth-Token"))
        response = requests.Response()
        response.raw = io.BytesIO()
        response.url, response.request = str(request.url), request
        response.status_code = 200
        if str(request.url).endswith("/old"):
            response.status_code = self.status
            response.headers["Location"] = self.location
        return response

    def close(self) -> None:
        """Do nothing; there is no connection."""


def follow(
    location: str, *, start: str = "https://cloud:8778/old", status: int = 302
) -> Redirecting:
    adapter, session = Redirecting(location, status), requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    refuse_other_hosts(session)
    session.get(start, headers={"X-Auth-Token": "admin"})
    return adapter


@pytest.mark.parametrize(
    "location",
    ["/new", "new", "//cloud:8778/new", "https://cloud:8778/new", "https://CLOUD:8778/new"],
)
def test_within_the_host(location: str) -> None:
    assert follow(location).tokens == ["admin", "admin"]


def test_from_http_to_https_of_the_same_host() -> None:
    assert follow("https://cloud/new", start="http://cloud/old").tokens == ["admin", "admin"]


@pytest.mark.parametrize("status", [301, 302, 303, 305, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        pytest.param("https://cloud.evil.org:8778/new", id="another host"),
        pytest.param("https://cloud:8779/new", id="another port"),
        pytest.param("http://cloud:8778/new", id="from HTTPS to HTTP"),
        pytest.param("https://cloud:8778@evil.org/new", id="a host that looks like a port"),
        pytest.param("https://[cloud/new", id="no URL"),
    ],
)
def test_elsewhere(location: str, status: int) -> None:
    with pytest.raises(RedirectRefused, match="the redirect is not followed"):
        follow(location, status=status)

"""A cloud whose answers stand in a table."""

import json
from collections.abc import Mapping
from typing import Any

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import from_response
from keystoneauth1.session import Session

from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import Services


class Catalog(Session):
    """Stands for a session of keystoneauth1; a path that the table lacks is answered with 404.

    :param newest: a request of a later microversion is answered with 406.
    """

    def __init__(self, answers: Mapping[tuple[str, str], object], newest: str = "2.999") -> None:
        super().__init__()
        self.answers, self._newest = answers, newest
        self.paths: list[str] = []
        self.microversions: list[object] = []

    # The adapter gives all other arguments by name.
    def request(  # type: ignore[override]
        self, url: str, method: str, **options: Any
    ) -> requests.Response:
        assert method == "GET"
        self.paths.append(url)
        self.microversions.append(options.get("microversion"))
        key = (options["endpoint_filter"]["service_type"], url)
        response = requests.Response()
        response.status_code = 200 if key in self.answers else 404
        asked = options.get("microversion")
        if asked and int(asked.partition(".")[2]) > int(self._newest.partition(".")[2]):
            response.status_code = 406
        response._content = json.dumps(self.answers.get(key, {})).encode()
        if response.status_code != 200:
            raise from_response(response, method, url)
        return response

    def services(self) -> Services:
        """Return the services of the cloud."""
        return Services(
            adapter=lambda kind: Adapter(self, service_type=kind),
            retry_policy=RetryPolicy(sleep=lambda _: None),
        )

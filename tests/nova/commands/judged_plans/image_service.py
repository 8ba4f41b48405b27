"""Nova's fake Glance over HTTP, for commands that read the images of a cloud."""

from __future__ import annotations

import json
from typing import Any

import requests
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from requests.adapters import BaseAdapter

ENDPOINT = "http://images.test"


class _Images(BaseAdapter):
    """Answers the list of images; Glance has the properties beside the other keys of an image."""

    def __init__(self, glance: Any) -> None:
        super().__init__()
        self._glance = glance

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        images = [
            {"id": image["id"], "name": image["name"], **image["properties"]}
            for image in self._glance.images.values()
        ]
        answer = requests.Response()
        answer.request, answer.url, answer.status_code = request, str(request.url), 200
        answer.headers["Content-Type"] = "application/json"
        answer._content = json.dumps({"images": images}).encode()
        return answer

    def close(self) -> None:
        """Close nothing."""


def image_service(glance: Any) -> Session:
    """Return a session for which Nova's fake Glance is a service."""
    session = requests.Session()
    session.mount(ENDPOINT, _Images(glance))
    return Session(auth=Token(ENDPOINT, "token"), session=session)

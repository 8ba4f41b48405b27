"""Answers to Nova's HTTP requests: a Glance with one image, a Neutron without ports."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IMAGE = "9f1a6a2e-3f0b-4a3d-9d0a-1c3c5d6b7e8f"
DISK = bytes(2**20)
"""Nothing to boot from: the firmware of a guest looks for it as long as it runs."""

_RECORD = {
    "id": IMAGE,
    "name": "empty",
    "status": "active",
    "visibility": "public",
    "owner": "admin",
    "container_format": "bare",
    "disk_format": "raw",
    "size": len(DISK),
    "min_disk": 0,
    "min_ram": 0,
    "protected": False,
    "tags": [],
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "file": f"/v2/images/{IMAGE}/file",
}
_GLANCE: dict[str, Any] = {
    "/v2/schemas/image": {"name": "image", "properties": {key: {} for key in _RECORD}},
    f"/v2/images/{IMAGE}": _RECORD,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        collection = path.removeprefix("/v2.0/").removesuffix(".json").replace("-", "_")
        if path.endswith("/file"):
            self.send(DISK, "application/octet-stream")
        elif document := _GLANCE.get(
            path, {collection: []} if path.startswith("/v2.0/") else None
        ):
            self.send(json.dumps(document).encode(), "application/json")
        else:
            self.send_error(404)

    def send(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log of requests to the output of the test."""


@contextmanager
def stand_ins() -> Iterator[str]:
    """Serve both stand-ins; yield their URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()

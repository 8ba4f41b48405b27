"""Answers to Nova's requests: a Glance with an image, a Neutron without ports, and limits."""

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
LIMITS = {
    "servers": 100,
    "class:VCPU": 100,
    "class:PCPU": 100,
    "class:MEMORY_MB": 100_000,
    "class:DISK_GB": 1000,
    "class:CUSTOM_VCPU_SHARES": 5000,
    "server_metadata_items": 100,
    "server_injected_files": 100,
    "server_injected_file_content_bytes": 100,
    "server_injected_file_path_bytes": 100,
}
"""The registered limits of Keystone."""

_SELF = {"rel": "self", "href": "/v3/"}
_KEYSTONE: dict[str, Any] = {
    "/v3": {"version": {"id": "v3.14", "status": "stable", "links": [_SELF]}},
    "/v3/endpoints/nova": {"endpoint": {"id": "nova", "service_id": "nova"}},
    "/v3/limits": {"limits": []},
    "/v3/limits/model": {"model": {"name": "flat"}},
    "/v3/registered_limits": {
        "registered_limits": [
            {"id": name, "service_id": "nova", "resource_name": name, "default_limit": limit}
            for name, limit in LIMITS.items()
        ]
    },
}
_DOCUMENTS = {**_GLANCE, **_KEYSTONE}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        collection = path.removeprefix("/v2.0/").removesuffix(".json").replace("-", "_")
        if path.endswith("/file"):
            self.send(DISK, "application/octet-stream")
        elif document := _DOCUMENTS.get(
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

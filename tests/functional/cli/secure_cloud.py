"""A cloud behind TLS: a real Placement, and the answers of the other services, in one server.

The certificate of the server is of a private authority. The server looks at the certificate of a
client, if the client has one.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import trustme

from cpu_tiers.tools.placement.embedded import placement_app
from tests.functional.conftest import Front, Handler
from tests.unit.cli.named_objects import IMAGE, SERVER

SERVICES = ("compute", "image", "network", "placement")
OTHERS: dict[str, object] = {
    "/compute/servers/detail": {"servers": [SERVER]},
    "/image/v2/images/i": IMAGE,
    "/network/v2.0/ports": {"ports": []},
}
CLIENT = "nova-scheduler.example.org"


class SecureHandler(Handler):
    """Answers for all services; ``/placement`` is the real one."""

    def ask_placement(self, body: bytes) -> tuple[int, str, bytes]:
        path = urlsplit(self.path).path
        names = self.connection.getpeercert() or {}
        service = path.split("/")[1]
        cast(SecureFront, self.server).clients.add((service, str(names.get("subjectAltName"))))
        if service == "placement":
            self.path = self.path.removeprefix("/placement") or "/"
            return super().ask_placement(body)
        answer = self.keystone(path) or OTHERS.get(path)
        status = 404 if answer is None else 201 if self.command == "POST" else 200
        return status, "application/json", json.dumps(answer or {}).encode()

    def keystone(self, path: str) -> object:
        """Return a version of the API of Keystone, or a token with the catalog."""
        url = f"https://{self.headers['Host']}"
        if path.rstrip("/") == "/v3":
            link = {"rel": "self", "href": f"{url}/v3/"}
            return {"version": {"id": "v3.14", "status": "stable", "links": [link]}}
        if path != "/v3/auth/tokens":
            return None
        where = {"interface": "public", "region": "one", "region_id": "one"}
        catalog = [
            {
                "id": name,
                "type": name,
                "name": name,
                "endpoints": [{"id": name, "url": f"{url}/{name}", **where}],
            }
            for name in SERVICES
        ]
        expiry = {"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z"}
        user = {"id": "u", "name": "u", "domain": {"id": "default", "name": "Default"}}
        return {"token": {"methods": ["password"], "user": user, "catalog": catalog, **expiry}}

    def end_headers(self) -> None:
        """Send the token that Placement takes for that of an administrator."""
        self.send_header("X-Subject-Token", "admin")
        super().end_headers()


class SecureFront(Front):
    """Serves HTTPS.

    :param is_strict: refuse clients without a certificate of the authority.
    :ivar clients: the services that were asked, with the names in the certificate of the client.
    """

    def __init__(self, app: Any, authority: trustme.CA, *, is_strict: bool) -> None:
        super().__init__(app, [], [])
        self.RequestHandlerClass = SecureHandler
        self.clients = set[tuple[str, str]]()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED if is_strict else ssl.CERT_OPTIONAL
        # In TLS 1.3 a client hears of a missing certificate after it has sent its request.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        # The handshake is for the thread of the connection: one that fails would end the server.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep the test output clean: clients refuse the certificate."""


@contextmanager
def secure_cloud(authority: trustme.CA, *, is_strict: bool = False) -> Iterator[SecureFront]:
    """Serve the cloud."""
    with placement_app() as app, SecureFront(app, authority, is_strict=is_strict) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def write_authority(authority: trustme.CA, path: Path) -> str:
    """Write the certificate of an authority; return the path."""
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def write_client(authority: trustme.CA, folder: Path) -> tuple[str, str]:
    """Write the certificate of a client and its key; return the paths."""
    client = authority.issue_cert(CLIENT)
    certificate, key = folder / "client.pem", folder / "client.key"
    client.cert_chain_pems[0].write_to_path(str(certificate))
    client.private_key_pem.write_to_path(str(key))
    return str(certificate), str(key)

"""Keystone and nova-api on loopback, for the openstack client: migrations that fail in each way.

Only what the services say is planned; the client, its requests and the shell are real.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MOVING_SECONDS = 1.0
FLAVOR = {"original_name": "small", "vcpus": 1, "ram": 64, "disk": 0, "extra_specs": {}}


@dataclass
class Server:
    """A server, and what its migration comes to.

    :ivar kind: ``ok``, ``fails`` (active on its source), ``errs``, ``never ends``, ``is refused``,
        ``is lost`` (no answer after the request), ``goes elsewhere``, ``is not confirmed``.
    """

    kind: str = "ok"
    state: str = "ACTIVE"
    host: str = "cn0"
    target: str = ""
    since: float = 0.0
    is_cold: bool = False

    def seen(self) -> tuple[str, str | None, str]:
        """Return status, task and host, as Nova would show them now."""
        if not self.since:
            return self.state, None, self.host
        if time.monotonic() < self.since + MOVING_SECONDS or self.kind == "never ends":
            return ("RESIZE", "resize_prep", self.host) if self.is_cold else self._moving()
        ends = {"fails": (self.state, self.host), "errs": ("ERROR", self.host)}
        ends["goes elsewhere"] = (self.state, "cn9")
        state, host = ends.get(self.kind, (self.state, self.target))
        if self.is_cold and host == self.target:
            state = "VERIFY_RESIZE"
        return state, None, host

    def _moving(self) -> tuple[str, str, str]:
        return "MIGRATING", "migrating", self.host


@dataclass
class Nova:
    """The servers by uuid, and what was asked of Nova.

    :ivar acts: the server and the action of each request to do something, in order.
    :ivar together: no migration ends before so many have begun.
    """

    servers: Mapping[str, Server]
    url: str = ""
    acts: list[tuple[str, str]] = field(default_factory=list)
    together: int = 0

    def act(self, uuid: str, body: Mapping[str, Any]) -> int:
        server, (action,) = self.servers[uuid], body
        self.acts.append((uuid, action))
        if server.kind == "is refused":
            return 409
        if action == "confirmResize":
            if server.kind != "is not confirmed":
                server.host, server.since, server.is_cold = server.target, 0.0, False
            return 204
        server.target, server.since = body[action]["host"], time.monotonic()
        server.is_cold = action == "migrate"
        return 202

    def answer(self, path: str) -> Any:
        """Return the document of a path; a number for an error."""
        if path in ("/", "/v3", "/v3/"):
            version = {"id": "v3.14", "status": "stable", "links": self._links("/v3/")}
            return {"version": version} if "v3" in path else {"versions": {"values": [version]}}
        if path.rstrip("/") in ("/compute", "/compute/v2.1"):
            of = {"id": "v2.1", "status": "CURRENT", "version": "2.104", "min_version": "2.1"}
            version = {**of, "links": self._links("/compute/v2.1/")}
            return {"version": version} if "v2.1" in path else {"versions": [version]}
        if path.endswith("/os-services"):
            return {"services": [{"id": "s", "host": "cn0", "binary": "nova-compute"}]}
        found = re.fullmatch(r"/compute/v2.1/servers/([^/]+)(/os-instance-actions(/.+)?)?", path)
        if not found or found[1] not in self.servers:
            return 404
        server = self.servers[found[1]]
        if server.kind == "is lost" and server.since:
            return 503
        return self._actions(found[3]) if found[2] else self._server(found[1], server)

    def _actions(self, request: str | None) -> Any:
        action = {"request_id": "req-1", "action": "live-migration", "message": "Error"}
        event = {"event": "conductor_live_migrate_instance", "details": "No valid host was found"}
        if request:
            return {"instanceAction": {**action, "events": [event]}}
        return {"instanceActions": [action]}

    def _server(self, uuid: str, server: Server) -> Any:
        status, task, host = server.seen()
        fault = (
            {"fault": {"code": 500, "message": "the disk is full"}} if status == "ERROR" else {}
        )
        attributes = {"OS-EXT-STS:task_state": task, "OS-EXT-SRV-ATTR:host": host}
        body = {"id": uuid, "name": "a name; reboot", "status": status, "flavor": FLAVOR}
        return {"server": {**body, **attributes, "image": "", "links": [], **fault}}

    def token(self) -> Any:
        ends = [
            {"id": each, "interface": each, "region": "R", "region_id": "R"}
            for each in ("public", "internal", "admin")
        ]
        url = {"url": f"{self.url}/compute/v2.1"}
        compute = {"type": "compute", "name": "nova", "endpoints": [e | url for e in ends]}
        named = {"id": "i", "name": "n", "domain": {"id": "default", "name": "Default"}}
        times = {"issued_at": "2020-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z"}
        return {
            "token": {
                **times,
                "methods": ["password"],
                "user": named,
                "project": named,
                "roles": [{"id": "r", "name": "admin"}],
                "catalog": [{"id": "c", **compute}],
            }
        }

    def _links(self, path: str) -> Any:
        return [{"rel": "self", "href": self.url + path}]


def _handler(nova: Nova) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            answer = nova.answer(self.path.partition("?")[0])
            self._say(answer if type(answer) is int else 200, answer)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/auth/tokens"):
                return self._say(201, nova.token())
            return self._say(nova.act(self.path.split("/")[-2], body), None)

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            nova.acts.append(("cn0", str(body.get("status"))))
            self._say(200, {"service": {"id": "s", **body}})

        def _say(self, code: int, body: object) -> None:
            text = b"" if body is None and code < 300 else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("X-Subject-Token", "t")
            self.send_header("Content-Type", "application/json")
            if code != 204:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    return Handler


@contextmanager
def nova_with(servers: Mapping[str, Server]) -> Iterator[Nova]:
    """Serve a cloud with servers while the context lasts."""
    nova = Nova(servers)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(nova)) as server:
        server.daemon_threads = True
        nova.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield nova
        server.shutdown()
        thread.join()

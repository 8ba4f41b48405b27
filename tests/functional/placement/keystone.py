"""A real Keystone, and a real Placement that asks it.

Both run as processes of their own on SQLite. Keystone is found through PATH
(``keystone-manage``; ``pip install keystone`` brings it), as it may live in an
environment of its own.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MANAGE = shutil.which("keystone-manage") or shutil.which(
    "keystone-manage", path=str(Path(sys.executable).parent)
)
IS_MISSING = pytest.mark.skipif(MANAGE is None, reason="keystone-manage is not in PATH")

SERVE = """
import socket
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from {package}.wsgi.api import application
server = WSGIServer(("127.0.0.1", 0), WSGIRequestHandler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno={descriptor})
server.server_name, server.server_port = "127.0.0.1", {port}
server.setup_environ()
server.set_app(application)
server.serve_forever()
"""


@contextmanager
def served(
    python: str, package: str, listener: socket.socket, log: Path, **env: str
) -> Iterator[None]:
    """Serve a service on a socket that listens already, so that no other program has its port."""
    descriptor, port = listener.fileno(), port_of(listener)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, "-c", SERVE.format(package=package, descriptor=descriptor, port=port)],
            env={**os.environ, **env},
            pass_fds=[descriptor],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for an answer of any kind."""
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as probe:
            probe.sendall(b"GET / HTTP/1.0\r\n\r\n")
            if probe.recv(1):
                return
        time.sleep(0.1)
    pytest.fail(f"nobody answers on port {port}: {log.read_text()}")


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=128)


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


@contextmanager
def keystone(home: Path) -> Iterator[str]:
    """Keystone with an admin, a member, and Placement in its catalog; yields its URL."""
    with (
        listening() as own,
        listening() as of_placement,
        _keystone(home, own, of_placement) as url,
    ):
        yield url


@contextmanager
def _keystone(home: Path, own: socket.socket, of_placement: socket.socket) -> Iterator[str]:
    assert MANAGE is not None
    port, placement = port_of(own), port_of(of_placement)
    url = f"http://127.0.0.1:{port}/v3"
    config = home / "keystone.conf"
    config.write_text(
        f"[database]\nconnection = sqlite:///{home}/keystone.sqlite\n"
        f"[fernet_tokens]\nkey_repository = {home}/fernet\n"
    )
    for arguments in (
        ["db_sync"],
        [
            "fernet_setup",
            f"--keystone-user={os.getuid()}",
            f"--keystone-group={os.getgid()}",
        ],
        [
            "bootstrap",
            "--bootstrap-password=secret",
            "--bootstrap-region-id=RegionOne",
            f"--bootstrap-public-url={url}",
            f"--bootstrap-internal-url={url}",  # Placement itself takes this one
        ],
    ):
        subprocess.run([MANAGE, f"--config-file={config}", *arguments], check=True, timeout=120)
    placement_conf(home, url)
    python = str(Path(MANAGE).resolve().parent / "python")
    with served(
        python, "keystone", own, home / "keystone.log", OS_KEYSTONE_CONFIG_FILES=str(config)
    ):
        fill_catalog(url, f"http://127.0.0.1:{placement}")
        with served(
            sys.executable,
            "placement",
            of_placement,
            home / "placement.log",
            OS_PLACEMENT_CONFIG_DIR=str(home),
        ):
            yield url


def placement_conf(home: Path, url: str) -> None:
    lines = [
        "[placement_database]",
        f"connection = sqlite:///{home}/placement.sqlite",
        "sync_on_startup = true",
        "[keystone_authtoken]",
        *(f"{key} = {value}" for key, value in credentials(url).items()),
        f"www_authenticate_uri = {url}",
    ]
    (home / "placement.conf").write_text("\n".join(lines))


def credentials(url: str, **changed: str) -> dict[str, str]:
    return {
        "auth_type": "password",
        "auth_url": url,
        "username": "admin",
        "password": "secret",
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
        **changed,
    }


def fill_catalog(url: str, placement: str) -> None:
    """Add Placement, with a public endpoint in RegionOne alone, and a user without a role."""
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session

    admin = Password(
        url,
        username="admin",
        password="secret",
        user_domain_id="default",
        project_name="admin",
        project_domain_id="default",
    )
    session = Session(auth=admin)
    service = {"name": "placement", "type": "placement"}
    answer = session.post(f"{url}/services", json={"service": service})
    endpoint = {
        "service_id": answer.json()["service"]["id"],
        "interface": "public",
        "url": placement,
        "region_id": "RegionOne",
    }
    session.post(f"{url}/endpoints", json={"endpoint": endpoint})
    project = session.get(f"{url}/projects?name=admin").json()["projects"][0]["id"]
    user = {"name": "mary", "password": "secret", "default_project_id": project}
    user_id = session.post(f"{url}/users", json={"user": user}).json()["user"]["id"]
    roles = session.get(f"{url}/roles?name=member").json()["roles"]
    session.put(f"{url}/projects/{project}/users/{user_id}/roles/{roles[0]['id']}")
    session.session.close()

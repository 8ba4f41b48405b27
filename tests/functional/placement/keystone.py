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
from contextlib import contextmanager
from pathlib import Path

import pytest

MANAGE = shutil.which("keystone-manage") or shutil.which(
    "keystone-manage", path=str(Path(sys.executable).parent)
)
IS_MISSING = pytest.mark.skipif(MANAGE is None, reason="keystone-manage is not in PATH")

SERVE = """
from wsgiref.simple_server import make_server
from {package}.wsgi.api import application
make_server("127.0.0.1", {port}, application).serve_forever()
"""


@contextmanager
def served(python: str, package: str, port: int, log: Path, **env: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, "-c", SERVE.format(package=package, port=port)],
            env={**os.environ, **env},
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
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"nobody listens on port {port}: {log.read_text()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def keystone(home: Path) -> Iterator[str]:
    """Keystone with an admin, a member, and Placement in its catalog; yields its URL."""
    assert MANAGE is not None
    port, placement = free_port(), free_port()
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
        python, "keystone", port, home / "keystone.log", OS_KEYSTONE_CONFIG_FILES=str(config)
    ):
        fill_catalog(url, f"http://127.0.0.1:{placement}")
        with served(
            sys.executable,
            "placement",
            placement,
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

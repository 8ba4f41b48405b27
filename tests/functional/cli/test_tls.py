"""A cloud whose services have certificates of a private authority.

``explain --server NAME`` asks Keystone, nova-api, Glance, Neutron and Placement.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.tools.compute_api import SERVER, ComputeApiUnavailable, find
from cpu_tiers.tools.http.services import Services, services_of_client
from cpu_tiers.tools.placement.session import placement_client
from tests.functional.cli.fork_server import ForkServer
from tests.functional.cli.secure_cloud import (
    CLIENT,
    SERVICES,
    SecureFront,
    secure_cloud,
    write_authority,
    write_client,
)
from tests.unit.http.region import RegionOfClient

OPENSTACK = Path(sys.executable).with_name("openstack")
EXPLAIN = ("explain", "--server", "web")
EVERYBODY = {"v3", *SERVICES}

Command = Callable[..., Any]


class Files(NamedTuple):
    """The paths of the certificates."""

    right: str
    wrong: str
    certificate: str
    key: str


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("certificates")
    return Files(
        write_authority(authority, folder / "right.pem"),
        write_authority(trustme.CA(), folder / "wrong.pem"),
        *write_client(authority, folder),
    )


@pytest.fixture
def cloud(authority: trustme.CA) -> Iterator[SecureFront]:
    with secure_cloud(authority) as server:
        yield server


def credentials(cloud: SecureFront) -> dict[str, str]:
    return {
        "auth_url": f"{cloud.url}/v3",
        "username": "u",
        "password": "secret",
        "project_name": "p",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def clients(cloud: SecureFront) -> Mapping[str, bool]:
    """Return the services that were asked, and whether all requests had the certificate."""
    asked = {service for service, _ in cloud.clients}
    return {
        service: all(CLIENT in names for asked, names in cloud.clients if asked == service)
        for service in asked
    }


def test_nova_conf(run: Command, nova_conf: Command, cloud: SecureFront, files: Files) -> None:
    def explain(status: int, **options: str) -> str:
        cloud.clients.clear()
        path = nova_conf(auth_type="password", **credentials(cloud), **options)
        return str(run("--config-file", path, *EXPLAIN, status=status).stderr)

    # There are no hosts, which is the exit status 3.
    assert explain(3, cafile=files.right) == ""
    assert clients(cloud) == dict.fromkeys(EVERYBODY, False)
    client = {"certfile": files.certificate, "keyfile": files.key}
    assert explain(3, cafile=files.right, **client) == ""
    assert clients(cloud) == dict.fromkeys(EVERYBODY, True)
    warning = "[placement] insecure is true: no certificate of a service is checked\n"
    assert explain(3, insecure="true") == warning
    assert clients(cloud) == dict.fromkeys(EVERYBODY, False)
    for options in ({}, {"cafile": files.wrong}):
        (error,) = explain(1, **options).splitlines()
        said = f"the certificate of {cloud.url} is refused: "
        assert f"GET /servers/web: Nova's API cannot be asked for a server: {said}" in error
        advice = "; set cafile in [placement] of nova.conf to a file with the certificate of its"
        assert advice in error
        assert cloud.clients == set()


class OneAddress(RegionOfClient):
    """Stands for a region whose services are all at one server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get_endpoint(self, service_type: str) -> str:
        return f"{self.url}/{service_type}"


def services_at(url: str, **settings: Any) -> Services:
    """Return the services as the openstack client has them."""
    return services_of_client(Session(auth=Token(url, "admin"), **settings), OneAddress(url))


def find_web(services: Services) -> Any:
    return find(services, SERVER, "web", "--server")


def test_errors_name_the_settings_of_the_client(cloud: SecureFront, files: Files) -> None:
    for path, said in (
        (
            files.wrong,
            f"the certificate of {cloud.url} is refused: .*; set cacert in clouds.yaml, or"
            " OS_CACERT, to a file with the certificate of its authority",
        ),
        (files.key, f"TLS with {cloud.url} fails: .*; check cacert, cert and key in clouds.yaml"),
        ("/no/ca.pem", "/no/ca.pem; check cacert, cert and key in clouds.yaml, or OS_CACERT,"),
    ):
        services = services_at(cloud.url, verify=path)
        with pytest.raises(ComputeApiUnavailable, match=said):
            find_web(services)
        with pytest.raises(PlacementMisconfigured, match=f"GET /: cannot be sent: .*{said}"):
            placement_client(services).providers()
    assert cloud.clients == set()


def test_a_certificate_for_another_name(cloud: SecureFront, files: Files) -> None:
    url = cloud.url.replace("127.0.0.1", "localhost")
    said = f"of {url} is refused: Hostname mismatch.*; check the certificate, and auth_url"
    with pytest.raises(ComputeApiUnavailable, match=said):
        find_web(services_at(url, verify=files.right))


def test_a_server_that_wants_a_certificate(authority: trustme.CA, files: Files) -> None:
    with secure_cloud(authority, is_strict=True) as cloud:
        said = f"TLS with {cloud.url} fails: .*; check cacert, cert and key in clouds.yaml"
        with pytest.raises(ComputeApiUnavailable, match=said):
            find_web(services_at(cloud.url, verify=files.right))
        pair = (files.certificate, files.key)
        assert find_web(services_at(cloud.url, verify=files.right, cert=pair))["id"] == "s"


@pytest.mark.skipif(not OPENSTACK.exists(), reason="python-openstackclient is not installed")
def test_the_openstack_client(
    fork_server: ForkServer,
    cloud: SecureFront,
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    real = {"auth": credentials(cloud), "region_name": "one"}
    both = {"cacert": files.right, "cert": files.certificate, "key": files.key}
    settings: dict[str, dict[str, Any]] = {
        "both": both,
        "blind": {"verify": False},
        "wrong": {"cacert": files.wrong},
        "plain": {},
    }
    clouds = {name: {**real, **more} for name, more in settings.items()}
    path.write_text(json.dumps({"clouds": clouds}))  # JSON is YAML

    def explain(name: str, status: int) -> str:
        cloud.clients.clear()
        command = [str(OPENSTACK), "--os-cloud", name, "cpu", "tier", *EXPLAIN]
        result = fork_server.run(command, tmp_path)
        assert result.returncode == status, result.stderr
        assert "Traceback" not in result.stderr
        return result.stderr

    assert explain("both", 3) == ""
    assert clients(cloud) == dict.fromkeys(EVERYBODY, True)
    explain("blind", 3)
    assert clients(cloud) == dict.fromkeys(EVERYBODY, False)
    assert f"SSL exception connecting to {cloud.url}" in explain("wrong", 1)
    monkeypatch.setenv("OS_CACERT", files.right)
    assert explain("plain", 3) == ""
    assert clients(cloud) == dict.fromkeys(EVERYBODY, False)

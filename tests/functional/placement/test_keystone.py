"""``auth_type = password``: a real Keystone, and a real Placement that asks it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from cpu_tiers.placement.errors import NotAuthorised, PlacementMisconfigured
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.session import opened_services, placement_client
from tests.functional.placement.keystone import IS_MISSING, credentials

pytestmark = IS_MISSING
NovaConf = Callable[..., Path]


def find(path: Path) -> None:
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)], project="nova", default_config_dirs=[])
    with opened_services(conf) as services:
        client = placement_client(services, retry_policy=RetryPolicy(sleep=lambda _: None))
        assert client.find_provider("compute1") is None
        client.create_trait("CUSTOM_GOLD")


def test_password(auth_url: str, nova_conf: NovaConf) -> None:
    find(nova_conf(**credentials(auth_url)))


def test_the_region_decides(auth_url: str, nova_conf: NovaConf) -> None:
    find(nova_conf(**credentials(auth_url), region_name="RegionOne"))
    with pytest.raises(PlacementMisconfigured, match="RegionTwo"):
        find(nova_conf(**credentials(auth_url), region_name="RegionTwo"))


def test_the_interface_decides(auth_url: str, nova_conf: NovaConf) -> None:
    with pytest.raises(PlacementMisconfigured, match="valid_interfaces"):
        find(nova_conf(**credentials(auth_url), valid_interfaces="internal"))


def test_a_wrong_password(auth_url: str, nova_conf: NovaConf) -> None:
    with pytest.raises(NotAuthorised, match="Keystone gave no token") as error:
        find(nova_conf(**credentials(auth_url, password="wrong")))
    assert "wrong" not in str(error.value)


def test_no_user(auth_url: str, nova_conf: NovaConf) -> None:
    options = credentials(auth_url)
    del options["username"]
    with pytest.raises(PlacementMisconfigured, match="username is not set"):
        find(nova_conf(**options))


def test_a_member_may_not_write(auth_url: str, nova_conf: NovaConf) -> None:
    with pytest.raises(NotAuthorised, match="HTTP 403"):
        find(nova_conf(**credentials(auth_url, username="mary")))

"""From a nova.conf to a client: what works, and what an error says to put there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from keystoneauth1 import loading
from oslo_config import cfg

from cpu_tiers.placement.errors import (
    NotAuthorised,
    PlacementMisconfigured,
    PlacementRefused,
    PlacementUnavailable,
)
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.session import (
    connect,
    load_adapter,
    opened_services,
    placement_client,
)

NovaConf = Callable[..., Path]
HASTY = RetryPolicy(sleep=lambda _: None)
NOBODY_LISTENS = "http://127.0.0.1:1"


def read(path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)], project="nova", default_config_dirs=[])
    return conf


def find(path: Path) -> None:
    with opened_services(read(path)) as services:
        client = placement_client(services, retry_policy=HASTY)
        assert client.find_provider("compute1") is None


def test_an_admin_token(placement_conf: Path, seen: list[str]) -> None:
    find(placement_conf)
    assert seen == ["GET /", "GET /resource_providers?name=compute1"]


def test_the_token_is_not_sent_to_another_host(
    placement_conf: Path, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    faults.append(("GET /resource_providers", "redirect"))
    said = r"redirects to 'http://another\.example\.org/', which is another host"
    with pytest.raises(PlacementMisconfigured, match=said):
        find(placement_conf)
    assert seen == ["GET /", "GET /resource_providers?name=compute1"]


def test_an_endpoint_override(nova_conf: NovaConf, url: str) -> None:
    find(
        nova_conf(
            auth_type="admin_token", endpoint=NOBODY_LISTENS, token="admin", endpoint_override=url
        )
    )


def test_bounds_of_the_version_are_overlooked_as_by_nova(nova_conf: NovaConf, url: str) -> None:
    token = {"auth_type": "admin_token", "endpoint": url, "token": "admin"}
    find(nova_conf(**token, min_version="1.0", max_version="1.1"))


def test_a_path_below_the_host(nova_conf: NovaConf, url: str, seen: list[str]) -> None:
    with pytest.raises(PlacementRefused):  # nobody mounts Placement there, it is asked though
        find(nova_conf(auth_type="admin_token", endpoint=f"{url}/placement", token="admin"))
    assert seen == ["GET /placement/"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"auth_type": "none"}, id="none sends a token that is nobody's"),
        pytest.param({"auth_type": "admin_token", "token": "someone"}, id="a user without a role"),
    ],
)
def test_credentials_without_the_role(
    nova_conf: NovaConf, url: str, options: dict[str, str]
) -> None:
    with pytest.raises(NotAuthorised, match=r"HTTP 403.*check username, password") as error:
        find(nova_conf(endpoint=url, **options))
    assert error.value.status == 403


def test_without_a_timeout_silence_ends_after_20_seconds(nova_conf: NovaConf) -> None:
    options = {"auth_type": "none", "endpoint": NOBODY_LISTENS}
    assert load_adapter(read(nova_conf(**options))).session.timeout == 20.0
    assert load_adapter(read(nova_conf(**options, timeout=3))).session.timeout == 3.0


def test_defaults_are_novas(nova_conf: NovaConf) -> None:
    adapter = load_adapter(read(nova_conf(auth_type="none", endpoint=NOBODY_LISTENS)))
    assert adapter.service_type == "placement"
    assert adapter.interface == ["internal", "public"]


def test_the_section_may_be_read_twice(placement_conf: Path) -> None:
    conf = read(placement_conf)
    for _ in range(2):
        with connect(conf) as client:
            assert client.microversion == (1, 39)


def test_another_section_for_the_credentials(nova_conf: NovaConf, url: str) -> None:
    path = nova_conf(auth_section="service_user")
    with path.open("a") as file:
        file.write(f"[service_user]\nauth_type = admin_token\nendpoint = {url}\ntoken = admin\n")
    find(path)


def test_embedded_needs_no_section() -> None:
    with connect(cfg.ConfigOpts(), embedded=True) as client:
        assert client.find_provider("compute1") is None


KEYSTONE = {"auth_type": "password", "auth_url": NOBODY_LISTENS}
CREDENTIALS = {
    "admin_token": {"endpoint", "token"},
    "http_basic": {"endpoint", "username", "password"},
    "noauth": {"endpoint", "user_id"},
    "none": {"endpoint"},
    "password": {"auth_url", "user_id", "password"},
    "token": {"auth_url", "token"},
    "v2password": {"auth_url", "username", "password"},
    "v2token": {"auth_url", "token"},
    "v3applicationcredential": {
        "auth_url", "application_credential_id", "application_credential_secret",
    },
    "v3oauth2clientcredential": {
        "auth_url", "oauth2_endpoint", "oauth2_client_id", "oauth2_client_secret",
    },
    "v3oauth2mtlsclientcredential": {"auth_url", "oauth2_endpoint", "oauth2_client_id"},
    "v3password": {"auth_url", "username", "user_domain_id", "password"},
    "v3token": {"auth_url", "token"},
    "v3tokenlessauth": {"auth_url", "project_id"},
    "v3totp": {"auth_url", "user_id", "passcode"},
}  # fmt: skip
"""The least options by which a user of each kind of credentials logs in."""


@pytest.mark.parametrize("kind", sorted(loading.get_available_plugin_names()))
def test_each_kind_of_credentials(nova_conf: NovaConf, kind: str) -> None:
    """A plugin of keystoneauth1 for which the table has no line gets all its options."""
    if kind == "v3multifactor":  # of a file, keystoneauth1 reads the name of a method by letters
        return
    every = {option.dest for option in loading.get_plugin_loader(kind).get_options()}
    options = dict.fromkeys(CREDENTIALS.get(kind, every), "http://127.0.0.1:1/v3")
    numbers = {"redirect_port", "login_timeout"} & options.keys()
    path = nova_conf(auth_type=kind, **{**options, **dict.fromkeys(numbers, "9")})
    assert load_adapter(read(path)).session.auth is not None


@pytest.mark.parametrize("password", ["abc$tail", "${tail}x", "$tail"])
def test_a_dollar_sign_in_a_password(nova_conf: NovaConf, password: str) -> None:
    path = nova_conf(**KEYSTONE, username="u", password=password)
    with pytest.raises(PlacementMisconfigured, match=r"write \$\$") as error:
        load_adapter(read(path))
    assert "tail" not in str(error.value)
    assert error.value.__cause__ is None
    path = nova_conf(**KEYSTONE, username="u", password=password.replace("$", "$$"))
    assert read_password(path) == password


def read_password(path: Path) -> object:
    conf = read(path)
    load_adapter(conf)
    return conf.placement.password


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({}, "auth_type is not set", id="an empty section"),
        pytest.param({"auth_type": "pasword"}, "pasword", id="an unknown plugin"),
        pytest.param({"auth_type": "password"}, "auth_url", id="password without auth_url"),
        pytest.param(KEYSTONE, "username is not set", id="no user"),
        pytest.param(KEYSTONE | {"user_id": "u"}, "password is not set", id="no password"),
        pytest.param(
            {"auth_type": "none", "endpoint": NOBODY_LISTENS, "timeout": "soon"},
            "soon",
            id="a timeout that is no number",
        ),
    ],
)
def test_an_incomplete_section_names_the_missing_option(
    nova_conf: NovaConf, options: dict[str, str], said: str
) -> None:
    with (
        pytest.raises(PlacementMisconfigured, match=said) as error,
        connect(read(nova_conf(**options))),
    ):
        pass
    assert "[placement]" in str(error.value)
    assert "auth_url = https://keystone.example.org/v3" in str(error.value)


def test_no_section_at_all(tmp_path: Path) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\n")
    with pytest.raises(PlacementMisconfigured, match="auth_type is not set"), connect(read(path)):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"auth_type": "admin_token", "token": "admin"}, "endpoint", id="no endpoint"),
        pytest.param(
            {"auth_type": "none", "endpoint": "localhost:8778"}, "localhost", id="no scheme"
        ),
        pytest.param(
            {"auth_type": "none", "endpoint": "https://localhost:1", "cafile": "/not/there.pem"},
            "/not/there.pem",
            id="no CA file",
        ),
        pytest.param(
            {"auth_type": "v3password", "auth_url": "localhost", "user_id": "u", "password": "p"},
            "check auth_url",
            id="no scheme before Keystone",
        ),
    ],
)
def test_options_with_which_no_request_can_be_sent(
    nova_conf: NovaConf, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PlacementMisconfigured, match=said):
        find(nova_conf(**options))


def test_https_against_http(nova_conf: NovaConf, url: str) -> None:
    secure = url.replace("http://", "https://")
    with pytest.raises(PlacementMisconfigured, match="SSL"):
        find(nova_conf(auth_type="none", endpoint=secure))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"auth_type": "none", "endpoint": NOBODY_LISTENS}, id="Placement"),
        pytest.param(
            {"auth_type": "password", "auth_url": NOBODY_LISTENS, "user_id": "u", "password": "p"},
            id="Keystone",
        ),
        pytest.param(
            {
                "auth_type": "password",
                "auth_url": f"{NOBODY_LISTENS}/v3",
                "user_id": "u",
                "password": "p",
            },
            id="Keystone v3",
        ),
        pytest.param({"auth_type": "none", "endpoint": "http://not.there.invalid"}, id="DNS"),
    ],
)
def test_an_endpoint_without_a_listener(nova_conf: NovaConf, options: dict[str, str]) -> None:
    with pytest.raises(PlacementUnavailable, match=r"127\.0\.0\.1|not\.there\.invalid"):
        find(nova_conf(**options))


@pytest.mark.parametrize("status", ["HTML 503", "silence", "closed"])
def test_keystone_has_weather_too(
    nova_conf: NovaConf, url: str, faults: list[tuple[str, str]], status: str
) -> None:
    faults += [("/v3", status)] * 99
    with pytest.raises(PlacementUnavailable):
        find(
            nova_conf(
                auth_type="v3password", auth_url=f"{url}/v3", username="u", user_domain_id="d",
                password="p", timeout=0.2,
            )
        )  # fmt: skip

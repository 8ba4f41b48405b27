"""A real openstack-placement inside this process, on SQLite, for demos and tests.

The database starts empty and is deleted at the end. The HTTP session of the client passes requests
to Placement's WSGI application. ``placement.direct`` of Placement itself is not used, because it
replaces keystoneauth1's ``Session.get_endpoint`` for the whole process.
"""

import io
import logging
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from oslo_config import cfg
from requests.adapters import BaseAdapter

from cpu_tiers.placement.errors import PlacementError, PlacementMisconfigured
from cpu_tiers.tools.placement.client import PlacementClient

WsgiApp = Callable[..., Any]

_URL = "http://placement.embedded"
_ADMIN = "admin"
"""The token of an administrator for Placement's authentication strategy ``noauth2``."""

_ROLES = "admin,member,reader,service"
"""The roles of the administrator; Placement's policy of ``/reshaper`` requires ``service``."""

_ONE_AT_A_TIME = threading.Lock()
_NOISY = ("alembic", "oslo_db", "oslo_policy", "placement")


@contextmanager
def embedded_placement() -> Iterator[PlacementClient]:
    """Run a Placement in this process and yield a client, as :func:`placement_app`."""
    with placement_app() as app, requests.Session() as http:
        http.mount(_URL, WsgiTransport(app))
        session = Session(auth=Token(_URL, _ADMIN), session=http)
        yield PlacementClient(Adapter(session, service_type="placement"))


@contextmanager
def placement_app() -> Iterator[WsgiApp]:
    """Yield Placement's WSGI application, without a client, with an empty database.

    :raises PlacementMisconfigured: openstack-placement is not installed.
    :raises PlacementError: an embedded Placement is already running in this process.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise PlacementError(
            "an embedded Placement is already running in this process: end it before you start"
            " another, because Placement keeps its database connection in global variables"
        )
    with ExitStack() as cleanup:
        cleanup.callback(_ONE_AT_A_TIME.release)
        directory = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="cpu-tiers-"))
        cleanup.enter_context(_quiet())
        yield _one_request_at_a_time(_load(Path(directory), cleanup))


def _load(directory: Path, cleanup: ExitStack) -> WsgiApp:
    try:
        with warnings.catch_warnings():
            # WebOb imports cgi, which is deprecated. The user cannot do anything about it.
            warnings.simplefilter("ignore", DeprecationWarning)
            from oslo_db.sqlalchemy import enginefacade
            from placement import db_api, deploy, policy
            from placement.objects import resource_class, trait
    except ImportError as error:
        raise PlacementMisconfigured(
            f"an embedded Placement needs openstack-placement ({error}):"
            " pip install 'cpu-tiers[embedded]'"
        ) from error
    config = _config(directory, cleanup)
    manager = enginefacade.transaction_context()
    manager.configure(
        connection=config.placement_database.connection,
        sqlite_synchronous=False,  # faster; the data need not survive a power failure
    )
    cleanup.callback(manager.dispose_pool)
    cleanup.callback(db_api.placement_context_manager.patch_factory(manager))
    cleanup.callback(policy.reset)
    if not db_api.configure.called:
        # loadapp calls it, once per process: another Placement, such as that of Nova's own tests,
        # would be left without its database.
        cleanup.callback(db_api.configure.reset)
    # Placement writes the standard names once per process. Without this, the database of a
    # second embedded Placement would have none. Placement's own database fixture does it too.
    trait._TRAITS_SYNCED = resource_class._RESOURCE_CLASSES_SYNCED = False
    return deploy.loadapp(config)  # type: ignore[no-any-return]  # placement has no types


def _config(directory: Path, cleanup: ExitStack) -> cfg.ConfigOpts:
    """Return a configuration that ignores the configuration files of this machine."""
    from placement import conf as placement_conf

    config = cfg.ConfigOpts()
    placement_conf.register_opts(config)
    overrides: tuple[tuple[str, str, Any], ...] = (
        ("placement_database", "connection", f"sqlite:///{directory / 'placement.sqlite'}"),
        ("placement_database", "sync_on_startup", True),
        ("api", "auth_strategy", "noauth2"),
        # The file does not exist, so the policies are the defaults in Placement's code.
        ("oslo_policy", "policy_file", str(directory / "policy.yaml")),
        ("oslo_policy", "policy_dirs", []),
    )
    for group, name, value in overrides:
        config.set_override(name, value, group)
        # All configurations of a process share the values of Placement's groups of options.
        cleanup.callback(config.clear_override, name, group)
    config([], project="placement", default_config_files=[], default_config_dirs=[])
    return config


def _one_request_at_a_time(app: WsgiApp) -> WsgiApp:
    # SQLite does not make a second writer wait, but fails with "database is locked".
    lock = threading.Lock()

    def serve(environ: Any, start_response: Any) -> Any:
        with lock:
            return app(environ, start_response)

    return serve


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Placement's log away from the terminal; a failure is also in the response."""
    with ExitStack() as cleanup:
        for name in _NOISY:
            logger = logging.getLogger(name)
            handler = logging.NullHandler()
            logger.addHandler(handler)
            cleanup.callback(logger.removeHandler, handler)
            cleanup.callback(setattr, logger, "propagate", logger.propagate)
            logger.propagate = False
        yield


class WsgiTransport(BaseAdapter):
    """A transport of ``requests`` that calls a WSGI application instead of opening a socket."""

    def __init__(self, app: WsgiApp) -> None:
        super().__init__()
        self._app = app

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Return the response of the application."""
        import webob  # type: ignore[import-untyped]  # has no types; comes with Placement

        roles = {"X-Roles": _ROLES} if request.headers.get("X-Auth-Token") == _ADMIN else {}
        wsgi_request = webob.Request.blank(
            request.url, method=request.method, headers={**request.headers, **roles}
        )
        body = request.body or b""
        wsgi_request.body = body.encode() if isinstance(body, str) else body
        wsgi_response = wsgi_request.get_response(self._app)
        response = requests.Response()
        response.status_code = wsgi_response.status_code
        response.headers.update(wsgi_response.headers)
        response.raw = io.BytesIO(wsgi_response.body)
        response.url = request.url or ""
        response.request = request
        return response

    def close(self) -> None:
        """Do nothing; the transport has no connection to close."""

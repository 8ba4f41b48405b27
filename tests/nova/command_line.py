"""The command line in this process, over Nova's fixtures and their Placement."""

import contextlib
import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.nova.options import CONF
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.http.services import Services
from tests.nova.computes import Computes
from tests.nova.kinds import STARTS_TO_REPORT


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command printed."""

    rows: list[dict[str, Any]]
    error: str


class CommandLine:
    """``cpu-tiers`` beside the services of a test."""

    def __init__(self, cloud: Computes) -> None:
        self.cloud = cloud

    def run(self, *arguments: str, status: int = 0) -> Said:
        """Run a command that lists as a person runs it, and expect an exit status.

        Nova's configuration is that of the fixtures; its file says where Placement is.
        """
        argv = ["--config-file", str(self.nova_conf()), *arguments, "-f", "json"]
        with mock.patch("cpu_tiers.tools.nova.cloud.configure"), streams() as (out, error):
            code = app.main(argv)
        assert code == status, out.getvalue() + error.getvalue()
        assert "Traceback" not in error.getvalue()
        return Said(rows=json.loads(out.getvalue() or "[]"), error=error.getvalue())

    def nova_conf(self) -> Path:
        """Write a nova.conf that says where Placement is; return its path."""
        placement = self.cloud.placement.fixture
        path = Path(self.cloud.useFixture(fixtures.TempDir()).path, "nova.conf")
        path.write_text(
            f"[placement]\nauth_type = admin_token\nendpoint = {placement.endpoint}\n"
            f"token = {placement.token}\nendpoint_override = {placement.endpoint}\n"
            f"[libvirt]\nvcpu_share_multiplier = {CONF.libvirt.vcpu_share_multiplier}\n"
        )
        return path


class Commands(Computes):
    """Computes that report no shares yet, and ``cpu-tiers`` beside them."""

    kind = STARTS_TO_REPORT

    def setUp(self) -> None:
        super().setUp()
        self.commands = CommandLine(self)


class Heals(Computes):
    """Hosts that report by provider.yaml, with Nova's own driver."""

    kind = STARTS_TO_REPORT

    def setUp(self) -> None:
        super().setUp()
        self.commands = CommandLine(self)
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.provider_yaml("$COMPUTE_NODE", 640)

    def heal(self, *arguments: str, status: int = 0) -> dict[str, Mapping[str, int]]:
        rows = self.commands.run("allocation", "heal", *arguments, status=status).rows
        return {row["consumer"]: row["adds"] for row in rows}


def services_of(cloud: Computes, others: Session | None = None) -> Services:
    """Return nova-api and Placement of a test, as a Keystone would know them.

    :param others: stands for all other services; without it nobody answers for them.
    """
    project = cloud.api.project_id
    headers = {
        "X-Auth-User": "admin",
        "X-Auth-Project-Id": project,
        "X-Roles": "admin,member,reader",
    }
    placement = cloud.placement.fixture
    sessions = {
        "compute": Session(
            auth=Token(cloud.api.base_url, f"admin:{project}"), additional_headers=headers
        ),
        "placement": Session(auth=Token(placement.endpoint, placement.token)),
    }
    return Services(
        adapter=lambda kind: Adapter(sessions.get(kind, others or Session()), service_type=kind)
    )


@contextlib.contextmanager
def streams() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Catch what is printed; the log handlers that cliff adds are taken away again."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    out, error = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            yield out, error
    finally:
        root.handlers[:] = before
        root.setLevel(level)

"""``explain --flavor`` and ``--server`` on a real nova-api and a real Placement.

Nova has only fakes of Glance and Neutron without HTTP, so their answers stand here.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
import requests
from keystoneauth1.session import Session

from cpu_tiers.tools.compute_api import read_all_servers, read_placed_servers
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.nova.cloud import SHARES, Cloud
from tests.nova.command_line import services_of, streams


class Others(Session):
    """Stands for a session with a Glance of one image and a Neutron without ports."""

    # The adapter gives all other arguments by name.
    def request(  # type: ignore[override]
        self, url: str, method: str, **_: Any
    ) -> requests.Response:
        assert method == "GET"
        response = requests.Response()
        response.status_code = 200
        image = {"id": "i", "name": "cirros", "trait:COMPUTE_NODE": "required"}
        body: Any = {"ports": []} if url.startswith("/v2.0/ports?device_id=") else image
        response._content = json.dumps(body).encode()
        return response


class TestNamedObjects(Cloud):
    """A host with 800 shares, and servers of the flavor gold, which claims 100."""

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one", **{SHARES: 800})
        self.gold = self.tier("gold", "100")
        path = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        path.write_text("[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n")
        self.conf = str(path)

    def explain(self, *arguments: str, status: int = 0) -> tuple[Mapping[str, Any], str]:
        """Return what ``explain`` prints, and its messages."""
        argv = ["--config-file", self.conf, "explain", *arguments, "-f", "json"]
        services = services_of(self, Others())
        with (
            mock.patch.object(NovaConfCommand, "services", return_value=services),
            streams() as (out, error),
        ):
            code = app.main(argv)
        assert code == status, out.getvalue() + error.getvalue()
        assert "Traceback" not in error.getvalue()
        return json.loads(out.getvalue() or "{}"), error.getvalue()

    def test_a_flavor_by_name_and_by_id(self) -> None:
        by_name, _ = self.explain("--flavor", "gold")
        assert [row["host"] for row in by_name["ranking"]] == ["one"]
        assert by_name["ranking"][0]["resources"][SHARES] == 0.875  # 1 - 100 / 800
        assert self.explain("--flavor", self.gold)[0] == by_name
        _, error = self.explain("--flavor", "golden", status=1)
        assert "--flavor: golden: Nova has no such flavor; did you mean gold" in error

    def test_servers(self) -> None:
        """The embedded flavor counts, also after the flavor was deleted."""
        uuid = self.boot(self.gold, name="web (1).*")["id"]
        self.api.delete_flavor(self.gold)
        by_id, _ = self.explain("--server", uuid)
        assert by_id["candidates"] == 1
        # The server itself has 100 of the 800 shares: 1 - 100 / 700.
        assert by_id["ranking"][0]["resources"][SHARES] == 1 - 100 / 700
        assert "COMPUTE_NODE" in by_id["ranking"][0]["traits"]
        assert self.explain("--server", "web (1).*")[0] == by_id
        for name in ("web", "WEB (1).*", "11111111-1111-4111-8111-111111111111", ".."):
            _, error = self.explain("--server", name, status=1)
            assert f"--server: {name}: Nova's API has no server with this name or id" in error

    def test_all_servers_page_by_page(self) -> None:
        self.flags(max_limit=2, group="api")
        names = {self.boot(self.gold, name=name)["id"]: name for name in ("a", "b", "b", "ß")}
        services = services_of(self)
        for read in (read_placed_servers, read_all_servers):
            servers = list(read(services))
            assert {server["id"]: server["name"] for server in servers} == names
            assert {server["tenant_id"] for server in servers} == {self.api.project_id}
            assert {server["OS-EXT-SRV-ATTR:hypervisor_hostname"] for server in servers} == {"one"}

    def test_servers_with_equal_names(self) -> None:
        uuids = [self.boot(self.gold, name="web")["id"] for _ in range(2)]
        _, error = self.explain("--server", "web", status=1)
        assert "Nova's API has 2 servers with this name; give one of the ids: " in error
        assert all(uuid in error for uuid in uuids)

"""Computes with our driver, over a fake libvirt, and what to ask of them."""

import contextlib
import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import fixtures
import pytest
from keystoneauth1.exceptions import ConnectFailure
from lxml import etree
from nova.scheduler.client import report
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import libvirt
from cpu_tiers.nova import options
from tests.nova.cloud import MULTIPLIER, SHARES, Services

__all__ = ["FAKE", "MULTIPLIER", "OURS", "PLAIN", "SHARES", "Computes"]

PLAIN = "quota:cpu_shares"
FAKE = "nova.tests.fixtures.libvirt"
OURS = "cpu_tiers.LibvirtDriver"


class KeepsTuning(fixtures.Fixture):
    """Nova's fake libvirt forgets how a guest is tuned; a real one hands it back."""

    elements = ("cputune", "numatune", "memoryBacking")

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        parse, describe = fakelibvirt.Domain._parse_definition, fakelibvirt.Domain.XMLDesc

        def kept(domain: Any, xml: str) -> Any:
            root = etree.fromstring(xml)
            return {**parse(domain, xml), **{name: root.find(name) for name in self.elements}}

        def described(domain: Any, flags: int) -> str:
            root = etree.fromstring(describe(domain, flags))
            found = (domain._def[name] for name in self.elements)
            root.extend(copy.deepcopy(element) for element in found if element is not None)
            return etree.tostring(root, encoding="unicode")

        self.useFixture(fixtures.MonkeyPatch(f"{FAKE}.Domain._parse_definition", kept))
        self.useFixture(fixtures.MonkeyPatch(f"{FAKE}.Domain.XMLDesc", described))


class Computes(Services):
    """With computes that have our driver; they start with :meth:`start_host`.

    The scheduler asks for no shares: a server has some because the driver
    gave them to it, or because its flavor names the class itself.
    """

    # Nova checks extra specs from 2.86 on: below, a flavor may say any nonsense.
    microversion = "2.85"
    weighers: tuple[str, ...] = ("nova.scheduler.weights.all_weighers",)
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(KeepsTuning())
        options.register(libvirt)
        self.flags(compute_driver=OURS)
        self.reporting(True)

    def reporting(self, on: bool) -> None:
        self.flags(report_vcpu_shares=on, group="libvirt")

    def start_host(self, name: str) -> str:
        """Start a compute, return the uuid of its provider: 16 CPUs online, 16 GiB."""
        self.start_compute(name)
        uuid: str = self.compute_rp_uuids[name]
        return uuid

    def restart(self, name: str) -> None:
        """Stop a compute and start it again; its provider and guests stay."""
        self.restart_compute_service(name)

    def restart_refused(self, name: str, kind: type[BaseException]) -> str:
        """Restart a compute that must refuse to start; return what it says."""
        uuid = self.compute_rp_uuids[name]
        compute = self.computes[name]
        with pytest.raises(kind) as caught:
            self.restart(name)
        # What the fixture forgot on the way, so that the test can go on.
        self.compute_rp_uuids[name] = uuid
        self.computes[name] = compute
        return str(caught.value)

    @contextlib.contextmanager
    def placement_away(self) -> Iterator[None]:
        """Have nobody answer when Nova asks Placement."""
        away = ConnectFailure("connection refused")
        with mock.patch.object(report.SchedulerReportClient, "get", side_effect=away) as get:
            yield
        get.assert_called()

    def provider_yaml(self, name: str, total: int) -> Path:
        """Have Nova read a file that gives shares to a host, or to all by ``$COMPUTE_NODE``."""
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        provider = {
            "identification": {"uuid" if name.startswith("$") else "name": name},
            "inventories": {"additional": [{SHARES: {"total": total}}]},
        }
        document = {"meta": {"schema_version": "1.0"}, "providers": [provider]}
        path = folder / "provider.yaml"
        path.write_text(json.dumps(document))  # JSON is YAML
        self.flags(group="compute", provider_config_location=str(folder))
        return path

    def no_provider_yaml(self) -> None:
        self.flags(group="compute", provider_config_location="/nowhere")

    def inventory(self, name: str) -> dict[str, Any] | None:
        """Return the shares that Placement has of a host."""
        uuid = self.compute_rp_uuids[name]
        inventories = self.placement.get(f"/resource_providers/{uuid}/inventories").body
        found: dict[str, Any] | None = inventories["inventories"].get(SHARES)
        return found

    def boot_on(self, host: str, flavor: str) -> str:
        """Boot a server on a host; return its uuid."""
        uuid: str = self.boot(flavor, host=host)["id"]
        return uuid

    def domain_shares(self, server: str, host: str) -> str | None:
        """Return ``<shares>`` of a guest, as libvirt has it."""
        found: str | None = self.domain(server, host).findtext("cputune/shares")
        return found

    def domain(self, server: str, host: str) -> Any:
        """Return the XML of a guest, as libvirt has it."""
        connection = self.computes[host].driver._host.get_connection()
        return etree.fromstring(connection.lookupByUUIDString(server).XMLDesc(0))

    def migration_of(self, server: str) -> str:
        """Return the uuid of a server's only migration."""
        (migration,) = self.api.api_get(f"/os-migrations?instance_uuid={server}").body[
            "migrations"
        ]
        uuid: str = migration["uuid"]
        return uuid

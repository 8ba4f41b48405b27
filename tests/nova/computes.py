"""Nova's own services in this process, with cpu-tiers loaded as an operator loads it.

API, conductor, scheduler and computes run over a real Placement and a fake
libvirt. A test class is at most two classes away from :class:`Computes`: what
only some tests need is an object or a function that takes the cloud
(``provider_tree``, ``command_line``, ``numa/``), and not a class between them.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

import fixtures
import pytest
from lxml import etree
from nova.api.validation.extra_specs import validators
from nova.conf import paths
from nova.tests.functional.libvirt import base

from cpu_tiers.conf import api, compute, filter_scheduler, libvirt, weigher
from cpu_tiers.nova import options, seams
from cpu_tiers.nova.compute.features import COMPUTE
from cpu_tiers.nova.scheduler.features import SCHEDULER
from tests.nova.kinds import FAKE, OURS, REPORTS_SHARES, WEIGHER, KeepsTuning, Kind, OneRouter
from tests.nova.numa.agreement import Node, check_agreement
from tests.nova.patience import patiently
from tests.nova.provider_tree import SHARES, ProviderTree

__all__ = ["FAKE", "MULTIPLIER", "OURS", "PLAIN", "SHARES", "WEIGHER", "Computes", "ProcessEnded"]

MULTIPLIER = "quota:cpu_shares_multiplier"
END_PROCESS = "cpu_tiers.nova.compute.start_refusal.end_process"
PLAIN = "quota:cpu_shares"


class ProcessEnded(BaseException):
    """A compute ended its process, because it refuses to start: nothing of Nova catches this."""


def process_ended(refusal: Exception) -> NoReturn:
    raise ProcessEnded(refusal)


def installed_path(*args: str) -> str:
    """Return where the wheel has a file that Nova's fixtures look for beside the package."""
    installed = Path(sys.prefix, *args)
    return str(installed) if installed.exists() else str(Path("$state_path", *args))


class Computes(base.ServersTestBase):
    """API, conductor and scheduler; computes with our driver start with :meth:`start_host`.

    The scheduler requests no shares unless a class says so: a server has some
    because the driver gave them to it, or because its flavor names the class itself.
    """

    api_major_version = "v2.1"
    # Nova checks extra specs from 2.86 on: below, a flavor may say any nonsense.
    microversion = "2.85"
    ADMIN_API = True
    server: Any
    """The server that a test is about, for Nova's fake of a live migration, too."""
    kind: ClassVar[Kind] = REPORTS_SHARES
    weighers: tuple[str, ...] | None = None
    """Weighers of this class, instead of its kind's."""
    scheduler_options: ClassVar[Mapping[str, Any] | None] = None
    """Options of ``[filter_scheduler]`` of this class, instead of its kind's."""
    extends_cpu_policies: ClassVar[bool] = False
    """``[compute] extend_cpu_policies`` of all services."""
    refuses_faulty_flavors: ClassVar[bool] = False
    """``[api] refuse_faulty_flavors`` of nova-api."""

    _wait_for_server_parameter = patiently(base.ServersTestBase._wait_for_server_parameter)
    _wait_until_deleted = patiently(base.ServersTestBase._wait_until_deleted)
    _wait_for_migration_status = patiently(base.ServersTestBase._wait_for_migration_status)
    _wait_for_instance_action_event = patiently(
        base.ServersTestBase._wait_for_instance_action_event
    )

    def setUp(self) -> None:
        # Nova deletes every attribute in the end, and pytest wants to delete this one itself.
        name = self._testMethodName
        self.addCleanup(setattr, self, name, getattr(self, name))
        self.useFixture(fixtures.MonkeyPatch("nova.conf.paths.state_path_def", installed_path))
        assert paths.state_path_def is installed_path
        self.useFixture(OneRouter())
        self.useFixture(fixtures.MockPatch(END_PROCESS, process_ended))
        self.ADDITIONAL_FILTERS = list(self.kind.filters)
        super().setUp()
        warnings.filterwarnings("error", module="cpu_tiers")  # Nova has set filters of its own
        self.tree = ProviderTree(self)
        if self.kind.driver == OURS:
            self._use_our_driver()

    def _setup_scheduler_service(self) -> Any:
        options.register(compute)
        self.flags(group="compute", extend_cpu_policies=self.extends_cpu_policies)
        options.register(api)
        self.flags(group="api", refuse_faulty_flavors=self.refuses_faulty_flavors)
        validators.load_validators()  # as nova-api does when it starts
        options.register(filter_scheduler)
        options.register(weigher)
        weighers = self.kind.weighers if self.weighers is None else self.weighers
        self.configure(
            weight_classes=list(weighers),
            shuffle_best_same_weighed_hosts=False,
            query_placement_for_vcpu_shares=True,
        )
        own = self.scheduler_options
        self.configure(**(self.kind.scheduler_options if own is None else own))
        return super()._setup_scheduler_service()

    def _use_our_driver(self) -> None:
        self.useFixture(KeepsTuning())
        options.register(libvirt)
        options.register(compute)
        self.flags(compute_driver=OURS)
        self.reporting(True)
        for group, values in self.kind.options.items():
            self.flags(group=None if group == "DEFAULT" else group, **values)
        if not self.kind.copies_disks:
            copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
            self.useFixture(fixtures.MockPatch(copy, return_value="{}"))

    def configure(self, **values: Any) -> None:
        """Set options of ``[filter_scheduler]``, for the next start of nova-scheduler."""
        self.flags(group="filter_scheduler", **values)

    def restart_scheduler(self, **values: Any) -> None:
        """Set options of ``[filter_scheduler]``, and turn on only the features that are on now."""
        self.configure(**values)
        before, others = (
            {seam for feature in service.features for seam in feature.seams}
            for service in (SCHEDULER, COMPUTE)
        )
        seams.remove(before - others)
        SCHEDULER.start()

    def end(self) -> None:
        """Undo what :meth:`setUp` did, as unittest does after a test."""
        with ExitStack() as cleanups:
            for function, arguments, keywords in self._cleanups:
                cleanups.callback(function, *arguments, **keywords)

    def reporting(self, on: bool) -> None:
        """Set whether hosts report shares, from their next start on."""
        self.flags(report_vcpu_shares=on, group="libvirt")

    def nodes(self, wanted: bool | None) -> None:
        """Set whether hosts report their NUMA nodes, from their next start on."""
        self.flags(enable_numa_reporting_to_placement=wanted, group="compute")

    def start_host(self, name: str, **arguments: Any) -> str:
        """Start a compute with the hardware of the class's kind; return its provider's uuid."""
        if self.kind.driver != OURS:
            self.write_provider_yaml("$COMPUTE_NODE", arguments)
            arguments = {}
        self.start_compute(name, host_info=self.kind.hardware(**arguments))
        uuid: str = self.compute_rp_uuids[name]
        return uuid

    def restart(self, name: str) -> None:
        """Stop a compute and start it again; its provider and guests stay."""
        self.restart_compute_service(name)

    def restart_refused(self, name: str, kind: type[BaseException] = ProcessEnded) -> str:
        """Restart a compute that must refuse to start; return what it says."""
        uuid = self.compute_rp_uuids[name]
        service = self.computes[name]
        with pytest.raises(kind) as caught:
            self.restart(name)
        # What the fixture forgot on the way, so that the test can go on.
        self.compute_rp_uuids[name] = uuid
        self.computes[name] = service
        return str(caught.value)

    def go_down(self, host: str) -> None:
        """Have a compute die, and everybody know."""
        self.computes[host].stop()
        self._force_down(host, True)

    def come_back(self, host: str) -> None:
        """Tell everybody that a compute is back, which was started again."""
        self._force_down(host, False)

    def _force_down(self, host: str, down: bool) -> None:
        service = self.api.get_services(host=host, binary="nova-compute")[0]
        self.api.put_service_force_down(service["id"], down)

    def provider_yaml(self, name: str, total: int) -> Path:
        """Have Nova read a file that gives shares to a host, or to all by ``$COMPUTE_NODE``."""
        return self.write_provider_yaml(name, {SHARES: total})

    def write_provider_yaml(self, name: str, totals: Mapping[str, int]) -> Path:
        """Have Nova read a file that gives resources to a host, or to all by ``$COMPUTE_NODE``."""
        provider = {
            "identification": {"uuid" if name.startswith("$") else "name": name},
            "inventories": {"additional": [{key: {"total": n}} for key, n in totals.items()]},
        }
        document = {"meta": {"schema_version": "1.0"}, "providers": [provider] if totals else []}
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        path = folder / "provider.yaml"
        path.write_text(json.dumps(document))  # JSON is YAML
        self.flags(group="compute", provider_config_location=str(folder))
        return path

    def no_provider_yaml(self) -> None:
        self.flags(group="compute", provider_config_location="/nowhere")

    def flavor(
        self,
        name: str,
        specs: Mapping[str, str] = MappingProxyType({}),
        *,
        vcpus: int = 1,
        disk_gb: int = 0,
    ) -> str:
        """Make a flavor of 512 MiB; return its id."""
        flavor: str = self._create_flavor(
            name=name, vcpu=vcpus, memory_mb=512, disk=disk_gb, ephemeral=0, extra_spec=dict(specs)
        )
        return flavor

    def tier(self, name: str, multiplier: str, *, vcpus: int = 1) -> str:
        """Make a flavor with a multiplier; return its id."""
        return self.flavor(name, {MULTIPLIER: multiplier}, vcpus=vcpus)

    def boot(self, flavor: str, *, state: str = "ACTIVE", **values: Any) -> dict[str, Any]:
        """Boot a server and wait for it."""
        server: dict[str, Any] = self._create_server(
            flavor_id=flavor, networks="none", expected_state=state, **values
        )
        return server

    def boot_on(self, host: str, flavor: str) -> str:
        """Boot a server on a host; return its uuid."""
        uuid: str = self.boot(flavor, host=host)["id"]
        return uuid

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return all that a consumer holds, by the name of the provider."""
        return self.tree.held(consumer)

    def allocated(self, consumer: str) -> dict[str, int | None]:
        """Return the VCPU_SHARES of a consumer, by the name of the provider."""
        return {name: amounts.get(SHARES) for name, amounts in self.held(consumer).items()}

    def inventory(self, name: str) -> dict[str, Any] | None:
        """Return the shares that Placement has of a host."""
        return self.tree.inventories(name)[name].get(SHARES)

    def host_of(self, server: dict[str, Any]) -> str:
        """Return where a server is now."""
        host: str = self.api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"]
        return host

    def where(self, server: str) -> list[Node]:
        """Check that all agree on where a server with NUMA nodes is; return its nodes."""
        return check_agreement(self, server)

    def migration_of(self, server: str) -> str:
        """Return the uuid of a server's only migration."""
        (migration,) = self.api.api_get(f"/os-migrations?instance_uuid={server}").body[
            "migrations"
        ]
        uuid: str = migration["uuid"]
        return uuid

    def domain(self, server: str, host: str) -> Any:
        """Return the XML of a guest, as libvirt has it."""
        connection = self.computes[host].driver._host.get_connection()
        return etree.fromstring(connection.lookupByUUIDString(server).XMLDesc(0))

    def domain_shares(self, server: str, host: str) -> str | None:
        """Return ``<shares>`` of a guest, as libvirt has it."""
        shares: str | None = self.domain(server, host).findtext("cputune/shares")
        return shares

    def fault_of(self, server: dict[str, Any]) -> str:
        """Return the fault that the user sees."""
        message: str = self.api.get_server(server["id"])["fault"]["message"]
        return message

    def fail_to_resize(self, server: dict[str, Any], flavor: str) -> str:
        """Resize in vain; return what the user sees of it."""
        self.api.post_server_action(server["id"], {"resize": {"flavorRef": flavor}})
        self._wait_for_action_fail_completion(server, "resize", "conductor_migrate_server")
        self._wait_for_state_change(server, "ACTIVE")
        return self.last_failure_of(server)

    def last_failure_of(self, server: dict[str, Any]) -> str:
        """Return what the user sees of the last action: the details of its failed event."""
        actions = self.api.get_instance_actions(server["id"])
        url = f"/servers/{server['id']}/os-instance-actions/{actions[0]['request_id']}"
        events = self.api.api_get(url).body["instanceAction"]["events"]
        return next(str(event["details"]) for event in events if event["result"] == "Error")

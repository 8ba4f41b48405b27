"""A cloud of Nova's own services, with cpu-tiers loaded as an operator loads it."""

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar
from unittest import mock

import fixtures
from nova.api.validation.extra_specs import validators
from nova.conf import paths
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options

SHARES = "CUSTOM_VCPU_SHARES"
MULTIPLIER = "quota:cpu_shares_multiplier"
WEIGHER = "cpu_tiers.ResourceProviderWeigher"


def installed_path(*args: str) -> str:
    """Return where the wheel has a file that Nova's fixtures look for beside the package."""
    installed = Path(sys.prefix, *args)
    return str(installed) if installed.exists() else str(Path("$state_path", *args))


class Services(base.ServersTestBase):
    """API, conductor and scheduler, and what to ask of them.

    Nothing of Nova's own weighers is loaded, so that a test knows who decided.
    """

    api_major_version = "v2.1"
    microversion = "latest"
    ADMIN_API = True
    weighers: tuple[str, ...] = (WEIGHER,)
    scheduler_options: ClassVar[Mapping[str, Any]] = {}

    def setUp(self) -> None:
        # Nova deletes every attribute in the end, and pytest wants to delete this one itself.
        name = self._testMethodName
        self.addCleanup(setattr, self, name, getattr(self, name))
        self.useFixture(fixtures.MonkeyPatch("nova.conf.paths.state_path_def", installed_path))
        assert paths.state_path_def is installed_path
        validators.load_validators()  # as the API does when it starts
        super().setUp()
        warnings.filterwarnings("error", module="cpu_tiers")  # Nova has set filters of its own

    def _setup_scheduler_service(self) -> Any:
        options.register(filter_scheduler)
        self.configure(
            weight_classes=list(self.weighers),
            shuffle_best_same_weighed_hosts=False,
            query_placement_for_vcpu_shares=True,
        )
        self.configure(**self.scheduler_options)
        return super()._setup_scheduler_service()

    def configure(self, **values: Any) -> None:
        """Set options of ``[filter_scheduler]``."""
        self.flags(group="filter_scheduler", **values)

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

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return all that a consumer holds, by the name of the host."""
        names = {uuid: name for name, uuid in self.compute_rp_uuids.items()}
        allocations = self.placement.get(f"/allocations/{consumer}").body["allocations"]
        return {names[uuid]: body["resources"] for uuid, body in allocations.items()}

    def allocated(self, consumer: str) -> dict[str, int | None]:
        """Return the VCPU_SHARES of a consumer, by the name of the host."""
        return {host: resources.get(SHARES) for host, resources in self.held(consumer).items()}

    def host_of(self, server: dict[str, Any]) -> str:
        """Return where a server is now."""
        host: str = self.api.get_server(server["id"])["OS-EXT-SRV-ATTR:host"]
        return host

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
        return next(str(one["details"]) for one in events if one["result"] == "Error")

    @contextlib.contextmanager
    def no_bad_query(self) -> Iterator[None]:
        """Fail where Placement refuses a query."""
        with mock.patch("nova.scheduler.client.report.LOG.error") as error:
            yield
        error.assert_not_called()

    def reading_is_an_error(self) -> Any:
        """Return a context in which nobody may read provider summaries."""
        return mock.patch("cpu_tiers.nova.scheduler.scores.Forest", side_effect=AssertionError)


class Cloud(Services):
    """With computes that have Nova's own driver; they start with :meth:`start_host`."""

    def start_host(self, name: str, **classes: int) -> str:
        """Start a compute of 8 CPUs and 16 GiB; return the uuid of its provider.

        :param classes: what else it has, such as ``CUSTOM_VCPU_SHARES=800``;
            Nova reports it from a provider.yaml.
        """
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        provider = {
            "identification": {"uuid": "$COMPUTE_NODE"},
            "inventories": {"additional": [{key: {"total": n}} for key, n in classes.items()]},
        }
        document = {"meta": {"schema_version": "1.0"}, "providers": [provider] if classes else []}
        (folder / "provider.yaml").write_text(json.dumps(document))  # JSON is YAML
        self.flags(group="compute", provider_config_location=str(folder))
        cpus = fakelibvirt.HostInfo(cpu_nodes=1, cpu_sockets=1, cpu_cores=4, cpu_threads=2)
        self.start_compute(name, host_info=cpus)
        uuid: str = self.compute_rp_uuids[name]
        return uuid

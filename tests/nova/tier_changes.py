"""A cloud in which a resize between tiers is carried out on the running server."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import fixtures
from lxml import etree
from nova import context as nova_context
from nova import objects
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import compute
from cpu_tiers.nova import options
from cpu_tiers.nova.api.features import API
from cpu_tiers.nova.tier_changes import PENDING
from tests.nova.cloud import WEIGHER
from tests.nova.computes import SHARES, Computes
from tests.nova.kinds import FAKE


class Weights(fixtures.Fixture):
    """Has Nova's fake libvirt change the weight of a guest, and note each call.

    :ivar refuses: libvirt refuses each change.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        self.set: list[tuple[str, int]] = []
        self.metadata: dict[str, str] = {}

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        def change(domain: Any, parameters: Mapping[str, int], flags: int) -> None:
            if self.refuses:
                raise fakelibvirt.make_libvirtError(fakelibvirt.libvirtError, "refused")
            self.set.append((domain.UUIDString(), parameters["cpu_shares"]))
            tuning = domain._def["cputune"]
            if tuning is None:
                tuning = domain._def["cputune"] = etree.Element("cputune")
            for element in tuning.findall("shares"):
                tuning.remove(element)
            etree.SubElement(tuning, "shares").text = str(parameters["cpu_shares"])

        def describe(domain: Any, kind: int, text: str, *_: object, **__: object) -> None:
            self.metadata[domain.UUIDString()] = text
            whole = etree.Element("metadata")
            whole.append(etree.fromstring(text))
            domain._def["metadata"] = whole

        domain = f"{FAKE}.Domain"
        replaced = {"setSchedulerParametersFlags": change, "setMetadata": describe}
        for name, function in replaced.items():
            self.useFixture(fixtures.MonkeyPatch(f"{domain}.{name}", function))


class TierChanges(Computes):
    """Two hosts of 8 CPUs with 800 shares each, and flavors of two vCPUs."""

    CAST_AS_CALL = False
    microversion = "latest"
    weighers: tuple[str, ...] | None = (WEIGHER,)
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": True}
    choice: ClassVar[str | None] = "refuse"
    """``[compute] live_tier_change``."""
    cpus: ClassVar[int] = 8
    """The CPUs of a host."""

    def setUp(self) -> None:
        options.register(compute)
        super().setUp()
        self.weights = self.useFixture(Weights())
        self.flags(initial_cpu_allocation_ratio=1.0)
        virt = "nova.virt.libvirt"
        for function, replacement in (
            (f"{virt}.host.Host.get_online_cpus", lambda _: set(range(self.cpus))),
            (f"{virt}.driver.LibvirtDriver.migrate_disk_and_power_off", lambda *_, **__: "{}"),
        ):
            self.useFixture(fixtures.MonkeyPatch(function, replacement))
        self.choose(self.choice)
        self.start_hosts()
        for host in self.computes.values():  # no look for pending changes before report()
            host.driver._next_settlement = math.inf
        self.flavors = {
            "bronze": self.tier("bronze", "10", vcpus=2),  # 20
            "silver": self.tier("silver", "50", vcpus=2),  # 100
            "gold": self.tier("gold", "100", vcpus=2),  # 200
            "none": self.flavor("none", vcpus=2),
        }

    def start_hosts(self) -> None:
        for name in ("one", "two"):
            self.start_host(name)

    def choose(self, choice: str | None) -> None:
        """Set the option, and start nova-api with the option."""
        self.flags(live_tier_change=choice, group="compute")
        API.start()

    def resize(self, server: str, flavor: str) -> None:
        """Ask for a resize, and wait until it is to be confirmed."""
        flavor = self.flavors.get(flavor, flavor)
        self.api.post_server_action(server, {"resize": {"flavorRef": flavor}})
        self._wait_for_state_change({"id": server}, "VERIFY_RESIZE")

    def confirm(self, server: str) -> None:
        """Confirm a resize, on the host of the server."""
        with self.on_host(server):
            self._confirm_resize({"id": server})

    @contextlib.contextmanager
    def on_host(self, server: str) -> Iterator[None]:
        """Have ``[DEFAULT] host`` name the host of a server: all hosts share one configuration."""
        before = options.CONF.host
        self.flags(host=self.host_of({"id": server}))
        yield
        self.flags(host=before)

    def revert(self, server: str) -> None:
        """Revert a resize, and wait for the end."""
        self.api.post_server_action(server, {"revertResize": {}})
        self._wait_for_state_change({"id": server}, "ACTIVE")

    def report(self, server: str) -> None:
        """Have the host of a server report itself to Placement, long after the last report."""
        compute = self.computes[self.host_of({"id": server})]
        compute.driver._next_settlement = 0.0
        with self.on_host(server):
            compute.manager.update_available_resource(nova_context.get_admin_context())

    def instance(self, server: str) -> Any:
        """Return the server as Nova's database has it."""
        attributes = ["flavor", "system_metadata", "migration_context"]
        return objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), server, expected_attrs=attributes
        )

    def flavors_of(self, server: str) -> tuple[str, str]:
        """Return the flavors of a server and of its request spec."""
        spec = objects.RequestSpec.get_by_instance_uuid(nova_context.get_admin_context(), server)
        return self.instance(server).flavor.name, spec.flavor.name

    def is_pending(self, server: str) -> bool:
        return PENDING in self.instance(server).system_metadata

    def shares_of(self, consumer: str) -> int:
        """Return all shares of a consumer."""
        return sum(amounts.get(SHARES, 0) for amounts in self.held(consumer).values())

    def events_of(self, server: str) -> list[tuple[str, str | None, str | None]]:
        """Return name, result and details of the events of the last action of a server."""
        action = self.api.get_instance_actions(server)[0]["request_id"]
        url = f"/servers/{server}/os-instance-actions/{action}"
        events = self.api.api_get(url).body["instanceAction"]["events"]
        return [(each["event"], each["result"], each["details"]) for each in reversed(events)]

    def check(self, server: str, tier: str, *, weight: int, shares: int) -> None:
        """Check everything that tells the tier of a server, once nothing is pending."""
        deadline = time.monotonic() + 60
        while self.is_pending(server) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.flavors_of(server) == (tier, tier)
        assert self.shares_of(server) == shares
        assert self.domain_shares(server, self.host_of({"id": server})) == str(weight)
        assert not self.is_pending(server)

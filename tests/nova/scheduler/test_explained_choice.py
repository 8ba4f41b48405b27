"""The hosts and the first host of ``explain``, compared with nova-scheduler on drawn clouds.

nova-computes with drawn hardware report to a real Placement, and host aggregates isolate hosts or
change multipliers. Each server is explained by the command line, and then booted: the hosts that
Nova's own filters and weighers leave, and their order, are those of the answer.
``CPU_TIERS_CLOUDS=0-19`` draws 20 clouds; without it, a run draws one.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova import context
from nova.scheduler import manager
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.fixtures.glance import GlanceFixture

from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.draws import clouds, repeatable
from tests.nova.cloud import STOCK
from tests.nova.command_line import services_of, streams
from tests.nova.computes import Computes
from tests.nova.scheduler.weighed_hosts import memory_mb

HOSTS, SERVERS = 5, 10
SHARED, DEDICATED = range(6), range(6, 14)
SPECS: Mapping[str, tuple[int, int, dict[str, str]]] = {
    "small": (1, 1, {}),
    "large": (3, 20, {}),
    "pinned": (2, 5, {"hw:cpu_policy": "dedicated"}),
    "mixed": (3, 1, {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"}),
    "guarded": (1, 1, {"trait:COMPUTE_NODE": "required"}),
}
IMAGES = {
    "raw": GlanceFixture.image1["id"],
    "vhd": GlanceFixture.auto_disk_config_enabled_image["id"],
}
OPTIONS = "enable_isolated_aggregate_filtering", "query_placement_for_image_type_support"


class TestExplainedChoice(Computes):
    """All of Nova's weighers, and no scoring of cpu-tiers."""

    kind = replace(
        STOCK,
        weighers=("nova.scheduler.weights.all_weighers",),
        filters=("NUMATopologyFilter",),
        options={},
    )
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        total = "nova.virt.libvirt.host.Host.get_memory_mb_total"
        self.useFixture(fixtures.MonkeyPatch(total, memory_mb))
        self.flags(cores=-1, group="quota")
        self.flags(cpu_shared_set="0-5", cpu_dedicated_set="6-13", group="compute")
        self.flags(**dict.fromkeys(OPTIONS, True), group="scheduler")
        self.flags(initial_cpu_allocation_ratio=2.0, ram_allocation_ratio=1.5)
        path = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        path.write_text("[scheduler]\n" + "".join(f"{option} = true\n" for option in OPTIONS))
        self.conf = str(path)
        self.sorted: list[str] = []
        sort = manager.SchedulerManager._get_sorted_hosts

        def noted(scheduler: Any, *arguments: Any) -> Any:
            hosts = sort(scheduler, *arguments)
            self.sorted = [host.host for host in hosts]
            return hosts

        patch = "nova.scheduler.manager.SchedulerManager._get_sorted_hosts"
        self.useFixture(fixtures.MonkeyPatch(patch, noted))

    def start_drawn(self, rng: random.Random, name: str) -> None:
        """Start a host of 14 CPUs, of which Nova uses a part, with a drawn disk and memory."""
        memory = rng.choice([4, 8, 16]) * 2**20
        hardware = fakelibvirt.HostInfo(
            cpu_nodes=1, cpu_sockets=1, cpu_cores=7, cpu_threads=2, kB_mem=memory
        )
        self.start_compute(name, host_info=hardware)
        compute = self.computes[name]
        shared = frozenset(rng.choice([SHARED, SHARED[:4], ()]))
        dedicated = frozenset(
            rng.choice([DEDICATED, DEDICATED[:4], ()] if shared else [DEDICATED])
        )
        used = rng.choice([0, 20, 100])
        compute.driver._get_vcpu_available = lambda: shared
        compute.driver._get_pcpu_available = lambda: dedicated
        disk = {"total": 128, "used": used, "free": 128 - used}
        compute.driver._get_local_gb_info = lambda: disk
        if rng.random() < 0.3:
            type_ = {
                "supports_image_type_vhd": rng.random() < 0.5,
                "supports_image_type_raw": False,
            }
            compute.driver.capabilities = {**compute.driver.capabilities, **type_}
        compute.manager.update_available_resource(context.get_admin_context())

    def aggregate(self, name: str, hosts: Iterable[str], metadata: Mapping[str, str]) -> None:
        body = {"aggregate": {"name": name, "availability_zone": None}}
        number = self.api.post_aggregate(body)["id"]
        for host in hosts:
            self.api.add_host_to_aggregate(number, host)
        self.api.post_aggregate_action(number, {"set_metadata": {"metadata": dict(metadata)}})

    def said(self, *arguments: str) -> str:
        """Return what ``explain`` prints."""
        services = services_of(self)
        with (
            mock.patch.object(NovaConfCommand, "services", return_value=services),
            streams() as (out, error),
        ):
            code = app.main(["--config-file", self.conf, "explain", *arguments])
        assert code in (0, 3), out.getvalue() + error.getvalue()
        assert "Traceback" not in error.getvalue()
        return out.getvalue()

    def explain(self, flavor: str, disk_format: str) -> Mapping[str, Any]:
        """Return the answer about a server that is not there yet."""
        image = Path(self.conf).with_name(f"{disk_format}.json")
        image.write_text(json.dumps({"name": "i", "disk_format": disk_format, "properties": {}}))
        text = self.said("--flavor", flavor, "--image", str(image), "-f", "json")
        answer: Mapping[str, Any] = json.loads(text)
        return answer

    def test_names_of_aggregates_and_what_is_not_known(self) -> None:
        for name in ("fast", "slow"):
            self.start_compute(name)
        self.aggregate("ssd", ["fast"], {"trait:COMPUTE_NODE": "required"})
        self.aggregate("rack", ["fast"], {})
        self.flavor("small")
        first, *lines = self.said("--flavor", "small", "--aggregate", "rack").splitlines()
        assert (
            first == "0 of 2 hosts: 1 is in the isolated aggregate ssd, 1 is not in aggregate rack"
        )
        assert "  without !aggregate ssd: 1 host" in lines
        assert "  without aggregate rack: 1 host" in lines
        assert "  fast is in the isolated aggregate ssd" in lines
        whole = " ".join(self.said("--flavor", "small").split())
        assert whole.startswith(
            "1 of 2 hosts: 1 is in the isolated aggregate ssd; not looked at: [scheduler]"
            " query_placement_for_image_type_support"
        )

    def live(self, rng: random.Random) -> None:
        names = [f"host{number}" for number in range(HOSTS)]
        for name in names:
            self.start_drawn(rng, name)
        for number in range(rng.choice([1, 2, 3])):
            keys = rng.sample(["ram", "cpu", "disk", "hypervisor_version", "num_instances"], 2)
            numbers = {
                f"{key}_weight_multiplier": rng.choice(["-5.0", "0", "3", "many"]) for key in keys
            }
            self.aggregate(f"rack{number}", rng.sample(names, rng.choice([1, 2, 3])), numbers)
        guard = {"trait:COMPUTE_NODE": "required"}
        self.aggregate("guarded", rng.sample(names, 1), guard)
        flavors = {
            name: self.flavor(name, specs, vcpus=vcpus, disk_gb=disk)
            for name, (vcpus, disk, specs) in SPECS.items()
        }
        compared = 0
        for _ in range(SERVERS):
            flavor, disk_format = rng.choice(list(flavors)), rng.choice(["raw", "raw", "vhd"])
            answer = self.explain(flavor, disk_format)
            self.sorted = []
            body = self._build_server(
                flavor_id=flavors[flavor], networks="none", image_uuid=IMAGES[disk_format]
            )
            server = self.api.post_server({"server": body})
            rows = [row for row in answer["ranking"] if not self.is_refused(flavor, row["host"])]
            self._wait_for_state_change(server, "ACTIVE" if rows else "ERROR")
            for compute in self.computes.values():  # as every minute: nothing is being built
                compute.manager.update_available_resource(context.get_admin_context())
            is_whole = len(rows) == len(answer["ranking"])
            compared += self.compare(rows, is_whole, f"{flavor} from {disk_format}")
        assert compared

    def is_refused(self, flavor: str, host: str) -> bool:
        """Tell whether Nova's filter refuses a host that Placement gives.

        Nova asks for VCPU for a pinned server, too, because of hosts of old releases, and its
        NUMATopologyFilter looks for dedicated CPUs.
        """
        return flavor == "pinned" and not self.computes[host].driver._get_pcpu_available()

    def compare(self, rows: Sequence[Mapping[str, Any]], is_whole: bool, what: str) -> bool:
        """Return whether Nova had several hosts to choose from, also to refuse one.

        :param is_whole: no filter refused a host; otherwise Nova scales the weights of less hosts.
        """
        weights = {row["host"]: row["weight"] for row in rows}
        assert sorted(weights) == sorted(self.sorted), what
        if not is_whole:
            return True
        # Hosts of equal weights have no order.
        found = [weights[host] for host in self.sorted]
        assert all(abs(a - b["weight"]) < 1e-9 for a, b in zip(found, rows, strict=True)), (
            what,
            self.sorted,
            weights,
        )
        return len(rows) > 1


def _of_cloud(number: int) -> Callable[[TestExplainedChoice], None]:
    def test(self: TestExplainedChoice) -> None:
        with repeatable(number) as seed:
            self.live(random.Random(seed))

    return test


for _number in clouds(5):
    setattr(TestExplainedChoice, f"test_cloud_{_number}", _of_cloud(_number))

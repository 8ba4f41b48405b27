"""Nova's weighers as :mod:`cpu_tiers.tools.cloud_model.nova_weighers` has them, and Nova's own.

Nova's classes get the host states that nova-scheduler makes of what real nova-computes have
reported, and cpu-tiers gets what Placement has of the same hosts. No amount is passed on.
"""

import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import fixtures
import pytest
from nova import conf, context
from nova.scheduler import weights
from nova.scheduler.weights import cpu, disk, num_instances, ram
from nova.tests import fixtures as nova_fixtures

from cpu_tiers.conf.read import NOVAS_OPTIONS
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS, HostStates, with_weights
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud
from tests.nova.cloud import STOCK
from tests.nova.command_line import services_of
from tests.nova.computes import Computes
from tests.nova.numa.pinning import pinning_kind
from tests.nova.scheduler.weighed_hosts import memory_mb

CLASSES = {
    "ram": ram.RAMWeigher,
    "cpu": cpu.CPUWeigher,
    "disk": disk.DiskWeigher,
    "num_instances": num_instances.NumInstancesWeigher,
}


def host(name: str, values: Mapping[str, float]) -> SimpleNamespace:
    """Return a host state with the attributes that Nova's weighers read."""
    return SimpleNamespace(
        host=name,
        nodename=name,
        aggregates=[],
        free_ram_mb=values["ram"],
        vcpus_total=values["cpu"],
        cpu_allocation_ratio=1.0,
        vcpus_used=0,
        free_disk_mb=values["disk"],
        num_instances=values["num_instances"],
    )


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_novas(seed: int) -> None:
    rng = random.Random(seed)
    # Few values, so that hosts are equal in some of them; a free amount may be negative.
    drawn = [
        {
            name: rng.choice([-4, 0, 3, 8, 60]) if name != "num_instances" else rng.randint(0, 3)
            for name in WEIGHERS
        }
        for _ in range(rng.choice([1, 2, 3, 9]))
    ]
    multipliers = {name: rng.choice([0.0, 1.0, -1.5, 2.0]) for name in WEIGHERS}
    expected = [0.0] * len(drawn)
    for name, multiplier in multipliers.items():
        conf.CONF.set_override(f"{name}_weight_multiplier", multiplier, "filter_scheduler")
        hosts = [host(str(number), values) for number, values in enumerate(drawn)]
        weighed = weights.HostWeightHandler().get_weighed_objects([CLASSES[name]()], hosts, None)
        for item in weighed:
            expected[int(item.obj.host)] += item.weight
        conf.CONF.clear_override(f"{name}_weight_multiplier", "filter_scheduler")
    found = [0.0] * len(drawn)
    for name, multiplier in multipliers.items():
        found = with_weights(found, [values[name] for values in drawn], multiplier, weigher=name)
    assert found == pytest.approx(expected)


def test_the_multipliers_without_options_are_novas() -> None:
    defaults = {
        opt.name: opt.default
        for group, opts in NOVAS_OPTIONS
        if group == "filter_scheduler"
        for opt in opts
        if opt.name.endswith("_weight_multiplier")
    }
    known = {**WEIGHERS, "hypervisor_version": 1.0}
    assert defaults == {f"{name}_weight_multiplier": value for name, value in known.items()}
    for name, value in defaults.items():
        assert conf.CONF.filter_scheduler[name] == value


PINNED = {"hw:cpu_policy": "dedicated"}


class Reported(Computes):
    """Hosts whose host states Nova's weighers get; ``look`` notes a host as it is now.

    All hosts have the options of this process, so a host is noted before the next one starts.
    """

    def setUp(self) -> None:
        super().setUp()
        disk = {"total": 128, "used": 0, "free": 128}  # nothing beside the servers
        path = "nova.virt.libvirt.LibvirtDriver._get_local_gb_info"
        self.useFixture(fixtures.MonkeyPatch(path, staticmethod(lambda: disk)))
        total = "nova.virt.libvirt.host.Host.get_memory_mb_total"  # the fake libvirt says kB
        self.useFixture(fixtures.MonkeyPatch(total, memory_mb))
        self.flags(cores=-1, group="quota")
        self.cinder = self.useFixture(nova_fixtures.CinderFixture(self))
        self.states: dict[str, Any] = {}
        self.values: dict[str, dict[str, float]] = {}

    def volume_server(self, host: str, flavor: str) -> None:
        mapping = {
            "boot_index": 0,
            "uuid": nova_fixtures.CinderFixture.IMAGE_BACKED_VOL,
            "source_type": "volume",
            "destination_type": "volume",
        }
        body = self._build_server(flavor_id=flavor, networks="none", host=host, image_uuid="")
        server = self.api.post_server({"server": {**body, "block_device_mapping_v2": [mapping]}})
        self._wait_for_state_change(server, "ACTIVE")

    def look(self, name: str) -> None:
        uuid, admin = self.compute_rp_uuids[name], context.get_admin_context()
        self.computes[name].manager.update_available_resource(admin)  # as every minute
        manager = self.scheduler.manager.host_manager
        (self.states[uuid],) = manager.get_host_states_by_uuids(admin, [uuid], None)
        client = PlacementClient(services_of(self).adapter("placement"))
        cloud = read_whole_cloud(client).cloud()
        values = HostStates(cloud.hosts).values
        self.values[uuid] = {weigher: of_hosts[uuid] for weigher, of_hosts in values.items()}

    def check(self) -> None:
        """Compare the weights of all hosts, with each weigher alone."""
        states = list(self.states.values())
        for weigher in ("ram", "cpu", "disk"):
            handler = weights.HostWeightHandler()
            weighed = handler.get_weighed_objects([CLASSES[weigher]()], states, None)
            values = [self.values[state.uuid][weigher] for state in states]
            found = with_weights([0.0] * len(values), values, 1.0, weigher=weigher)
            expected = {item.obj.host: item.weight for item in weighed}
            assert dict(zip([s.host for s in states], found, strict=True)) == expected, weigher


class TestStockHosts(Reported):
    """Hosts of 16 CPUs with Nova's own driver."""

    kind = STOCK

    def host(self, name: str, **options: Any) -> None:
        """Start a host; the name of an option of the group ``compute`` ends with ``_set``."""
        for option, value in options.items():
            self.flags(**{option: value}, group="compute" if option.endswith("_set") else None)
        self.start_host(name)

    def reset(self) -> None:
        for option in ("cpu_shared_set", "cpu_dedicated_set"):
            conf.CONF.clear_override(option, "compute")
        for name in ("cpu", "ram", "disk"):
            conf.CONF.clear_override(f"{name}_allocation_ratio")
        for name in ("cpus", "memory_mb", "disk_mb"):
            conf.CONF.clear_override(f"reserved_host_{name}")

    def test_all_kinds_of_hosts(self) -> None:
        small = self.flavor("small", vcpus=1, disk_gb=4)
        large = self.flavor("large", vcpus=6, disk_gb=20)
        pinned = self.flavor("pinned", PINNED, vcpus=2, disk_gb=1)
        hosts: dict[str, tuple[dict[str, Any], list[str]]] = {
            "shared": ({}, [small, large]),
            "some-shared": ({"cpu_shared_set": "0-5"}, [small]),
            "both": ({"cpu_shared_set": "0-3", "cpu_dedicated_set": "4-9"}, [small, pinned]),
            "dedicated": ({"cpu_dedicated_set": "0-7"}, [pinned]),
            "ratios": (
                {"cpu_allocation_ratio": 1.5, "ram_allocation_ratio": 2.0}
                | {"disk_allocation_ratio": 3.0},
                [large],
            ),
            "reserved": (
                {"reserved_host_cpus": 3, "reserved_host_memory_mb": 8 * 1024}
                | {"reserved_host_disk_mb": 10 * 1024},
                [large],
            ),
            "empty": ({}, []),
        }
        for name, (options, flavors) in hosts.items():
            self.host(name, **options)
            for flavor in flavors:
                self.boot_on(name, flavor)
            self.look(name)
            self.reset()
        self.check()

    def test_volumes(self) -> None:
        flavor = self.flavor("large", vcpus=6, disk_gb=20)
        for name in ("volume", "disk"):
            self.start_host(name)
        self.volume_server("volume", flavor)
        self.boot_on("disk", flavor)
        self.look("volume")
        self.look("disk")
        self.check()

    def test_an_over_full_host(self) -> None:
        large = self.flavor("large", vcpus=6, disk_gb=60)
        for name in ("full", "other"):
            self.start_host(name)
        self.boot_on("full", large)
        self.boot_on("full", large)
        self.look("other")
        self.flags(
            cpu_allocation_ratio=0.5,  # 8 of 16, and 12 are used
            reserved_host_memory_mb=15 * 1024 + 512,  # 512 of 16 GiB are left, and 1024 are used
            reserved_host_disk_mb=100 * 1024,
        )
        self.restart("full")
        self.look("full")
        uuid = self.compute_rp_uuids["full"]
        assert [self.values[uuid][weigher] < 0 for weigher in ("ram", "cpu", "disk")] == [True] * 3
        self.check()


class TestReportingHosts(Reported):
    """Hosts that report two NUMA nodes, each of 2 shared and 4 dedicated CPUs."""

    kind = pinning_kind()

    def test_nodes(self) -> None:
        self.flags(reserved_host_memory_mb=101, initial_cpu_allocation_ratio=4.0)
        shared = self.flavor("shared", {"hw:numa_nodes": "1"}, vcpus=2)
        pinned = self.flavor("pinned", PINNED, vcpus=3)
        for name, flavors in {"one": [shared, pinned], "two": [shared]}.items():
            self.start_host(name)
            for flavor in flavors:
                self.boot_on(name, flavor)
            self.look(name)
        self.check()

"""The lines of docs/admin/custom-weighers.rst, in Nova's services beside Nova's own weighers."""

import configparser
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from unittest import mock

import fixtures
import pytest
from nova import exception
from nova.scheduler.host_manager import HostManager
from nova.tests.fixtures.libvirt import HostInfo
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.nova.options import CONF
from cpu_tiers.tools.writers.host_pressure import change_trait
from tests.nova.cloud import STOCK, WEIGHER
from tests.nova.computes import Computes
from tests.nova.networks import placement_of
from tests.unit.references import ROOT

PAGE = (ROOT / "docs/admin/custom-weighers.rst").read_text()


class Row(NamedTuple):
    """A line of the page.

    :param conf: lines of ``[filter_scheduler]``.
    :param specs: extra specs of the flavor.
    :param traits: the traits of each host.
    :param order: the hosts, the best first; ``a=b`` have equal weights.
    """

    conf: str
    specs: Mapping[str, str]
    traits: Mapping[str, Sequence[str]]
    order: str


CLASSES = "resource_provider_preferred_traits = CUSTOM_RAM_512G=2,CUSTOM_RAM_1T"
AVOIDED = "resource_provider_avoided_traits = CUSTOM_HW_SAPPHIRE_RAPIDS,CUSTOM_DECOMMISSIONING=10"
TAINT = "resource_provider_avoided_traits = CUSTOM_TAINT"
SAP = {"a": ["CUSTOM_HW_SAPPHIRE_RAPIDS"], "b": ["CUSTOM_DECOMMISSIONING"]}
RAM = {"a": ["CUSTOM_RAM_512G"], "b": ["CUSTOM_RAM_1T"], "c": ["CUSTOM_RAM_2T"]}
HANA = {
    "trait:CUSTOM_HANA_EXCLUSIVE_HOST": "required",
    "trait:CUSTOM_RAM_512G": "preferred:2",
    "trait:CUSTOM_RAM_1T": "preferred",
}
AFFINITY = {"trait:CUSTOM_SSD": "preferred:2", "trait:CUSTOM_RACK_7": "preferred"}
SOFT = {
    # 1000 x 2, 1000 x 1, 0
    "classes of RAM": Row(CLASSES, {}, RAM, "a b c"),
    # 0, 1000 x -1, 1000 x -10
    "avoided hosts": Row(AVOIDED, {}, SAP, "c a b"),
    # Only host a has the required trait.
    "required": Row(AVOIDED, {"trait:CUSTOM_HW_SAPPHIRE_RAPIDS": "required"}, SAP, "a"),
    # 1000 x 1, 0, 0
    "own hosts": Row("", {"trait:CUSTOM_OWN": "preferred"}, {"b": ["CUSTOM_OWN"]}, "b a=c"),
    # Host c has no HANA; of the others 1000 x 2, 1000 x 1
    "HANA": Row(
        "",
        HANA,
        {h: [*RAM[h], *(["CUSTOM_HANA_EXCLUSIVE_HOST"] if h != "c" else [])] for h in "abc"},
        "a b",
    ),
    "not HANA": Row("", {}, RAM, "a=b=c"),
    # 1000 x (2 + 1), 1000 x 2, 1000 x 1
    "node affinity": Row(
        "",
        AFFINITY,
        {"a": ["CUSTOM_RACK_7"], "b": ["CUSTOM_SSD"], "c": ["CUSTOM_SSD", "CUSTOM_RACK_7"]},
        "c b a",
    ),
    # 0, 0, 1000 x -1
    "taint": Row(TAINT, {}, {"a": ["CUSTOM_TAINT"]}, "b=c a"),
    "toleration": Row(
        TAINT, {"trait:CUSTOM_TAINT": "preferred:0"}, {"a": ["CUSTOM_TAINT"]}, "a=b=c"
    ),
}

ALONE = """\
cpu_weight_multiplier = 0.0
ram_weight_multiplier = 0.0
disk_weight_multiplier = 0.0
io_ops_weight_multiplier = 0.0
"""
SPREADING = """\
resource_provider_weight_multiplier = 100.0
resource_provider_scoring = requested-to-capacity
resource_provider_shape = 0=1,100=0
resource_provider_resources = VCPU,MEMORY_MB
"""
PACKING = """\
resource_provider_weight_multiplier = 100.0
resource_provider_scoring = requested-to-capacity
resource_provider_shape = 0=0,100=1
resource_provider_resources = VCPU=4,MEMORY_MB
"""
VCPU = """\
resource_provider_weight_multiplier = 100.0
resource_provider_scoring = requested-to-capacity
resource_provider_resources = VCPU
"""
TARGET = f"{VCPU}resource_provider_shape = 0=0.3,30=1,30.01=0.3,100=0"
BELOW = f"{VCPU}resource_provider_shape = 25=1,25.01=0"
SAME = """\
resource_provider_same_host_weight_multiplier = 20.0
resource_provider_same_aggregate_weight_multiplier = 10.0
resource_provider_same_aggregate_keys = shard
"""
AVOIDS_PRESSURE = "resource_provider_avoided_traits = CUSTOM_PRESSURE_*"
OWN = "resource_provider_same_project_weight_multiplier = 10.0"


def test_the_page_has_the_lines() -> None:
    others = [ALONE, SPREADING, PACKING, TARGET, BELOW, SAME, AVOIDS_PRESSURE, OWN]
    confs = [row.conf for row in SOFT.values()] + others
    specs = {f"{k}={v}" for row in SOFT.values() for k, v in row.specs.items()}
    lines = {line for conf in confs for line in conf.splitlines()}
    assert {text for text in lines | specs if text not in PAGE} == set()


class CustomWeighers(Computes):
    kind = STOCK
    microversion = "latest"
    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)

    def setUp(self) -> None:
        super().setUp()
        self.flags(initial_cpu_allocation_ratio=4.0)

    def order(self, flavor: str, conf: str = "", *, resized: str | None = None) -> str:
        """Return the hosts, the best first, for a server with these lines of nova.conf.

        The server gets no host, so that it changes no weight of the next order.

        :param resized: the uuid of a server that is resized; without it a server is booted.
        """
        parser = configparser.ConfigParser()
        parser.read_string(f"[filter_scheduler]\n{conf}")
        original, answers = HostManager.get_weighed_hosts, list[Any]()

        def weighed(*arguments: Any) -> Any:
            answers.append(original(*arguments))
            raise exception.NoValidHost(reason="the order is known")

        options = dict(parser["filter_scheduler"])
        self.configure(**options)
        with mock.patch.object(HostManager, "get_weighed_hosts", weighed):
            if resized:
                resize = {"resize": {"flavorRef": flavor}}
                with pytest.raises(OpenStackApiException, match="NoValidHost"):
                    self.api.post_server_action(resized, resize)
            else:
                self.boot(flavor, state="ERROR")
        for name in options:
            CONF.clear_override(name, "filter_scheduler")
        (hosts,) = answers
        groups = groupby(hosts, key=lambda each: round(each.weight, 6))
        return " ".join("=".join(sorted(h.obj.host for h in group)) for _, group in groups)


class TestEqualHosts(CustomWeighers):
    """Hosts of 16 CPUs without servers, which have equal weights by Nova's own weighers."""

    def setUp(self) -> None:
        super().setUp()
        for host in "abc":
            self.start_host(host)
        self.own = {h: set(self._get_provider_traits(self.compute_rp_uuids[h])) for h in "abc"}

    def give(self, traits: Mapping[str, Sequence[str]]) -> None:
        """Give the hosts these traits, beside the traits of Nova."""
        for host, uuid in self.compute_rp_uuids.items():
            for name in traits.get(host, ()):
                self._create_trait(name)
            self._set_provider_traits(uuid, [*self.own[host], *traits.get(host, ())])

    def test_soft_traits(self) -> None:
        found = {}
        for name, row in SOFT.items():
            self.give(row.traits)
            found[name] = self.order(self.flavor(name, row.specs), row.conf)
        assert found == {name: row.order for name, row in SOFT.items()}

    def test_hosts_under_pressure(self) -> None:
        """``host pressure`` sets the trait."""
        client, plain = placement_of(self), self.flavor("plain")
        host = client.provider(self.compute_rp_uuids["b"])
        for is_set, order in ((True, "a=c b"), (False, "a=b=c")):
            change_trait(client, host, "CUSTOM_PRESSURE_CPU", is_set=is_set)
            assert self.order(plain, AVOIDS_PRESSURE) == order


def cpus_of(host: Any) -> set[int]:
    """Return the CPUs of a host; Nova's tests have 16 for all hosts."""
    return set(range(host.get_connection().host_info.cpus))


class TestHostsOfSizes(CustomWeighers):
    """Hosts of 2, 4 and 8 CPUs, 4 VCPU for each CPU, and a server of 1 vCPU and 512 MiB.

    With the server, hosts a, b and c have in use::

        VCPU       2/8 = 25 %            2/16 = 12.5 %         12/32 = 37.5 %
        MEMORY_MB  1280/2048 = 62.5 %    1024/8192 = 12.5 %    2048/8192 = 25 %

    For Nova's weighers c is the best host, then b: of VCPU, 7, 15 and 21 are free, of MEMORY_MB
    1280, 7680 and 6656. So c is better than b by (21 - 15) / 21 - (7680 - 6656) / 7680 = 0.15.
    """

    def setUp(self) -> None:
        super().setUp()
        name = "nova.virt.libvirt.host.Host.get_online_cpus"
        self.useFixture(fixtures.MonkeyPatch(name, cpus_of))
        for host, cpus, memory_mb in (("a", 2, 2048), ("b", 4, 8192), ("c", 8, 8192)):
            # Nova reads the field as MiB, and reserves 512 of them.
            info = HostInfo(cpu_sockets=1, cpu_cores=cpus, kB_mem=memory_mb + 512)
            self.start_compute(host, host_info=info)
        servers = (("a", 1, 768), ("b", 1, 512), ("c", 8, 512), ("c", 3, 1024))
        self.servers = [
            self.boot_on(host, self._create_flavor(vcpu=vcpus, memory_mb=memory_mb, disk=0))
            for host, vcpus, memory_mb in servers
        ]
        self._run_periodics()  # no server is building any more
        self.plain = self.flavor("plain")

    def share(self, hosts: str, **metadata: str) -> None:
        """Put hosts into an aggregate with metadata."""
        group = self.api.post_aggregate({"aggregate": {"name": hosts}})["id"]
        for host in hosts:
            self.api.add_host_to_aggregate(group, host)
        self.api.post_aggregate_action(group, {"set_metadata": {"metadata": metadata}})

    def test_percentages(self) -> None:
        confs = {
            # (0.75 + 0.375) / 2 = 0.5625, (0.875 + 0.875) / 2 = 0.875, (0.625 + 0.75) / 2 = 0.6875
            "spreading": ALONE + SPREADING,
            # (4 x 25 + 62.5) / 5 = 32.5 %, 12.5 %, (4 x 37.5 + 25) / 5 = 35 %; with equal weights
            # 43.75, 12.5 and 31.25 %
            "packing": ALONE + PACKING,
            # 0.3 + 0.7 x 25 / 30 = 0.88, 0.3 + 0.7 x 12.5 / 30 = 0.59, 0.3 x 62.5 / 70 = 0.27
            "target": ALONE + TARGET,
            # 1, 1 and 0, x 100; Nova's weighers prefer b to a.
            "below 1:1": BELOW,
        }
        assert {name: self.order(self.plain, conf) for name, conf in confs.items()} == {
            "spreading": "b c a",
            "packing": "c a b",
            "target": "a b c",
            "below 1:1": "b a c",
        }

    def test_nearness(self) -> None:
        """Nova's weights of a host differ by less than 10."""
        self.flags(allow_resize_to_same_host=True)
        self.share("ab", shard="1")
        (server, *_) = self.servers  # on host a
        # 20 + 10, 10, 0
        assert self.order(self.plain, SAME, resized=server) == "a b c"
        self.share("a", filter_tenant_id=self.api.get_server(server)["tenant_id"])
        # 10, 0, 0
        assert [self.order(self.plain, conf) for conf in ("", OWN)] == ["c b a", "a c b"]

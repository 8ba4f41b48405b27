"""The lines of docs/admin/custom-weighers.rst, in Nova's services beside Nova's own weighers.

Three hosts of 16 CPUs are equal but for their traits and their servers: Nova's own weighers give
hosts without servers equal weights.
"""

import configparser
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from unittest import mock

from nova import exception
from nova.scheduler.host_manager import HostManager

from cpu_tiers.nova.options import CONF
from cpu_tiers.tools.writers.pressure import change_trait
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
"""
PACKING = """\
resource_provider_weight_multiplier = 100.0
resource_provider_scoring = best-fit
resource_provider_resources = VCPU,MEMORY_MB
"""
MOST = """\
resource_provider_weight_multiplier = -100.0
resource_provider_scoring = boring
resource_provider_resources = VCPU
resource_provider_traits = CUSTOM_NONE
"""
LEAST = MOST.replace("-100.0", "100.0")


def test_the_page_has_the_lines() -> None:
    confs = [row.conf for row in SOFT.values()] + [ALONE, PACKING, MOST, LEAST]
    specs = {f"{k}={v}" for row in SOFT.values() for k, v in row.specs.items()}
    lines = {line for conf in confs for line in conf.splitlines()}
    assert {text for text in lines | specs if text not in PAGE} == set()


class TestCustomWeighers(Computes):
    kind = STOCK
    microversion = "latest"
    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)

    def setUp(self) -> None:
        super().setUp()
        self.flags(initial_cpu_allocation_ratio=4.0)
        for host in "abc":
            self.start_host(host)
        self.own = {h: set(self._get_provider_traits(self.compute_rp_uuids[h])) for h in "abc"}

    def order(self, flavor: str, conf: str = "") -> str:
        """Return the hosts, the best first, for a server with these lines of nova.conf.

        The server gets no host, so that it changes no weight of the next order.
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
            self.boot(flavor, state="ERROR")
        for name in options:
            CONF.clear_override(name, "filter_scheduler")
        (hosts,) = answers
        groups = groupby(hosts, key=lambda each: round(each.weight, 6))
        return " ".join("=".join(sorted(h.obj.host for h in group)) for _, group in groups)

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
        """The options have their defaults; ``host pressure`` sets the trait."""
        client, plain = placement_of(self), self.flavor("plain")
        host = client.provider(self.compute_rp_uuids["b"])
        for is_set, order in ((True, "a=c b"), (False, "a=b=c")):
            change_trait(client, host, "CUSTOM_PRESSURE_CPU", is_set=is_set)
            assert self.order(plain) == order

    def test_packing_and_spreading(self) -> None:
        """Servers of 4 and 2 vCPUs run on hosts a and b; the server has 1 vCPU."""
        self.boot_on("a", self.flavor("four", vcpus=4))
        self.boot_on("b", self.flavor("two", vcpus=2))
        self._run_periodics()  # no server is building any more
        plain = self.flavor("plain")
        # 16 x 4 = 64 VCPU, of which 60, 62 and 64 are free.
        # boring: (1 - 1/60 + 1) / 2 = 0.9917, (1 - 1/62 + 1) / 2 = 0.9919, and 0.9922 on c
        # best-fit: 6 of 192 VCPU are used, 0.03, and nearly no memory. So memory has the weight
        # (0.1 / 0.131)^2 = 0.58, and nearly all is left: 59/64 + 0.58 = 1.50 on a, 61/64 + 0.58 =
        # 1.53 on b, 63/64 + 0.58 = 1.56 on c. The size is 1/64 + 0.58 x 512/16779488 = 0.0156.
        orders = [self.order(plain, ALONE + conf) for conf in (PACKING, MOST, LEAST)]
        assert orders == ["a b c", "a b c", "c b a"]

"""What a translator is told, and the mark of a translator that Nova does not need."""

from collections.abc import Iterable

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators import BUILT_IN, ServerRequest
from cpu_tiers.translators.contract import (
    already_requested_by,
    as_existing,
    functions_that_request,
)
from tests.unit.translators.queries import TWO, server


def test_the_groups_of_a_flavor_are_read_once() -> None:
    it = server({"resources:VGPU": "1"})
    assert it.own_groups is it.own_groups
    assert it.guest is it.guest


@pytest.mark.parametrize(
    ("query_numa", "as_fallback", "count"),
    [
        pytest.param(True, False, 2, id="the query requests nodes"),
        pytest.param(False, False, 0, id="the cloud does not request nodes"),
        pytest.param(True, True, 0, id="hosts that do not report nodes"),
    ],
)
def test_a_server_has_the_nodes_of_the_query(
    query_numa: bool, as_fallback: bool, count: int
) -> None:
    it = server(TWO)._replace(query_numa=query_numa, as_fallback=as_fallback)
    assert len(it.nodes) == count
    assert len(it.guest.nodes) == 2


def test_the_shared_vcpus_of_a_node() -> None:
    # vCPUs 0 to 3 and 4 to 7, dedicated are 1, 2 and 7: 2 and 3 are shared
    it = server(TWO | {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1-2,7"})
    assert [it.shared_of(node) for node in it.nodes] == [2, 3]
    assert (it.cpus.shared, it.cpus.dedicated) == (5, 3)


def test_a_contradicting_flavor_is_refused_at_the_first_reading() -> None:
    it = ServerRequest(flavor=Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=TWO))
    with pytest.raises(InvalidInput, match="1 vCPUs and 1 MiB"):
        _ = it.guest


NOVAS = GuestCpus(counts=CpuCounts(shared=3, dedicated=1))


@pytest.mark.parametrize(
    ("specs", "shared"),
    [
        pytest.param({}, 8, id="no fault"),
        pytest.param({"trait:CUSTOM_A": "x"}, 8, id="a fault that says nothing about CPUs"),
        pytest.param({"hw:cpu_policy": "x"}, 3, id="a fault of CPUs: Nova decides"),
        pytest.param(
            {"resources:VCPU": "1.5", "resources:PCPU": "8"},
            3,
            id="an amount of VCPU that Nova overlooks: Nova decides",
        ),
    ],
)
def test_of_a_server_that_exists_no_flavor_is_refused(specs: dict[str, str], shared: int) -> None:
    it = as_existing(server(specs), NOVAS)
    assert it.cpus.shared == shared
    assert it.own_groups.amount("VGPU") is None


def test_the_mark_keeps_the_translator() -> None:
    def translate(server: ServerRequest) -> Iterable[RequestGroup]:
        return [RequestGroup(resources={"VCPU": 1})]

    assert functions_that_request(translate) == ()
    marked = already_requested_by("nova.one", "nova.two")(translate)
    assert marked is translate
    assert functions_that_request(marked) == ("nova.one", "nova.two")


def test_the_built_in_translators_that_nova_does_not_need() -> None:
    without_mark = [name for name, it in BUILT_IN.items() if not functions_that_request(it)]
    assert without_mark == ["shares"]

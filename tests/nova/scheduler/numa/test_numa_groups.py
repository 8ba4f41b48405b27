"""Changes of Nova's request: groups, group policy, and sets that belong to the request spec.

test_numa_query compares whole queries with those of the spec.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from nova import objects
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.numa import NO_NUMA_TRAIT
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.scheduler.numa import numa_query
from cpu_tiers.translators import ServerRequest

GPU = "CUSTOM_GPU"

Groups = Mapping[str | None, dict[str, int]]
"""Amounts by the suffix of the group."""


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def request(groups: Groups, policy: str | None = None) -> Any:
    """Return a request with the groups; the group ``None`` has no suffix."""
    made = ResourceRequest()
    made.group_policy = policy
    for suffix, amounts in groups.items():
        made.get_request_group(suffix).resources = dict(amounts)
    return made


def resources(made: Any) -> dict[str | None, dict[str, int]]:
    return {suffix: group.resources for suffix, group in made._rg_by_id.items()}


def server(**specs: str) -> ServerRequest:
    flavor = Flavor(name="f", vcpus=4, memory_mb=1024, extra_specs={"hw:numa_nodes": "2", **specs})
    return ServerRequest(flavor=flavor, image=None, query_numa=True)


SIZES = {"VCPU": 4, "MEMORY_MB": 1024}


def test_a_copy_is_changed_separately() -> None:
    original = request({None: SIZES})
    duplicate = numa_query.copy_of(original)
    duplicate.get_request_group(None).resources = {"VCPU": 1}
    numa_query.avoid_nodes(duplicate)
    assert resources(original) == {None: SIZES}


def test_a_host_without_nodes_is_told_by_the_root() -> None:
    made = numa_query.avoid_nodes(request({None: {**SIZES, "DISK_GB": 1}}), NO_NUMA_TRAIT)
    assert resources(made) == {None: {**SIZES, "DISK_GB": 1}}
    assert made._root_forbidden == {"CUSTOM_NUMA_NODES_1", NO_NUMA_TRAIT}
    assert made.group_policy is None


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param({}, id="nothing"),
        pytest.param({None: {"CUSTOM_BAREMETAL": 1}}, id="neither CPUs nor memory"),
        pytest.param({"1": {GPU: 1}}, id="only a group of the flavor"),
    ],
)
def test_a_request_that_takes_nothing_of_numa_nodes_is_unchanged(groups: Groups) -> None:
    made = request(groups)
    before = resources(made)
    assert numa_query.avoid_nodes(made) is made
    assert resources(made) == before
    assert query_of(made).numa is None


def test_the_sets_of_the_request_spec_are_not_edited() -> None:
    root_required, root_forbidden, same_subtree = {"CUSTOM_A"}, {"CUSTOM_B"}, [["1", "2"]]
    made = request({None: SIZES})
    made._root_required, made._root_forbidden = root_required, root_forbidden
    made._same_subtree = same_subtree
    made.get_request_group(None).required_traits = {"COMPUTE_NODE"}
    made.get_request_group(None).aggregates = [["aggregate"]]
    numa_query.avoid_nodes(numa_query.copy_of(made), NO_NUMA_TRAIT)
    numa_query.request_nodes(made, server(), [])
    assert (root_required, root_forbidden) == ({"CUSTOM_A"}, {"CUSTOM_B"})
    assert same_subtree == [["1", "2"]]
    assert made._root_required == {"CUSTOM_A", "COMPUTE_NODE", "CUSTOM_NUMA_NODES_2"}


DISK = {**SIZES, "DISK_GB": 1}


@pytest.mark.parametrize(
    ("before", "groups", "aggregates", "policy", "apart"),
    [
        pytest.param(
            None, {}, [], "isolate", (), id="only NUMA nodes: Placement isolates the groups"
        ),
        pytest.param(None, {None: DISK}, [["aggregate"]], "isolate", (), id="beside the anchor"),
        pytest.param(
            "isolate", {None: DISK, "1": {GPU: 1}}, [], "isolate", (), id="the disk, too"
        ),
        pytest.param(
            None,
            {"port": {GPU: 1}},
            [],
            "none",
            ("_PROC1", "_PROC2"),
            id="a port shares providers",
        ),
        pytest.param(
            "none", {"1": {GPU: 1}}, [], "none", ("_PROC1", "_PROC2"), id="the flavor says none"
        ),
        pytest.param("isolate", {"1": {GPU: 1}}, [], "isolate", (), id="the flavor says isolate"),
    ],
)
def test_the_group_policy(
    before: str | None,
    groups: Groups,
    aggregates: list[list[str]],
    policy: str,
    apart: tuple[str, ...],
) -> None:
    made = request({None: SIZES, **groups}, before)
    made.get_request_group(None).aggregates = aggregates
    other: Any = "another request"
    numa_query.request_nodes(made, server(), [other])
    numa_request = query_of(made).numa
    assert numa_request is not None
    assert made.group_policy == policy
    assert sorted(numa_request.apart) == sorted(apart)
    assert numa_request.fallbacks == (other,)


def test_a_group_of_the_flavor_with_only_traits_left_is_refused() -> None:
    """Its CPUs are claimed by the NUMA nodes; Placement answers 400 to the rest."""
    specs = {"resources1:VCPU": "4", "trait1:CUSTOM_A": "required"}
    made = request({None: {"MEMORY_MB": 1024}, "1": {"VCPU": 4}})
    made.get_request_group("1").required_traits = {"CUSTOM_A"}
    with pytest.raises(InvalidInput, match="CUSTOM_A"):
        numa_query.request_nodes(made, server(**specs), [])

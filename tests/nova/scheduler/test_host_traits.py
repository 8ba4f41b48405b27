"""nova-scheduler requires the traits of hosts for new servers, and for no move.

tests/nova/test_host_traits.py has the hosts, all services of Nova, and a real Placement.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

import pytest
from nova import objects
from nova.scheduler import utils

from cpu_tiers.conf import compute, filter_scheduler
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import host_traits
from cpu_tiers.nova.scheduler.numa import numa_query
from cpu_tiers.nova.seams import install
from tests.nova.cloud import MULTIPLIER

SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
MOVE = objects.Destination(cell=objects.CellMapping(uuid=SERVER, id=2))
WEIGHT = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
AMOUNTS = "CUSTOM_COMPUTE_CPU_AMOUNTS"
ALL = {MULTIPLIER: "10", "resources:VCPU": "3", "resources:PCPU": "1"}
OPTIONS = {
    "query_placement_for_vcpu_shares": filter_scheduler.GROUP,
    "query_placement_for_numa": filter_scheduler.GROUP,
    "extend_cpu_policies": compute.GROUP,
}


@pytest.fixture(autouse=True)
def seams() -> Iterator[None]:
    """All seams of a request, which the options switch on."""
    options.register(filter_scheduler)
    options.register(compute)
    install((*cpu_policies.SEAMS, host_traits.SEAM, *numa_query.SEAMS))
    yield
    for option, group in OPTIONS.items():
        CONF.clear_override(option, group)


def switch_on(*names: str) -> None:
    for name in names:
        CONF.set_override(name, True, OPTIONS[name])


def spec(specs: Mapping[str, str], destination: Any = None, vcpus: int = 4) -> objects.RequestSpec:
    """Return the request for a server whose root provider must have a trait already."""
    sizes = {"vcpus": vcpus, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.RequestSpec(
        flavor=objects.Flavor(name="f", **sizes, extra_specs=dict(specs)),
        image=objects.ImageMeta.from_dict({"name": "i", "properties": {}}),
        is_bfv=False,
        instance_uuid=SERVER,
        requested_destination=destination,
        requested_resources=[],
        numa_topology=None,
        request_level_params=objects.RequestLevelParams(root_required={"CUSTOM_NOVA"}),
    )


def of_root(request: Any) -> set[str]:
    """Return the traits of the root provider in the query."""
    (traits,) = parse_qs(request.to_querystring())["root_required"]
    return set(traits.split(","))


def test_the_image_counts() -> None:
    switch_on("extend_cpu_policies")
    request_spec = spec({"hw:cpu_policy": "mixed"})
    request_spec.image.properties.hw_cpu_realtime_mask = "^0"
    request = utils.ResourceRequest.from_request_spec(request_spec)
    assert of_root(request) == {"CUSTOM_NOVA", "CUSTOM_COMPUTE_CPU_REALTIME_MASK"}


@pytest.mark.parametrize(
    ("switches", "destination", "traits"),
    [
        pytest.param((), None, set(), id="both functions are off in nova-scheduler"),
        pytest.param(("query_placement_for_vcpu_shares",), None, {WEIGHT}, id="shares"),
        pytest.param(("extend_cpu_policies",), None, {AMOUNTS}, id="policies"),
        pytest.param(tuple(OPTIONS), None, {WEIGHT, AMOUNTS}, id="all"),
        pytest.param(tuple(OPTIONS), MOVE, set(), id="a move"),
    ],
)
def test_traits_are_added_to_the_traits_of_nova(
    switches: tuple[str, ...], destination: Any, traits: set[str]
) -> None:
    switch_on(*switches)
    request_spec = spec(ALL, destination)
    request = utils.ResourceRequest.from_request_spec(request_spec)
    assert of_root(request) == {"CUSTOM_NOVA"} | traits
    assert request_spec.root_required == {"CUSTOM_NOVA"}  # Nova saves the request spec
    assert query_of(request).names == {f"/traits/{name}" for name in traits}


def test_with_numa_nodes_each_query_has_the_traits_of_the_root() -> None:
    switch_on(*OPTIONS)
    request_spec = spec({"hw:numa_nodes": "2", **ALL})
    request = utils.resources_from_request_spec(None, request_spec, None)
    numa_request = query_of(request).numa
    assert numa_request is not None
    for each in (request, *numa_request.fallbacks):
        assert {"CUSTOM_NOVA", WEIGHT, AMOUNTS} <= of_root(each)


def test_about_a_size_out_of_range_nova_decides() -> None:
    switch_on("query_placement_for_vcpu_shares")
    assert host_traits.required_traits(spec({MULTIPLIER: "1"}, vcpus=0)) == frozenset()

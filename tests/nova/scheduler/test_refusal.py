"""nova-scheduler refuses a faulty flavor for a new server, and moves a server that exists.

Whatever fails while a host is looked for is NoValidHost, which nova-conductor handles.

test_old_servers moves such servers in all ways, with all services of Nova.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nova import exception, objects
from nova.scheduler import utils

from cpu_tiers.conf import api, compute, filter_scheduler
from cpu_tiers.errors import CpuTiersError, Fault
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.api.flavor_admission import faults_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import resource_request
from cpu_tiers.nova.scheduler.numa import numa_query
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import install
from tests.draws import drawn
from tests.nova.cloud import MULTIPLIER, SHARES
from tests.nova.computes import PLAIN

SERVER = "6a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
TIER = {MULTIPLIER: "10"}
BOOT, MOVE = None, objects.Destination(cell=objects.CellMapping(uuid=SERVER, id=2))
ACROSS_CELLS = objects.Destination(host="two", allow_cross_cell_move=True)
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1-3"}


@pytest.fixture(autouse=True)
def asking() -> Iterator[None]:
    """A scheduler that asks for shares and for nodes, and a nova-api that refuses all faults."""
    options.register(filter_scheduler)
    install((*cpu_policies.SEAMS, resource_request.SEAM, *numa_query.SEAMS))
    options.register(compute)
    options.register(api)
    wanted = {
        "query_placement_for_vcpu_shares": filter_scheduler.GROUP,
        "query_placement_for_numa": filter_scheduler.GROUP,
        "extend_cpu_policies": compute.GROUP,
        "refuse_faulty_flavors": api.GROUP,
    }
    for option, group in wanted.items():
        CONF.set_override(option, True, group)
    yield
    for option, group in wanted.items():
        CONF.clear_override(option, group)


def spec(
    specs: Mapping[str, str], destination: Any, *, image_policy: str | None = None
) -> objects.RequestSpec:
    """Return the request for a server of 4 vCPUs and 512 MiB."""
    sizes = {"vcpus": 4, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    properties = {"hw_cpu_policy": image_policy} if image_policy else {}
    return objects.RequestSpec(
        flavor=objects.Flavor(name="f", **sizes, extra_specs=dict(specs)),
        image=objects.ImageMeta.from_dict({"name": "i", "properties": properties}),
        is_bfv=False,
        instance_uuid=SERVER,
        requested_destination=destination,
        requested_resources=[],
        numa_topology=None,
        request_level_params=objects.RequestLevelParams(),
    )


def claimed(request_spec: objects.RequestSpec) -> dict[str, int]:
    request = utils.ResourceRequest.from_request_spec(request_spec)
    amounts: dict[str, int] = request.merged_resources()
    return amounts


@pytest.mark.parametrize(
    ("specs", "shares"),
    [
        pytest.param({PLAIN: "16384"}, None, id="4096 for each vCPU: above 10000"),
        pytest.param({PLAIN: "0"}, None, id="no shares"),
        pytest.param({PLAIN: "a"}, None, id="shares in words"),
        pytest.param({PLAIN: "70", **TIER}, None, id="both keys"),
        pytest.param({MULTIPLIER: "2501"}, None, id="2501 x 4 is above 10000"),
        pytest.param({MULTIPLIER: "gold"}, None, id="text"),
        pytest.param({MULTIPLIER: "0"}, None, id="0"),
        pytest.param({MULTIPLIER: "NaN"}, None, id="NaN"),
        pytest.param({MULTIPLIER: "0.1"}, None, id="0.1 x 4 is rounded to 0"),
        pytest.param({**TIER, "hw:cpu_emulator_threads": "x"}, 40, id="emulator threads: 10 x 4"),
        pytest.param({**TIER, "hw:cpu_realtime": "x"}, 40, id="a word that Nova overlooks"),
        pytest.param({**TIER, "trait:CUSTOM_A": "x"}, 40, id="a trait that Nova overlooks"),
        pytest.param({**TIER, "resources:VGPU": "x"}, 40, id="an amount that Nova overlooks"),
        pytest.param({"resources:VCPU_SHARES": "50"}, None, id="a class that Nova overlooks"),
        pytest.param({"resources_A:VCPU_SHARES": "50"}, None, id="in a group"),
        pytest.param({"resources:CUSTOM_VCPU_SHARES": "25.5"}, None, id="half a share"),
    ],
)
def test_a_faulty_flavor_is_refused_once(
    specs: dict[str, str], shares: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(exception.NoValidHost):
        claimed(spec(specs, BOOT))
    for destination in (MOVE, ACROSS_CELLS):
        caplog.clear()
        request_spec = spec(specs, destination)
        for _ in range(2):  # nova-scheduler may compute the request of a server twice
            amounts = claimed(request_spec)
        assert amounts == {"VCPU": 4, "MEMORY_MB": 512} | ({SHARES: shares} if shares else {})
        text = "The server is moved though its flavor f is faulty"
        (warning,) = (each for each in caplog.records if each.getMessage().startswith(text))
        assert vars(warning)["instance_uuid"] == SERVER


def test_what_nova_overlooks_refuses_no_flavor_without_shares() -> None:
    assert claimed(spec({"resources:VGPU": "x"}, BOOT)) == {"VCPU": 4, "MEMORY_MB": 512}


def test_a_boot_on_a_host_is_no_move() -> None:
    with pytest.raises(exception.NoValidHost, match="give a whole number"):
        claimed(spec({PLAIN: "16384"}, objects.Destination(host="one")))


def test_of_a_flavor_and_an_image_that_disagree_nova_decides_about_the_cpus() -> None:
    cells = [objects.InstanceNUMACell(id=0, cpuset={0}, pcpuset={1, 2, 3}, memory=512)]
    request_spec = spec({**MIXED, **TIER}, MOVE, image_policy="shared")
    request_spec.numa_topology = objects.InstanceNUMATopology(cells=cells)
    # The NUMA node: 1 shared vCPU, 3 dedicated, 10 x 1 shares.
    request = utils.resources_from_request_spec(None, request_spec, None)
    assert request.get_request_group("_PROC1").resources == {"VCPU": 1, "PCPU": 3, SHARES: 10}
    assert request.get_request_group("_MEM1").resources == {"MEMORY_MB": 512}


def test_amounts_beside_nodes_keep_no_server_from_moving() -> None:
    specs = {"hw:numa_nodes": "1", "resources:MEMORY_MB": "0", "trait2:CUSTOM_A": "required"}
    specs["resources2:VCPU"] = "4"
    with pytest.raises(exception.NoValidHost, match="remove it"):
        utils.resources_from_request_spec(None, spec(specs, BOOT), None)
    request = utils.resources_from_request_spec(None, spec(specs, MOVE), None)
    assert request.get_request_group("_PROC1").resources == {"VCPU": 4}
    assert request.get_request_group("_MEM1").resources == {"MEMORY_MB": 512}
    assert "2" not in request._rg_by_id


_REQUIRED = ("required", "forbidden")
VALUES: dict[str, tuple[str, ...]] = {
    "hw:numa_nodes": ("1", "2", "3"),
    "hw:mem_page_size": ("2MB", "1GB", "large"),
    "hw:cpu_policy": ("dedicated", "shared", "mixed"),
    "hw:cpu_dedicated_mask": ("1-3", "0-3"),
    "hw:cpu_emulator_threads": ("isolate", "share"),
    "hw:cpu_thread_policy": ("require", "isolate"),
    "resources:VCPU": ("0", "2", "4"),
    "resources:PCPU": ("0", "2", "5"),
    "resources:MEMORY_MB": ("0", "256", "512"),
    "resources1:VCPU": ("4",),
    "resources2:MEMORY_MB": ("512",),
    "resources_MEM1:CUSTOM_A": ("0", "1"),
    "trait:HW_CPU_HYPERTHREADING": _REQUIRED,
    "trait:HW_NUMA_ROOT": _REQUIRED,
    "trait1:CUSTOM_T": _REQUIRED,
    "trait_PROC1:CUSTOM_T": _REQUIRED,
    "group_policy": ("none", "isolate"),
    MULTIPLIER: ("10", "2501"),
}
"""Extra specs with valid values, many of which contradict each other."""


@st.composite
def draw_specs(draw: st.DrawFn) -> dict[str, str]:
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=5))
    return {key: draw(st.sampled_from(VALUES[key])) for key in keys}


def of_nodes(request_spec: objects.RequestSpec) -> frozenset[Fault]:
    """Return the faults that nova-api has only together with ``query_placement_for_numa``."""
    with_nodes = faults_of(request_spec.flavor, request_spec.image)
    CONF.set_override("query_placement_for_numa", False, filter_scheduler.GROUP)
    without = faults_of(request_spec.flavor, request_spec.image)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    assert set(without) <= set(with_nodes)
    return frozenset(with_nodes) - frozenset(without)


@drawn(300)
@example(specs={"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3"})  # all vCPUs
@given(specs=draw_specs())
def test_nova_api_refuses_every_flavor_that_the_scheduler_would_refuse(
    specs: dict[str, str],
) -> None:
    request_spec = spec(specs, BOOT)
    faults, more = faults_of(request_spec.flavor, request_spec.image), of_nodes(request_spec)
    try:
        utils.resources_from_request_spec(None, request_spec, None)
    # Nova's own checks of CPU policies and masks, which nova-api makes in any case.
    except (
        exception.InvalidMixedInstanceDedicatedMask,
        exception.InvalidRequest,
        exception.NoValidHost,
    ):
        assert faults
    else:
        assert not more


@pytest.mark.parametrize(
    ("error", "reason", "lines"),
    [
        pytest.param(CpuTiersError("no such tier"), "no such tier", 0, id="the user's mistake"),
        pytest.param(KeyError("seat"), "failure of a test: KeyError", 1, id="a programming error"),
        pytest.param(exception.NoValidHost(reason="full"), "full", 0, id="Nova's own"),
    ],
)
def test_a_refusal_ends_in_no_valid_host(
    error: Exception, reason: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(exception.NoValidHost, match=reason), refusing("a test"):
        raise error
    assert len(caplog.messages) == lines


def test_another_exception_of_nova_is_not_changed() -> None:
    with pytest.raises(exception.InstanceNotFound), refusing("a test"):
        raise exception.InstanceNotFound(instance_id="s")

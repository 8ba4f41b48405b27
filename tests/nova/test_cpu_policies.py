"""With our seams Nova says of CPUs what we say, of flavors that it alone refuses, too.

test_hardware holds us against Nova as it is, and says what differs on purpose.
"""

import inspect
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest
from nova import exception, objects
from nova.virt import hardware

from cpu_tiers.conf import compute
from cpu_tiers.errors import InvalidInput
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.model.flavor import Image
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import install
from tests.nova.readings import by_nova, by_us, novas_plain, plain
from tests.nova.servers import RELEASED_KEY, SPEC_KEY, Case, draw

IMAGE = objects.ImageMeta(properties=objects.ImageMetaProps())
AMOUNTS = {"resources:VCPU": "3", "resources:PCPU": "5"}


@pytest.fixture(autouse=True)
def seams() -> Iterator[None]:
    options.register(compute)
    CONF.set_override("extend_cpu_policies", True, compute.GROUP)
    install(cpu_policies.SEAMS)
    yield
    CONF.clear_override("extend_cpu_policies", compute.GROUP)


def flavor(specs: Mapping[str, str], vcpus: int = 8) -> Any:
    return objects.Flavor(
        name="f",
        vcpus=vcpus,
        memory_mb=512,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(specs),
    )


@pytest.mark.parametrize(
    "specs",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"resources:PCPU": "8"}, id="PCPU alone"),
        pytest.param({"resources:VCPU": "0", "resources:PCPU": "8"}, id="one amount is 0"),
        pytest.param({"resources:VCPU": "3", "resources:VGPU": "1"}, id="another class"),
        pytest.param(
            {"resources:VCPU": "x", "resources:PCPU": "8"}, id="Nova overlooks the fault"
        ),
        pytest.param(
            {"resources_A:VCPU": "3", "resources:PCPU": "8"},
            id="cpu-tiers overlooks the fault, too",
        ),
        pytest.param({"resources1:PCPU": "4", "resources2:PCPU": "4"}, id="one class twice"),
    ],
)
def test_values_that_nova_knows_go_to_nova_unchanged(specs: dict[str, str]) -> None:
    asked = flavor(specs)
    assert cpu_policies.equal_flavor(asked, IMAGE) is asked


def test_amounts_become_a_mask() -> None:
    asked = flavor({**AMOUNTS, "hw:numa_nodes": "2", "resources:VGPU": "1"})
    before = asked.obj_clone()
    assert cpu_policies.equal_flavor(asked, IMAGE).extra_specs == {
        "hw:numa_nodes": "2",
        "resources:VGPU": "1",
        "hw:cpu_policy": "mixed",
        "hw:cpu_dedicated_mask": "2-3,5-7",
    }
    assert asked.extra_specs == before.extra_specs


@pytest.mark.parametrize(
    ("specs", "image", "equal"),
    [
        pytest.param(
            {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0,1", "hw:numa_cpus.1": "2,3,4,5,6,7"},
            {},
            {"hw:numa_mem.0": "256", "hw:numa_mem.1": "256"},
            id="the third example of the NUMA spec: 512 MiB on 2 nodes",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_realtime_mask": "^0-1"},
            {},
            {"hw:cpu_dedicated_mask": "2-7"},
            id="the real-time mask of a flavor makes vCPUs dedicated",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_realtime_mask": "1"},
            {"hw_cpu_realtime_mask": "3-7"},
            {"hw:cpu_dedicated_mask": "3-7"},
            id="the real-time mask of an image overrides the flavor's mask",
        ),
        pytest.param(
            {"resources:VCPU": "3", "resources:PCPU": "5", "hw:numa_nodes": "2"}
            | {"hw:numa_cpus.0": "0-3", "hw:numa_cpus.1": "4-7"},
            {},
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "2-3,5-7"}
            | {"hw:numa_mem.0": "256", "hw:numa_mem.1": "256"},
            id="amounts and nodes",
        ),
    ],
)
def test_examples_of_the_specs_that_nova_alone_refuses(
    specs: dict[str, str], image: dict[str, str], equal: dict[str, str]
) -> None:
    asked = flavor(specs)
    properties = objects.ImageMeta.from_dict({"name": "i", "properties": image})
    with pytest.raises(exception.NovaException):
        inspect.unwrap(hardware.numa_get_constraints)(asked, properties)
    kept = {key: value for key, value in specs.items() if not key.startswith("resources:")}
    shown = cpu_policies.equal_flavor(asked, properties).extra_specs
    assert shown == {**kept, **equal}
    assert asked.extra_specs == specs
    assert hardware.numa_get_constraints(asked, properties) is not None


def test_amounts_that_make_no_sense_are_an_error_that_the_api_answers_400_to() -> None:
    with pytest.raises(exception.InvalidRequest, match="must add up to 9"):
        hardware.numa_get_constraints(flavor(AMOUNTS, vcpus=9), IMAGE)


@pytest.mark.parametrize(
    ("specs", "novas"),
    [
        pytest.param(
            {SPEC_KEY: "share", RELEASED_KEY: "isolate"}, "isolate", id="Nova's own wins"
        ),
        pytest.param({SPEC_KEY: "nowhere"}, None, id="an unknown policy"),
    ],
)
def test_a_key_that_nova_does_not_know_keeps_no_server_from_moving(
    specs: dict[str, str], novas: str | None
) -> None:
    assert hardware.get_emulator_thread_policy_constraint(flavor(specs)) == novas
    dedicated = flavor({"hw:cpu_policy": "dedicated", **specs})
    assert hardware.numa_get_constraints(dedicated, IMAGE).emulator_threads_policy == novas


def test_isolated_emulator_threads_without_a_spare_cpu_are_ignored() -> None:
    shared = {SPEC_KEY: "isolate"}
    assert hardware.numa_get_constraints(flavor(shared), IMAGE) is None
    exact = {SPEC_KEY: "isolate", "resources:PCPU": "8"}
    constraints = hardware.numa_get_constraints(flavor(exact), IMAGE)
    assert constraints.emulator_threads_policy is None
    assert constraints.cells[0].pcpuset == set(range(8))
    exact[RELEASED_KEY] = "isolate"  # Nova's own key is not ignored
    with pytest.raises(exception.InvalidRequest, match="sufficient PCPUs"):
        hardware.numa_get_constraints(flavor(exact), IMAGE)


def differs(case: Case) -> bool:
    """Tell whether Nova alone refuses or overlooks what a server asks for."""
    amounts = {key.partition(":")[2] for key in case.specs if key.startswith("resources")}
    mask = case.values("hw:cpu_realtime_mask") and "mixed" in case.values("hw:cpu_policy")
    memory = case.values("hw:numa_cpus") and not case.values("hw:numa_mem")
    by_amounts = {"VCPU", "PCPU"} <= amounts
    return bool(by_amounts or "hw:cpu_emulator_threads" in case.specs or mask or memory)


def test_random_servers() -> None:
    random = Random(9)
    both = refused = 0
    while both < 1000:
        case = draw(random)
        if not differs(case):
            continue
        ours = by_us(case, Image(name="i", properties=case.image))
        if isinstance(ours, InvalidInput):
            refused += 1
            continue
        theirs = by_nova(case, case.specs)
        if isinstance(
            theirs, Exception
        ):  # what Nova refuses all the same, see docs/reference/cpu-differences.rst
            assert not ours.nodes, case
            continue
        assert novas_plain(theirs) == plain(guest_topology(ours)), case
        both += 1
    assert refused < 4 * both

from collections.abc import Iterable
from urllib.parse import parse_qs

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators import BUILT_IN, ServerRequest, translate


def flavor(
    vcpus: int = 1, disk: tuple[int, int, int] = (10, 0, 0), /, **extra_specs: str
) -> Flavor:
    root, ephemeral, swap = disk
    return Flavor(
        name="f",
        vcpus=vcpus,
        memory_mb=1024,
        root_gb=root,
        ephemeral_gb=ephemeral,
        swap_mb=swap,
        extra_specs={key.replace("__", ":"): value for key, value in extra_specs.items()},
    )


def query(
    it: Flavor, *, image: Image | None = None, query_vcpu_shares: bool = True
) -> dict[str, set[str]]:
    """Return the query as sets, the way Placement reads it."""
    server = ServerRequest(flavor=it, image=image, query_vcpu_shares=query_vcpu_shares)
    text = translate(server).to_query_string()
    return {
        key: set(value.split(",")) for key, (value,) in parse_qs(text, strict_parsing=True).items()
    }


@pytest.mark.parametrize(
    ("multiplier", "shares"), [("25.0", 25), ("50.0", 50), ("100.0", 100)], ids=str
)
def test_the_specs_tiers(multiplier: str, shares: int) -> None:
    it = flavor(quota__cpu_shares_multiplier=multiplier)
    amounts = {"VCPU:1", "MEMORY_MB:1024", "DISK_GB:10"}
    assert query(it) == {"resources": amounts | {f"{VCPU_SHARES}:{shares}"}}
    assert query(it, query_vcpu_shares=False) == {"resources": amounts}


@pytest.mark.parametrize(
    ("disk", "disk_gb"),
    [
        pytest.param((10, 5, 0), "DISK_GB:15", id="root + ephemeral"),
        pytest.param((10, 5, 1024), "DISK_GB:16", id="1024 MiB of swap are 1 GiB"),
        pytest.param((10, 5, 1025), "DISK_GB:17", id="1025 MiB of swap round up to 2"),
        pytest.param((0, 0, 1), "DISK_GB:1", id="1 MiB of swap rounds up to 1"),
    ],
)
def test_disk(disk: tuple[int, int, int], disk_gb: str) -> None:
    assert query(flavor(1, disk)) == {"resources": {"VCPU:1", "MEMORY_MB:1024", disk_gb}}


def test_no_disk() -> None:
    assert query(flavor(1, (0, 0, 0))) == {"resources": {"VCPU:1", "MEMORY_MB:1024"}}


@pytest.mark.parametrize(
    ("specs", "cpus"),
    [
        pytest.param({"hw__cpu_policy": "dedicated"}, {"PCPU:4"}, id="dedicated claims none"),
        pytest.param({"resources__PCPU": "4"}, {"PCPU:4"}, id="dedicated by resources"),
        pytest.param(
            {"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "1-3"},
            {"VCPU:1", "PCPU:3", f"{VCPU_SHARES}:10"},
            id="mixed claims for the shared one: 1 x 10",
        ),
        pytest.param(
            {"hw__cpu_policy": "dedicated", "hw__emulator_threads_policy": "isolate"},
            {"PCPU:5"},
            id="isolated emulator threads take one PCPU more",
        ),
        pytest.param(
            {
                "resources__VCPU": "2",
                "resources__PCPU": "3",
                "hw__cpu_emulator_threads": "isolate",
            },
            {"VCPU:2", "PCPU:3", f"{VCPU_SHARES}:20"},
            id="mixed by amounts: 2 x 10, and one PCPU of 3 is for emulator threads",
        ),
        pytest.param(
            {
                "hw__cpu_policy": "mixed",
                "hw__cpu_realtime": "yes",
                "hw__cpu_realtime_mask": "^0-2",
                "hw__emulator_threads_policy": "isolate",
            },
            {"VCPU:3", "PCPU:2", f"{VCPU_SHARES}:30"},
            id="mixed by a real-time mask: 3 x 10, and one PCPU more",
        ),
        pytest.param(
            {"hw__cpu_policy": "dedicated", "hw__emulator_threads_policy": "share"},
            {"PCPU:4"},
            id="shared emulator threads take none",
        ),
        pytest.param(
            {"hw__cpu_policy": "shared"}, {"VCPU:4", f"{VCPU_SHARES}:40"}, id="shared by policy"
        ),
        pytest.param(
            {"resources__VCPU": "4", "resources__PCPU": "0"},
            {"VCPU:4", f"{VCPU_SHARES}:40"},
            id="0 of one class is the plain policy",
        ),
        pytest.param({}, {"VCPU:4", f"{VCPU_SHARES}:40"}, id="shared: 4 x 10"),
        pytest.param(
            {f"resources__{VCPU_SHARES}": "7"},
            {"VCPU:4", f"{VCPU_SHARES}:7"},
            id="an amount in the flavor wins",
        ),
    ],
)
def test_shares_follow_the_cpu_policy(specs: dict[str, str], cpus: set[str]) -> None:
    it = flavor(4, quota__cpu_shares_multiplier="10", **specs)
    assert query(it)["resources"] == cpus | {"MEMORY_MB:1024", "DISK_GB:10"}


@pytest.mark.parametrize(
    ("policy", "required"),
    [
        ("require", {"HW_CPU_HYPERTHREADING"}),
        ("isolate", {"!HW_CPU_HYPERTHREADING"}),
        ("prefer", None),
    ],
)
def test_thread_policy(policy: str, required: set[str] | None) -> None:
    it = flavor(4, hw__cpu_policy="dedicated", hw__cpu_thread_policy=policy)
    assert query(it).get("required") == required


def test_shares_of_the_domain_are_claimed_unscaled_unless_no_vcpu_is_shared() -> None:
    shares = f"{VCPU_SHARES}:77"
    mixed = {"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "0"}
    assert shares in query(flavor(4, quota__cpu_shares="77"))["resources"]
    assert shares in query(flavor(4, quota__cpu_shares="77", **mixed))["resources"]
    dedicated = query(flavor(4, quota__cpu_shares="77", hw__cpu_policy="dedicated"))
    assert dedicated == {"resources": {"PCPU:4", "MEMORY_MB:1024", "DISK_GB:10"}}


def test_the_flavors_own_groups() -> None:
    it = flavor(
        resources__VCPU="0",
        resources__VGPU="1",
        trait__HW_CPU_X86_AVX2="required",
        trait__CUSTOM_SLOW="forbidden",
        resources1__CUSTOM_FPGA="2",
        trait1__CUSTOM_FAST="required",
        resources_B__MEMORY_MB="64",
        group_policy="none",
    )
    assert query(it) == {
        "resources": {"VGPU:1", "DISK_GB:10"},
        "required": {"HW_CPU_X86_AVX2", "!CUSTOM_SLOW"},
        "resources1": {"CUSTOM_FPGA:2"},
        "required1": {"CUSTOM_FAST"},
        "resources_B": {"MEMORY_MB:64"},
        "group_policy": {"none"},
    }


def test_the_images_traits() -> None:
    image = Image(name="i", properties={"trait:HW_CPU_X86_VMX": "required", "os_type": "linux"})
    it = flavor(trait__HW_CPU_X86_AVX2="required")
    assert query(it, image=image)["required"] == {"HW_CPU_X86_VMX", "HW_CPU_X86_AVX2"}


@pytest.mark.parametrize("value", ["forbidden", "yes"])
def test_an_image_can_only_require(value: str) -> None:
    image = Image(name="i", properties={"trait:HW_CPU_X86_VMX": value})
    with pytest.raises(InvalidInput, match=r"image i, property trait:HW_CPU_X86_VMX: "):
        query(flavor(), image=image)


def test_a_trait_that_the_image_requires_and_the_flavor_forbids() -> None:
    image = Image(name="i", properties={"trait:HW_CPU_X86_VMX": "required"})
    with pytest.raises(ConflictingExtraSpecs, match="HW_CPU_X86_VMX required and forbidden"):
        query(flavor(trait__HW_CPU_X86_VMX="forbidden"), image=image)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"resources1__VGPU": "1", "resources2__VGPU": "1"}, "group_policy: not set"),
        ({"trait1__CUSTOM_FAST": "required"}, "but no resources"),
        (
            {"resources__VCPU": "0", "resources__MEMORY_MB": "0", "resources__DISK_GB": "0"},
            "no res",
        ),
    ],
)
def test_a_query_that_placement_would_refuse(specs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        query(flavor(**specs))


def test_both_share_specs_are_a_conflict() -> None:
    with pytest.raises(ConflictingExtraSpecs, match="remove one"):
        query(flavor(quota__cpu_shares="1", quota__cpu_shares_multiplier="1"))


def test_amounts_that_only_together_are_too_much() -> None:
    most = 2**31 - 1
    with pytest.raises(InvalidInput, match="of DISK_GB"):
        query(flavor(1, (most, most, 0)))


def test_every_fault_of_flavor_and_image_once() -> None:
    image = Image(name="i", properties={"trait:NOPE": "required", "hw_cpu_policy": "turbo"})
    it = flavor(resources__VCPU="x", quota__cpu_shares="0")
    with pytest.raises(InvalidInput) as caught:
        query(it, image=image)
    assert type(caught.value) is InvalidInput
    places = [fault.where for fault in caught.value.faults]
    assert places == [
        "flavor f, extra spec resources:VCPU",
        "image i, property trait:NOPE",
        "flavor f, extra spec quota:cpu_shares",
        "image i, property hw_cpu_policy",
    ]


def test_faults_of_groups_do_not_hide_behind_faults_of_keys() -> None:
    groups = {"resources1:VGPU": "1", "resources2:VGPU": "1", "trait1:CUSTOM_A": "required"}
    specs = {**groups, "hw:numa_nodes": "x", "quota:cpu_shares": "0"}
    image = Image(name="i", properties={"trait:NOPE": "required"})
    server = ServerRequest(flavor=Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=specs))
    with pytest.raises(InvalidInput) as caught:
        translate(server._replace(image=image))
    assert [fault.where for fault in caught.value.faults] == [
        "image i, property trait:NOPE",
        "flavor f, extra spec quota:cpu_shares",
        "flavor f, extra spec hw:numa_nodes",
        "flavor f, extra spec group_policy",
    ]
    with pytest.raises(InvalidInput) as caught:
        translate(server._replace(query_numa=True))  # the query has a policy for its nodes
    assert len(caught.value.faults) == 2


def test_two_translators_of_a_single_class() -> None:
    def greedy(server: ServerRequest) -> Iterable[RequestGroup]:
        return [RequestGroup(resources={"VCPU": server.flavor.vcpus})]

    with pytest.raises(ExtensionError, match="'sizes' and 'greedy' both request VCPU"):
        translate(ServerRequest(flavor=flavor()), {**BUILT_IN, "greedy": greedy})


def test_input_is_not_edited() -> None:
    specs = {"resources:VGPU": "1", "quota:cpu_shares": "5"}
    it = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=specs)
    server = ServerRequest(flavor=it, query_vcpu_shares=True)
    assert translate(server) == translate(server)
    assert specs == {"resources:VGPU": "1", "quota:cpu_shares": "5"}

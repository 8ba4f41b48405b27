import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.cpu_policies import cpu_policy
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, guest_cpus
from cpu_tiers.model.flavor import Flavor, Image

CONFLICT = "conflict"

# Spec use-pcpu-vcpu-in-one-instance, "Instance CPU policy matrix":
# rows are the image's policy, columns the flavor's.
COLUMNS = ("dedicated", "mixed", "shared", None)
MATRIX = {
    "dedicated": ("dedicated", CONFLICT, CONFLICT, "dedicated"),
    "mixed": ("dedicated", "mixed", CONFLICT, "mixed"),
    "shared": ("dedicated", CONFLICT, "shared", "shared"),
    None: ("dedicated", "mixed", "shared", None),
}


def flavor(vcpus: int = 4, /, **extra_specs: str) -> Flavor:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Flavor(name="f", vcpus=vcpus, memory_mb=64, extra_specs=specs)


def counts(it: Flavor, image: Image | None = None) -> CpuCounts:
    return guest_cpus(it, image).counts


@pytest.mark.parametrize(
    ("on_flavor", "on_image", "expected"),
    [
        pytest.param(column, row, cell, id=f"flavor {column}, image {row}: {cell}")
        for row, cells in MATRIX.items()
        for column, cell in zip(COLUMNS, cells, strict=True)
    ],
)
def test_matrix(on_flavor: str | None, on_image: str | None, expected: str | None) -> None:
    it = flavor(**({"hw__cpu_policy": on_flavor} if on_flavor else {}))
    image = Image(name="i", properties={"hw_cpu_policy": on_image} if on_image else {})
    if expected == CONFLICT:
        with pytest.raises(ConflictingExtraSpecs, match=f"{on_flavor}.*{on_image}"):
            cpu_policy(it, image)
    else:
        assert cpu_policy(it, image) == expected


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ({}, CpuCounts(shared=4, dedicated=0)),
        ({"hw__cpu_policy": "shared"}, CpuCounts(shared=4, dedicated=0)),
        ({"hw__cpu_policy": "dedicated"}, CpuCounts(shared=0, dedicated=4)),
        (
            {"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "0-1,3,^1"},
            CpuCounts(shared=2, dedicated=2),
        ),
        (
            {"hw__cpu_policy": "mixed", "hw__cpu_realtime_mask": "^0"},
            CpuCounts(shared=1, dedicated=3),
        ),
        ({"resources__PCPU": "4"}, CpuCounts(shared=0, dedicated=4)),
        ({"resources__VCPU": "4"}, CpuCounts(shared=4, dedicated=0)),
        ({"resources__VCPU": "0"}, CpuCounts(shared=0, dedicated=0)),
        ({"resources__VCPU": "3", "resources__PCPU": "1"}, CpuCounts(shared=3, dedicated=1)),
        ({"resources__VCPU": "0", "resources__PCPU": "4"}, CpuCounts(shared=0, dedicated=4)),
        (
            {"hw__cpu_policy": "dedicated", "hw__emulator_threads_policy": "isolate"},
            CpuCounts(shared=0, dedicated=4, emulator=1),
        ),
        (
            {
                "resources__VCPU": "2",
                "resources__PCPU": "3",
                "hw__cpu_emulator_threads": "isolate",
            },
            CpuCounts(shared=2, dedicated=2, emulator=1),
        ),
    ],
)
def test_counts(specs: dict[str, str], expected: CpuCounts) -> None:
    assert counts(flavor(**specs)) == expected


def test_the_image_may_give_the_realtime_mask() -> None:
    image = Image(name="i", properties={"hw_cpu_realtime_mask": "1-2"})
    expected = CpuCounts(shared=2, dedicated=2)
    assert counts(flavor(hw__cpu_policy="mixed"), image) == expected


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"hw__cpu_policy": "turbo"}, "'turbo'"),
        ({"hw__cpu_policy": "mixed"}, "neither .* and a real-time mask"),
        (
            {
                "hw__cpu_policy": "mixed",
                "hw__cpu_dedicated_mask": "0",
                "hw__cpu_realtime_mask": "0",
            },
            "both .* and a real-time mask",
        ),
        ({"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "0-3"}, "at least one"),
        ({"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "3-4"}, "with the vCPUs 0-3"),
        ({"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "a"}, "'a'"),
        ({"hw__cpu_policy": "mixed", "hw__cpu_dedicated_mask": "0,^0"}, "leaves no CPU"),
        ({"resources__VCPU": "3", "resources__PCPU": "2"}, "must add up to 4"),
        (
            {"hw__cpu_policy": "dedicated", "resources__PCPU": "4"},
            "remove either the policy or",
        ),
        (
            {"hw__cpu_policy": "shared", "resources__VCPU": "4"},
            "remove either the policy or",
        ),
        (
            {"hw__cpu_policy": "shared", "resources__PCPU": "4"},
            "remove either the policy or",
        ),
        ({"hw__emulator_threads_policy": "isolate"}, "need dedicated or mixed"),
        ({"hw__emulator_threads_policy": "mine"}, "'mine'"),
        (
            {"hw__emulator_threads_policy": "share", "hw__cpu_emulator_threads": "isolate"},
            "remove one",
        ),
    ],
)
def test_contradictions(specs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        counts(flavor(**specs))

"""The CPU thread policy, by key and by trait."""

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.cpu_policies import thread_policy, thread_policy_by_key
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.translators import ServerRequest

KEY, IMAGE_KEY = "hw:cpu_thread_policy", "hw_cpu_thread_policy"
TRAIT = "trait:HW_CPU_HYPERTHREADING"


def decided(specs: dict[str, str], properties: dict[str, str] | None = None) -> str | None:
    flavor = Flavor(name="f", vcpus=2, memory_mb=1, extra_specs=specs)
    image = None if properties is None else Image(name="i", properties=properties)
    return thread_policy(flavor, image, ServerRequest(flavor).own_groups)


@pytest.mark.parametrize("of_flavor", [None, "prefer", "isolate", "require"])
@pytest.mark.parametrize("of_image", [None, "prefer", "isolate", "require"])
def test_flavor_and_image(of_flavor: str | None, of_image: str | None) -> None:
    specs = {} if of_flavor is None else {KEY: of_flavor}
    properties = {} if of_image is None else {IMAGE_KEY: of_image}
    # Nova: an image may not change the policy of the flavor, unless that is prefer
    if of_flavor in ("isolate", "require") and of_image not in (None, of_flavor):
        with pytest.raises(ConflictingExtraSpecs, match="another policy than the flavor"):
            decided(specs, properties)
    else:
        assert decided(specs, properties) == (of_flavor or of_image)


@pytest.mark.parametrize(
    ("specs", "properties", "policy"),
    [
        pytest.param({TRAIT: "required"}, None, "require", id="required: require"),
        pytest.param({TRAIT: "forbidden"}, None, "isolate", id="forbidden: isolate"),
        pytest.param(
            {"trait7:HW_CPU_HYPERTHREADING": "forbidden", "resources7:VGPU": "1"},
            None,
            "isolate",
            id="of any group",
        ),
        pytest.param({}, {TRAIT: "required"}, "require", id="of the image"),
        pytest.param({"trait:HW_CPU_X86_AVX2": "required"}, {}, None, id="another trait"),
    ],
)
def test_the_trait_is_a_policy(
    specs: dict[str, str], properties: dict[str, str] | None, policy: str | None
) -> None:
    assert decided(specs, properties) == policy


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({KEY: "require", TRAIT: "required"}, None, "remove either the policy or the trait"),
        ({KEY: "require"}, {TRAIT: "required"}, "the trait that means require"),
        ({TRAIT: "forbidden"}, {TRAIT: "required"}, "must agree on the trait"),
    ],
)
def test_contradictions(
    specs: dict[str, str], properties: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(ConflictingExtraSpecs, match=message):
        decided(specs, properties)


@pytest.mark.parametrize("policy", ["", "Prefer", "isolate ", "none"])
def test_unknown_policies(policy: str) -> None:
    with pytest.raises(InvalidInput, match="give one of prefer, isolate, require"):
        decided({KEY: policy})
    with pytest.raises(InvalidInput, match=f"image i, property {IMAGE_KEY}"):
        decided({}, {IMAGE_KEY: policy})


def test_the_key_is_read_without_regard_to_the_trait() -> None:
    flavor = Flavor(
        name="f", vcpus=2, memory_mb=1, extra_specs={KEY: "isolate", TRAIT: "required"}
    )
    assert thread_policy_by_key(flavor, None) == "isolate"

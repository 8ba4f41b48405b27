"""Nova's flavors and images as values: extra specs that are not loaded, and list properties."""

from typing import Any

import pytest
from nova import objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def flavor(**values: Any) -> objects.Flavor:
    sizes = {"vcpus": 2, "memory_mb": 512, "root_gb": 10, "ephemeral_gb": 3, "swap": 64}
    return objects.Flavor(name="gold", **(sizes | values))


def test_a_flavor() -> None:
    """Nova's ``swap`` is in MiB."""
    converted = to_flavor(flavor(extra_specs={"hw:numa_nodes": "2"}))
    assert converted.name == "gold"
    assert (converted.vcpus, converted.memory_mb) == (2, 512)
    assert (converted.root_gb, converted.ephemeral_gb, converted.swap_mb) == (10, 3, 64)
    assert converted.extra_specs == {"hw:numa_nodes": "2"}


def test_extra_specs_that_nova_did_not_load() -> None:
    """Reading the field would make Nova raise, as the object has no context."""
    assert extra_specs(flavor()) == {}
    assert to_flavor(flavor()).extra_specs == {}


def test_a_flavor_without_a_loaded_name() -> None:
    sizes = {"vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap": 0}
    assert to_flavor(objects.Flavor(**sizes)).name == "(unnamed)"


def test_a_flavor_without_cpus_is_refused() -> None:
    with pytest.raises(InvalidInput, match="vcpus"):
        to_flavor(flavor(vcpus=0))


def image(**properties: Any) -> objects.ImageMeta:
    return objects.ImageMeta(properties=objects.ImageMetaProps(**properties))


@pytest.mark.parametrize(
    ("properties", "texts"),
    [
        pytest.param({}, {}, id="no property"),
        pytest.param(
            {"hw_cpu_policy": "dedicated", "hw_cpu_thread_policy": "isolate"},
            {"hw_cpu_policy": "dedicated", "hw_cpu_thread_policy": "isolate"},
            id="text",
        ),
        pytest.param(
            {"hw_numa_nodes": 2, "hw_mem_page_size": "2048"},
            {"hw_numa_nodes": "2", "hw_mem_page_size": "2048"},
            id="Nova has a number, an image text",
        ),
        pytest.param(
            {"hw_numa_cpus": [{0, 1, 2}, {3, 5}], "hw_numa_mem": [256, 768]},
            {
                "hw_numa_cpus.0": "0-2",
                "hw_numa_cpus.1": "3,5",
                "hw_numa_mem.0": "256",
                "hw_numa_mem.1": "768",
            },
            id="a list becomes a property for each NUMA node",
        ),
        pytest.param(
            {"traits_required": ["HW_CPU_X86_AVX2"]},
            {"trait:HW_CPU_X86_AVX2": "required"},
            id="traits",
        ),
        pytest.param({"hw_disk_bus": "virtio"}, {}, id="a property about something else"),
    ],
)
def test_the_properties_of_an_image(properties: dict[str, Any], texts: dict[str, str]) -> None:
    converted = to_image(image(**properties))
    assert converted is not None
    assert converted.properties == texts


def test_the_name_of_an_image() -> None:
    """Errors name the image, and a server may be booted from an image without a name."""
    named = objects.ImageMeta(name="debian", properties=objects.ImageMetaProps())
    unnamed = objects.ImageMeta(name="", properties=objects.ImageMetaProps())
    names = [converted.name for converted in map(to_image, (named, unnamed, image())) if converted]
    assert names == ["debian", "(unnamed)", "(unnamed)"]


@pytest.mark.parametrize("absent", [None, "without properties"])
def test_no_image(absent: str | None) -> None:
    assert to_image(None if absent is None else objects.ImageMeta(name=absent)) is None

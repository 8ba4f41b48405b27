"""PCI aliases of nova.conf, in the words of Placement, as Nova translates them."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.room.pci_alias import (
    ALIAS,
    PciAlias,
    device_groups,
    read_pci_aliases,
    requested_devices,
)

A100 = '{"name": "a100", "vendor_id": "10de", "product_id": "20b0", "device_type": "type-PF"}'


def flavor(text: str) -> Flavor:
    return Flavor(name="f", vcpus=1, memory_mb=1, extra_specs={ALIAS: text})


@pytest.mark.parametrize(
    ("text", "name", "alias"),
    [
        pytest.param(A100, "a100", PciAlias("CUSTOM_PCI_10DE_20B0"), id="by vendor and product"),
        pytest.param(
            '{"name": "g", "resource_class": "gpu-b", "traits": "fast,CUSTOM_OLD,HW_CPU_X86_AVX"}',
            "g",
            PciAlias("CUSTOM_GPU_B", frozenset({"CUSTOM_FAST", "CUSTOM_OLD", "HW_CPU_X86_AVX"})),
            id="names of its own get CUSTOM_",
        ),
        pytest.param(
            '{"name": "p", "resource_class": "PGPU"}', "p", PciAlias("PGPU"), id="a standard class"
        ),
        pytest.param(
            '{"name": "c", "resource_class": "custom_c"}', "c", PciAlias("CUSTOM_C"), id="capitals"
        ),
    ],
)  # fmt: skip
def test_an_alias(text: str, name: str, alias: PciAlias) -> None:
    assert read_pci_aliases([text]) == {name: alias}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["{"], "got '{'"),
        (["[1]"], "got '\\[1\\]'"),
        (['{"name": "a", "vendor_id": 4318}'], "write"),
        (['{"name": "a", "vendor_id": "10de"}'], "resource_class or both"),
        ([A100, A100], "a100 twice"),
    ],
)
def test_an_alias_that_nova_refuses(texts: list[str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_pci_aliases(texts)


def test_a_group_for_each_device() -> None:
    aliases = read_pci_aliases([A100, '{"name": "b", "resource_class": "b", "traits": "t"}'])
    groups = device_groups(flavor("a100:2, b:1,absent:1"), aliases)
    assert [(g.suffix, dict(g.resources), set(g.required)) for g in groups] == [
        ("_PCI1", {"CUSTOM_PCI_10DE_20B0": 1}, set()),
        ("_PCI2", {"CUSTOM_PCI_10DE_20B0": 1}, set()),
        ("_PCI3", {"CUSTOM_B": 1}, {"CUSTOM_T"}),
    ]


@pytest.mark.parametrize("text", ["a100", "a100:", "a100:x", ":"])
def test_a_malformed_request(text: str) -> None:
    with pytest.raises(InvalidInput, match="give NAME:COUNT"):
        requested_devices(flavor(text))

"""What Nova adds to a query for devices and for memory of a kind of its own."""

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.tools.room.pci_alias import PciAlias
from cpu_tiers.tools.room.server_queries import SchedulerOptions, server_queries
from cpu_tiers.translators import ServerRequest

OPTIONS = SchedulerOptions(pci_aliases={"a": PciAlias("CUSTOM_A", frozenset({"CUSTOM_T"}))})
SIZES = "resources=MEMORY_MB:1,VCPU:1"
ROOT = "root_required=!COMPUTE_STATUS_DISABLED"


def server(properties: dict[str, str] | None = None, **specs: str) -> ServerRequest:
    extra_specs = {key.replace("__", ":"): value for key, value in specs.items()}
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=extra_specs)
    image = Image(name="i", properties=properties) if properties else None
    return ServerRequest(flavor=flavor, image=image)


@pytest.mark.parametrize(
    ("request_", "query", "left_out"),
    [
        pytest.param(
            server(pci_passthrough__alias="a:2"),
            f"{SIZES}&resources_PCI1=CUSTOM_A:1&required_PCI1=CUSTOM_T"
            f"&resources_PCI2=CUSTOM_A:1&required_PCI2=CUSTOM_T&{ROOT}&group_policy=none",
            (),
            id="two devices of an alias: two groups, which need a policy",
        ),
        pytest.param(
            server(pci_passthrough__alias="b:1"),
            f"{SIZES}&{ROOT}",
            ("pci_passthrough:alias b",),
            id="an alias that nova.conf does not have",
        ),
        pytest.param(
            server(hw__mem_encryption="True"),
            "resources=MEMORY_MB:1,MEM_ENCRYPTION_CONTEXT:1,VCPU:1"
            f"&required=HW_CPU_X86_AMD_SEV&{ROOT}",
            (),
            id="encrypted memory by the flavor",
        ),
        pytest.param(
            server({"hw_mem_encryption": "true", "hw_mem_encryption_model": "amd-sev-es"}),
            "resources=MEMORY_MB:1,MEM_ENCRYPTION_CONTEXT:1,VCPU:1"
            f"&required=HW_CPU_X86_AMD_SEV_ES&{ROOT}",
            (),
            id="encrypted memory by the image, of another model",
        ),
        pytest.param(
            server(hw__pmem="6GB,6GB,SMALL"),
            "resources=CUSTOM_PMEM_NAMESPACE_6GB:2,CUSTOM_PMEM_NAMESPACE_SMALL:1,MEMORY_MB:1,"
            f"VCPU:1&{ROOT}",
            (),
            id="persistent memory",
        ),
        pytest.param(
            server(accel__device_profile="fpga"),
            f"{SIZES}&root_required=COMPUTE_ACCELERATORS,!COMPUTE_STATUS_DISABLED",
            ("accel:device_profile fpga",),
            id="only Cyborg knows a device profile",
        ),
        pytest.param(
            server()._replace(ports=(Port(id="p", vnic_type="remote-managed"),)),
            f"{SIZES}&root_required=COMPUTE_REMOTE_MANAGED_PORTS,!COMPUTE_STATUS_DISABLED",
            (),
            id="a port that is managed remotely",
        ),
    ],
)
def test_additions(request_: ServerRequest, query: str, left_out: tuple[str, ...]) -> None:
    queries = server_queries(request_, options=OPTIONS)
    assert queries.queries[0].to_query_string() == query
    assert queries.left_out == left_out


def test_encrypted_memory_of_a_server_with_numa_nodes() -> None:
    asked = server(hw__mem_encryption="true", hw__numa_nodes="1")._replace(query_numa=True)
    first, *_ = server_queries(asked, options=OPTIONS).queries[0].groups
    assert (first.suffix, dict(first.resources)) == ("", {"MEM_ENCRYPTION_CONTEXT": 1})

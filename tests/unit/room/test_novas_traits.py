"""The traits that Nova requires; tests/nova/scheduler/test_server_queries.py asks Nova."""

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.room.server_queries import novas_traits


@pytest.mark.parametrize(
    ("specs", "properties", "prefilter", "traits"),
    [
        pytest.param({}, {}, True, set(), id="nothing"),
        pytest.param(
            {"os:secure_boot": "required"},
            {"hw_maxphysaddr_mode": "emulate"},
            False,
            {"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_ADDRESS_SPACE_EMULATED"},
            id="of the flavor and of the image",
        ),
        pytest.param({"os:secure_boot": "optional"}, {}, False, set(), id="another value"),
        pytest.param(
            {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"},
            {},
            False,
            {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_CRB"},
            id="TPM",
        ),
        pytest.param(
            {},
            {"hw_tpm_version": "1.2"},
            False,
            {"COMPUTE_SECURITY_TPM_1_2", "COMPUTE_SECURITY_TPM_TIS"},
            id="TIS is the default model",
        ),
        pytest.param(
            {"accel:device_profile": "gpu", "hw:virtio_packed_ring": "True"},
            {},
            False,
            {"COMPUTE_ACCELERATORS", "COMPUTE_NET_VIRTIO_PACKED"},
            id="accelerators and packed rings",
        ),
        pytest.param({}, {"hw_disk_bus": "scsi"}, False, set(), id="the filter is off"),
        pytest.param(
            {},
            {"hw_disk_bus": "scsi", "hw_vif_model": "e1000", "hw_architecture": "x86-64"},
            True,
            {"COMPUTE_STORAGE_BUS_SCSI", "COMPUTE_NET_VIF_MODEL_E1000", "HW_ARCH_X86_64"},
            id="image_metadata_prefilter",
        ),
        pytest.param(
            {},
            {"hw_disk_bus": "scsi", "hw_video_model": "teletype"},
            True,
            set(),
            id="a single unknown name ends the filter, as in Nova",
        ),
    ],
)
def test_traits(
    specs: dict[str, str], properties: dict[str, str], prefilter: bool, traits: set[str]
) -> None:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=specs)
    image = Image("i", properties)
    assert novas_traits(flavor, image, image_metadata_prefilter=prefilter) == traits
    assert novas_traits(Flavor(name="f", vcpus=1, memory_mb=1), None) == set()

"""The request of ``explain`` beside the request that Nova's filters and nova-scheduler make."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unittest import mock

import pytest
from nova import objects
from nova.scheduler import request_filter, utils

from cpu_tiers.conf import compute
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotAggregate
from cpu_tiers.tools.room.server_queries import SchedulerOptions, server_queries
from cpu_tiers.translators import ServerRequest

Properties = Mapping[str, str]
Request = tuple[dict[str, int], frozenset[str], frozenset[str]]

OF_DATABASE = {
    "require_tenant_aggregate",
    "map_az_to_placement_aggregate",
    "routed_networks_filter",
    "remote_managed_ports_filter",
    "tpm_secret_security_filter",
    "owner_nova_filter",
}
"""Nova's filters that ``explain`` leaves out: docs/admin/explaining.rst."""


@pytest.fixture(autouse=True)
def prefilter() -> Iterator[None]:
    options.register(compute)
    names = (
        "image_metadata_prefilter",
        "query_placement_for_image_type_support",
        "enable_isolated_aggregate_filtering",
    )
    for name in names:
        CONF.set_override(name, True, "scheduler")
    yield
    for name in names:
        CONF.clear_override(name, "scheduler")


class Asked(HostAggregates):
    """Aggregates that note the traits by which a server is let into isolated aggregates."""

    traits: frozenset[str] = frozenset()

    def isolated(self, traits: Iterable[str]) -> frozenset[str]:
        Asked.traits = frozenset(traits)
        return frozenset()


def of_nova(
    specs: Properties, image: Properties, disk_format: str, *, pinning: bool
) -> tuple[Request, set[str]]:
    """Return Nova's own request, and the metadata keys that let it into isolated aggregates.

    The request has the amounts, and the required and forbidden traits.

    :param pinning: ``False`` for Nova's second request for dedicated CPUs.
    """
    keys: set[str] = set()

    def isolated(_context: Any, names: Iterable[str], *_: Any, **__: Any) -> list[Any]:
        keys.update(names)
        return []

    flavor = objects.Flavor(
        name="f", vcpus=2, memory_mb=512, root_gb=5, ephemeral_gb=0, swap=0, extra_specs=specs
    )
    meta = objects.ImageMeta.from_dict({"properties": dict(image), "disk_format": disk_format})
    spec = objects.RequestSpec(
        flavor=flavor,
        image=meta,
        is_bfv=False,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
    )
    name = "get_non_matching_by_metadata_keys"
    with mock.patch.object(objects.aggregate.AggregateList, name, isolated):
        for each in request_filter.ALL_REQUEST_FILTERS:
            if each.__name__ not in OF_DATABASE:
                each(None, spec)
    request = utils.ResourceRequest.from_request_spec(spec, enable_pinning_translate=pinning)
    return (
        dict(request.merged_resources()),
        frozenset(request.all_required_traits | spec.root_required),
        frozenset(spec.root_forbidden),
    ), keys


@pytest.mark.parametrize(
    ("specs", "image"),
    [
        ({}, {}),
        ({"os:secure_boot": "required"}, {"hw_machine_type": "q35"}),
        ({}, {"os_secure_boot": "required"}),
        ({"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}, {}),
        ({}, {"hw_tpm_version": "1.2", "hw_tpm_model": "tpm-tis"}),
        ({"hw:maxphysaddr_mode": "emulate", "hw:maxphysaddr_bits": "42"}, {}),
        ({"hw:maxphysaddr_mode": "passthrough"}, {}),
        ({"hw:virtio_packed_ring": "true"}, {}),
        ({}, {"hw_virtio_packed_ring": "yes"}),
        ({}, {"hw_firmware_stateless": "true", "hw_firmware_type": "uefi"}),
        ({}, {"hw_firmware_stateless": "true"}),
        ({"hw:ephemeral_encryption": "true"}, {}),
        ({"hw:ephemeral_encryption": "true", "hw:ephemeral_encryption_format": "luks"}, {}),
        ({}, {"hw_sound_model": "virtio"}),
        ({"accel:device_profile": "gpu"}, {}),
        ({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}, {}),
        ({"hw:pci_numa_affinity_policy": "socket"}, {}),
        ({"hw:pmem": "6GB,6GB"}, {}),
        ({"hw:mem_encryption": "true"}, {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}),
        ({"trait:HW_CPU_X86_AVX2": "required"}, {"trait:COMPUTE_NODE": "required"}),
        ({}, {"hw_disk_bus": "scsi", "hw_vif_model": "e1000", "hw_video_model": "vga"}),
        ({}, {"hw_architecture": "x86_64", "hw_viommu_model": "auto"}),
    ],
)
def test_amounts_and_traits_are_equal_to_a_query_of_nova(
    specs: Properties, image: Properties
) -> None:
    flavor = Flavor(name="f", vcpus=2, memory_mb=512, root_gb=5, extra_specs=specs)
    for disk_format in ("raw", "qcow2", "no-such-format"):
        server = ServerRequest(flavor=flavor, image=Image("i", image, disk_format))
        options = SchedulerOptions(
            image_metadata_prefilter=True,
            query_placement_for_image_type_support=True,
            isolating=Asked({"uuid": SnapshotAggregate(name="a")}),
        )
        queries = server_queries(server, options=options).queries
        assert len(queries) == (2 if "hw:cpu_policy" in specs else 1)
        keys = {f"trait:{name}" for name in Asked.traits}
        for query in queries:
            found = query.resources(), query.required_traits(), query.root_forbidden
            pinning = query is queries[0]
            assert (found, keys) == of_nova(specs, image, disk_format, pinning=pinning)

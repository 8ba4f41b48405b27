"""Rows in Nova's databases, written by Nova's own objects."""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nova import objects
from oslo_utils import uuidutils

NOTHING: Mapping[str, str] = MappingProxyType({})


def make_flavor(context: Any, name: str, specs: Mapping[str, str], vcpus: int = 2) -> Any:
    """Return a flavor that is in no database yet; ``create`` writes it to the API database."""
    return objects.Flavor(
        context,
        flavorid=name,
        name=name,
        vcpus=vcpus,
        memory_mb=512,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        extra_specs=dict(specs),
    )


def store_server(context: Any, name: str, flavor: Any, image: Mapping[str, str] = NOTHING) -> Any:
    """Write a server with an embedded flavor to the database of a cell v2."""
    server = objects.Instance(
        context,
        uuid=uuidutils.generate_uuid(),
        display_name=name,
        user_id="user",
        project_id="project",
        host="host1",
        node="node1",
        compute_id=1,
        vm_state="active",
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        flavor=flavor,
        system_metadata={
            "boot_roles": "member",
            "image_base_image_ref": "",
            "image_min_disk": "1",
            **{f"image_{key}": value for key, value in image.items()},
        },
    )
    server.create()
    return server

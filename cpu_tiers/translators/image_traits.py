"""The traits of an image, which Nova itself requests. An image can only require traits."""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.groups import check_trait
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by("nova.scheduler.utils.ResourceRequest._process_image_meta")
def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the traits of ``trait:NAME=required`` of the image.

    :raises InvalidInput: a trait is unknown, or its value is not ``required``.
    """
    image = server.image
    if image is None:
        return []
    faults = FaultList()
    required = set()
    for key, value in image.properties.items():
        if not key.startswith("trait:"):
            continue
        where, name = image.spec(key), key.removeprefix("trait:")
        check_trait(where, name, faults)
        if value != "required":
            faults.add(where, f"got {value!r}", "an image can only require traits: give required")
        required.add(name)
    faults.raise_if_any()
    return [RequestGroup(required=frozenset(required))] if required else []

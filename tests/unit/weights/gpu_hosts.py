"""Hosts with devices, and servers that request devices, for the scoring ``fragmentation``."""

from typing import Any

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.cost.typical_servers import ServerShape
from tests.unit.weights.summaries import scale_of

Summary = Any  # as json.loads returns it


def host(root: str, vcpus: int, *devices: int, trait: str = "CUSTOM_A") -> dict[str, Summary]:
    """Return a host with free VCPUs, and with devices of 1,000 units, of which some are free."""
    summaries = {root: provider(root, {"VCPU": {"capacity": 16, "used": 16 - vcpus}}, [])}
    for number, free in enumerate(devices):
        amounts = {"VGPU": {"capacity": 1_000, "used": 1_000 - free}}
        summaries[f"{root}{number}"] = provider(root, amounts, [trait])
    return summaries


def provider(root: str, resources: Any, traits: list[str]) -> Summary:
    """Return the summary of a provider, as Placement answers."""
    return {"resources": resources, "traits": traits, "root_provider_uuid": root}


def groups(vcpus: int, *devices: int, **traits: Any) -> tuple[RequestGroup, ...]:
    suffixed = [
        RequestGroup(suffix=f"_{number}", resources={"VGPU": amount}, **traits)
        for number, amount in enumerate(devices)
    ]
    return (RequestGroup(resources={"VCPU": vcpus}), *suffixed)


def history(*requests: tuple[RequestGroup, ...]) -> History:
    """Return the history of a scheduler on a cloud in which devices are scarcer than CPUs."""
    scale = scale_of(host("a", 16, 500).values(), 1)
    known = History()
    for request in requests:
        known.note(ServerShape.from_groups(request), scale)
    return known

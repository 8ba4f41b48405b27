"""What the shares of a flavor are sold as on each kind of host of a cloud."""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.cloud_show import read_cloud
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.sold.sold import sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.sold.tier_promises import TierPromise, tier_promises


def sold_on_hosts(cloud: CloudSource, flavor: Flavor, shared_vcpus: int) -> dict[str, object]:
    """Return the shares of a server, and the CPUs that the shares are worth on each kind of host.

    :param shared_vcpus: the vCPUs of the server that are not dedicated: only these have shares.
    """
    shares = effective_shares(flavor)
    room = TierRoom(
        tier="",
        flavor=flavor.name,
        more=0,
        shares=shares.requested(shared_vcpus) if shares else 0,
        vcpus=shared_vcpus,
    )
    sold = sold_cloud(read_cloud(cloud), (), cloud.service_states)
    promises = [_promise(promise) for promise in tier_promises([room], sold)]
    return {"shares": room.shares, "hosts": FormattedValue(promises, _promise_lines)}


def _promise(promise: TierPromise) -> dict[str, Any]:
    return {
        "hosts": promise.hosts,
        "cpus": promise.cpus,
        "sold_cpus": float(promise.sold),
        "promised_cpus": float(promise.promised),
        "class_cpus": float(promise.class_cpus * promise.vcpus),
        "scs_class": "V" if promise.has_class else None,
    }


def _promise_lines(promises: list[Mapping[str, Any]]) -> str:
    if not promises:
        return "sold nowhere as a number of CPUs: no shares, or no host that sells shares"
    return "\n".join(
        f"{count_of(promise['hosts'], 'host')} with {count_of(promise['cpus'], 'shared CPU')}:"
        f" sold {promise['sold_cpus']:.3f} CPUs, kept when full {promise['promised_cpus']:.3f}"
        + (f", class {promise['scs_class']} of SCS-0100" if promise["scs_class"] else "")
        for promise in promises
    )

"""Weights of guests that run, set through libvirt: it keeps cgroup and XML in step.

Source: ``virsh schedinfo``,
https://libvirt.org/html/libvirt-libvirt-domain.html#virDomainSetSchedulerParametersFlags.
"""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.libvirt.connection import ANSWER_SECONDS, ask, load_libvirt


def set_weights(
    uri: str, weights: Mapping[str, int], *, seconds: float = ANSWER_SECONDS
) -> Mapping[str, str]:
    """Give guests their weights, in the kernel and in what libvirt has stored of them.

    :param weights: by the uuid of the domain.
    :return: why a weight could not be set, by uuid; empty where all were.
    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time. What was set by then is not told.
    """
    libvirt = load_libvirt()

    def write(connection: Any) -> Mapping[str, str]:
        failed = {}
        for uuid, weight in weights.items():
            try:
                _set_weight(libvirt, connection.lookupByUUIDString(uuid), weight)
            except libvirt.libvirtError as error:
                failed[uuid] = str(error)
        return failed

    return ask(uri, write, seconds=seconds, write=True)


def _set_weight(libvirt: Any, domain: Any, weight: int) -> None:
    """Set a weight for now, and for the next start of a domain that libvirt stores."""
    domain.setSchedulerParametersFlags({"cpu_shares": weight}, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    if domain.isPersistent():  # libvirt does not take both at once
        domain.setSchedulerParametersFlags(
            {"cpu_shares": weight}, libvirt.VIR_DOMAIN_AFFECT_CONFIG
        )

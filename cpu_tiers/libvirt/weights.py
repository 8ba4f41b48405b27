"""Set the weights of running guests through libvirt, which changes cgroup and XML together.

Source: ``virsh schedinfo``,
https://libvirt.org/html/libvirt-libvirt-domain.html#virDomainSetSchedulerParametersFlags.
"""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.libvirt.connection import ANSWER_SECONDS, ask, load_libvirt


def set_weights(
    uri: str, weights: Mapping[str, int], *, seconds: float = ANSWER_SECONDS
) -> Mapping[str, str]:
    """Set the weights of guests, in the kernel and in the definition that libvirt stores.

    :param weights: the weights by the uuid of the domain.
    :return: for each weight that could not be set, the reason by the uuid of the domain.
    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time. Some of the weights may be set then.
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
    """Set the weight of a running domain, and of its next start if libvirt stores the domain."""
    domain.setSchedulerParametersFlags({"cpu_shares": weight}, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    # A second call: libvirt does not accept both flags at once.
    if domain.isPersistent():
        domain.setSchedulerParametersFlags(
            {"cpu_shares": weight}, libvirt.VIR_DOMAIN_AFFECT_CONFIG
        )

"""Every fault of a new server for which Placement or cpu-tiers would refuse its request. Pure.

:mod:`cpu_tiers.extra_specs.server_faults` reads the extra specs and image properties; only the
translators know what is wrong with the request groups, such as a missing ``group_policy``.
"""

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.translators import ServerRequest, translate


def request_faults(server: ServerRequest) -> tuple[Fault, ...]:
    """Return every fault of a server's flavor, image and ports; empty without faults.

    Shares are requested, whether ``server`` says so or not.
    """
    faults = FaultList()
    faults.faults.extend(server_faults(server.flavor, server.image))
    with faults:
        translate(server._replace(query_vcpu_shares=True))
    return tuple(dict.fromkeys(faults.faults))

"""A server with a tier, in a cloud on which cpu-tiers was installed."""

import json

from tests.cloud.page import Shell

BOOT = "openstack --os-compute-api-version 2.37 server create --image $IMAGE --nic none --wait"
FLAVOR = "--vcpus 1 --ram 128 --disk 0 --property quota:cpu_shares_multiplier=100"


def boot_gold(shell: Shell) -> None:
    """Boot a Gold server, and expect its shares in Placement and the weight of its guest."""
    shell.output_of(
        "openstack --os-placement-api-version 1.18 resource provider inventory list -f value"
        " $(openstack resource provider list --name compute1 -f value -c uuid)",
        "...CUSTOM_VCPU_SHARES...",
    )
    shell.output_of(f"openstack flavor create gold {FLAVOR}")
    shell.output_of(f"{BOOT} gold1 --flavor gold")
    shown = shell.output_of(
        "openstack resource provider allocation show -f json"
        " $(openstack server show gold1 -f value -c id)"
    )
    (held,) = json.loads(shown)
    assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 128, "CUSTOM_VCPU_SHARES": 100}
    shell.output_of("virsh schedinfo $(virsh list --name)", "...cpu_shares : 100...")

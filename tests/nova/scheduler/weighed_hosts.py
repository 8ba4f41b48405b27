"""Hosts with shares and GPUs for the weigher, and host states without services."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from nova import objects
from nova.scheduler.host_manager import HostState

from tests.nova.cloud import STOCK
from tests.nova.computes import SHARES, Computes

MULTIPLIER = "resource_provider_weight_multiplier"


class Weighed(Computes):
    """Only the shares and the GPUs of hosts count, so that a test can add up."""

    kind = STOCK
    microversion = "latest"
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        MULTIPLIER: 1.0,
        "resource_provider_resources": [SHARES, "CUSTOM_GPU"],
        "resource_provider_traits": ["CUSTOM_NONE"],
    }

    def chosen(self, flavor: str) -> str:
        """Boot a server; return the host that the scheduler chose."""
        return self.host_of(self.boot(flavor))

    def boot_many(self, flavor: str, number: int) -> list[str]:
        """Boot servers in one request; return their hosts, in the order of their creation."""
        server = self._build_server(flavor_id=flavor, networks="none")
        self.api.post_server({"server": {**server, "min_count": number}})
        servers = self.api.get_servers()
        return [self.host_of(self._wait_for_state_change(one, "ACTIVE")) for one in servers]


def weighed(*hosts: Any) -> list[Any]:
    return [SimpleNamespace(obj=host) for host in hosts]


def host(uuid: str, **values: Any) -> HostState:
    """Return a host state of Nova's own, with no attribute of cpu-tiers but ``values``."""
    state = HostState(uuid, uuid, "cell")
    state.uuid, state.aggregates = uuid, []
    vars(state).update(values)
    return state


def summary(root: str, free: int) -> dict[str, Any]:
    return {
        "root_provider_uuid": root,
        "parent_provider_uuid": None,
        "resources": {"VCPU": {"capacity": free, "used": 0}},
        "traits": [],
    }


def spec() -> objects.RequestSpec:
    """Return a request for a server of 2 vCPUs."""
    flavor = objects.Flavor(
        name="f",
        vcpus=2,
        memory_mb=512,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        extra_specs={"resources:MEMORY_MB": "0"},
    )
    level = objects.RequestLevelParams()
    return objects.RequestSpec(
        flavor=flavor, image=None, requested_resources=[], request_level_params=level, is_bfv=False
    )


def aggregate(number: int, **metadata: str) -> objects.Aggregate:
    return objects.Aggregate(id=number, metadata=metadata)


def memory_mb(host: Any) -> int:
    """Return the memory of a host of the fake libvirt, in MiB."""
    kilobytes: int = host._get_hardware_info()[1]
    return kilobytes // 1024

"""Servers that exist, with faults that no flavor of a new server may have."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from nova import context, objects

from tests.nova.computes import MULTIPLIER, PLAIN, SHARES

NONE: Mapping[str, str] = MappingProxyType({})
SHARED: Mapping[str, int] = MappingProxyType({"VCPU": 2})
DEDICATED = {"hw:cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1"}
SPEC_KEY, RELEASED_KEY = "hw:cpu_emulator_threads", "hw:emulator_threads_policy"


class Old(NamedTuple):
    """A server of 2 vCPUs, as it was booted, and the faults that its flavor and image have.

    :param booted: extra specs that the server is booted with, so that Nova makes its topology.
    :param specs: the faulty extra specs.
    :param shares: the VCPU_SHARES that the server claims in a move.
    :param weight: the weight of the guest.
    """

    name: str
    specs: Mapping[str, str]
    booted: Mapping[str, str] = NONE
    image_policy: str | None = None
    shares: int | None = None
    weight: str | None = None
    claims: Mapping[str, int] = SHARED

    @property
    def held(self) -> dict[str, int]:
        """Return what the server holds of a host after a move."""
        shares = {} if self.shares is None else {SHARES: self.shares}
        return {"MEMORY_MB": 512, **self.claims, **shares}


OLD_SERVERS = (
    Old("1024 for each vCPU, as of old", {PLAIN: "16384"}),
    Old(
        "two policies for emulator threads",
        {SPEC_KEY: "share", RELEASED_KEY: "isolate", MULTIPLIER: "100"},
        booted={**DEDICATED, RELEASED_KEY: "isolate"},
        claims={"PCPU": 3},  # 2, and 1 of Nova's key
        weight="200",
    ),
    Old(
        "flavor mixed, image shared",
        {MULTIPLIER: "10"},
        booted=MIXED,
        image_policy="shared",
        claims={"VCPU": 1, "PCPU": 1},
        shares=10,  # 10 x 1
        weight="20",
    ),
)
"""A server for each part of Nova and of cpu-tiers that could refuse to move it.

Of faulty shares, a server claims none, and its guest has no weight. Of faulty CPUs, Nova decides,
and the shares follow. test_admission and test_cpu_policies have more faults.
"""


def plant(server: str, old: Old) -> None:
    """Put faults into the flavor and the image that Nova keeps of a server."""
    admin = context.get_admin_context()
    instance = objects.Instance.get_by_uuid(
        admin, server, expected_attrs=["flavor", "system_metadata"]
    )
    flavor = instance.flavor
    flavor.extra_specs = {**old.booted, **old.specs}
    instance.flavor = flavor
    spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
    spec.flavor = flavor
    if old.image_policy:
        instance.system_metadata["image_hw_cpu_policy"] = old.image_policy
        image = spec.image
        image.properties.hw_cpu_policy = old.image_policy
        spec.image = image
    instance.save()
    spec.save()

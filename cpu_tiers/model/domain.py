"""A guest as its hypervisor has it: what a domain's XML says about its CPUs."""

from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A libvirt domain.

    :param shares: the weight that its XML sets; ``None`` where it sets none and
        the kernel's default counts.
    :param weight: what its cgroup has, where libvirt was asked.
    :param vcpu_sets: for each vCPU that is online, the host CPUs that it may run
        on; ``None`` for all of the host.
    :param emulator_set: the same for its emulator's threads.
    :param flavor: the name of Nova's flavor, where Nova made the domain.
    :param extra_specs: those of the flavor; ``None`` where Nova does not write
        them (before release 32).
    """

    name: str
    uuid: str | None = None
    shares: int | None = None
    weight: int | None = None
    vcpu_sets: tuple[CpuSet | None, ...]
    emulator_set: CpuSet | None = None
    flavor: str | None = None
    extra_specs: Mapping[str, str] | None = None

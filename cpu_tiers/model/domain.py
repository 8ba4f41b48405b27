"""A guest on its host: the CPUs of a libvirt domain."""

from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A libvirt domain.

    :param shares: the weight in the domain's XML; ``None`` if the XML sets no weight and
        the default of the kernel counts.
    :param weight: the weight of the domain's cgroup, if it was read from libvirt.
    :param vcpu_sets: for each vCPU that is online, the host CPUs on which the vCPU may
        run; ``None`` stands for all CPUs of the host.
    :param emulator_set: the host CPUs on which the emulator threads may run; ``None``
        stands for all CPUs of the host.
    :param flavor: the name of Nova's flavor, if Nova made the domain.
    :param extra_specs: the extra specs of the flavor; ``None`` if Nova does not write
        extra specs into the domain (before release 32).
    """

    name: str
    uuid: str | None = None
    shares: int | None = None
    weight: int | None = None
    vcpu_sets: tuple[CpuSet | None, ...]
    emulator_set: CpuSet | None = None
    flavor: str | None = None
    extra_specs: Mapping[str, str] | None = None

"""A guest on its host: the CPUs of a libvirt domain."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    :param emulator: the path of the program of QEMU.
    :param owner: the user that runs QEMU, as a number or a name; ``None`` if the XML names no
        user, and QEMU runs as the user of libvirt.
    :param quotas: the microseconds of CPU time in each period, as the XML limits them, by the
        element: ``global_quota``, ``quota`` (each vCPU), ``emulator_quota`` and
        ``iothread_quota``.
    """

    name: str
    uuid: str | None = None
    shares: int | None = None
    weight: int | None = None
    vcpu_sets: tuple[CpuSet | None, ...]
    emulator_set: CpuSet | None = None
    flavor: str | None = None
    extra_specs: Mapping[str, str] | None = None
    emulator: str | None = None
    owner: str | None = None
    quotas: Mapping[str, int] = field(default_factory=dict)

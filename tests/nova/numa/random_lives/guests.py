"""Guests drawn at random, and what each of them has to hold, by the specs and not by our code."""

from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from hypothesis import strategies as st

from tests.nova.computes import MULTIPLIER

CARD = "CUSTOM_CARD"
MEMORY_MB = 128
"""Of each NUMA node of a guest."""


@dataclass(frozen=True, kw_only=True)
class Guest:
    """What a flavor asks for.

    :param policy: ``shared``, ``dedicated`` or ``mixed``; of a mixed guest, the first vCPU of each
        NUMA node is shared.
    :param nodes: 0 is a flavor that says nothing of NUMA nodes.
    :param is_uneven: whether the first of two NUMA nodes has one vCPU, and the second the others.
    :param by_amounts: whether a mixed guest and its emulator threads are asked for as the spec
        has it, and not as Nova has it.
    :param multiplier: of the tier; empty without a tier.
    :param cards: whether the guest has a PCI device, by an alias.
    :param gpus: whether the guest has a virtual GPU.
    :param affinity: the NUMA affinity policy of its PCI devices; empty is Nova's ``legacy``.
    """

    policy: str
    nodes: int
    vcpus_of_node: int
    is_uneven: bool
    pages: str
    isolates: bool
    by_amounts: bool
    multiplier: str
    disk_gb: int
    cards: bool
    gpus: bool
    affinity: str

    @property
    def parts(self) -> int:
        return self.nodes or 1

    @property
    def vcpus(self) -> int:
        return self.parts * self.vcpus_of_node

    @property
    def shared(self) -> int:
        """Return the number of shared vCPUs."""
        return {"shared": self.vcpus, "mixed": self.parts, "dedicated": 0}[self.policy]

    @property
    def is_aware(self) -> bool:
        """Tell whether the guest has NUMA nodes in Nova."""
        return bool(self.nodes or self.pages or self.policy != "shared")

    @property
    def shares(self) -> int:
        return _rounded(self.multiplier, self.shared)

    @property
    def weight(self) -> str | None:
        """Return the weight in the domain, which counts all vCPUs."""
        return str(_rounded(self.multiplier, self.vcpus)) if self.multiplier else None

    def holds(self) -> Counter[str]:
        """Return what a server holds, except shares, disk, devices and ports."""
        amounts = Counter(VCPU=self.shared, MEMORY_MB=self.parts * MEMORY_MB)
        return +(amounts + Counter(PCPU=self.vcpus - self.shared + self.isolates))

    def specs(self) -> dict[str, str]:
        """Return the extra specs of the flavor."""
        specs = {
            "hw:numa_nodes": str(self.nodes or ""),
            "hw:mem_page_size": self.pages,
            MULTIPLIER: self.multiplier,
            "pci_passthrough:alias": "card:1" if self.cards else "",
            "hw:pci_numa_affinity_policy": self.affinity,
            "resources:VGPU": "1" if self.gpus else "",
            **self._policy(),
            **(self._uneven() if self.is_uneven else {}),
        }
        return {key: value for key, value in specs.items() if value}

    def _uneven(self) -> dict[str, str]:
        cpus = "0", ",".join(map(str, range(1, self.vcpus)))
        described = {f"hw:numa_cpus.{node}": text for node, text in enumerate(cpus)}
        return described | {f"hw:numa_mem.{node}": str(MEMORY_MB) for node in range(2)}

    def _policy(self) -> dict[str, str]:
        if self.policy == "shared":
            return {}
        if self.policy == "mixed" and self.by_amounts:
            amounts = self.holds()
            threads = {"hw:cpu_emulator_threads": "isolate" if self.isolates else ""}
            return {f"resources:{name}": str(amounts[name]) for name in ("VCPU", "PCPU")} | threads
        floating = range(0, self.vcpus, self.vcpus_of_node)
        mask = ",".join(f"^{vcpu}" for vcpu in floating)
        return {
            "hw:cpu_policy": self.policy,
            "hw:cpu_dedicated_mask": mask if self.policy == "mixed" else "",
            "hw:emulator_threads_policy": "isolate" if self.isolates else "",
        }


def _rounded(multiplier: str, vcpus: int) -> int:
    exact = Decimal(multiplier or 0) * vcpus
    return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


@st.composite
def guests(draw: st.DrawFn) -> Guest:
    """Draw a guest; each fits an empty host of one of the kinds."""
    policy = draw(st.sampled_from(["shared", "dedicated", "mixed"]))
    nodes = draw(st.integers(0, 2))
    return Guest(
        policy=policy,
        nodes=nodes,
        is_uneven=nodes == 2 and policy != "mixed" and draw(st.booleans()),
        vcpus_of_node=draw(st.integers(1, 2)) + (policy == "mixed"),
        pages=draw(st.sampled_from(["", "", "small", "2MB"])),
        isolates=policy != "shared" and draw(st.booleans()),
        by_amounts=draw(st.booleans()),
        multiplier=draw(st.sampled_from(["", "10", "2.5"])),
        disk_gb=draw(st.integers(0, 1)),
        cards=draw(st.integers(0, 3)) == 0,
        gpus=draw(st.integers(0, 3)) == 0,
        affinity=draw(st.sampled_from(["", "", "required", "preferred", "socket"])),
    )

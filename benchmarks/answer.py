"""A synthetic answer of ``GET /allocation_candidates``, the same in every run.

Each host is a tree of 9 providers according to decisions D2 and D6: the root, 2 NUMA nodes, and
3 page sizes in each node. The root has 60 traits, about as many as a recent x86 compute node
reports.
"""

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

HOSTS = 1_000
REQUESTED = {"VCPU": 4, "CUSTOM_VCPU_SHARES": 400, "MEMORY_MB": 8192, "DISK_GB": 20}
REQUIRED = frozenset({"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"})

_TRAITS = sorted(REQUIRED) + [f"COMPUTE_FEATURE_NUMBER_{i:02}" for i in range(58)]
_PAGE_TRAITS = [f"CUSTOM_MEMORY_PAGE_SIZE_{size}" for size in ("SMALL", "2M", "1G")]

Answer = dict[str, Any]


def answer_text(hosts: int = HOSTS) -> str:
    """Return the JSON of an answer about ``hosts`` hosts."""
    return json.dumps(answer(hosts))


def answer(hosts: int) -> Answer:
    """Return the answer of Placement about ``hosts`` hosts with room in both NUMA nodes."""
    rng = random.Random(1)
    trees = [_tree(rng) for _ in range(hosts)]
    return {
        "allocation_requests": [candidate for tree in trees for candidate in _candidates(tree)],
        "provider_summaries": dict(itertools.chain.from_iterable(trees)),
    }


def _tree(rng: random.Random) -> list[tuple[str, Answer]]:
    """Return uuid and summary of each provider of a host: the root, then each node with pages."""
    root = _uuid(rng)
    providers = [(root, _summary(rng, root, None, {"DISK_GB": 4000}, _TRAITS))]
    for _ in range(2):
        node = _uuid(rng)
        cpus = {"VCPU": 128, "CUSTOM_VCPU_SHARES": 12800, "PCPU": 16}
        providers.append((node, _summary(rng, root, root, cpus, ["HW_NUMA_ROOT"])))
        providers += [
            (_uuid(rng), _summary(rng, root, node, {"MEMORY_MB": 131072}, [trait]))
            for trait in _PAGE_TRAITS
        ]
    return providers


def _summary(
    rng: random.Random, root: str, parent: str | None, totals: dict[str, int], traits: list[str]
) -> Answer:
    return {
        "resources": {
            name: {"capacity": total, "used": rng.randrange(total // 2)}
            for name, total in totals.items()
        },
        "traits": traits,
        "parent_provider_uuid": parent,
        "root_provider_uuid": root,
    }


def _candidates(tree: list[tuple[str, Answer]]) -> Iterator[Answer]:
    """Yield a candidate for each NUMA node: CPUs and small pages of the node, disk of the root."""
    (root, _), *nodes = tree
    for (node, _), (pages, _) in (nodes[:2], nodes[4:6]):
        taken = {root: ["DISK_GB"], node: ["VCPU", "CUSTOM_VCPU_SHARES"], pages: ["MEMORY_MB"]}
        yield {
            "allocations": {
                uuid: {"resources": {name: REQUESTED[name] for name in names}}
                for uuid, names in taken.items()
            },
            "mappings": {"": [root], "_PROC1": [node], "_MEM1": [pages]},
        }


def _uuid(rng: random.Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

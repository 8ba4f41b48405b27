"""Servers drawn at random: flavors and images that often make sense."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any

from nova import objects

from cpu_tiers.model.flavor import Flavor

Texts = dict[str, str | None]

RELEASED_KEY, SPEC_KEY = "hw:emulator_threads_policy", "hw:cpu_emulator_threads"
HYPERTHREADING = "trait:HW_CPU_HYPERTHREADING"


@dataclass(frozen=True)
class Case:
    """A server: the sizes of its flavor, extra specs, and the properties of its image."""

    vcpus: int
    memory_mb: int
    specs: Mapping[str, str]
    image: Mapping[str, str]

    @cached_property
    def flavor(self) -> Flavor:
        return Flavor(name="f", vcpus=self.vcpus, memory_mb=self.memory_mb, extra_specs=self.specs)

    def novas(self, specs: Mapping[str, str]) -> tuple[Any, Any]:
        """Return Nova's flavor, with other extra specs, and its image."""
        sizes = {"vcpus": self.vcpus, "memory_mb": self.memory_mb}
        sizes |= {"root_gb": 0, "ephemeral_gb": 0, "swap": 0}
        flavor = objects.Flavor(name="f", **sizes, extra_specs=dict(specs))
        image = objects.ImageMeta.from_dict({"name": "i", "properties": dict(self.image)})
        return flavor, image

    def amount(self, resource_class: str) -> int | None:
        keys = f"resources:{resource_class}", f"resources1:{resource_class}"
        texts = [self.specs[key] for key in keys if self.specs.get(key, "").isdecimal()]
        return sum(map(int, texts)) if texts else None

    def values(self, key: str) -> list[str]:
        """Return what flavor and image set for a key and, where there are, its nodes."""
        both = (*self.specs.items(), *((k.replace("_", ":", 1), v) for k, v in self.image.items()))
        return [value for name, value in both if re.fullmatch(rf"{key}(\.\d)?", name)]


def rarely(chance: float, random: Random, *values: str) -> str | None:
    """Return one of the values, with such a chance, else none."""
    return random.choice(values) if random.random() < chance else None


def mask(random: Random, vcpus: int) -> str:
    last = vcpus - 1
    if random.random() < 0.9:
        return random.choice(
            ("0", f"{last}", f"1-{last}", "^0", f"^{last}", "0-1", "^0-1", f"^0,{last}", "0-1,^1")
        )
    odd = (f"0-{last}", f"0-{vcpus}", f"{vcpus}", f"0-{vcpus + 3},^{vcpus}-{vcpus + 3}", ",0,")
    return random.choice((*odd, "", "a", "2-1", "-1", "1-", "^", "0,^0", " 0 , 1", "^ 0", "0-1-2"))


def described(random: Random, vcpus: int, memory_mb: int, nodes: int) -> dict[str, str]:
    """Return the CPUs and the memory of each node, one time of four with a slip."""
    last, part = nodes - 1, random.choice((128, 256))
    order = list(range(vcpus))
    if random.random() < 0.3:
        random.shuffle(order)
    bounds = sorted(random.sample(range(1, vcpus), min(last, vcpus - 1)))
    bounds = [0, *bounds, *[vcpus] * (nodes - len(bounds))]
    cpus = [",".join(map(str, order[first:end])) for first, end in pairwise(bounds)]
    memory = [str(part)] * last + [str(memory_mb - part * last)]
    slip = random.random()
    if slip < 0.01:
        cpus = [f"0-{vcpus - 1}"] + ["^0"] * last
    elif slip < 0.12:
        cpus[last] = random.choice(("0", "a", "1-0", f"{vcpus}", "", "^0", f"0-{vcpus}"))
    elif slip < 0.2:
        memory[last] = random.choice(("0", "x", "-128", f" {memory[last]}", "1", ""))
        if memory[last] == "0":
            memory[0] = str(memory_mb - part * (last - 1)) if last else "0"
    lines = {f"cpus.{node}": text for node, text in enumerate(cpus)}
    lines |= {f"mem.{node}": text for node, text in enumerate(memory)}
    if slip > 0.95:
        del lines[random.choice(list(lines))]
    return lines


def policies(random: Random, specs: Texts, image: Texts) -> str | None:
    """Ask for a CPU policy, mostly on one side, and return which."""
    names = ("dedicated", "dedicated", "mixed", "mixed", "mixed", "shared")
    specs["hw:cpu_policy"] = rarely(0.7, random, *names * 6, "", "turbo")
    chance = 0.15 if specs["hw:cpu_policy"] else 0.5
    image["hw_cpu_policy"] = rarely(chance, random, *names * 6, "turbo")
    return specs["hw:cpu_policy"] or image["hw_cpu_policy"]


def amounts(random: Random, specs: Texts, vcpus: int) -> None:
    """State VCPU, PCPU or both, mostly so that they add up."""
    isolated = "isolate" in (specs[RELEASED_KEY], specs[SPEC_KEY])
    vcpu = random.choice((0, vcpus, random.randint(0, vcpus), random.randint(0, vcpus)))
    pcpu = max(0, vcpus - vcpu + isolated + random.choice((0,) * 12 + (1, -1)))
    specs["resources:VCPU"] = rarely(0.03, random, "x", "1.5") or rarely(0.8, random, str(vcpu))
    suffix = rarely(0.1, random, "1") or ""
    specs[f"resources{suffix}:PCPU"] = rarely(0.8, random, str(pcpu))


def masks(random: Random, specs: Texts, image: Texts, vcpus: int, policy: str | None) -> None:
    """Say which vCPUs are dedicated or real-time, mostly where the policy wants it."""
    way = random.random()
    if (policy == "mixed" and way < 0.5) or way < 0.02:
        specs["hw:cpu_dedicated_mask"] = mask(random, vcpus)
    if (policy in ("mixed", "dedicated", "amounts") and 0.4 < way < 0.9) or way > 0.98:
        specs["hw:cpu_realtime"] = rarely(
            0.9, random, *("yes", "True", " on ", "1") * 9, "no", "maybe", ""
        )
        specs["hw:cpu_realtime_mask"] = rarely(0.7, random, mask(random, vcpus))
        image["hw_cpu_realtime_mask"] = rarely(0.3, random, mask(random, vcpus))


def numa(random: Random, case: Case, specs: Texts, image: Texts, pinned: bool) -> None:
    """Ask for NUMA nodes, in number or one by one."""
    side, key = random.choice(((specs, "hw:numa_"), (specs, "hw:numa_"), (image, "hw_numa_")))
    nodes = rarely(0.5, random, *("1", "2", "2", "4") * 6, "3", "0", "x", "", " 2", "02")
    side[f"{key}nodes"] = nodes
    count = int(nodes) if nodes in ("1", "2", "3", "4") else 1
    if (pinned or nodes) and random.random() < 0.4:
        lines = described(random, case.vcpus, case.memory_mb, count)
        side |= {f"{key}{name}": text for name, text in lines.items()}
    if random.random() < 0.02:
        image |= {"hw_numa_nodes": "1", "hw_numa_cpus.0": f"0-{case.vcpus - 1}"}


def pages(random: Random, specs: Texts, image: Texts) -> None:
    free = ("any", "large") * 2
    fixed = ("small", "4", "2048", "2MB", "1GiB", "16Mbit", "2048KB", ".5MB")
    odd = ("", "0", "2M", "-4KB", "1.5KB", "512B", "huge", "1e3", "2.0")
    page = rarely(0.3, random, *(*free, *fixed) * 4, *odd)
    specs["hw:mem_page_size"] = page
    chance = 0.6 if page in free else 0.02
    image["hw_mem_page_size"] = rarely(chance, random, *("small", "2048", "2MB", "any") * 4, *odd)


def draw(random: Random) -> Case:
    """Return a server that often makes sense."""
    memory_mb = random.randint(8, 64) * 128 + int(rarely(0.05, random, "1") or 0)
    sizes = Case(random.choice((1, 2, 4, 6, 8, 8, 12, 16)), memory_mb, {}, {})
    specs: Texts = {}
    image: Texts = {}
    threads = rarely(0.3, random, *("isolate", "isolate", "share") * 5, "", "mine")
    specs[RELEASED_KEY] = threads if random.random() < 0.8 else None
    specs[SPEC_KEY] = rarely(0.02, random, "isolate", "share", "x")
    specs[SPEC_KEY] = specs[SPEC_KEY] or (threads if random.random() < 0.2 else None)
    way = random.random()
    policy = policies(random, specs, image) if way < 0.75 else None
    if way > 0.72:
        amounts(random, specs, sizes.vcpus)
    masks(random, specs, image, sizes.vcpus, policy or ("amounts" if way > 0.75 else None))
    pinned = policy in ("mixed", "dedicated") or way > 0.75
    words, chance = ("prefer", "isolate", "require"), 0.25 if pinned else 0.02
    specs["hw:cpu_thread_policy"] = rarely(chance, random, *words * 6, "", "x")
    image["hw_cpu_thread_policy"] = rarely(chance / 2, random, *words)
    specs[HYPERTHREADING] = rarely(chance / 3, random, *("required", "forbidden") * 6, "maybe")
    image[HYPERTHREADING] = rarely(chance / 4, random, "required")
    numa(random, sizes, specs, image, pinned)
    pages(random, specs, image)
    specs["hw:pmem"] = rarely(0.05, random, "6GB", "a, b", ",")
    return Case(
        vcpus=sizes.vcpus,
        memory_mb=sizes.memory_mb,
        specs={key: value for key, value in specs.items() if value is not None},
        image={key: value for key, value in image.items() if value is not None},
    )

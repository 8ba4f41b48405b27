"""An answer of Placement with a candidate, and the answer with another value at a place."""

import copy
from typing import Any

ANSWER: dict[str, Any] = {
    "allocation_requests": [
        {
            "allocations": {
                "root": {"resources": {"MEMORY_MB": 512}},
                "child": {"resources": {"VCPU": 2}},
            },
            "mappings": {"": ["root"], "_NUMA0": ["child"]},
        }
    ],
    "provider_summaries": {
        "root": {
            "resources": {"MEMORY_MB": {"capacity": 1024, "used": 0}},
            "traits": ["COMPUTE_NODE"],
            "parent_provider_uuid": None,
            "root_provider_uuid": "root",
        },
        "child": {
            "resources": {"VCPU": {"capacity": 8, "used": 3}},
            "traits": [],
            "parent_provider_uuid": "root",
            "root_provider_uuid": "root",
        },
    },
}

ABSENT = object()


def edited(path: str, value: object) -> dict[str, Any]:
    """Return the answer with ``value`` at ``path``."""
    body = copy.deepcopy(ANSWER)
    *parents, last = path.split("/")
    part: Any = body
    for key in parents:
        part = part[int(key) if isinstance(part, list) else key]
    if value is ABSENT:
        del part[last]
    else:
        part[int(last) if isinstance(part, list) else last] = value
    return body

"""The fake hosts and the options of their nova.conf."""

import json

from tests.processes.configuration import Sections

GIB_KB = 2**20

TWO_NODES = {
    "FAKE_HOST": json.dumps(
        {
            "nodes": 2,
            "cores": 6,
            "node_kb": 2 * GIB_KB,
            "pages": [(4, GIB_KB // 4), (2048, GIB_KB // 2048)],
        }
    )
}
"""12 CPUs; each node has 1 GiB in pages of 4 kB, and 1 GiB in pages of 2 MiB."""


def aware(of_numa: bool | None) -> Sections:
    """Return the CPU sets: two shared and four dedicated CPUs of each node.

    :param of_numa: ``enable_numa_reporting_to_placement``; ``None`` leaves the option out.
    """
    option = {} if of_numa is None else {"enable_numa_reporting_to_placement": of_numa}
    return {
        "DEFAULT": {"reserved_host_memory_mb": 0},
        "compute": {"cpu_shared_set": "0-1,6-7", "cpu_dedicated_set": "2-5,8-11", **option},
    }

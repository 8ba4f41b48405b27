"""``cpu-tiers`` that does not pause between the attempts of a request, and ``heal HOST``.

``heal`` gives the consumers of a host their shares with the functions of ``allocation heal``,
which itself needs Nova and its databases.
"""

import sys
from collections.abc import Sequence

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.session import connect
from cpu_tiers.tools.placement.sync import read_host
from tests.databases.keepers import shares_to_add


def heal(arguments: Sequence[str]) -> int:
    """Heal a host; return the exit status."""
    conf = cfg.ConfigOpts()
    conf(["--config-file", arguments[0]], project="nova")
    try:
        with connect(conf) as client:
            with_fresh_reads(client.retry_policy, lambda: _heal(client, arguments[1]))
    except CpuTiersError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _heal(client: PlacementClient, name: str) -> None:
    host = read_host(client, name)
    assert host is not None
    if additions := shares_to_add(host):
        allocations.add(client, host, additions)


if __name__ == "__main__":
    RetryPolicy.__init__.__kwdefaults__["sleep"] = lambda _: None  # type: ignore[index]
    sys.exit(heal(sys.argv[2:]) if sys.argv[1] == "heal" else app.main(sys.argv[1:]))

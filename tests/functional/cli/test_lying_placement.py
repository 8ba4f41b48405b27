"""Commands over a Placement that lies, and the plugin of the openstack client over the same."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient
from tests import draws
from tests.databases.front import Front, front
from tests.functional.cli.fork_server import ForkServer
from tests.functional.placement.providing import provide
from tests.hostile_answers import OF_ANY, REFUSED, SELECTED, UNKNOWN_NODES, Answer
from tests.placement_faults import response

BIN = Path(sys.executable).parent
OF_CANDIDATES = {**SELECTED, **UNKNOWN_NODES, **REFUSED}


@pytest.fixture(params=["cpu-tiers", "openstack"])
def program(
    request: pytest.FixtureRequest,
    client: PlacementClient,
    url: str,
    nova_conf: Callable[..., Path],
) -> Any:
    """Yield a server in front of Placement, and the beginning of a command that asks it."""
    path = BIN / request.param
    if not path.exists():
        pytest.skip("python-openstackclient is not installed")
    for number in range(2):
        provide(client, f"host{number}", ["COMPUTE_NODE"], VCPU=8, MEMORY_MB=8192, DISK_GB=100)
    with front(url) as liar:
        conf = nova_conf(auth_type="admin_token", endpoint=liar.url, token="admin")
        words = ["--config-file", str(conf)]
        if request.param == "openstack":
            words = ["--os-auth-type=admin_token", f"--os-endpoint={liar.url}", "--os-token=admin"]
            words += ["cpu", "tier"]
        yield liar, [str(path), *words]


def test_a_placement_that_lies(
    program: tuple[Front, list[str]],
    flavor: Callable[..., str],
    fork_server: ForkServer,
    tmp_path: Path,
) -> None:
    """Each lie gets an answer of the command or an error in a line, and never a traceback."""
    liar, begin = program
    explain = ["explain", flavor({}, vcpus=2)]
    for request, command, answers in (
        ("GET /allocation_candidates", explain, OF_CANDIDATES),
        ("GET /resource_providers", ["cloud", "show"], OF_ANY),
    ):
        for name in sorted(answers)[draws.SEED % draws.DAYS :: draws.DAYS]:
            fault = partial(_of_request, liar, request, answers[name])
            liar.begin(lambda _, fault=fault: fault)  # type: ignore[misc]
            result = fork_server.run([*begin, *command], tmp_path)
            said = result.stdout + result.stderr
            assert result.returncode in {0, 1, 3}, f"{name}: {said}"
            assert "Traceback" not in said, f"{name}: {said}"
            assert said, name
            assert any(line.startswith(request) for line in liar.lines), name


def _of_request(liar: Front, request: str, answer: Answer, send: Callable[[], Any]) -> Any:
    """Return what comes in place of an answer to requests that begin so."""
    given = send()
    if liar.lines[-1].startswith(request) and given.status_code == 200:
        return response(200, answer(given.json()))
    return given

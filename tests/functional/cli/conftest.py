"""The command line as a person runs it: a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.functional.cli.fork_server import ForkServer

Run = Callable[..., subprocess.CompletedProcess[str]]
Save = Callable[..., str]


@pytest.fixture(autouse=True)
def any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no width for tables in pipes; pytest-xdist sets one in its workers."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.stop()


@pytest.fixture
def run(tmp_path: Path, fork_server: ForkServer) -> Run:
    """Run ``cpu-tiers`` and expect an exit status; never a traceback."""

    def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).with_name("cpu-tiers"))
        result = fork_server.run([program, *map(str, arguments)], tmp_path)
        assert result.returncode == status, result.stdout + result.stderr
        assert "Traceback" not in result.stdout + result.stderr
        return result

    return run


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a document, as JSON where it is no text, and return its path."""

    def save(document: object, name: str = "document") -> str:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return save


@pytest.fixture
def plan(run: Run, save: Run) -> Callable[..., str]:
    """Run a plan command on a snapshot, with lines of nova.conf after ``[filter_scheduler]``."""

    def plan(document: object, *arguments: object, status: int = 0, conf: str = "") -> str:
        nova_conf = save(f"[filter_scheduler]\n{conf}", "nova.conf")
        path = save(document, "cloud.json")
        return run(
            "--config-file", nova_conf, "plan", *arguments, "--snapshot", path, status=status
        ).stdout

    return plan


@pytest.fixture
def flavor(save: Save) -> Callable[..., str]:
    """Write a flavor as ``openstack flavor show -f json`` prints it."""

    def flavor(properties: Mapping[str, str], **sizes: Any) -> str:
        document = {
            "OS-FLV-DISABLED:disabled": False,
            "OS-FLV-EXT-DATA:ephemeral": 0,
            "access_project_ids": None,
            "description": None,
            "disk": 40,
            "id": "1",
            "name": "gold",
            "os-flavor-access:is_public": True,
            "properties": properties,
            "ram": 4096,
            "rxtx_factor": 1.0,
            "swap": 0,
            "vcpus": 1,
            **sizes,
        }
        return save(document, "flavor.json")

    return flavor


@pytest.fixture
def capabilities(save: Save) -> str:
    """Write the capabilities of a host of 64 CPUs and 256 GiB in two cells."""
    cells = "".join(
        f"<cell id='{cell}'><memory unit='KiB'>{128 * 2**20}</memory><cpus num='32'>"
        + "".join(
            f"<cpu id='{cpu}' socket_id='{cell}' die_id='0' core_id='{cpu}' siblings='{cpu}'/>"
            for cpu in range(32 * cell, 32 * cell + 32)
        )
        + "</cpus></cell>"
        for cell in (0, 1)
    )
    return save(
        "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology>"
        f"<cells num='2'>{cells}</cells></topology></host></capabilities>",
        "capabilities.xml",
    )

"""A real cloud for the tests of a module: contrib/one-node-cloud in a folder of its own."""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.page import Shell

NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc", "--fork")
CLOUD = Path.home() / ".cache" / "one-node-cloud"
"""The folder of the cloud, unless ``ONE_NODE_CLOUD`` names another folder."""


@pytest.fixture(scope="session")
def one_node_cloud() -> Path:
    """The program that starts the cloud."""
    return Path(__file__).parents[2] / "contrib" / "one-node-cloud"


@pytest.fixture(scope="module")
def cloud(one_node_cloud: Path) -> Iterator[None]:
    """A cloud with a stock Nova; after its end, nothing of the cloud is left."""
    refused = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, check=False)
    if refused.returncode:
        pytest.skip(f"this machine gives no namespaces: {refused.stderr.decode().strip()}")
    folder = os.environ.get("ONE_NODE_CLOUD", str(CLOUD))
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Path(folder, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may have its cloud there
        subprocess.run([one_node_cloud, "up"], check=True)
        machine = Path(folder, "unshare.pid").read_text().strip()
        try:
            yield
        finally:
            subprocess.run([one_node_cloud, "down"], check=True)
    processes = subprocess.run(["pgrep", "--full", folder], capture_output=True, check=False)
    assert not processes.stdout
    assert folder not in Path("/proc/mounts").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/machine-{machine}"))


@pytest.fixture(scope="module")
def shell(cloud: None, one_node_cloud: Path) -> Iterator[Shell]:
    """A shell in the cloud, with the credentials of the administrator."""
    shell = Shell([str(one_node_cloud), "run", "bash"])
    yield shell
    shell.close()

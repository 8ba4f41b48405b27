"""Which nova.conf a command reads."""

from argparse import Namespace
from pathlib import Path

import pytest

from cpu_tiers.cgroup.nova_compute import ConfigPaths
from cpu_tiers.cli import nova_conf_command
from cpu_tiers.cli.app import CpuTiersApp
from cpu_tiers.cli.audit import HostAudit


@pytest.mark.parametrize(
    ("given", "running", "shared"),
    [
        pytest.param(["a"], "b", "0", id="--config-file goes first"),
        pytest.param([], "b", "1", id="the file of the running nova-compute"),
        pytest.param([], None, None, id="no nova-compute runs"),
    ],
)
def test_the_files_of_nova_compute(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    running: str | None,
    shared: str | None,
) -> None:
    for name, cpus in (("a", 0), ("b", 1)):
        (tmp_path / name).write_text(f"[compute]\ncpu_shared_set = {cpus}\n")
    found = None if running is None else ConfigPaths(files=(str(tmp_path / running),))
    monkeypatch.setattr(nova_conf_command, "find_config", lambda _: found)
    monkeypatch.setattr("cpu_tiers.conf.read.cfg.find_config_files", lambda **_: [])
    files = [str(tmp_path / name) for name in given]
    options = Namespace(config_file=files, placement="config")
    command = HostAudit(CpuTiersApp(), options)
    assert command.nova_compute_conf().compute.cpu_shared_set == shared

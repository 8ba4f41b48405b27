"""Which nova.conf a command reads, and the libraries that it lacks."""

import re
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.cgroup import nova_compute
from cpu_tiers.tools.cgroup.nova_compute import ConfigPaths
from cpu_tiers.tools.cloud.weigh import Weigh
from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.host.audit import HostAudit
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.writers.inventory import InventorySync


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
    paths = None if running is None else ConfigPaths(files=(str(tmp_path / running),))
    monkeypatch.setattr(nova_compute, "find_config", lambda _: (paths, ()))
    monkeypatch.setattr("cpu_tiers.conf.read.cfg.find_config_files", lambda **_: [])
    files = [str(tmp_path / name) for name in given]
    options = Namespace(config_file=files, placement="config")
    command = HostAudit(CpuTiersApp(), options)
    assert command.nova_compute_conf().compute.cpu_shared_set == shared


class ClientManager:
    """Stands for the client manager of the openstack client."""

    cpu_tiers = Services(adapter=lambda _: pytest.fail("the cloud is asked"))


def in_client(command: type[NovaConfCommand]) -> tuple[NovaConfCommand, ArgumentParser]:
    app: Any = CpuTiersApp()
    app.client_manager = ClientManager()
    made = command(app, Namespace(), "cpu tier weigh")
    return made, made.get_parser("openstack cpu tier weigh")


def test_the_openstack_client_reads_no_nova_conf_of_the_local_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[filter_scheduler]\nresource_provider_scoring = boring\n")
    for search in ("find_config_files", "find_config_dirs"):
        monkeypatch.setattr(f"cpu_tiers.conf.read.cfg.{search}", lambda **_: [str(path)])
    command, parser = in_client(Weigh)
    given = []
    for arguments in (["--flavor=f"], ["--flavor=f", "--config-file", str(path)]):
        command._given = parser.parse_args(arguments)
        given.append(command.nova_conf().filter_scheduler.resource_provider_scoring)
    assert given == ["literal", "boring"]


def test_the_session_of_the_openstack_client() -> None:
    command, _ = in_client(Weigh)
    assert command.is_in_openstack_client
    assert not command.wants_embedded
    assert command.services(cfg.ConfigOpts()) is ClientManager.cpu_tiers
    assert "cpu-tiers --help" not in command.get_epilog()


def test_commands_for_a_host_need_the_nova_conf_of_the_host() -> None:
    _, parser = in_client(InventorySync)
    with pytest.raises(SystemExit):
        parser.parse_args(["--capabilities", "f", "--hostname", "h"])


@pytest.mark.parametrize(
    ("library", "extra"),
    [("altair", "page"), ("vl_convert", "page"), ("prometheus_client", "prometheus")],
)
def test_a_missing_library_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, library: str, extra: str
) -> None:
    class Draws(NovaConfCommand):
        def take_action(self, parsed_args: Namespace) -> None:
            import_module(f"{library}.part")

    monkeypatch.setitem(sys.modules, library, None)
    command = Draws(CpuTiersApp(), Namespace())
    refused = re.escape(f"the command needs {library}: pip install 'cpu-tiers[{extra}]'")
    with pytest.raises(CpuTiersError, match=refused):
        command.run(Namespace(all=False))


def test_a_missing_module_of_no_extra_is_no_refusal() -> None:
    class Fails(NovaConfCommand):
        def take_action(self, parsed_args: Namespace) -> None:
            import_module("no_such_module")

    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        Fails(CpuTiersApp(), Namespace()).run(Namespace(all=False))

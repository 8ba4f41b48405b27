"""The services of the openstack client's region, and the plugin that hands them out."""

import sys
from argparse import ArgumentParser
from subprocess import run
from types import SimpleNamespace

import pytest
from keystoneauth1.session import Session

from cpu_tiers.cli import openstack_plugin
from cpu_tiers.http.services import Services
from cpu_tiers.http.settings import OPENSTACK_CLIENT
from tests.unit.http.region import RegionOfClient


def test_the_settings_of_each_service_count() -> None:
    session = Session()
    connection = SimpleNamespace(config=RegionOfClient())
    manager = SimpleNamespace(session=session, sdk_connection=connection)
    services = openstack_plugin.make_client(manager)
    assert isinstance(services, Services)
    assert services.settings == OPENSTACK_CLIENT
    adapter = services.adapter("compute")
    assert adapter.session is session
    assert adapter.service_type == "type of compute"
    assert adapter.service_name == "name of compute"
    assert adapter.interface == "interface of compute"
    assert adapter.region_name == "region of compute"
    assert adapter.endpoint_override == "http://compute"
    assert len(session.session.hooks["response"]) == 1  # redirects to other hosts are refused


def test_the_version_of_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = openstack_plugin.build_option_parser(ArgumentParser())
    assert parser.parse_args([]).os_cpu_tiers_api_version in openstack_plugin.API_VERSIONS


def test_the_client_loads_little_at_its_start() -> None:
    """``openstack`` imports the plugin also for commands of others."""
    script = "import cpu_tiers.cli.openstack_plugin, sys; print(*sys.modules)"
    loaded = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = loaded.stdout.split()
    ours = {name for name in names if name.startswith("cpu_tiers")}
    assert ours == {"cpu_tiers", "cpu_tiers.cli", "cpu_tiers.cli.openstack_plugin"}
    assert not {"keystoneauth1", "requests", "cliff", "oslo_config"}.intersection(names)


def test_our_program_loads_nothing_of_the_client() -> None:
    script = "import cpu_tiers.cli.app, cpu_tiers.cli.explain, sys; print(*sys.modules)"
    loaded = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"openstackclient", "osc_lib", "openstack"}.intersection(loaded.stdout.split())

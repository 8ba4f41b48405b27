"""``openstack cpu tier …``: the real openstack client, with a real Keystone and Placement."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.conf.read import read_config
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import MULTIPLIER_TRAIT
from cpu_tiers.tools.placement.session import connect
from cpu_tiers.tools.placement.sync import sync
from tests.functional.cli.fork_server import ForkServer
from tests.functional.placement.keystone import IS_MISSING, credentials
from tests.functional.placement.providing import provide

OPENSTACK = Path(sys.executable).with_name("openstack")
pytestmark = [
    IS_MISSING,
    pytest.mark.skipif(not OPENSTACK.exists(), reason="python-openstackclient is not installed"),
]

Result = subprocess.CompletedProcess[str]
Openstack = Callable[..., Result]
Command = Callable[..., Any]

COMMANDS = [each.name for each in entry_points(group="openstack.cpu_tiers.v1")]


@pytest.fixture(scope="module", autouse=True)
def hosts(auth_url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make three hosts, of which the last has the trait."""
    conf = tmp_path_factory.mktemp("nova") / "nova.conf"
    options = "".join(f"{key} = {value}\n" for key, value in credentials(auth_url).items())
    conf.write_text(f"[placement]\n{options}")
    with connect(read_config([str(conf)])) as client:
        for number, vcpus in enumerate((16, 8, 4)):
            traits = ["COMPUTE_NODE", *(["HW_CPU_X86_AVX2"] if number == 2 else [])]
            provide(client, f"host{number}", traits, VCPU=vcpus, MEMORY_MB=8192, DISK_GB=100)


@pytest.fixture
def openstack(
    tmp_path: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> Openstack:
    """Run ``openstack`` without any setting of this machine, and expect an exit status."""
    for name in [*os.environ]:
        if name.startswith("OS_"):
            monkeypatch.delenv(name)
    # The client has looked for its folders when it was imported, before the fork.
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))

    def run(*arguments: object, status: int = 0) -> Result:
        result = fork_server.run([str(OPENSTACK), *map(str, arguments)], tmp_path)
        assert result.returncode == status, result.stdout + result.stderr
        assert "Traceback" not in result.stdout + result.stderr
        return result

    return run


@pytest.fixture
def clouds(auth_url: str, tmp_path: Path) -> Path:
    """Write a clouds.yaml with the cloud ``real`` and others that are wrong."""
    auth = {key: value for key, value in credentials(auth_url).items() if key != "auth_type"}
    real = {"auth": auth, "region_name": "RegionOne"}
    path = tmp_path / "clouds.yaml"
    path.write_text(
        json.dumps(  # JSON is YAML
            {
                "clouds": {
                    "real": real,
                    "forgotten": {**real, "auth": {**auth, "password": "wrong"}},
                    "far": {**real, "region_name": "RegionTwo"},
                    "internal": {**real, "interface": "internal"},
                    "overridden": {**real, "placement_endpoint_override": "http://127.0.0.1:1"},
                    "member": {**real, "auth": {**auth, "username": "mary"}},
                }
            }
        )
    )
    return path


@pytest.mark.usefixtures("clouds")
def test_clouds_yaml(openstack: Openstack, flavor: Command) -> None:
    path = flavor({"trait:HW_CPU_X86_AVX2": "required"}, vcpus=2)
    result = openstack("--os-cloud", "real", "cpu", "tier", "explain", path, "-f", "json")
    shown = json.loads(result.stdout)
    assert (shown["hosts"], shown["candidates"]) == (3, 1)
    assert [row["host"] for row in shown["ranking"]] == ["host2"]
    assert result.stderr == ""
    rows = json.loads(
        openstack("--os-cloud=real", "cpu", "tier", "cloud", "show", "-f", "json").stdout
    )
    sizes = {row["host"]: row["capacity"] for row in rows if row["class"] == "VCPU"}
    assert sizes == {"host0": 16, "host1": 8, "host2": 4}
    # No host has 32 CPUs: the exit status of the command is that of the client.
    none = openstack("--os-cloud=real", "cpu", "tier", "explain", flavor({}, vcpus=32), status=3)
    assert none.stdout.startswith("0 of 3 hosts: 3 lack VCPU\n")


def test_variables_of_the_environment(
    openstack: Openstack, auth_url: str, flavor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in credentials(auth_url).items():
        monkeypatch.setenv(f"OS_{key.upper()}", value)
    monkeypatch.setenv("OS_IDENTITY_API_VERSION", "3")
    result = openstack("cpu", "tier", "capacity", flavor({}, vcpus=4), "-f", "json")
    (row,) = json.loads(result.stdout)
    # 4 + 2 + 1 by VCPU, but 4096 of 8192 MiB each: 2 + 2 + 1; 40 of 100 GB each: 2 + 2 + 2
    assert row["more"] == 5
    monkeypatch.setenv("OS_PASSWORD", "wrong")
    error = openstack("cpu", "tier", "capacity", flavor({}), status=1).stderr
    assert "HTTP 401" in error
    monkeypatch.delenv("OS_USERNAME")
    error = openstack("cpu", "tier", "capacity", flavor({}), status=1).stderr
    assert "username" in error


@pytest.mark.usefixtures("clouds")
@pytest.mark.parametrize(
    ("cloud", "messages"),
    [
        ("forgotten", ["HTTP 401"]),
        ("nowhere", ["Cloud nowhere was not found"]),
        (
            "far",
            ["RegionTwo", "; check auth_url, interface, region_name and cacert in clouds.yaml"],
        ),
        ("internal", ["internal endpoint for placement", "; check auth_url, interface"]),
        ("overridden", ["127.0.0.1:1"]),
    ],
)
def test_wrong_settings(
    openstack: Openstack, flavor: Command, cloud: str, messages: list[str]
) -> None:
    arguments = ("cpu", "tier", "capacity", flavor({}))
    error = openstack("--os-cloud", cloud, *arguments, status=1).stderr
    assert all(message in error for message in messages), error
    assert "nova.conf" not in error


@pytest.mark.usefixtures("clouds")
def test_a_missing_role_and_a_missing_service(openstack: Openstack, flavor: Command) -> None:
    error = openstack("--os-cloud=member", "cpu", "tier", "weigh", flavor({}), status=1).stderr
    assert "HTTP 403" in error
    assert "; check username, password, project and their domains in clouds.yaml" in error
    arguments = ("--os-cloud=real", "cpu", "tier", "explain", "--flavor", "gold")
    error = openstack(*arguments, status=1).stderr
    assert "Nova's API cannot be asked for flavors" in error
    assert "and the endpoint of the service compute" in error


@pytest.mark.usefixtures("clouds")
def test_weigh_takes_the_list_of_candidates(
    openstack: Openstack, flavor: Command, save: Command
) -> None:
    """Placement is asked, or osc-placement has asked, with several microversions."""
    path = flavor({}, vcpus=2, ram=4096, disk=10)
    weigh = ("--os-cloud", "real", "cpu", "tier", "weigh", path, "-f", "json")
    asked = json.loads(openstack(*weigh).stdout)
    # VCPU: 1 - 2/16, 1 - 2/8, 1 - 2/4; memory and disk are equal
    assert [row["host"] for row in asked] == ["host0", "host1", "host2"]
    assert [row["resources"]["VCPU"] for row in asked] == [0.875, 0.75, 0.5]
    resources = ("--resource=VCPU=2", "--resource=MEMORY_MB=4096", "--resource=DISK_GB=10")
    listed = ("allocation", "candidate", "list", *resources, "-f", "json")
    for version in ("1", "1.29", "1.17"):
        version_option = ("--os-placement-api-version", version)
        candidates = openstack("--os-cloud", "real", *version_option, *listed).stdout
        file = save(candidates, "candidates.json")
        rows = json.loads(openstack(*weigh, "--candidates", file).stdout)
        assert [row["score"] for row in rows] == [row["score"] for row in asked]
        assert {len(row["host"]) for row in rows} == {36}  # the list has only uuids
    old = openstack("--os-cloud=real", "--os-placement-api-version=1.16", *listed).stdout
    error = openstack(*weigh, "--candidates", save(old, "old.json"), status=1).stderr
    assert "no column traits" in error
    columns = openstack("--os-cloud=real", *listed, "-c", "#", "-c", "traits").stdout
    error = openstack(*weigh, "--candidates", save(columns, "few.json"), status=1).stderr
    assert "no column allocation, resource provider, inventory used/capacity" in error


@pytest.mark.usefixtures("clouds")
def test_commands_that_write(openstack: Openstack, save: Command) -> None:
    real = ("--os-cloud", "real", "cpu", "tier")
    check = openstack(*real, "placement", "check", "--rounds=1", "--claimers=8", "-f", "json")
    assert json.loads(check.stdout)["left_behind"] == 0
    agent = {
        "host": "host0",
        "agent_type": "Open vSwitch agent",
        "configuration": {
            "resource_provider_bandwidths": {"br-ex": {"egress": 1000}},
            "resource_provider_hypervisors": {"br-ex": "host0"},
            "bridge_mappings": {"physnet0": "br-ex"},
        },
    }
    sync = (*real, "networking", "sync", save(agent, "agent.json"), "-f", "json")
    assert "host0:Open vSwitch agent:br-ex" in openstack(*sync).stdout
    assert json.loads(openstack(*sync).stdout) == []
    snapshot = save("", "cloud.json")
    openstack(*real, "cloud", "snapshot", snapshot, "--no-flavors")
    names = [each["name"] for each in json.loads(Path(snapshot).read_text())["providers"]]
    assert "host0:Open vSwitch agent:br-ex" in names


@pytest.mark.usefixtures("clouds")
def test_hosts_and_nova_need_a_nova_conf(openstack: Openstack, save: Command) -> None:
    for command in (["allocation", "heal", "--plan"], ["reshape", "plan", "--host", "host0"]):
        arguments = ("--os-cloud", "real", "cpu", "tier", *command)
        assert "required: --config-file" in openstack(*arguments, status=2).stderr
        error = openstack(*arguments, "--config-file", save("", "nova.conf"), status=1).stderr
        assert f"openstack cpu tier {command[0]} {command[1]} needs Nova" in error


def test_help_and_completion_ask_no_cloud(openstack: Openstack) -> None:
    commands = [name.replace("_", " ") for name in COMMANDS]
    assert "cpu tier explain" in commands
    listed = openstack("help", "cpu", "tier").stdout
    assert [line.strip() for line in listed.splitlines()[1:]] == sorted(commands)
    for name in commands:
        shown = openstack("help", *name.split()).stdout
        assert f" {name} [-h]" in shown.splitlines()[0]
        assert "--config-file FILE" in shown
        assert "--placement" not in shown
    completion = openstack("complete").stdout
    assert "cmds_cpu_tier_explain='-h --help" in completion
    assert "--os-cpu-tiers-api-version" in openstack("--help").stdout


@pytest.mark.usefixtures("clouds")
def test_tiers_without_nova_conf(
    openstack: Openstack, flavor: Command, save: Command, auth_url: str, tmp_path: Path
) -> None:
    """Requests of shares follow the step of the cloud: a class, then the trait of the driver."""
    gold = flavor({"quota:cpu_shares_multiplier": "100"})
    arguments = ("--os-cloud", "real", "cpu", "tier", "request", "show", gold, "-f", "json")
    plain = openstack(*arguments)
    assert "CUSTOM_VCPU_SHARES" not in json.loads(plain.stdout)["query"]
    assert plain.stderr == ""
    options = "".join(f"{key} = {value}\n" for key, value in credentials(auth_url).items())
    conf = save(f"[placement]\n{options}", "nova.conf")
    with connect(read_config([str(conf)])) as client:
        client.create_resource_class("CUSTOM_VCPU_SHARES")
    files = openstack(*arguments)
    assert "CUSTOM_VCPU_SHARES" not in json.loads(files.stdout)["query"]
    assert "requests only the shares of resources:CUSTOM_VCPU_SHARES" in files.stderr
    with connect(read_config([str(conf)])) as client:
        host = ResourceProvider(name="cn1", traits=frozenset({MULTIPLIER_TRAIT}))
        sync(client, ProviderTree(providers=(host,), managed_classes=frozenset()))
    tiers = openstack(*arguments)
    assert "CUSTOM_VCPU_SHARES:" in json.loads(tiers.stdout)["query"]
    assert "query_placement_for_vcpu_shares = true, as Placement shows" in tiers.stderr
    given = openstack(*arguments, "--config-file", conf)  # the file decides
    assert "CUSTOM_VCPU_SHARES" not in json.loads(given.stdout)["query"]
    assert "No nova.conf" not in given.stderr


def test_a_command_of_the_client_loads_only_the_plugin() -> None:
    code = f"""
import atexit, runpy, sys
atexit.register(lambda: print(*(m for m in sys.modules if m.startswith("cpu_tiers"))))
sys.argv = ["openstack", "server", "list", "--help"]
runpy.run_path({str(OPENSTACK)!r}, run_name="__main__")
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    ours = {
        "cpu_tiers",
        "cpu_tiers.tools",
        "cpu_tiers.tools.frame",
        "cpu_tiers.tools.frame.command_table",
        "cpu_tiers.tools.frame.openstack_plugin",
    }
    assert set(result.stdout.splitlines()[-1].split()) == ours

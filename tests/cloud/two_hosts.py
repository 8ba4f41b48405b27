"""A cloud of two hosts with cpu-tiers, or with stock Nova, and flavors for both."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.cloud.configuration import DRIVER, QUERY, REPORT, add
from tests.cloud.page import Shell
from tests.cloud.tiers import TIERS

HOSTS = ("compute1", "compute2")
PATIENCE = """\
[DEFAULT]
rpc_response_timeout = 20
update_resources_interval = 15
shutdown_timeout = 1"""
"""Lost messages end within the time of a test, and a host reports itself soon afterwards. No guest
here answers to a request to shut down."""

DEDICATED = """\
[compute]
cpu_dedicated_set = 1"""


def start(shell: Shell, one_node_cloud: Path, *, has_tiers: bool) -> None:
    """Have two hosts and all flavors; no option of cpu-tiers is on.

    :param has_tiers: the hosts have the driver of cpu-tiers, and not that of Nova.
    """
    shell.output_of("pip install --force-reinstall --no-deps cpu-tiers")
    driver = [DRIVER] if has_tiers else []
    change(shell, [PATIENCE], [DEDICATED, *driver])
    shell.output_of("systemctl restart nova-api nova-conductor nova-scheduler nova-compute")
    subprocess.run([one_node_cloud, "add-host", "compute2"], check=True)
    change(shell, [PATIENCE], [DEDICATED, *driver], "compute2")
    shell.output_of("on compute2 systemctl restart nova-compute")
    for name, tier in TIERS.items():
        extra_specs = " ".join(
            f"--property {key}={value}" for key, value in tier.extra_specs.items()
        )
        create = f"openstack flavor create {name} --vcpus {tier.vcpus} --ram 128 --disk 0"
        shell.output_of(f"{create} {extra_specs}")


def change(shell: Shell, nova: Iterable[str], compute: Iterable[str], host: str = "") -> None:
    """Add lines to nova.conf and to nova-compute.conf of a host."""
    for file, parts in (("nova", nova), ("nova-compute", compute)):
        for lines in parts:
            add(shell, lines, f"/etc/nova/{file}.conf", host)


def switch_on(shell: Shell) -> None:
    """Have both hosts report shares, and nova-scheduler request them."""
    for host in ("", "compute2"):
        change(shell, [], [REPORT], host)
        shell.output_of(f"{f'on {host}' if host else ''} systemctl restart nova-compute")
    change(shell, [QUERY], [])
    shell.output_of("systemctl restart nova-scheduler")

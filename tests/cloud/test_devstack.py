"""The plugin of DevStack, with DevStack's own functions, on the host of the cloud.

``DEVSTACK`` names a clone of https://opendev.org/openstack/devstack; without it, all is skipped.
"""

import os

import pytest

from tests.cloud.gold import boot_gold
from tests.cloud.page import ROOT, Shell

STACK = f"""\
set +u
export TOP_DIR=$DEVSTACK DEST=$(mktemp -d) REQUIREMENTS_DIR=$(mktemp -d) PYTHON3_VERSION=3
export os_PACKAGE=deb PIP_VIRTUAL_ENV=$(python3 -c 'import sys; print(sys.prefix)')
touch $REQUIREMENTS_DIR/upper-constraints.txt
ln -s {ROOT} $DEST/cpu-tiers
ENABLED_SERVICES=n-cpu NOVA_CONF=/etc/nova/nova.conf NOVA_CPU_CONF=/etc/nova/nova-cpu.conf
NOVA_BIN_DIR=$PIP_VIRTUAL_ENV/bin
drop_in=/etc/systemd/system/devstack@n-cpu.service.d/cpu-tiers.conf
source $DEVSTACK/functions
# root needs no sudo, and the cloud has no systemd to tell of the drop-in.
sudo() {{ [ "$1" = systemctl ] || "$@"; }}
source {ROOT}/devstack/settings"""

START = """\
cp $NOVA_CONF $NOVA_CPU_CONF
command=$(sed -n 's|^ExecStart=/|/|p' $drop_in)
sed -i "s|^command = nova-compute .*|command = $command|" /etc/supervisor.d/compute.conf
supervisorctl update
systemctl start nova-compute
systemctl restart nova-api nova-scheduler"""
"""What DevStack's start_nova_compute and systemd do."""


@pytest.fixture(scope="module")
def devstack() -> str:
    """The folder of DevStack."""
    if not (folder := os.environ.get("DEVSTACK")):
        pytest.skip("DEVSTACK does not name a clone of DevStack")
    return folder


def test_the_phases_of_stack(devstack: str, shell: Shell) -> None:
    """DevStack has all options in one file, and nova-compute reads a copy."""
    shell.output_of("systemctl stop nova-compute")
    shell.output_of(
        "cat /etc/nova/nova-compute.conf >> /etc/nova/nova.conf; rm /etc/nova/nova-compute.conf"
    )
    shell.output_of(f"export DEVSTACK={devstack}; {STACK}")
    for phase in ("pre-install", "install", "post-config"):
        shell.output_of(f"source {ROOT}/devstack/plugin.sh stack {phase}")
    shell.output_of(START)
    shell.output_of(f"source {ROOT}/devstack/plugin.sh stack extra")
    boot_gold(shell)


def test_the_way_back(devstack: str, shell: Shell) -> None:
    shell.output_of(f"source {ROOT}/devstack/plugin.sh unstack")
    shell.output_of("ls $drop_in 2>&1 || true", "...No such file...")

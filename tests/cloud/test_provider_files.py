"""Hosts whose provider.yaml is in danger: each from nothing to a Gold server, and back.

The audit, the upgrade check or the command that writes the file says what is wrong, and the test
does what the message says. All tests are steps of one life of a cloud whose Nova never has
cpu-tiers, and run in their order.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cloud.beside_nova import install_beside_nova
from tests.cloud.gold import BOOT
from tests.cloud.page import Page, Shell
from tests.cloud.rest import PLACEMENT, Cloud
from tests.cloud.tiers import SHARES

FOLDER = "/etc/nova/provider_config"
FILE = f"{FOLDER}/cpu-tiers.yaml"
SITE = f"{FOLDER}/provider.yaml"
CONF = "/etc/nova/nova-compute.conf"
LOG = "/var/log/nova-compute.log"
PROGRAM = "/opt/cpu-tiers/share/cpu-tiers/systemd/cpu-tiers-shares-file"
WRITE = (
    "cpu-tiers inventory show --connect qemu:///system --hostname compute1 -f provider-yaml"
    f" --file {FILE}"
)
SITES_OWN = """\
meta: {schema_version: '1.0'}
providers:
  - identification: {uuid: $COMPUTE_NODE}
    inventories:
      additional:
        - CUSTOM_LICENSE: {total: 5}"""
PARENT = "/var/lib/site"
OWN_FOLDER = f"{PARENT}/provider_config"
SECRETS = "/etc/secrets"
EXCHANGES = f"""\
cd {PARENT}
while [ ! -e end ]; do
    mv provider_config aside; ln -s {SECRETS} provider_config
    rm provider_config; mv aside provider_config
done"""
AS_NOBODY = (
    "setpriv --reuid nobody --clear-groups"
    " --inh-caps +dac_read_search --ambient-caps +dac_read_search"
)
"""Begins a command of this user, who may read the programs of the cloud, which are below /root."""

PATIENCE = 90
"""Seconds until a restarted nova-compute has reported."""


class Host:
    """The only host of the cloud, on which a person follows messages."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.cloud = shell, Cloud(shell)
        path = "/resource_providers?name=compute1"
        (provider,) = self.cloud.get(PLACEMENT, path)["resource_providers"]
        self.path = f"/resource_providers/{provider['uuid']}"

    def refused(self, command: str) -> str:
        """Return what a command says that must refuse."""
        status, output = self.shell.run(command)
        assert status == 1, output
        return output

    def audit(self, *, finds: bool) -> dict[str, Any]:
        """Return the finding ``provider-file`` of the audit, if the audit is to find it."""
        ignore = "--interval 0 --ignore outweighed --ignore steal"
        command = f"cpu-tiers --quiet host audit --connect qemu:///system {ignore} -f json"
        status, output = self.shell.run(f"{command} 2>/dev/null")
        assert status == (3 if finds else 0), output
        rows: list[dict[str, Any]] = json.loads(output)
        assert [row["kind"] for row in rows] == ["provider-file"] * finds
        return rows[0] if rows else {}

    def expect_in_upgrade_check(self, words: str) -> None:
        """Expect words of the upgrade check, whose table breaks lines in words with hyphens."""
        text = self.shell.run("cpu-tiers-status upgrade check 2>/dev/null")[1]
        assert words.replace(" ", "") in re.sub(r"[\s|]+", "", text), text

    def keep(self, program: str = PROGRAM) -> str:
        """Run the program of the timer; return what it says."""
        status, output = self.shell.run(program)
        assert status in (0, 3), output
        return output

    def restart(self) -> None:
        self.shell.output_of("systemctl restart nova-compute")

    def shares(self) -> int | None:
        """Return the shares of the host in Placement."""
        inventories = self.cloud.get(PLACEMENT, f"{self.path}/inventories")["inventories"]
        total: int | None = inventories.get(SHARES, {}).get("total")
        return total

    def await_shares(self, total: int | None) -> None:
        """Wait until Placement has the shares of the host, or has none."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.shares()) != total:
            assert time.monotonic() < deadline, f"{found} shares instead of {total}"
            time.sleep(2)

    def boot_gold(self) -> None:
        """Restart nova-compute, and boot a Gold server: 100 shares, and the weight 100."""
        self.restart()
        self.await_shares(100)  # 1 CPU x 100
        self.shell.output_of(f"{BOOT} gold1 --flavor gold --image halted")
        self.expect_gold()

    def expect_gold(self) -> None:
        """Expect what a Gold server holds and weighs, and a host without findings."""
        (held,) = self.cloud.get(PLACEMENT, f"{self.path}/allocations")["allocations"].values()
        assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 128, SHARES: 100}
        self.shell.output_of("virsh schedinfo $(virsh list --name)", "...cpu_shares : 100...")
        self.audit(finds=False)

    def go_back(self, undo: str = f"rm {FILE}") -> None:
        """Go back to a host without shares."""
        self.shell.output_of("openstack server delete gold1 --wait")
        self.shell.output_of(undo)
        self.restart()
        self.await_shares(None)


@pytest.fixture(scope="module")
def host(shell: Shell) -> Host:
    """The host, with the command beside Nova, and a flavor with a pair."""
    install_beside_nova(shell, Page("docs/install/stock-nova.rst"))
    pair = f"--property quota:cpu_shares=100 --property resources:{SHARES}=100"
    host = Host(shell)
    shell.output_of(f"mkdir -p {FOLDER}; openstack resource class create {SHARES} || true")
    shell.output_of(f"openstack flavor create gold --vcpus 1 --ram 128 --disk 0 {pair}")
    return host


def test_a_file_of_the_site(host: Host) -> None:
    """Both files together would stop nova-compute, so the class is merged into the site's."""
    host.shell.output_of(f"cat > {SITE} <<'END'\n{SITES_OWN}\nEND")
    assert host.shares() is None
    said = host.refused(WRITE)
    assert f"{SITE}: has an entry" in said
    (line,) = re.findall(r"the line (- CUSTOM_VCPU_SHARES: {.*?})", said.replace("\n", " "))
    # A person who wrote the second file nevertheless.
    host.shell.output_of(f"sed 's/- CUSTOM_LICENSE.*/{line}/' {SITE} > {FILE}")
    assert "nova-compute does not start" in host.audit(finds=True)["found"]
    host.expect_in_upgrade_check("nova-compute does not start")
    host.shell.output_of(f"rm {FILE}; echo '        {line}' >> {SITE}")
    assert "has the shares of compute1 already" in host.keep()
    host.boot_gold()
    host.go_back(f"sed -i '/{SHARES}/d' {SITE}")
    inventories = host.cloud.get(PLACEMENT, f"{host.path}/inventories")["inventories"]
    assert inventories["CUSTOM_LICENSE"]["total"] == 5
    host.shell.output_of(f"rm {SITE}")


def test_a_lost_file(host: Host) -> None:
    """A host that was installed anew: found before the restart, and mended after it."""
    assert f"{FILE} was written" in host.keep()
    host.boot_gold()
    host.shell.output_of(f"rm {FILE}")
    lost = f"servers hold 100 {SHARES}: nova-compute does not start"
    assert lost in host.audit(finds=True)["found"]
    host.expect_in_upgrade_check(lost)
    host.shell.output_of(f"wc -l < {LOG} > /run/line")
    host.restart()
    lines = f"tail -n +$(</run/line) {LOG}"
    words = "Failed to gather or report PCI resources"
    host.shell.output_of(f"{lines} | grep -q '{words}' && echo dead", "dead")
    assert host.shares() == 100
    host.keep()
    host.restart()
    host.shell.output_of("openstack server reboot --hard --wait gold1")  # nova-compute is there
    host.expect_gold()
    host.go_back()


@pytest.fixture
def powered_down(host: Host) -> Iterator[None]:
    """A host whose second CPU Nova powers down.

    Files stand for those of the kernel, so that no CPU of this machine is powered down: Nova
    writes the first file, and the others say what the kernel would say then.
    """
    cpus, node = "/sys/devices/system/cpu", "/sys/devices/system/node/node0"
    files = {f"{cpus}/cpu1/online": "1", f"{cpus}/online": "0", f"{node}/cpulist": "0"}
    files[f"{node}/cpumap"] = "1"
    options = "[compute]\ncpu_dedicated_set = 1\n[libvirt]\ncpu_power_management = true"
    host.shell.output_of(f"cp {CONF} /run/conf; printf '{options}\\n' >> {CONF}")
    for number, (path, text) in enumerate(files.items()):
        stand_in = f"/run/cpu-file{number}"
        host.shell.output_of(f"echo {text} > {stand_in}; mount --bind {stand_in} {path}")
    host.shell.output_of("systemctl restart libvirtd")
    host.shell.output_of("virsh capabilities | grep -c \"cpu id='0'\"", "1")
    host.restart()
    host.shell.output_of(f"cat {cpus}/cpu1/online", "0")
    yield
    host.shell.output_of(f"umount {' '.join(files)}; cp /run/conf {CONF}")
    host.shell.output_of("systemctl restart libvirtd nova-compute")


@pytest.mark.usefixtures("powered_down")
def test_cpus_that_nova_powered_down(host: Host) -> None:
    """The first file of the host, by the timer."""
    listed = host.shell.output_of("virsh capabilities")
    assert "cpu id='1'" not in listed
    assert f"{FILE} was written" in host.keep()
    host.boot_gold()
    host.go_back()


@pytest.fixture
def hostile_owner(host: Host) -> Iterator[str]:
    """A user who owns the parent of the folder, and puts links to a secret of root there.

    The value is the command that ends the user's program.
    """
    host.shell.output_of(f"mkdir -p {OWN_FOLDER}; chown nobody {PARENT}; cp {CONF} /run/conf")
    host.shell.output_of(f"install -d -m 0700 {SECRETS}; install -m 0600 {CONF} {SECRETS}/nova")
    host.shell.output_of(
        f"printf '[compute]\\nprovider_config_location = {OWN_FOLDER}\\n' >> {CONF}"
    )
    host.shell.output_of(f"cat > /run/loop <<'END'\n{EXCHANGES}\nEND")
    host.shell.output_of(f"{AS_NOBODY} sh /run/loop >/dev/null 2>&1 & echo $! > /run/loop.pid")
    end = f"touch {PARENT}/end; while kill -0 $(</run/loop.pid) 2>/dev/null; do sleep 0.1; done"
    yield end
    host.shell.output_of(f"{end}; rm -rf {PARENT} {SECRETS}; cp /run/conf {CONF}")
    host.restart()


def test_a_hostile_owner_of_the_parent(host: Host, hostile_owner: str) -> None:
    """The program refuses, and both of its remedies work: root owns all, or the user does."""
    program = f"env SHARES_FILE={OWN_FOLDER}/cpu-tiers.yaml {PROGRAM}"
    for _ in range(20):
        said = host.refused(program)
        assert f"{PARENT}: belongs to the user nobody" in said
    assert f"(chown root {PARENT})" in said
    assert "run this program as this user" in said
    left = host.shell.output_of(f"cd {SECRETS}; stat -c '%n %a %U' . $(ls -A)")
    assert left == ". 700 root\nnova 600 root"
    host.shell.output_of(f"{hostile_owner}; ls -A {OWN_FOLDER} | wc -l", "0")
    for owner, run in (("root", program), ("nobody", f"{AS_NOBODY} {program}")):
        host.shell.output_of(f"chown -R {owner} {PARENT}")
        assert "was written" in host.keep(run)
        host.boot_gold()
        host.go_back(f"rm {OWN_FOLDER}/cpu-tiers.yaml")

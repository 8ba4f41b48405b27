"""docs/install/stock-nova.rst word for word, in a cloud whose Nova never has cpu-tiers.

The tests are steps of one life of a cloud, and run in their order.
"""

from tests.cloud.beside_nova import install_beside_nova
from tests.cloud.gold import BOOT
from tests.cloud.page import Page, Shell

PAGE = Page("docs/install/stock-nova.rst")
SERVICES = ("nova.cmd.scheduler", "nova.virt.libvirt.driver", "nova.api.openstack.compute.servers")
"""A module that only nova-scheduler, nova-compute or nova-api loads."""
LISTS_IMPORTS = """\
import os, sys
def note(event, arguments):
    if event == "import":
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        file = os.open(f"/run/nova/modules.{os.getpid()}", flags)
        os.write(file, f"{arguments[0]}\\n".encode())
        os.close(file)
sys.addaudithook(note)
"""
"""A module that notes each module that is imported later.

Python imports it at the start of each process, as a ``.pth`` file says. A ``sitecustomize`` of an
environment would be hidden by the one of Debian.
"""


def follow(shell: Shell, *blocks: str) -> None:
    """Follow the blocks of the page that have these texts."""
    for text in blocks:
        for step in PAGE.take(text).steps():
            print(f"$ {step.command}\n{shell.follow(step)}")  # noqa: T201  # what a person sees


def held(shell: Shell, server: str) -> str:
    """Return what a server has allocated."""
    script = f"$(openstack server show {server} -f value -c id) -f value -c resources"
    return shell.output_of(f"openstack resource provider allocation show {script}")


def test_a_server_from_before(shell: Shell) -> None:
    """A running server whose flavor had no meaning for Placement yet."""
    shell.output_of(
        "openstack flavor create old --vcpus 1 --ram 128 --disk 0 --property quota:cpu_shares=50"
    )
    shell.output_of(f"{BOOT} old --flavor old --image halted")
    assert held(shell, "old") == "{'VCPU': 1, 'MEMORY_MB': 128}"


def test_the_page_to_a_gold_server(shell: Shell) -> None:
    install_beside_nova(shell, PAGE)
    follow(shell, "provider-yaml", "flavor pair --all", "allocation heal")
    assert held(shell, "old") == "{'VCPU': 1, 'MEMORY_MB': 128, 'CUSTOM_VCPU_SHARES': 50}"
    follow(shell, "server create gold1", "capacity")
    shell.output_of("virsh schedinfo $SERVER", "...cpu_shares : 100...")
    shell.output_of("openstack server delete old --wait")


def test_no_service_of_nova_has_loaded_cpu_tiers(shell: Shell) -> None:
    """Each process of Nova lists the modules that it imports until it has booted a server."""
    shell.output_of(
        "SITE=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
    )
    shell.output_of(f"cat >$SITE/lists_imports.py <<'END'\n{LISTS_IMPORTS}END")
    shell.output_of("echo import lists_imports >$SITE/lists_imports.pth")
    shell.output_of("systemctl restart nova-api nova-scheduler nova-compute")
    shell.output_of(f"{BOOT} gold2 --flavor gold")
    for module in SERVICES:
        shell.output_of(f"grep -qx {module} /run/nova/modules.* && echo loaded", "loaded")
    listed = shell.output_of("cat /run/nova/modules.*").splitlines()
    assert [module for module in listed if module.startswith("cpu_tiers")] == []
    shell.output_of("rm $SITE/lists_imports.*; openstack server delete gold2 --wait")


def test_the_way_back(shell: Shell) -> None:
    follow(shell, "flavor unset gold")
    absent = "openstack resource provider inventory show $UUID CUSTOM_VCPU_SHARES 2>&1 || true"
    shell.output_of(absent, "No inventory of class CUSTOM_VCPU_SHARES...")
    shell.output_of(f"{BOOT} plain --flavor gold")
    assert held(shell, "plain") == "{'VCPU': 1, 'MEMORY_MB': 128}"
    assert PAGE.rest() == []

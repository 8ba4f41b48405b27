"""docs/install/choose-hosts.rst word for word, in a cloud whose compute hosts have a stock Nova.

The tests are steps of one life of a cloud, and run in their order.
"""

from tests.cloud.gold import BOOT
from tests.cloud.page import Page, Shell

PAGE = Page("docs/install/choose-hosts.rst")
LOG = "/var/log/nova-scheduler.log"
LOADED = f"grep -o 'cpu-tiers in nova-scheduler has the features weigher' {LOG} | tail -1"


def follow(shell: Shell, *blocks: str) -> str:
    """Follow the blocks of the page that have these texts; return the outputs."""
    outputs = [shell.follow(step) for text in blocks for step in PAGE.take(text).steps()]
    return "\n".join(outputs)


def test_the_page_to_scores(shell: Shell) -> None:
    shell.output_of("openstack flavor create gold --vcpus 1 --ram 128 --disk 0")
    follow(shell, "pip install", "weight_classes", "systemctl restart")
    shell.output_of(LOADED, "cpu-tiers in nova-scheduler has the features weigher")
    shell.output_of(f"{BOOT} gold1 --flavor gold --image halted")
    (check,) = PAGE.take("upgrade check").steps()
    status, checked = shell.run(check.command)
    assert status in {0, 1}  # 1: a cloud without shares has warnings
    assert "Weigher of nova-scheduler" in checked
    assert "compute1" in follow(shell, "cpu-tiers weigh")


def test_the_way_back(shell: Shell) -> None:
    """A server finds its host without the package, and nothing of the weigher is left."""
    follow(shell, "pip uninstall")
    shell.output_of("systemctl restart nova-api")
    shell.output_of(f"{BOOT} gold2 --flavor gold --image halted")
    shell.output_of("grep -c cpu_tiers /etc/nova/nova.conf || true", "0")
    names = "openstack resource class list -f value; openstack trait list -f value"
    shell.output_of(f"{{ {names}; }} | grep -c -e VCPU_SHARES -e CPU_TIERS || true", "0")
    assert PAGE.rest() == []

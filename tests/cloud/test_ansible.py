"""The Ansible role, as docs/install/deployment.rst runs it, on the host of the cloud."""

import re
import sys
from pathlib import Path

from tests.cloud.gold import boot_gold
from tests.cloud.page import ROOT, Page, Shell

ANSIBLE = f"""\
cd $(mktemp -d)
PATH=$PATH:{Path(sys.executable).parent}
export ANSIBLE_ROLES_PATH={ROOT}/contrib/ansible/roles ANSIBLE_TRANSPORT=local ANSIBLE_NOCOLOR=1
export ANSIBLE_PYTHON_INTERPRETER=$(command -v python3)"""


def test_the_page_on_a_stock_cloud(shell: Shell) -> None:
    """Both hosts of the page are the host of the cloud: only the first installs the package.

    The first run fails in the restart, so the second run restarts. A third run changes nothing.
    """
    shell.output_of(ANSIBLE)
    page = Page("docs/install/deployment.rst")
    for text in ("hosts: control", "[control]"):
        (step,) = page.take(text).steps()
        shell.follow(step)
    (playbook,) = page.take("ansible-playbook").steps()
    status, failed = shell.run(f"{playbook.command} -e cpu_tiers_restart=false")
    assert (status, changes(failed)) == (2, {"compute1": 2})  # the package and a block
    # With a restart, and what the role keeps of the restart.
    assert changes(shell.follow(playbook)) == {"compute1": 2, "controller": 3}
    assert changes(shell.follow(playbook)) == {"compute1": 0, "controller": 0}


def test_a_gold_server_has_shares(shell: Shell) -> None:
    boot_gold(shell)


def changes(recap: str) -> dict[str, int]:
    """Return how much was changed on each host, by the last lines of a playbook's output."""
    return {
        host: int(number) for host, number in re.findall(r"^(\S+) +:.* changed=(\d+)", recap, re.M)
    }

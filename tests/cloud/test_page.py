"""How a page is read and followed, in the shell of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud import page
from tests.cloud.page import Block, Page, Shell, Step

BLOCK = """\
$ UUID=$(openstack resource provider list -f value -c uuid)
$ openstack resource provider show $UUID
| name | compute1 |
| uuid | ...      |
# systemctl restart nova-api"""


@pytest.fixture
def shell() -> Iterator[Shell]:
    shell = Shell(["bash"])
    yield shell
    shell.close()


def test_commands_of_a_terminal_session() -> None:
    assert page.commands(BLOCK) == [
        Step(command="UUID=$(openstack resource provider list -f value -c uuid)"),
        Step(
            command="openstack resource provider show $UUID",
            output="| name | compute1 |\n| uuid | ...      |\n",
        ),
        Step(command="systemctl restart nova-api"),
    ]


def test_a_command_goes_on_after_a_pipe_a_backslash_and_two_ampersands() -> None:
    assert page.commands("$ ls |\n    sort \\\n    -u &&\n    true\n| x |\n$ id") == [
        Step(command="ls |\n    sort \\\n    -u &&\n    true", output="| x |\n"),
        Step(command="id"),
    ]


def test_a_page_gives_each_block_once() -> None:
    readme = Page("README.md")
    before = readme.rest()
    (step,) = readme.take("cpu-tiers demo").steps()
    assert step.command.endswith(".venv/bin/cpu-tiers demo")
    assert len(readme.rest()) == len(before) - 1
    with pytest.raises(AssertionError, match=r"README.md has no more block with: cpu-tiers demo"):
        readme.take("cpu-tiers demo")


def test_lines_for_a_file_need_a_file() -> None:
    lines = Block(text="[api]", console=False)
    assert lines.steps("/etc/x") == [Step(command="printf '%s\\n' '[api]' >> /etc/x")]
    with pytest.raises(AssertionError, match="does not say to which file"):
        lines.steps()


def test_the_guide_has_commands_and_additions_to_files() -> None:
    found = [step.command for step in page.steps("docs/install/install.rst")]
    assert found[0] == "pip install 'cpu-tiers[tools]'"
    assert [command for command in found if command.endswith(">> /etc/nova/nova.conf")]


def test_variables_stay(shell: Shell) -> None:
    assert shell.follow(Step(command="NAME=gold")) == ""
    assert shell.follow(Step(command="echo one $NAME", output="one ...\n")) == "one gold"


def test_a_command_that_fails(shell: Shell) -> None:
    with pytest.raises(AssertionError, match="ls /missing\nended with 2"):
        shell.follow(Step(command="ls /missing"))


def test_another_output(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PATIENCE", 0)
    with pytest.raises(AssertionError, match="echo silver\nended with 0:\nsilver"):
        shell.follow(Step(command="echo silver", output="gold\n"))


def test_an_output_that_comes_later(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "WAIT", 0)
    command = f"echo x >> {tmp_path}/log; wc -l < {tmp_path}/log"
    assert shell.follow(Step(command=command, output="3")) == "3"


def test_a_shell_that_ends(shell: Shell) -> None:
    with pytest.raises(AssertionError, match="the shell ended in: exit 3"):
        shell.follow(Step(command="exit 3"))

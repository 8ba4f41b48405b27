"""cpu-tiers in a virtual environment beside Nova, as docs/install/stock-nova.rst installs it."""

from tests.cloud.page import Page, Shell


def install_beside_nova(shell: Shell, page: Page) -> None:
    """Follow the block of the page that installs the command.

    The cloud has no way to PyPI: the command finds its libraries, and Nova for "allocation heal",
    in the environment of the cloud.
    """
    shell.output_of("export PIP_NO_DEPS=1")
    own, *others = page.take("python3 -m venv").steps()
    shell.follow(own)
    shell.output_of(
        "python3 -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"
        " > $(echo /opt/cpu-tiers/lib/python*/site-packages)/cloud.pth"
    )
    for step in others:
        shell.follow(step)

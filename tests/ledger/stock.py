"""An environment with a stock Nova: the distributions of this environment, without cpu-tiers."""

import subprocess
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path

LEFT_OUT = frozenset({"cpu-tiers", "pip", "uv"})


def requirements() -> str:
    """Return the distributions of this environment and their versions, one a line."""
    versions = {
        each.metadata["Name"].lower().replace("_", "-"): each.version for each in distributions()
    }
    return "".join(f"{name}=={versions[name]}\n" for name in sorted(versions.keys() - LEFT_OUT))


def python_of(folder: Path) -> Path:
    """Return the Python of the environment in a folder."""
    return folder / "bin" / "python"


def nova_of(folder: Path) -> Path:
    """Return the folder of the package ``nova`` of the environment in a folder."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(folder)})) / "nova"


def make(folder: Path) -> None:
    """Make an environment in a folder, if it is missing.

    The environment is made anew if the distributions of this environment have changed, so a
    difference between both sides cannot come from a library.

    :raises subprocess.CalledProcessError: uv cannot install the distributions.
    """
    wanted, done = folder / "wanted.txt", folder / "installed.txt"
    if not done.exists() or done.read_text() != requirements():
        create = ["uv", "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
        subprocess.run(create, check=True)
        wanted.write_text(requirements())
        install = ["uv", "pip", "install", "--quiet", "--no-deps", "--requirement", str(wanted)]
        subprocess.run([*install, "--python", str(python_of(folder))], check=True)
        wanted.rename(done)

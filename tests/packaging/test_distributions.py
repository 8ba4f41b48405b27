"""What is in the sdist and in the wheel, built as for a release: the wheel from the sdist."""

import subprocess
import sys
import tarfile
import tomllib
from configparser import ConfigParser
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the sdist and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    # The environment has the build backend: nothing is downloaded.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> dict[str, bytes]:
    """Return the files of the wheel, without the version in the names of its own folders."""
    (path,) = built.glob("*.whl")
    version = "-".join(path.name.split("-")[:2])
    with ZipFile(path) as archive:
        return {
            name.removeprefix(f"{version}."): archive.read(name) for name in archive.namelist()
        }


@pytest.fixture(scope="module")
def sdist(built: Path) -> set[str]:
    """Return the names of the files in the sdist."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture
def sdist_of_a_tag(tmp_path: Path) -> Path:
    """Return the sdist of a clone with a tag, after ``tox -e release`` has made its files."""
    clone = tmp_path / "clone"
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "clone", "-q", ROOT, clone], check=True, capture_output=True)
    subprocess.run([*git, "tag", "-a", "7.8.9", "-m", "7.8.9"], cwd=clone, check=True)
    made = clone / "packaging" / "built"
    made.mkdir()
    (made / "cpu-tiers.1").write_text("the page")
    (made / "cpu-tiers.cdx.json").write_text("{}")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    subprocess.run(build, cwd=clone, check=True, capture_output=True)
    (path,) = (clone / "dist").iterdir()
    return path


def files(folder: str) -> dict[str, bytes]:
    """Return the files of a folder of the repository by their names below the folder."""
    root = ROOT / folder
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def below(wheel: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    """Return the files of the wheel under a prefix, without the prefix."""
    return {
        name.removeprefix(prefix): text for name, text in wheel.items() if name.startswith(prefix)
    }


def test_the_index_would_accept_and_show_both(built: Path) -> None:
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())]
    assert subprocess.run(check, check=False, capture_output=True).returncode == 0


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_release_can_be_built_again_to_the_byte(built: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    assert len(digests(built)) == 2
    assert digests(tmp_path) == digests(built)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy without Git has no tag")
def test_a_release_has_the_tag_the_manual_pages_and_the_components(sdist_of_a_tag: Path) -> None:
    assert sdist_of_a_tag.name == "cpu_tiers-7.8.9.tar.gz"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    with tarfile.open(sdist_of_a_tag) as archive:
        archive.extractall(sdist_of_a_tag.parent)  # noqa: S202  # it is ours
    folder = sdist_of_a_tag.parent / "cpu_tiers-7.8.9"
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    with ZipFile(folder / "dist" / "cpu_tiers-7.8.9-py3-none-any.whl") as archive:
        page = archive.read("cpu_tiers-7.8.9.data/data/share/man/man1/cpu-tiers.1")
        components = archive.read("cpu_tiers-7.8.9.dist-info/sboms/cpu-tiers.cdx.json")
    assert (page, components) == (b"the page", b"{}")


def test_the_wheel_has_the_whole_package(wheel: dict[str, bytes]) -> None:
    for package in ("cpu_tiers", "cpu_tiers_tempest_plugin"):
        assert below(wheel, f"{package}/") == files(package)
    assert "py.typed" in below(wheel, "cpu_tiers/")


def test_the_wheel_puts_only_a_driver_beside_nova(wheel: dict[str, bytes]) -> None:
    # An __init__ of nova or of nova.virt would hide Nova's own.
    assert set(below(wheel, "nova/")) == {"virt/cpu_tiers/__init__.py"}
    folders = {name.partition("/")[0] for name in wheel}
    assert folders == {"cpu_tiers", "cpu_tiers_tempest_plugin", "nova", "data", "dist-info"}


def test_the_wheel_has_the_files_for_operators(wheel: dict[str, bytes]) -> None:
    assert below(wheel, "data/data/") == {
        **{f"etc/cpu-tiers/{name}": text for name, text in files("etc/cpu-tiers").items()},
        **{
            f"share/cpu-tiers/{folder}/{name}": text
            for folder in ("grafana", "prometheus", "systemd")
            for name, text in files(f"etc/{folder}").items()
        },
        "share/bash-completion/completions/cpu-tiers": files("packaging")[
            "cpu-tiers.bash-completion"
        ],
    }


def test_the_wheel_has_every_entry_point(wheel: dict[str, bytes]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = ConfigParser(delimiters="=")
    installed.optionxform = str  # type: ignore[assignment, method-assign]
    installed.read_string(wheel["dist-info/entry_points.txt"].decode())
    assert {group: dict(installed[group]) for group in installed.sections()} == {
        "console_scripts": project["scripts"],
        **project["entry-points"],
    }


def test_the_sdist_has_the_sources_for_build_tests_and_documents(sdist: set[str]) -> None:
    folders = (
        *("contrib", "cpu_tiers", "cpu_tiers_tempest_plugin", "devstack", "etc", "packaging"),
        "tests",
    )
    wanted = {f"{folder}/{name}" for folder in folders for name in files(folder)}
    pages = {f"docs/{name}" for name in files("docs") if not name.startswith("_build/")}
    wanted |= {"tox.ini", "LICENSE", "README.md", "SECURITY.md"} | pages
    assert wanted <= sdist
    assert {name for name in sdist if name.startswith(".")} <= {".gitignore"}


def test_bash_completes_commands_and_options() -> None:
    program = Path(sys.executable).parent
    script = f"""
        _get_comp_words_by_ref() {{
            cur=${{COMP_WORDS[COMP_CWORD]}}; words=("${{COMP_WORDS[@]}}")
            prev=${{COMP_WORDS[COMP_CWORD - 1]}}
        }}
        PATH={program}:$PATH; . {ROOT}/packaging/cpu-tiers.bash-completion
        cd {ROOT}/packaging
        for line in "flavor " "host audit --int" "--config-file " "explain nova" \
            "--debug --config-file nova.conf reshape " "weigh f.json --candidates cpu" \
            "--config-file nova.conf explain --serv"; do
            COMP_WORDS=(cpu-tiers $line); [[ $line == *" " ]] && COMP_WORDS+=("")
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _cpu_tiers_with_files
            echo "${{COMPREPLY[@]}}"
        done"""
    shown = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    everything = " ".join(sorted(each.name for each in (ROOT / "packaging").iterdir()))
    assert [" ".join(sorted(line.split())) for line in shown.stdout.splitlines()] == [
        "check pair show",
        "--interval",
        everything,
        "nova_virt_cpu_tiers.py",
        "apply plan",
        "cpu-tiers.bash-completion",
        "--server",
    ]

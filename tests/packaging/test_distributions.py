"""What is in the sdist and in the wheel, built as for a release: the wheel from the sdist."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from configparser import ConfigParser
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
EPOCH = 1_793_491_200
"""2026-11-01, 00:00 UTC."""


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


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy without Git cannot be cloned")
def test_a_release_can_be_built_again_to_the_byte(tmp_path: Path) -> None:
    clones = [tmp_path / "one", tmp_path / "two"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    for clone in clones:
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True, capture_output=True)
        build = [sys.executable, "-m", "hatchling", "build"]
        subprocess.run(build, cwd=clone, check=True, capture_output=True, env=environment)
    one, two = (digests(clone / "dist") for clone in clones)
    assert len(one) == 2
    assert one == two
    (wheel,) = (clones[0] / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        dates = {each.date_time for each in archive.infolist()}
    assert dates == {(2026, 11, 1, 0, 0, 0)}


def test_the_index_shows_no_dead_link(wheel: dict[str, bytes]) -> None:
    """The project has no public repository yet, to which links could lead."""
    _, mark, page = wheel["dist-info/METADATA"].decode().partition("\n# cpu-tiers\n")
    assert mark
    assert "](docs/" not in page
    assert "]: docs/" not in page
    assert "![" not in page
    assert "- *Step 0: look.* On" in page


def test_links_of_the_index_lead_to_a_public_repository() -> None:
    spec = spec_from_file_location("hatch_metadata", ROOT / "packaging" / "hatch_metadata.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.index_page((ROOT / "README.md").read_text(), "https://example.org/tiers")
    targets = [*re.findall(r"\]\(([^)]*)\)", page), *re.findall(r"\]: (\S+)", page)]
    assert all(target.startswith("https://") for target in targets)
    pages = [target.partition("/HEAD/")[2] for target in targets if "example.org" in target]
    assert "docs/demo.svg" in pages
    assert all((ROOT / page).is_file() for page in pages)
    assert "https://example.org/tiers/raw/HEAD/docs/demo.svg" in targets
    assert "https://example.org/tiers/blob/HEAD/docs/cli/cpu-tiers.rst" in targets


def test_what_a_release_adds(tmp_path: Path) -> None:
    """The list of components gets the version, and the checksums are those of coreutils."""
    made, dist = tmp_path / "packaging" / "built", tmp_path / "dist"
    made.mkdir(parents=True)
    dist.mkdir()
    (made.parent / "release.py").write_bytes((ROOT / "packaging" / "release.py").read_bytes())
    (made / "cpu-tiers.cdx.json").write_text('{"metadata": {"component": {"name": "x"}}}')
    (dist / "x-1.2.3.tar.gz").write_text("x")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n')
    for part in ("version", "checksums"):
        command = [sys.executable, "packaging/release.py", part]
        subprocess.run(command, cwd=tmp_path, check=True)
    components = json.loads((made / "cpu-tiers.cdx.json").read_text())
    assert components["metadata"]["component"] == {"name": "x", "version": "1.2.3"}
    check = ["sha256sum", "--check", str(made / "SHA256SUMS")]
    ran = subprocess.run(check, cwd=dist, check=True, capture_output=True, text=True)
    assert ran.stdout == "x-1.2.3.tar.gz: OK\n"


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

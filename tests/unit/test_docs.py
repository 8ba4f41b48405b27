"""What the documentation says of the code is so."""

import ast
import functools
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator
from textwrap import dedent

import pytest

from cpu_tiers.tools.frame.command_table import commands
from tests.unit.references import ROOT, matches, modules, texts

pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)

PROJECT = ROOT / "pyproject.toml"


def page(name: str) -> str:
    """Return the text of a page of the documentation."""
    return texts("docs")[f"docs/{name}.rst"]


def imports(module: str) -> Iterator[str]:
    """Yield the modules of cpu_tiers that a module imports, also inside of functions and by name.

    A feature names its seams: ``cpu_tiers.nova.cpu_policies:SEAMS``.
    """
    for node in ast.walk(modules()[module]):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and re.fullmatch(
            r"cpu_tiers[\w.]*:\w+", str(node.value)
        ):
            names = [str(node.value).partition(":")[0]]
        for name in names:
            while name and name not in modules():
                name = name.rpartition(".")[0]
            while name.startswith("cpu_tiers."):
                yield name
                name = name.rpartition(".")[0]


def loaded(starts: Iterable[str]) -> frozenset[str]:
    """Return the modules that are imported, directly or not, when ``starts`` are imported."""
    seen: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imports(module)
            waiting += [module.rpartition(".")[0]] if module.count(".") > 1 else []
    return frozenset(seen)


def entry_points(*groups: str) -> list[str]:
    """Return the modules of the entry points in some groups of pyproject.toml."""
    by_group = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    return [value.partition(":")[0] for group in groups for value in by_group[group].values()]


PLUGINS = ("cpu_tiers.translators", "cpu_tiers.inventory", "cpu_tiers.domain_xml")
LOADED = {
    "nova-scheduler": loaded(
        ["cpu_tiers.nova.scheduler.weigher", *entry_points("cpu_tiers.translators")]
    ),
    "nova-compute": loaded(
        [
            "cpu_tiers.nova.compute.driver",
            "cpu_tiers.nova.compute.launcher",
            *entry_points("cpu_tiers.inventory"),
        ]
    ),
    "nova-api": loaded(["cpu_tiers.nova.api.validators", "cpu_tiers.conf.api"]),
    "commands": loaded(
        [
            "cpu_tiers.tools.frame.app",
            "cpu_tiers.tools.cloud.status",
            *(command.module for command in commands().values()),
            *entry_points("oslo.config.opts", *PLUGINS),
        ]
    ),
}

SERVICES = LOADED.keys() - {"commands"}


def table_of_rooms() -> dict[str, list[str]]:
    """Return, for each room in the table of the house, the cells of its row."""
    table = (
        page("contributor/house").split(".. list-table::")[1].split("\n\nnova-compute sends")[0]
    )
    rows = [
        re.findall(r"^   [* ] - ?(.*)$", row, re.M)
        for row in re.split(r"^(?=   \*)", table, flags=re.M)
    ]
    return {
        room: cells for rooms, *cells in rows[2:] for room in re.findall(r"``([\w.]+)/?``", rooms)
    }


def test_the_house_has_every_room() -> None:
    files = {path.name for path in (ROOT / "cpu_tiers").iterdir() if path.name[0] not in "_."}
    rooms = {name for name in files if "py" not in name.split(".")[1:2] or name != "py.typed"}
    assert table_of_rooms().keys() == rooms - {"py.typed"}
    described = re.findall(r"^``([\w./]+?)/?``$", page("contributor/house"), re.MULTILINE)
    assert sorted(described) == sorted(table_of_rooms())


@pytest.mark.parametrize("room", sorted(table_of_rooms().keys() - {"nova"}))
def test_the_house_lists_the_programs_that_load_a_room(room: str) -> None:
    name = f"cpu_tiers.{room.removesuffix('.py')}"
    assert dict(zip(LOADED, table_of_rooms()[room], strict=True)) == {
        program: "yes" if any(f"{module}.".startswith(f"{name}.") for module in modules_) else ""
        for program, modules_ in LOADED.items()
    }


def test_the_house_names_the_modules_that_no_program_loads() -> None:
    unused = {
        name
        for name in modules()
        if name.startswith("cpu_tiers.") and not any(name in seen for seen in LOADED.values())
    }
    named = re.findall(
        r"``(cpu_tiers/[\w/]+)\.py``", page("contributor/house").split("for the code of others")[1]
    )
    assert {name.replace("/", ".") for name in named} == unused


def test_the_library_is_what_nova_loads_or_a_driver_imports() -> None:
    """What only commands load stands in tools/."""
    plugin = [name for name in modules() if name.startswith("cpu_tiers.nova.")]
    services = loaded([*plugin, *entry_points(*PLUGINS)]).union(
        *(LOADED[name] for name in SERVICES)
    )
    promised = loaded(
        name
        for text in (page("reference/library"), page("reference/extending"))
        for name in re.findall(r"\bcpu_tiers(?:\.[a-z_]+)+", text)
        if name in modules() and not name.startswith("cpu_tiers.tools")
    )
    library = {name for name in modules() if re.match(r"cpu_tiers\.(?!tools\b|nova\b)", name)}
    assert len(promised - services) >= 4
    assert library - services - promised == set()


def test_the_house_has_the_layers_of_the_import_rules() -> None:
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in contracts[0]["layers"]]
    (stated,) = re.findall(
        r"The layers, from the top: (.*?)\. A room", page("contributor/house"), re.DOTALL
    )
    assert [set(re.findall(r"``(\w+)``", layer)) for layer in stated.split(";")] == layers


@functools.cache
def log_messages() -> frozenset[str]:
    """Return the text of every line that cpu-tiers writes to a log, with %s for what varies."""
    calls = (node for tree in modules().values() for node in ast.walk(tree))
    return frozenset(
        argument.value.replace("%d", "%s").replace("%r", "%s")
        for call in calls
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("LOG.")
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    )


VARIES = (
    r"\b(CUSTOM_VCPU_SHARES|FEATURES|FUNCTIONS?|HOST|KEY|NAME|NUMBER|PROVIDER|REASON|SERVER|SERVICE"
    r"|URL|UUID|VERSION|WHAT)\b"
)
LINES = re.findall(r"^``(.*)``$", page("admin/debugging"), re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_a_log_line_on_the_page_about_debugging_is_written_by_the_code(line: str) -> None:
    beginning = re.sub(VARIES, "%s", line)
    assert any(message.startswith(beginning) for message in log_messages())


def test_the_page_about_debugging_has_log_lines() -> None:
    assert len(LINES) == 5


ROOT_PAGE = "index"


def test_every_page_is_in_the_contents_of_exactly_one_page() -> None:
    listed = [
        posixpath.join(posixpath.dirname(path), entry)
        for path, contents in matches(
            r"\.\. toctree::\n(?:   :[^\n]*\n)*\n((?:   [^\n]*\n)+)", "docs"
        )
        for entry in contents[1].split()
    ]
    pages = {name.removesuffix(".rst") for name in texts("docs") if name.endswith(".rst")}
    assert sorted(listed) == sorted(pages - {f"docs/{ROOT_PAGE}"})


FOR_OPERATORS = ("user", "install", "admin", "configuration", "cli")


@pytest.mark.parametrize("folder", FOR_OPERATORS)
def test_a_page_for_operators_needs_no_decision(folder: str) -> None:
    """The page itself says the reason."""
    cited = matches(
        r":ref:`[^`]*decision-d\d+>?`|:doc:`[^`]*decisions(?:/[\w-]+)?>?`", f"docs/{folder}"
    )
    assert {(path, match[0]) for path, match in cited} == set()


def literal_lines(text: str) -> Iterator[str]:
    """Yield the lines of the code blocks of a page, without their indentation."""
    start = r"^( *)(?:\.\. code-block::.*|(?!\.\. )\S.*::)\n(?: +:.*\n)*\n"
    for block in re.finditer(start + r"((?:\1 +\S.*\n|\n)+)", text, re.MULTILINE):
        yield from dedent(block[2]).splitlines()


def test_no_line_of_a_code_block_is_cut_at_the_edge_of_the_page() -> None:
    lines = [(name, line) for name, text in texts("docs").items() for line in literal_lines(text)]
    assert len(lines) > 500
    assert [(name, line) for name, line in lines if len(line) > 90] == []


WIDEST = 125
WRITTEN_BY_CODE = ("docs/reference/seams.rst", "docs/admin/requests.rst")
CANNOT_BREAK = re.compile(r"``|\*[A-Z]|\s*:\w+: |\s*\"")
"""A term of a list of definitions, an option of a directive, and a row of a table with commas."""


def test_no_line_of_a_page_is_wider_than_a_screen() -> None:
    pages = texts("docs", "README.md", "CONTRIBUTING.md", "SECURITY.md").items()
    lines = [
        (name, line)
        for name, text in pages
        if not name.endswith(".toml")
        for line in text.splitlines()
    ]
    assert len(lines) > 5000
    assert [
        (name, line)
        for name, line in lines
        if len(line) > WIDEST and name not in WRITTEN_BY_CODE and not CANNOT_BREAK.match(line)
    ] == []


def test_no_line_of_the_readme_is_wider_than_a_terminal() -> None:
    assert [line for line in (ROOT / "README.md").read_text().splitlines() if len(line) > 80] == []


def test_every_picture_is_on_a_page() -> None:
    shown = {match[1] for _, match in matches(r"\n\.\. graphviz:: /(\S+)\n   :alt: \w", "docs")}
    drawn = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs" / "diagrams").iterdir()}
    assert shown == drawn


def keys_of_the_code() -> Iterator[str]:
    """Yield each extra spec and each image property that the code reads."""
    rooms = ("extra_specs", "guest", "nova.api", "tools.room", "tools.tiers", "translators")
    for name, tree in modules().items():
        if name.startswith(tuple(f"cpu_tiers.{room}." for room in rooms)):
            for node in ast.walk(tree):
                text = node.value if isinstance(node, ast.Constant) else None
                if re.fullmatch(r"(hw|quota|os|accel):\w+|hw_\w{4,}|group_policy", str(text)):
                    yield str(text)


def test_the_table_of_extra_specs_has_every_key() -> None:
    cells = re.findall(r"^   \* - (.*)$", page("reference/extra-specs"), re.MULTILINE)
    listed = {key for cell in cells for key in re.findall(r"[\w:]+", cell)}
    # The namespaces hw_rng and hw_video are of keys that only Nova reads.
    wanted = set(keys_of_the_code()) - {"hw_rng", "hw_video"}
    assert len(wanted) >= 35
    assert wanted - listed == set()
    assert {"resources", "trait"} <= {key.partition(":")[0] for key in listed}


def test_the_terms_of_the_glossary_are_in_order() -> None:
    terms = re.findall(r"\n\n   (\S.*)\n", page("reference/glossary"))
    assert len(terms) >= 40
    assert terms == sorted(terms, key=str.lower)

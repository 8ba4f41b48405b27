"""What the tests import, how deep their classes go, and which modules have tests of their name."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted(TESTS.rglob("*.py"))
}
"""The syntax tree of each module under tests/, by the module's name."""

LONG = 50
"""Lines up to which a module of cpu_tiers may be tested in another module's tests."""

WITHOUT_TESTS: frozenset[str] = frozenset()
"""Longer modules of cpu_tiers that have no test module of their name yet; only ever fewer."""


def imported_names(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return the module and the name there of each name that ``from tests… import`` binds."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests")
        for alias in node.names
    }


def imported_modules(tree: ast.Module) -> set[str]:
    """Return the names of all modules of which something is imported, and what they may be."""
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    pairs = imported_names(tree).values()
    return names | {module for module, _ in pairs} | {f"{module}.{name}" for module, name in pairs}


def test_nothing_is_imported_from_a_test_module() -> None:
    """What two test modules share stands in a module without ``test_``."""
    test_modules = {module for module in MODULES if ".test_" in module}
    shared = {module: imported_modules(tree) & test_modules for module, tree in MODULES.items()}
    assert {module: names for module, names in shared.items() if names} == {}


def classes() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the bases that are ours of each class under tests/, all by module and name."""
    found = {}
    for module, tree in MODULES.items():
        imported = imported_names(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0] for base in node.bases]
                bases = [imported.get(name, (module, name)) for name in names]
                found[module, node.name] = [
                    # tests.nova.computes.Computes may be written as computes.Computes
                    qualified(imported, base) if "." in base[1] else base
                    for base in bases
                ]
    return {key: [base for base in bases if base in found] for key, bases in found.items()}


def qualified(imported: dict[str, tuple[str, str]], base: tuple[str, str]) -> tuple[str, str]:
    """Return the module and the name of a base that is written as an attribute of a module."""
    owner, _, name = base[1].rpartition(".")
    return (".".join(imported[owner]) if owner in imported else owner), name


CLASSES = classes()


def depth(key: tuple[str, str]) -> int:
    """Return how many classes of ours are in the longest chain from a class to its bases."""
    return 1 + max(map(depth, CLASSES[key]), default=0)


def test_a_class_has_at_most_two_base_classes_of_the_project() -> None:
    """Who reads a test looks in three places at most, and in Nova's own test classes."""
    assert len(CLASSES) > 50
    assert {key: depth(key) for key in CLASSES if depth(key) > 3} == {}


def test_every_long_module_has_a_test_module_with_the_module_name() -> None:
    """A module ``x`` is tested in ``test_x``, in whichever room of tests/ that can run it."""
    tested = {name.rpartition(".test_")[2] for name in MODULES if ".test_" in name}
    missing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "cpu_tiers").rglob("*.py")
        if path.stem not in {"__init__", *tested} and path.read_text().count("\n") > LONG
    }
    assert missing == WITHOUT_TESTS

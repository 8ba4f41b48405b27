"""What the modules of this repository define, and what the texts of the repository refer to.

Modules are parsed and not imported: cpu_tiers/nova imports Nova, which is not there in unit tests.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = ("cpu_tiers", "tests", "benchmarks")
PAGES = ("docs", "releasenotes", "README.md", "CONTRIBUTING.md", "SECURITY.md", "tox.ini")

_KINDS = (".py", ".rst", ".md", ".yaml", ".toml", ".ini")


@functools.cache
def texts(*roots: str) -> dict[str, str]:
    """Return path to content of the modules and pages in folders; of all by default."""
    paths = [ROOT / root for root in roots or (*CODE, *PAGES)]
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    return {
        str(file.relative_to(ROOT)): file.read_text()
        for file in sorted(files)
        if file.suffix in _KINDS and not {"_build", "__pycache__"} & set(file.parts)
    }


def matches(pattern: str, *roots: str) -> list[tuple[str, re.Match[str]]]:
    """Return each place in the texts that a pattern matches, as path and match."""
    compiled = re.compile(pattern, re.DOTALL)
    return [(path, m) for path, text in texts(*roots).items() for m in compiled.finditer(text)]


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Return the parsed modules of the repository by their dotted names."""
    return {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ast.parse(text)
        for path, text in texts(*CODE).items()
        if path.endswith(".py")
    }


def exists(name: str) -> bool:
    """Tell whether a dotted name is a folder of modules, a module, or is defined in a module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in modules():
            return is_defined(module, parts[length:])
    return (ROOT / name.replace(".", "/")).is_dir()


def is_defined(module: str, path: list[str]) -> bool:
    """Tell whether a module has a class, a function, a value or an import at ``Class.name``."""
    tree = modules()[module]
    body = tree.body
    for name in path:
        nodes = [node for node in _statements(body) if name in _names(node)]
        if not nodes:
            return False
        classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
        body = [member for node in classes for member in _members(tree, node)]
    return True


def is_near(path: str, name: str) -> bool:
    """Tell whether the module at ``path``, or a class in that module, defines a name."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if module not in modules():
        return False
    classes = [node.name for node in modules()[module].body if isinstance(node, ast.ClassDef)]
    parts = name.split(".")
    return any(is_defined(module, [*prefix, *parts]) for prefix in ([], *([c] for c in classes)))


def _members(tree: ast.Module, node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield what a class defines, itself or by a base class in the same module."""
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    yield from node.body
    for other in tree.body:
        if isinstance(other, ast.ClassDef) and other.name in bases:
            yield from _members(tree, other)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, also those under an ``if`` or a ``try``."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _statements([*node.body, *node.orelse])


def _names(node: ast.stmt) -> set[str]:
    """Return the names that one statement defines."""
    targets: list[ast.expr] = []
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {node.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name for alias in node.names}
        case ast.Assign():
            targets = node.targets
        case ast.AnnAssign():
            targets = [node.target]
    leaves = (leaf for target in targets for leaf in ast.walk(target))
    return {leaf.id for leaf in leaves if isinstance(leaf, ast.Name)}

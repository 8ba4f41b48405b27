"""The texts of warnings, errors and faults that an operator may read, from the parsed code.

A text is a template: ``…`` stands for whatever the code fills in. A name of a constant, and a call
of a function that only puts a text together, are replaced by their text.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from tests.unit.references import modules

VARIES = "…"

LEVELS = ("LOG.warning", "LOG.error", "LOG.exception", "LOG.critical")

# Nova, argparse and the modules of Placement raise or return errors by these names.
_MAKERS = (
    "exception.",
    "ArgumentTypeError",
    "kind",
    "self.invalid",
    "response.invalid",
    "self._with_changes",
)

_FAULTS = re.compile(r"(^|\.)(Fault|of|add)$")

_REMEDY = re.compile(
    r"(^|[:;,.(]\s+((or|and)\s+)?)(ask|check|correct|delete|give|install|leave|move|name"
    r"|pip install|put|read|run|set|start|uninstall|unset|upgrade|use|write)\b"
)

# A text without other words takes its words from its arguments, such as "…: got …; …".
_OF_PARTS = frozenset({"got"})


@dataclass(frozen=True)
class Message:
    """A text, with the module and the line that has it.

    :param module: the dotted name of the module.
    """

    module: str
    line: int = field(compare=False)
    text: str
    is_fault: bool = False
    """Whether the text has a place, what was given there, and what is allowed or to be done."""

    @property
    def says_the_remedy(self) -> bool:
        """Tell whether the text itself says what to do."""
        return self.is_fault or bool(_REMEDY.search(self.text))


@dataclass(frozen=True, eq=False)
class _Scope:
    """Where a text stands: names of a function come before names of its module."""

    module: str
    function: ast.FunctionDef | None = None
    arguments: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> "tuple[ast.expr, _Scope] | None":
        """Return the only value that a name is given, and the scope of this value."""
        if self.function:
            if name in _parameters(self.function):
                return None
            if given := _assigned(self.function).get(name):
                return (given[0], self) if len(given) == 1 else None
        for module in _places(self.module, name):
            if given := _constants(module).get(name):
                return given[0], _Scope(module)
        return None

    def definition(self, name: str) -> "tuple[str, ast.FunctionDef] | None":
        """Return the function of a name, and its module."""
        return next(
            (
                (module, node)
                for module in _places(self.module, name)
                for node in modules()[module].body
                if isinstance(node, ast.FunctionDef) and node.name == name
            ),
            None,
        )


@functools.cache
def messages() -> frozenset[Message]:
    """Return all texts of cpu_tiers that an operator may read as a warning or as an error."""
    return frozenset(
        Message(module, call.lineno, text, is_fault=_is_fault(call, scope))
        for module, tree in modules().items()
        if module.startswith("cpu_tiers")
        for scope, call in _calls(tree, _Scope(module))
        for text in [_of_call(call, scope)]
        if _words(text) - _OF_PARTS
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{2,}", text))


def _is_fault(call: ast.Call, scope: _Scope) -> bool:
    """Tell whether a call collects a fault, and its third text has words of its own."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    plain = [value for value in values if not isinstance(value, ast.Starred)]
    is_fault = bool(_FAULTS.search(ast.unparse(call.func))) and len(plain) == 3
    return is_fault and bool(_words(_text(plain[2], scope)))


def _calls(tree: ast.AST, scope: _Scope) -> Iterator[tuple[_Scope, ast.Call]]:
    for node in ast.iter_child_nodes(tree):
        inner = _Scope(scope.module, node) if isinstance(node, ast.FunctionDef) else scope
        if isinstance(node, ast.Call):
            yield inner, node
        elif isinstance(node, ast.Yield) and _is_check(inner) and _is_text(node.value):
            result = f"Result(Code.WARNING, {ast.unparse(node)[len('(yield ') : -1]})"
            call = ast.parse(result, mode="eval").body
            yield inner, ast.copy_location(cast(ast.Call, call), node)
        yield from _calls(node, inner)


def _is_check(scope: _Scope) -> bool:
    """Tell whether a function yields the warnings of an upgrade check."""
    name = scope.function.name if scope.function else ""
    return scope.module == "cpu_tiers.tools.cloud.upgrade_checks" and name.startswith("check_")


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.JoinedStr | ast.Constant)


def _of_call(call: ast.Call, scope: _Scope) -> str:
    """Return the text of a call that logs, raises or collects a fault; else an empty text."""
    name = ast.unparse(call.func)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    texts = [_text(value, scope) for value in values if not isinstance(value, ast.Starred)]
    if name in LEVELS:
        return _shortened(re.sub(r"%[.\d]*[sdr]", VARIES, texts[0]))
    if _FAULTS.search(name) and len(texts) == 3:
        return _shortened(f"{texts[0]}: {texts[1]}; {texts[2]}")
    if name == "Result" and len(texts) == 2:  # of an upgrade check
        return _shortened(texts[1])
    if texts and (name.removeprefix("errors.") in _error_classes() or name.startswith(_MAKERS)):
        return _shortened(texts[0])
    return ""


def _shortened(text: str) -> str:
    return re.sub(rf"{VARIES}(\s*{VARIES})*", VARIES, " ".join(text.split()))


def _text(node: ast.expr, scope: _Scope, depth: int = 5) -> str:
    """Return the text of an expression, with ``…`` for each part that varies."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, scope, depth) for part in parts)
        case ast.FormattedValue(value=value):
            return _text(value, scope, depth)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, scope, depth) + _text(right, scope, depth)
        case ast.Name(id=name) if name in scope.arguments:
            return scope.arguments[name]
        case ast.Name(id=name) if depth and (given := scope.value(name)):
            return _text(*given, depth - 1)
        case ast.Call(func=ast.Attribute(attr="spec"), args=[key]):
            return f"{VARIES} {_text(key, scope, depth)}"
        case ast.Call(func=ast.Name(id=name), args=args) if depth and not node.keywords:
            return _returned(name, [_text(each, scope, depth - 1) for each in args], scope, depth)
    return VARIES


def _returned(name: str, arguments: list[str], scope: _Scope, depth: int) -> str:
    """Return the text that a function of cpu_tiers returns, if the function has one ``return``."""
    if found := scope.definition(name):
        module, function = found
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
        if len(returns) == 1 and returns[0].value:
            names = [each.arg for each in function.args.args]
            inner = _Scope(module, function, dict(zip(names, arguments, strict=False)))
            return _text(returns[0].value, inner, depth - 1)
    return VARIES


def _parameters(function: ast.FunctionDef) -> frozenset[str]:
    return frozenset(each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg))


@functools.cache
def _assigned(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the values that each name is given in a function."""
    values = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in _pairs(target, node.value):
                    values[name].append(value)
    return dict(values)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name of an assignment and its value, also for ``a, b = 1, 2``."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(name, part)


@functools.cache
def _constants(module: str) -> dict[str, list[ast.expr]]:
    """Return the values that each name of a module is given, outside of functions."""
    statements = [each for each in modules()[module].body if isinstance(each, ast.Assign)]
    return _assigned(ast.Module(body=[*statements], type_ignores=[]))


@functools.cache
def _imported(module: str) -> dict[str, str]:
    """Return the module from which each name of a module is imported."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(modules()[module])
        if isinstance(node, ast.ImportFrom) and node.module in modules()
        for alias in node.names
    }


def _places(module: str, name: str) -> list[str]:
    """Return the modules that may define a name: the module itself, and its import of the name."""
    return [module, *filter(None, [_imported(module).get(name)])]


@functools.cache
def _error_classes() -> frozenset[str]:
    """Return the names of the errors of cpu_tiers, and of its subclasses of Nova's errors."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for module, tree in modules().items()
        if module.startswith("cpu_tiers")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    known = {"CpuTiersError"}
    known |= {
        name for name, of in bases.items() if any(each.startswith("exception.") for each in of)
    }
    while new := {name for name, of in bases.items() if of & known} - known:
        known |= new
    return frozenset(known)

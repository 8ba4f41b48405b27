"""How many functions of cpu_tiers have more than ten branches: most of them lack a noun."""

import ast
from collections.abc import Iterator
from pathlib import Path

import cpu_tiers

MANY, MOST = 10, 40
"""So many functions may have more than ten branches. They were 39 of 2,843 on 27 November 2026."""

_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case)


def branches(function: ast.AST) -> int:
    """Return the number of branches, with those of inner functions.

    A clause of a comprehension is a branch, and each operand of ``and`` and ``or`` but the first.
    ruff's C901 counts neither conditional expressions nor operands.
    """
    number = 0
    for node in ast.walk(function):
        number += isinstance(node, _BRANCHES)
        if isinstance(node, ast.comprehension):
            number += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            number += len(node.values) - 1
    return number


def functions() -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of cpu_tiers with their files and names."""
    for path in Path(cpu_tiers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.name}:{node.name}", node


def test_the_counter() -> None:
    # if, and, the conditional expression, for, its if, except
    text = """
def function(a, b):
    if a and b:
        return 1 if a else 2
    try:
        return [each for each in b if each]
    except ValueError:
        return 3
"""
    assert branches(ast.parse(text)) == 6


def test_few_functions_have_many_branches() -> None:
    many = {name: number for name, node in functions() if (number := branches(node)) > MANY}
    assert len(many) <= MOST, many

"""How many functions of cpu_tiers have more than ten ways through: most of them lack a noun.

The ways are the cyclomatic complexity of McCabe: the branches, and the way without any of them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import cpu_tiers

MANY, MOST = 10, 74
"""So many functions may have more than ten ways: 74 of 2,852 on 28 November 2026; the goal is 40.

Until then, this test counted the functions with more than ten branches, 37, by which the goal had
been met. The goal was set when 71 of 2,338 functions had more than ten ways.
"""

_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case)


def ways(function: ast.AST) -> int:
    """Return the number of branches, with those of inner functions, and one.

    A clause of a comprehension is a branch, and each operand of ``and`` and ``or`` but the first.
    ruff's C901 counts neither conditional expressions nor operands.
    """
    number = 1
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
    # 1, if, and, the conditional expression, for, its if, except
    text = """
def function(a, b):
    if a and b:
        return 1 if a else 2
    try:
        return [each for each in b if each]
    except ValueError:
        return 3
"""
    assert ways(ast.parse(text)) == 7


def test_few_functions_have_many_ways() -> None:
    many = {name: number for name, node in functions() if (number := ways(node)) > MANY}
    assert len(many) <= MOST, many

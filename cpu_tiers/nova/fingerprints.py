"""Fingerprints: which bodies of Nova's functions cpu-tiers knows (decision D61).

A seam compares the parameters of a function; the meaning of a function can change with equal
parameters. ``fingerprints.json``, which ``python -m tests.nova.seams_page`` writes, has the
fingerprint of each function that a seam names, for each release of Nova of the tests.
"""

import ast
import functools
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from oslo_log import log as logging

from cpu_tiers.nova.seams import Seam, function_of

LOG = logging.getLogger(__name__)

FILE = "fingerprints.json"

Function = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_DOCSTRING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ANNOTATIONS = frozenset({"annotation", "returns", "type_comment", "type_params"})


@functools.cache
def known() -> Mapping[str, Mapping[str, str]]:
    """Return the fingerprints by the full name of the function and the release of Nova."""
    text = files(__package__).joinpath(FILE).read_text()
    by_function: Mapping[str, Mapping[str, str]] = json.loads(text)
    return by_function


def warn_of_unknown(seams: Iterable[Seam]) -> None:
    """Log a warning that names the functions of the installed Nova with an unknown body."""
    unknown = sorted({str(seam) for seam in seams if not _is_known(seam)})
    if unknown:
        LOG.warning(
            "Nova %s has other code than the releases that cpu-tiers was tested with in %s; see"
            " the page about seams in the documentation of cpu-tiers",
            version("nova"),
            ", ".join(unknown),
        )


def _is_known(seam: Seam) -> bool:
    """Tell whether the body of a seam's function is known, or cannot be known."""
    fingerprints = known().get(str(seam))
    if fingerprints is None:  # not a function of Nova
        return True
    try:
        source = inspect.getsource(function_of(seam))
        return fingerprint(source) in fingerprints.values()
    except (OSError, TypeError, SyntaxError, StopIteration) as error:
        # An installation of Nova without its source code, or with the code of another function
        # in its place. The comparison only warns, and must not stop a service.
        LOG.debug("The body of %s is not compared: %r", seam, error)
        return True


def fingerprint(source: str) -> str:
    """Return the fingerprint of the first function in a source text."""
    # inspect.getsource returns a method with its indentation. To dedent the text would change
    # string literals of several lines.
    tree = ast.parse(f"if True:\n{source}" if source.startswith((" ", "\t")) else source)
    return fingerprint_of(next(node for node in ast.walk(tree) if isinstance(node, Function)))


def fingerprint_of(function: Function) -> str:
    """Return the fingerprint of a function, the same in each release of Python."""
    return hashlib.sha256(repr(_plain(function)).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return a syntax tree as tuples, without docstrings and annotations.

    ``ast.dump`` has another text in each release of Python, because fields were added and empty
    fields are left out.
    """
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if not isinstance(value, ast.AST):
        return repr(value)
    if isinstance(value, ast.AnnAssign) and value.value is not None:
        return _plain(ast.Assign(targets=[value.target], value=value.value))
    fields = {
        name: part
        for name, part in ast.iter_fields(value)
        if name not in _ANNOTATIONS and part not in (None, [])
    }
    if isinstance(value, _WITH_DOCSTRING) and ast.get_docstring(value, clean=False) is not None:
        fields["body"] = value.body[1:]
    return type(value).__name__, *((name, _plain(part)) for name, part in fields.items())

"""Writes docs/reference/seams.rst and the fingerprints of Nova's functions.

``python -m tests.nova.seams_page [WHEEL …]``, or ``tox -e seams -- [WHEEL …]``. The page is made
from the features, seams and attributes of cpu-tiers. With wheels of Nova, the fingerprints of
their releases are written first; the fingerprints of other releases stay.

``tox -e nova-next`` writes nothing: it prints which seams the newest wheel of Nova changes, with
``--compare FOLDER``, where it has downloaded the wheel to.
"""

import ast
import json
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from zipfile import ZipFile

from cpu_tiers.nova import fingerprints
from cpu_tiers.nova.api.features import API, CONFIGURED
from cpu_tiers.nova.compute.features import COMPUTE
from cpu_tiers.nova.features import Feature, Service
from cpu_tiers.nova.fingerprints import Function, fingerprint_of
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.seams import Seam
from tests.nova.wrapping import all_seams

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "seams.rst"
TEXTS = tomllib.loads((ROOT / "docs" / "reference" / "seams.toml").read_text())
"""The texts of each seam, by :func:`name_of`."""

USES = TEXTS.pop("attributes")
"""The use of each attribute, by its full name."""

FILE = ROOT / "cpu_tiers" / "nova" / fingerprints.FILE
SERVICES = (API, SCHEDULER, COMPUTE)

HEAD = """\
.. This page is written by ``tox -e seams``. Do not edit it.

Seams
=====

A seam is a function of Nova that cpu-tiers wraps or relies on. :ref:`decision-d59` has the
reasons of the features, :ref:`decision-d58`, :ref:`decision-d60` and :ref:`decision-d61` say what
a service compares at its start.

Features
--------

A service wraps the functions of the features that are on, and no other function.

"""

FUNCTIONS = """\
Each function has the services and the features that need the function, and why. *Unseen* is what
breaks without an error if a release of Nova changes the body. *Ends* is what Nova, Placement or
the provider tree would need for the wrapper to go. A function has one wrapper. Where it takes
several steps, they stand here in their order (``cpu_tiers/nova/steps.py``), and the wrapper of a
service takes the steps of the features that are on. *Bodies* groups the tested releases of Nova
where they differ."""

ATTRIBUTES = """\
Attributes of Nova's objects that cpu-tiers reads or writes. A service does not start over a Nova
that lacks an attribute of a feature that is on."""

VALUES = """\
While nova-scheduler looks for hosts, cpu-tiers keeps one value on an object of Nova, in the
attribute ``cpu_tiers`` (``cpu_tiers/nova/notes.py``). Beside its value, a host state has
``provider_summaries``, as the specification of the weigher says. The mappings of a candidate with
NUMA nodes are a ``NodeMappings`` (``cpu_tiers/nova/numa/candidate_cells.py``), which adds host
cells and interfaces of devices."""


def fingerprints_of(wheel: Path) -> dict[str, str]:
    """Return the fingerprint of the function of each seam in a wheel of Nova.

    :returns: without the functions that the wheel has no more.
    """
    found = {}
    with ZipFile(wheel) as archive:
        for seam in all_seams():
            with suppress(KeyError, StopIteration):
                tree = ast.parse(archive.read(f"{seam.module.replace('.', '/')}.py"))
                found[str(seam)] = fingerprint_of(find(tree, seam.path))
    return found


def compared(wheel: Path) -> Iterator[str]:
    """Yield a line for each seam: the newest release of the tests whose code a wheel has."""
    found = fingerprints_of(wheel)
    yield f"{wheel.name}, and the newest release with the same code:"
    for name, releases in sorted(fingerprints.known().items()):
        equal = [release for release, body in releases.items() if body == found.get(name)]
        yield f"{max(equal, default='none' if name in found else 'missing'):10}{name}"


def find(tree: ast.Module, path: str) -> Function:
    """Return the definition of a function in a module."""
    node: ast.AST = tree
    for name in path.split("."):
        node = next(
            child
            for child in ast.walk(node)
            if isinstance(child, ast.ClassDef | Function) and child.name == name
        )
    assert isinstance(node, Function)
    return node


def add(wheels: Iterable[Path]) -> None:
    """Write the fingerprints of wheels into the file of the package."""
    known = {name: dict(releases) for name, releases in fingerprints.known().items()}
    names = sorted(map(str, all_seams()))
    merged = {name: known.get(name, {}) for name in names}
    for wheel in wheels:
        release = wheel.name.split("-")[1]
        for name, fingerprint in fingerprints_of(wheel).items():
            merged[name][release] = fingerprint
    merged = {name: dict(sorted(merged[name].items())) for name in names}
    FILE.write_text(json.dumps(merged, indent=1) + "\n")
    fingerprints.known.cache_clear()


def page() -> str:
    """Return the text of docs/reference/seams.rst."""
    return HEAD + "\n".join([*_features(), *_functions(), *_attributes(), *_values()]) + "\n"


def _table(*rows: Iterable[str]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", "")
    for row in rows:
        for mark, cell in zip(("   * - ", *["     - "] * 9), row, strict=False):
            yield f"{mark}{cell}".rstrip()
    yield ""


def _features() -> Iterator[str]:
    rows = [
        (
            service.name,
            feature.name,
            feature.switched_on_by,
            str(len({str(s) for s in wraps(feature)})),
        )
        for service in SERVICES
        for feature in service.features
    ]
    yield from _table(("Service", "Feature", "Switched on by", "Wrapped functions"), *rows)


def wraps(feature: Feature) -> list[Seam]:
    """Return the seams of a feature that wrap a function."""
    return [seam for seam in feature.seams if seam.wrap]


def users(seam: Seam) -> dict[str, list[Service]]:
    """Return the services that need a seam, by the names of their features."""
    if seam == CONFIGURED:
        return {"until nova.conf is read": [API]}
    services: dict[str, list[Service]] = {}
    for service in SERVICES:
        names = [feature.name for feature in service.features if seam in feature.seams]
        if names:
            services.setdefault(", ".join(names), []).append(service)
    return services


def name_of(seam: Seam) -> str:
    """Return the name of a seam in docs/reference/seams.toml."""
    if seam.wrap is None:
        return seam.path
    step = seam.wrap.args[0] if isinstance(seam.wrap, partial) else seam.wrap
    return f"{step.__module__.rpartition('.')[2]}.{seam.path.rpartition('.')[2]}"


def in_order() -> list[Seam]:
    """Return all seams by their functions, those of one function in the order of their steps."""
    return sorted(all_seams(), key=lambda seam: (str(seam), seam.place, name_of(seam)))


def _functions() -> Iterator[str]:
    yield from ("Functions", "---------", "")
    yield from (FUNCTIONS, "")
    for name, group in groupby(in_order(), key=str):
        yield from (f"``{name}``", *_function(list(group)), "")


def _function(seams: list[Seam]) -> Iterator[str]:
    most = len([seam for seam in seams if seam.wrap])
    for number, seam in enumerate(seams, start=1):
        step = f" (step {number} of {most})" if most > 1 else ""
        kind = step if seam.wrap else " (not wrapped)"
        needed_by = "; ".join(
            f"{', '.join(service.name for service in services)}: {features}"
            for features, services in users(seam).items()
        )
        texts = TEXTS[name_of(seam)]
        end = f" *Ends* in {texts['missing_in']}: {texts['ends_with']}." if seam.wrap else ""
        yield from _item(f"{needed_by}{kind}. {texts['why']} *Unseen:* {texts['unseen']}{end}")
    if ";" in (bodies := _bodies(str(seams[0]))):
        yield from _item(f"Bodies: {bodies}.")


def _item(text: str) -> list[str]:
    return textwrap.wrap(
        text, 125, initial_indent="   * ", subsequent_indent="     ", break_on_hyphens=False
    )


def _bodies(name: str) -> str:
    by_body: dict[str, list[str]] = {}
    for release, fingerprint in fingerprints.known().get(name, {}).items():
        by_body.setdefault(fingerprint, []).append(release)
    return "; ".join(", ".join(releases) for releases in by_body.values())


def _attributes() -> Iterator[str]:
    yield from ("Attributes", "----------", "")
    yield from (ATTRIBUTES, "")
    by_attribute: dict[str, tuple[str, list[str]]] = {}
    for service in SERVICES:
        for feature in service.features:
            for each in feature.attributes:
                kind = each.kind.__name__ if each.kind else ""
                by_attribute.setdefault(str(each), (kind, []))[1].append(feature.name)
    rows = [
        (f"``{name}``", kind, ", ".join(names), USES[name])
        for name, (kind, names) in sorted(by_attribute.items())
    ]
    yield from _table(("Attribute", "Type", "Features", "Use"), *rows)


def _values() -> Iterator[str]:
    yield from ("Values on objects of Nova", "-------------------------", "", VALUES)


def main() -> None:
    if sys.argv[1:2] == ["--compare"]:
        for wheel in sorted(Path(sys.argv[2]).glob("nova-*.whl")):
            sys.stdout.write("\n".join([*compared(wheel), ""]))
        return
    add(map(Path, sys.argv[1:]))
    PAGE.write_text(page())


if __name__ == "__main__":
    main()

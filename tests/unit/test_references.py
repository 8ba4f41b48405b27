"""Every reference in code, tests and documentation leads somewhere."""

import builtins
import posixpath
import re
import tomllib

import pytest

from tests.unit.references import CODE, ROOT, exists, is_near, matches, texts

pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)

LABELS = r"^((?:\.\. _decision-d\d+:\n)+)\n(.*?)(?=\n\.\. _decision|\Z)"


def records() -> dict[str, str]:
    """Return the text of each decision record by its number, such as D2.

    The number of a decision that was replaced has the text of the decision that replaces it.
    """
    return {
        number.upper(): text
        for page in texts("docs/contributor/decisions").values()
        for labels, text in re.findall(LABELS, page, re.DOTALL | re.MULTILINE)
        for number in re.findall(r"d\d+", labels)
    }


def sections() -> dict[str, list[str]]:
    """Return the titles of the sections of each specification by its name."""
    path = ROOT / "tests" / "unit" / "spec_sections.toml"
    loaded: dict[str, list[str]] = tomllib.loads(path.read_text())
    return loaded


def test_decisions_are_numbered_from_1_without_a_gap() -> None:
    numbers = list(records())
    assert sorted(numbers, key=lambda name: int(name[1:])) == [
        f"D{number}" for number in range(1, len(numbers) + 1)
    ]
    assert len(numbers) >= 56


@pytest.mark.parametrize("text", set(records().values()))
def test_a_decision_record_says_what_is_decided_and_why(text: str) -> None:
    title, underline, *lines = text.splitlines()
    assert len(underline) >= len(title)
    replaced = [n for line in lines if line.startswith(":Replaces:") for n in line.split()[1:]]
    numbers = {number for number, record in records().items() if record == text}
    assert numbers == {title.split()[0], *(number.strip(",") for number in replaced)}
    decided, why = "\n".join(lines).split("\n\n**Why.** ")
    assert len(decided.split()) >= 5
    assert len(why.split()) >= 5


def test_a_decision_that_is_cited_has_a_record() -> None:
    cited = matches(r"(?<![\w\"'-])D[1-9]\d*\b(?!\"|')", *CODE, "docs", "README.md")
    assert len(cited) >= 35
    assert {(path, m[0]) for path, m in cited if m[0] not in records()} == set()


def test_a_specification_that_is_cited_is_described() -> None:
    page = texts("docs")["docs/reference/specifications.rst"]
    for name in sections():
        assert f"\n{name}\n{'-' * len(name)}\n" in page
    cited = {(path, match[1]) for path, match in matches(r"\bSpecs?:\s+([\w-]+)", "cpu_tiers")}
    assert len(cited) >= 30
    assert {(path, name) for path, name in cited if name not in sections()} == set()


def test_a_section_that_is_cited_exists() -> None:
    item = r"[a-z]+(?:-[a-z]+){2,}(?:,?\s+(?:and\s+)?\"[^\"]+\")*"
    cited = {
        (path, name, " ".join(title.split()))
        for path, match in matches(rf"\bSpecs?:\s+({item}(?:[;,]\s+{item})*)", *CODE)
        for name, titles in re.findall(r"([a-z-]{20,})((?:[^\"a-z]|and|\"[^\"]+\")*)", match[1])
        for title in re.findall(r"\"([^\"]+)\"", titles)
    }
    assert len(cited) >= 35
    assert {
        (path, name, title)
        for path, name, title in cited
        if not any(section.startswith(title) for section in sections().get(name, []))
    } == set()


def test_a_role_names_an_existing_object() -> None:
    roles = matches(r":(mod|func|class|meth|attr|data|exc):`(?:[^`<]*<)?~?([\w.]+)>?`")
    assert len(roles) >= 60
    wrong = {
        (path, match[2])
        for path, match in roles
        if not (
            exists(match[2])
            if match[2].startswith(("cpu_tiers", "tests.", "benchmarks."))
            else is_near(path, match[2]) or hasattr(builtins, match[2])
        )
    }
    assert wrong == set()


def test_a_page_that_is_named_exists() -> None:
    named = matches(r":doc:`(?:[^`<]*<)?([\w./-]+)>?`", "docs", *CODE)
    assert len(named) >= 40
    wrong = set()
    for path, match in named:
        # A text in the code stands on the page of the seams.
        in_docs = path if path.startswith("docs/") else "docs/reference/seams.rst"
        folder = "docs" if match[1].startswith("/") else posixpath.dirname(in_docs)
        if not (ROOT / folder / f"{match[1].lstrip('/')}.rst").resolve().exists():
            wrong.add((path, match[1]))
    assert wrong == set()


def test_a_label_that_is_named_exists() -> None:
    labels = {match[1] for _, match in matches(r"(?<=\n)\.\. _([\w-]+):\n", "docs")}
    named = matches(r":ref:`(?:[^`<]*<)?([\w-]+)>?`", "docs", *CODE)
    assert {(path, match[1]) for path, match in named if match[1] not in labels} == set()


def test_a_path_that_is_named_exists() -> None:
    folders = "docs|tests|benchmarks|constraints|packaging|etc/cpu-tiers|etc/systemd|cpu_tiers"
    named = matches(rf"(?<![\w./<-])((?:{folders})/[\w./-]*\w)")
    assert len(named) >= 40
    missing = {(path, m[1]) for path, m in named if not (ROOT / m[1]).exists()}
    # The modules that the reader of a recipe is told to write, and what tox builds.
    to_write = ("licenses.py", "NAME.py")
    built = ("docs/_build", "packaging/built")
    assert {
        (path, name)
        for path, name in missing
        if not (name.endswith(to_write) or name.startswith(built))
    } == set()


def test_a_dotted_name_of_ours_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    of_nova_conf = {"cpu_tiers.LibvirtDriver", "cpu_tiers.ResourceProviderWeigher"}
    of_others = {"cpu_tiers.scorings"}  # cpu-tiers itself has no entry point of the group
    loggers = {"cpu_tiers.decisions"}
    known = {*project["entry-points"], *of_nova_conf, *of_others, *loggers}
    named = matches(r"``(cpu_tiers(?:\.\w+)+)``")
    assert len(named) >= 15
    assert {(p, m[1]) for p, m in named if m[1] not in known and not exists(m[1])} == set()

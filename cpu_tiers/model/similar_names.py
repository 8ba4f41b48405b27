"""The name that was meant, by a misspelt name."""

from collections.abc import Iterable


def similar(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like a misspelt name, or ``None`` if no name is like it."""
    import difflib  # read at first use: most names are spelt correctly

    nearest = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.75)
    return nearest[0] if nearest else None


def advice(name: str, names: Iterable[str], otherwise: str) -> str:
    """Return the advice for an unknown name: the most similar name, and further names."""
    meant = similar(name, names)
    return f"did you mean {meant}? {otherwise}" if meant else otherwise

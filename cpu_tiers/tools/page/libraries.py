"""The libraries of a page, which the extra ``page`` installs."""

from collections.abc import Iterator
from contextlib import contextmanager

from cpu_tiers.errors import CpuTiersError


class PageLibraryMissing(CpuTiersError):
    """A library for pages is not installed."""


@contextmanager
def page_libraries() -> Iterator[None]:
    """Import modules of this room inside of this context, when the page is wanted.

    :raises PageLibraryMissing: a library is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise PageLibraryMissing(
            f"a page needs {error.name}: pip install 'cpu-tiers[page]'"
        ) from error

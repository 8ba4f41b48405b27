"""Writing a page with charts, for the commands with ``--html``."""

from cpu_tiers.cli.output_file import write_output
from cpu_tiers.errors import InvalidInput


def write_page(path: str, html: str) -> None:
    """Write a page to a file that only the user may read: a page has names of a cloud.

    :raises InvalidInput: the file cannot be written.
    """
    try:
        write_output(path, html.encode(), private=True)
    except (OSError, ValueError) as error:
        given = f"cannot be written ({error})"
        raise InvalidInput.of(path, given, "name another file") from error

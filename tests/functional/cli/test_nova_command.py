"""Commands that ask Nova, in a Python that has none."""

from importlib.metadata import distributions

import pytest

from tests.functional.cli.conftest import Run, Save

pytestmark = pytest.mark.skipif(
    any(distribution.name == "nova" for distribution in distributions()),
    reason="Nova is installed",
)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("reshape plan", ["--host", "one"]), ("allocation heal", ["--apply"])],
)
def test_a_missing_nova_is_a_single_clear_error(
    run: Run, save: Save, name: str, arguments: list[str]
) -> None:
    conf = save("[DEFAULT]\n", "nova.conf")
    result = run("--config-file", conf, *name.split(), *arguments, status=1)
    assert result.stdout == "\n" * result.stdout.count("\n")
    assert result.stderr == (
        f"cpu-tiers {name} needs Nova: install cpu-tiers in the Python that has Nova, and run the"
        " command there\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--host", "one"], id="neither --plan nor --apply"),
        pytest.param(["--plan", "--apply"], id="both"),
        pytest.param(["--plan", "--host", "one", "--server", "s"], id="hosts and servers"),
    ],
)
def test_heal_without_plan_or_apply_is_a_usage_error(run: Run, arguments: list[str]) -> None:
    assert "usage:" in run("allocation", "heal", *arguments, status=2).stderr


def test_a_plan_is_of_a_host(run: Run) -> None:
    assert "--host" in run("reshape", "plan", status=2).stderr

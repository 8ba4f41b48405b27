"""Whose code raised the error of a traceback."""

from tests.cloud.tracebacks import of_cpu_tiers

START = (
    "2026-11-22 17:54:28.091 116 ERROR nova.compute.manager [None req-1 a b - -] [instance: c] "
)
NOVA = '  File "/venv/nova/compute/manager.py", line 5624, in revert_resize'
OURS = '  File "/venv/cpu_tiers/nova/compute/driver.py", line 9, in update_provider_tree'


def traceback(*frames: str) -> list[str]:
    lines = ["Reverting failed", "Traceback (most recent call last):"]
    for frame in frames:
        lines += [frame, "    self.call()", "    ^^^^^^^^^^^"]
    return [START + line for line in (*lines, "KeyError: 'allocations'", "", "the end")]


def test_an_error_that_passes_a_wrapper_is_not_of_cpu_tiers() -> None:
    assert list(of_cpu_tiers(traceback(NOVA, OURS, NOVA))) == []


def test_an_error_of_cpu_tiers() -> None:
    (found,) = of_cpu_tiers([*traceback(NOVA), *traceback(NOVA, OURS)])
    assert found == "/venv/cpu_tiers/nova/compute/driver.py: KeyError: 'allocations'"

"""All tests: the header of a run says how to repeat what it drew at random."""

from tests.draws import DAYS, SEED


def pytest_report_header() -> str:
    return f"drawn at random: CPU_TIERS_SEED={SEED} CPU_TIERS_DAYS={DAYS}"

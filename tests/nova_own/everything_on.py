"""Nova's own functional tests, with everything of cpu-tiers loaded and switched on.

A pytest plugin. The options are set as an operator can set them, in the
environment, which oslo.config reads above any nova.conf.

``--stock`` switches nothing on, so that a failure can be told from one that
Nova has by itself. (Its API loads our validators all the same, being an entry
point of what is installed; they wrap nothing.) ``--numa`` has the scheduler ask for NUMA nodes,
too, while no host reports any: a cloud in the middle of its upgrade.
"""

import sys
from collections import Counter
from typing import Any

import nova.tests.functional  # noqa: F401  # first: it takes eventlet, or native threads
import pytest
from nova.conf import CONF
from nova.scheduler.weights import HostWeightHandler
from nova.test import TestCase
from nova.tests.functional.fixtures import PlacementApiClient
from nova.virt import driver

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.api.features import API
from cpu_tiers.nova.seams import install

OPTIONS = {
    "OS_FILTER_SCHEDULER__RESOURCE_PROVIDER_WEIGHT_MULTIPLIER": "1.0",
    "OS_FILTER_SCHEDULER__RESOURCE_PROVIDER_SCORING": "boring",
    "OS_FILTER_SCHEDULER__QUERY_PLACEMENT_FOR_VCPU_SHARES": "true",
    "OS_LIBVIRT__REPORT_VCPU_SHARES": "true",
    "OS_COMPUTE__EXTEND_CPU_POLICIES": "true",
}
NUMA = {"OS_FILTER_SCHEDULER__QUERY_PLACEMENT_FOR_NUMA": "true"}

# Tests name their weighers and their driver themselves, with overrides that no option beats.
# Our weigher joins theirs, and our driver takes the place of the one it is made from.
WEIGHER = "cpu_tiers.ResourceProviderWeigher"
COMPUTE_DRIVERS = {"libvirt.LibvirtDriver": "cpu_tiers.LibvirtDriver"}

LOADED: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a run without us, and one that asks for NUMA nodes."""
    parser.addoption("--stock", action="store_true", help="switch nothing of cpu-tiers on")
    parser.addoption("--numa", action="store_true", help="ask for NUMA nodes, too")


def pytest_report_header(config: pytest.Config) -> str:
    """Say which of the runs this is."""
    options = config.option
    parts = "everything, and queries for NUMA nodes," if options.numa else "everything"
    return f"cpu-tiers: {'nothing' if options.stock else parts} on"


@pytest.fixture(autouse=True)
def _nova_fits_pytest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put right what is not about us."""
    # The wheel has etc/nova/api-paste.ini here, Nova's fixtures look beside the package.
    monkeypatch.setenv("OS_DEFAULT__STATE_PATH", sys.prefix)
    clear = TestCase._clear_attrs

    def clear_but_the_test(self: TestCase) -> None:
        """Delete every attribute, but put back the one that pytest deletes itself."""
        clear(self)
        setattr(self, request.node.name, None)

    monkeypatch.setattr(TestCase, "_clear_attrs", clear_but_the_test)


@pytest.fixture(autouse=True)
def _everything_on(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set our options, and have the services load our classes."""
    if pytestconfig.option.stock:
        return
    for name, value in (OPTIONS | (NUMA if pytestconfig.option.numa else {})).items():
        monkeypatch.setenv(name, value)
    install(seam for feature in API.features for seam in feature.seams)  # loaded before CONF
    weighers, load = HostWeightHandler.get_matching_classes, driver.load_compute_driver

    def get_matching_classes(self: HostWeightHandler, names: list[str]) -> Any:
        LOADED[WEIGHER] += 1
        return weighers(self, [*names, WEIGHER])

    def load_compute_driver(virtapi: Any, compute_driver: str | None = None) -> Any:
        asked = compute_driver or CONF.compute_driver
        ours = COMPUTE_DRIVERS.get(asked, asked)
        LOADED[ours] += ours != asked
        return load(virtapi, ours)

    read = PlacementApiClient.get

    def read_but_unused_shares(self: PlacementApiClient, url: str, **kwargs: Any) -> Any:
        """Read as a test does that knows all classes of its hosts by heart."""
        response = read(self, url, **kwargs)
        usages = response.body.get("usages", {})
        if usages.get(VCPU_SHARES) == 0:
            del usages[VCPU_SHARES]
        return response

    monkeypatch.setattr(PlacementApiClient, "get", read_but_unused_shares)
    monkeypatch.setattr(HostWeightHandler, "get_matching_classes", get_matching_classes)
    monkeypatch.setattr(driver, "load_compute_driver", load_compute_driver)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how often our classes were loaded, so that nobody trusts a run without us."""
    for name, times in LOADED.items():
        if times:
            terminalreporter.write_line(f"{name} was loaded {times} times")

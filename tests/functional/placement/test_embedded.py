"""The embedded Placement: real, empty at each start, quiet, and gone in the end."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from oslo_config import cfg

from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement


def test_embedded_placement_speaks_the_newest_microversion(embedded: PlacementClient) -> None:
    assert embedded.microversion == (1, 39)


def test_embedded_placement_has_the_standard_names(embedded: PlacementClient) -> None:
    assert embedded.ensure_names({"VCPU"}, {"HW_NUMA_ROOT"}) == ()


def test_embedded_placements_start_empty() -> None:
    for _ in range(3):
        with embedded_placement() as client:
            assert client.find_provider("compute1") is None
            assert client.ensure_names({"VCPU"}, {"HW_NUMA_ROOT", "CUSTOM_A"}) == ("CUSTOM_A",)
            client.create_provider("compute1")


def test_two_at_once_are_refused_and_the_first_goes_on(embedded: PlacementClient) -> None:
    with pytest.raises(PlacementError, match="already running in this process"):
        embedded_placement().__enter__()
    embedded.create_provider("compute1")


def test_an_error_inside_ends_embedded_placement() -> None:
    with pytest.raises(ZeroDivisionError), embedded_placement():
        _ = 1 / 0
    with embedded_placement():
        pass


def test_threads_share_embedded_placement(embedded: PlacementClient) -> None:
    names = [f"compute{index}" for index in range(40)]
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(embedded.create_provider, names))
    assert [embedded.find_provider(name) for name in names] == created


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_embedded_placement_logs_nothing() -> None:
    done = run(
        "from cpu_tiers.tools.placement.embedded import embedded_placement\n"
        "from cpu_tiers.placement.errors import PlacementRefused\n"
        "import logging; logging.basicConfig(level=logging.WARNING)\n"
        "with embedded_placement() as client:\n"
        "    try: client.provider('x')\n"
        "    except PlacementRefused: print('refused')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")


def test_the_client_does_not_import_placement() -> None:
    done = run(
        "import sys, cpu_tiers.tools.placement.sync, cpu_tiers.tools.placement.session\n"
        "print(sorted({'placement', 'sqlalchemy', 'webob'} & set(sys.modules)))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_without_openstack_placement_the_error_names_the_package() -> None:
    done = run(
        "import sys; sys.modules['placement'] = None\n"
        "from cpu_tiers.tools.placement.embedded import embedded_placement\n"
        "from cpu_tiers.placement.errors import PlacementMisconfigured\n"
        "for _ in range(2):\n"
        "    try: embedded_placement().__enter__()\n"
        "    except PlacementMisconfigured as error: print(error)\n"
    )
    assert done.stderr == ""
    assert done.stdout.count("pip install 'cpu-tiers[embedded]'") == 2


def test_nothing_is_left_for_another_placement_of_the_process() -> None:
    """Placement's own fixtures, which Nova's tests use, take what stands in the options."""
    from placement import conf, db_api

    with embedded_placement():
        pass
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    connection = "sqlite:///another"
    options.set_default("connection", connection, "placement_database")
    try:
        assert options.placement_database.connection == connection
        assert options.api.auth_strategy == "keystone"
        assert not db_api.configure.called
    finally:
        options.clear_default("connection", "placement_database")

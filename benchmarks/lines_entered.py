"""Count the lines of the functions of cpu-tiers that a flow enters, which its reader reads.

A line counts once, however often its function is called. Docstrings count, because a reader reads
them. Module and class bodies do not count, nor does what a service does at its start. Nova has to
be installed (dependency group ``bench``). ``--list`` prints the lines of each file, most first.
docs/contributor/house.rst says what holds the lines beyond a goal.
"""

import argparse
import contextlib
import inspect
import io
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType

import cpu_tiers
from cpu_tiers.tools.frame.app import main as run_command

OURS = str(Path(cpu_tiers.__file__).parent)
NOT_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Bodies of modules, and parts of functions, which count with their functions."""

LIMITS = {
    "a multiplier to a query": (520, 520),
    "the scores of the weigher": (800, 800),
    "a host to its inventories, with NUMA nodes": (1450, 1450),
    "explain, without a host for the server": (3000, 3450),
}
"""The goal of each flow, and the lines that fail: a flow that grows is a decision."""

FLAVOR = {
    "name": "gold",
    "vcpus": 4,
    "ram": 8192,
    "disk": 20,
    "properties": {
        "quota:cpu_shares_multiplier": "100",
        "trait:HW_CPU_X86_AVX2": "required",
        "hw:numa_nodes": "1",
    },
}
CONF = """
[compute]
enable_numa_reporting_to_placement = true
cpu_shared_set = 0-5
cpu_dedicated_set = 6-7
[libvirt]
report_vcpu_shares = true
[filter_scheduler]
query_placement_for_vcpu_shares = true
query_placement_for_numa = true
"""


@contextlib.contextmanager
def entered(codes: set[CodeType]) -> Iterator[None]:
    """Add the code of each function of cpu-tiers that the context enters, in all threads."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def lines_by_file(codes: set[CodeType]) -> Counter[str]:
    """Return the number of lines of functions by file; an inner function counts with its outer."""
    lines: dict[str, set[int]] = {}
    for code in codes:
        if code.co_name in NOT_FUNCTIONS or not code.co_flags & inspect.CO_NEWLOCALS:
            continue
        source, first = inspect.getsourcelines(code)
        if source[0].lstrip().startswith("class "):  # the body of a class is a code, too
            continue
        name = str(Path(code.co_filename).relative_to(OURS))
        lines.setdefault(name, set()).update(range(first, first + len(source)))
    return Counter({name: len(numbers) for name, numbers in lines.items()})


def prepared_query() -> Callable[[], object]:
    """Return the way from a flavor with a multiplier to the query string, the modules imported."""
    from query import GOLD, ours

    return lambda: ours(GOLD)()


def prepared_weigher() -> Callable[[], object]:
    """Return the weighing of hosts with the weigher that nova-scheduler has started."""
    from nova import objects
    from nova.scheduler.weights import HostWeightHandler
    from weigher import host_states, request_spec

    from cpu_tiers.nova.options import CONF
    from cpu_tiers.nova.scheduler.weigher import MULTIPLIER, ResourceProviderWeigher

    objects.register_all()
    CONF([], default_config_files=[])
    ours, handler, spec = ResourceProviderWeigher(), HostWeightHandler(), request_spec()
    CONF.set_override(MULTIPLIER, 1.0, group="filter_scheduler")
    return lambda: handler.get_weighed_objects([ours], host_states(spec), spec)


def capabilities() -> str:
    """Return libvirt's capabilities of a host with two NUMA nodes of four CPUs."""
    cells = "".join(
        f"<cell id='{node}'><memory unit='KiB'>8388608</memory>"
        "<pages unit='KiB' size='4'>1572864</pages><pages unit='KiB' size='2048'>1024</pages>"
        "<cpus>"
        + "".join(
            f"<cpu id='{cpu}' socket_id='{node}' core_id='{cpu}' siblings='{cpu}'/>"
            for cpu in range(4 * node, 4 * node + 4)
        )
        + "</cpus></cell>"
        for node in range(2)
    )
    return (
        "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology>"
        f"<cells>{cells}</cells></topology></host></capabilities>"
    )


def snapshot() -> dict[str, object]:
    """Return a cloud of hosts of which some lack the trait, and all lack memory."""
    plain = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    totals = {"VCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 999, "CUSTOM_VCPU_SHARES": 800}
    providers = [
        {
            "uuid": f"4c0f0b8e-7d4f-4b0e-9d0e-2f6f7b1f9a{number:02}",
            "name": f"host-{number}",
            "parent_uuid": None,
            "inventories": {
                name: {**plain, "total": total, "max_unit": total}
                for name, total in totals.items()
            },
            "traits": ["COMPUTE_NODE", "HW_CPU_X86_AVX2"][: 1 + number % 2],
            "aggregates": [],
        }
        for number in range(6)
    ]
    return {
        "format": "cpu-tiers cloud snapshot",
        "version": 1,
        "masked": False,
        "providers": providers,
        "consumers": {},
        "flavors": [],
    }


def commands(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the flows that are commands."""
    names = ("flavor.json", "nova.conf", "capabilities.xml", "snapshot.json")
    texts = (json.dumps(FLAVOR), CONF, capabilities(), json.dumps(snapshot()))
    flavor, conf, host, cloud = (str(folder / name) for name in names)
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)

    def run(*arguments: str, status: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert run_command(["--config-file", conf, *arguments]) == status

    show = ("inventory", "show", "--hostname", "one", "--capabilities", host)
    yield "a host to its inventories, with NUMA nodes", lambda: run(*show, status=0)
    ask = ("explain", flavor, "--snapshot", cloud)
    yield "explain, without a host for the server", lambda: run(*ask, status=3)


def flows(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each flow with its name."""
    yield "a multiplier to a query", prepared_query()
    yield from commands(folder)
    yield "the scores of the weigher", prepared_weigher()


def main() -> int:
    """Print the lines of each flow beside its goal; return 1 if a flow is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the lines of each file")
    wants_files = parser.parse_args().list
    is_over = False
    with tempfile.TemporaryDirectory() as folder:
        for name, flow in flows(Path(folder)):
            codes: set[CodeType] = set()
            with entered(codes):
                flow()
            lines = lines_by_file(codes)
            number, (goal, limit) = lines.total(), LIMITS[name]
            is_over |= number > limit
            verdict = "OVER" if number > limit else "missed" if number > goal else "met"
            print(f"  {name:<44} {number:5}  goal {goal}, limit {limit}: {verdict}")
            for file, part in lines.most_common() if wants_files else ():
                print(f"    {part:5}  {file}")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())

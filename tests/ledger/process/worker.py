"""Runs modules of Nova's own tests, each module in a fork of a process with Nova.

``python worker.py [--with-cpu-tiers [--fold-nodes]]`` reads requests from stdin, as JSON lines
with the keys ``module``, ``tests`` (the tests to run; an empty list: all), ``timeout`` (seconds
of the module), ``hang`` (seconds without a word of a test) and ``output`` (a path). The fork
writes each outcome to ``output`` at once, so that the outcomes before a hang are known. The
worker answers each request by a JSON line with the keys ``killed``, ``seconds`` and
``cpu_seconds`` (user and system).

The module imports nothing of cpu-tiers: in the environment of a stock Nova, cpu-tiers is not
installed and not on the path either.
"""

import gc
import importlib
import importlib.util
import json
import os
import pickle
import signal
import sys
import unittest
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

# Before Nova: eventlet replaces what the modules have, and the worker itself waits without it.
from time import monotonic, sleep
from typing import Any, TextIO

import testtools

PRELOADED = (
    "nova.tests.unit",
    "nova.tests.functional.integrated_helpers",
    "nova.tests.functional.libvirt.base",
    "nova.tests.fixtures.libvirt",
    "nova.api.openstack.compute",
    "nova.api.openstack.urlmap",
    "nova.api.validation.extra_specs.validators",
    "nova.compute.manager",
    "nova.conductor.manager",
    "nova.conductor.tasks.live_migrate",
    "nova.scheduler.filters.numa_topology_filter",
    "nova.scheduler.manager",
    "nova.virt.fake",
    "oslo_messaging._drivers.impl_fake",
    "wsgi_intercept.requests_intercept",
)
"""The imports of most test modules and of the services in them, loaded before any fork."""

SHARED = Path(__file__).parents[2] / "made_once.py"
"""Not imported by its name: with its folder on the path, ``tests/nova`` would be Nova."""


ENDED = "a service ended the process"
"""Begins the line of a failed test in which a service did so, as nova-compute does that refuses to
start."""


class ProcessEnded(Exception):
    """Raised where a service ended its process. Nova may catch this, and the test goes on."""


class Recorder(testtools.TestResult):  # type: ignore[misc,unused-ignore]  # typed since 2.9.1
    """Writes the outcome of each test as a JSON line: the test, the outcome, its last line."""

    def __init__(self, output: TextIO) -> None:
        super().__init__()
        self._output = output
        self._process, self._end = os.getpid(), os._exit
        self._has_ended = False

    def survive(self, status: int) -> None:
        """Stand in for ``os._exit``: the process has the other tests of the module to run."""
        if os.getpid() != self._process:
            self._end(status)
        self._has_ended = True
        raise ProcessEnded(status)

    def write(self, test: Any, outcome: str, line: str = "") -> None:
        """Write one line. A test is ``started`` first, so that a hang has a name."""
        identity = test if isinstance(test, str) else test.id()
        print(json.dumps([identity, outcome, line]), file=self._output, flush=True)

    def startTest(self, test: Any) -> None:  # noqa: N802
        super().startTest(test)
        self._has_ended = False
        self.write(test, "started")

    def addSuccess(self, test: Any, details: Any = None) -> None:  # noqa: N802
        self.write(test, *(("failed", ENDED) if self._has_ended else ("passed",)))

    def addExpectedFailure(self, test: Any, err: Any = None, details: Any = None) -> None:  # noqa: N802
        self.write(test, "passed")

    def addSkip(self, test: Any, reason: str | None = None, details: Any = None) -> None:  # noqa: N802
        self.write(test, "skipped", reason or "")

    def addUnexpectedSuccess(self, test: Any, details: Any = None) -> None:  # noqa: N802
        self.write(test, "failed", "unexpected success")

    def addError(self, test: Any, err: Any = None, details: Any = None) -> None:  # noqa: N802
        line = last_line(err, details)
        self.write(test, "failed", f"{ENDED}, and {line}" if self._has_ended else line)

    addFailure = addError  # noqa: N815


def last_line(err: Any, details: Mapping[str, Any] | None) -> str:
    """Return the last line of a traceback, with the exception."""
    if err is not None:
        return f"{err[0].__name__}: {str(err[1]).strip().rpartition(chr(10))[2]}"[:300]
    texts = [detail.as_text() for name, detail in (details or {}).items() if "traceback" in name]
    return (" / ".join(text.strip().rpartition("\n")[2] for text in texts))[:300]


def main(arguments: list[str]) -> None:
    """Load Nova, and with the arguments cpu-tiers, and serve requests until stdin ends."""
    # Tests write to stdout, too.
    with os.fdopen(os.dup(1), "w") as answers, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        count_wrapped = load_nova(with_cpu_tiers="--with-cpu-tiers" in arguments)
        if "--fold-nodes" in arguments:
            importlib.import_module("folded").fold_nodes()
        gc.collect()
        gc.freeze()
        # Cyclic garbage of one module is small, and looking for it takes a tenth of the CPU time.
        gc.set_threshold(50_000)
        for line in sys.stdin:
            print(json.dumps(serve(json.loads(line), count_wrapped)), file=answers, flush=True)


def load_nova(*, with_cpu_tiers: bool) -> Any:
    """Import Nova and its fixtures, and load cpu-tiers as the services do.

    :return: the function that counts the wrapped functions, or ``None``.
    """
    warnings.simplefilter("ignore")
    # The wheel has etc/nova/api-paste.ini there, and Nova's fixtures look beside the package.
    os.environ["OS_DEFAULT__STATE_PATH"] = sys.prefix
    monkey_patch = importlib.import_module("nova.monkey_patch")
    # The tests of release 32 do not call the function; other releases have called it by now.
    getattr(monkey_patch, "patch", bool)()
    for name in PRELOADED:
        importlib.import_module(name)
    keep_schemas()
    share_between_tests()
    if not with_cpu_tiers:
        return None
    ours = importlib.import_module("ours")
    ours.load()
    return ours.count_wrapped


def keep_schemas() -> None:
    """Create Nova's databases in a fork, and keep the schemas that Nova's fixture keeps there.

    The fixture runs all migrations in each fork otherwise.
    """
    schemas = importlib.import_module("nova.tests.fixtures.nova").DB_SCHEMA
    test_case: Any = importlib.import_module("nova.test").TestCase
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            test_case.runTest = lambda _: None
            test_case("runTest").run(testtools.TestResult())
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(dict(schemas), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        schemas.update(pickle.load(pipe))  # noqa: S301  # of our own fork
    os.wait()


def share_between_tests() -> None:
    """Have all tests share what does not differ between them.

    Of the CPU time of Nova's tests of cold migration this saves a quarter.
    """
    spec: Any = importlib.util.spec_from_file_location(SHARED.stem, SHARED)
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    shared.share_all()


def serve(request: Mapping[str, Any], count_wrapped: Any) -> dict[str, Any]:
    """Run a module in a fork; kill the fork after the timeout, or if a test hangs."""
    start = spoke = monotonic()
    output, size = Path(request["output"]), 0
    child = os.fork()
    if child == 0:
        run_and_exit(request, count_wrapped)
    killed = False
    while not (ended := os.wait4(child, os.WNOHANG))[0]:
        now, before = monotonic(), size
        size = output.stat().st_size if output.exists() else 0
        spoke = now if size != before else spoke
        is_late = now - start > request["timeout"] or now - spoke > request["hang"]
        if is_late and not killed:
            os.kill(child, signal.SIGKILL)
            killed = True
        sleep(0.05)
    usage = ended[2]
    return {
        "killed": killed or ended[1] != 0,
        "seconds": round(monotonic() - start, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
    }


def run_and_exit(request: Mapping[str, Any], count_wrapped: Any) -> None:
    """Run the tests of a module in the fork, which then ends without Nova's exit handlers."""
    status, end = 1, os._exit
    try:
        with Path(request["output"]).open("w") as output:
            recorder = Recorder(output)
            os._exit = recorder.survive  # type: ignore[assignment]  # it raises
            for test in tests_of(request["module"], request["tests"], recorder):
                test.run(recorder)
            wrapped = count_wrapped() if count_wrapped else {}
            print(json.dumps({"wrapped": wrapped}), file=output, flush=True)
        status = 0
    finally:
        end(status)


def tests_of(module: str, wanted: Collection[str], recorder: Recorder) -> Iterator[Any]:
    """Yield the tests of a module, as suites of a class so that class fixtures work."""
    loader = unittest.TestLoader()
    try:
        suite = loader.loadTestsFromName(module)
    except Exception as error:
        recorder.write(module, "failed", f"{type(error).__name__}: {error}"[:300])
        return
    tests = list(testtools.iterate_tests(suite))
    # A test with scenarios gets the name of its scenario, in parentheses, when it runs.
    names = {name.partition("(")[0] for name in wanted}
    chosen = [test for test in tests if not wanted or test.id().partition("(")[0] in names]
    print(json.dumps({"tests": [test.id() for test in chosen]}), file=recorder._output, flush=True)
    yield unittest.TestSuite(chosen)


if __name__ == "__main__":
    main(sys.argv[1:])

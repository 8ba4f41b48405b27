"""``tox -e nova-ledger``: Nova's own tests with cpu-tiers, compared with a stock Nova.

docs/contributor/ledger.rst describes the modes and has the results.
"""

import argparse
import hashlib
import json
import logging
import subprocess
import sys
from importlib.metadata import distribution, version
from math import inf
from pathlib import Path
from time import monotonic

from tests.ledger import samples, stock, suites
from tests.ledger.comparison import EXPECTED, read_expectations
from tests.ledger.ledger import Ledger
from tests.ledger.modes import MODES, STOCK, Mode
from tests.ledger.report import document, table
from tests.ledger.results import Results
from tests.ledger.workers import WORKER, WorkerDied, Workers

ROOT = Path(__file__).parents[2]


def folder_of(name: str) -> Path:
    """Return the folder of an installed distribution's package, not the repository's."""
    return Path(str(distribution(name).locate_file(name.replace("-", "_"))))


def digest(mode: Mode) -> str:
    """Return a digest of all that is in the process of a mode beside Nova.

    These are the libraries and, in a mode with cpu-tiers, its code and options.
    """
    content = hashlib.sha256(stock.requirements().encode())
    if not mode.has_cpu_tiers:
        return content.hexdigest()[:16]
    content.update(json.dumps(dict(mode.options)).encode())
    paths = [*sorted(folder_of("cpu-tiers").rglob("*.py")), WORKER.with_name("ours.py")]
    if mode.folds_nodes:
        paths.append(WORKER.with_name("folded.py"))
    for path in paths:
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def commit() -> str:
    """Return the commit of the repository, or ``unknown``."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="nova-ledger", description=__doc__)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--modules", nargs="+", default=(), metavar="PATTERN", help="of modules")
    parser.add_argument("--slice", action="store_true", help="what CI runs")
    parser.add_argument("--minutes", type=float, default=inf, help="end after these minutes")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for a module")
    parser.add_argument("--processes", type=int, default=2, help="modules that run at a time")
    parser.add_argument("--folder", type=Path, default=ROOT / ".ledger", help="of the results")
    parser.add_argument("--report", action="store_true", help="compare, and run nothing")
    options = parser.parse_args(arguments)
    if options.processes < 1:
        parser.error("--processes: at least 1")
    if options.slice:
        options.modes, options.modules = suites.SLICE_MODES, suites.SLICE
    return options


def main(arguments: list[str]) -> int:
    """Run the ledger; return 0, 1 if something is red, or 130 after Ctrl-C."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    options = parse(arguments)
    deadline = monotonic() + 60 * options.minutes
    modes = [mode for name, mode in MODES.items() if name in {STOCK, *options.modes}]
    nova = version("nova")
    stocks = options.folder.resolve() / f"stock-{nova}"
    pythons = {
        mode.name: Path(sys.executable) if mode.has_cpu_tiers else stock.python_of(stocks)
        for mode in modes
    }
    modules = suites.modules(folder_of("nova"), options.modules)
    workers = Workers(pythons=pythons, folder=options.folder.resolve() / "workers")
    ledger = Ledger(
        nova=nova,
        commit=commit(),
        modules=modules,
        modes=modes,
        codes={mode.name: digest(mode) for mode in modes},
        expectations=read_expectations(EXPECTED, nova),
        results=Results(options.folder / "results.jsonl"),
        workers=workers,
        timeout=options.timeout,
        processes=options.processes,
    )
    status = 0
    try:
        if not options.report:
            stock.make(stocks)
            if samples.are_read_by(modules):
                novas = (folder_of("nova"), stock.nova_of(stocks))
                samples.put(nova, stocks.with_name(f"samples-{nova}"), novas)
            ledger.fill(deadline)
    except KeyboardInterrupt:
        status = 130
    except WorkerDied as error:
        logging.error("%s in %s", error, workers.folder)
        status = 1
    finally:
        workers.stop()
    report = ledger.report()
    sys.stdout.write(table(report) + "\n")
    (options.folder / "report.json").write_text(json.dumps(document(report), indent=2) + "\n")
    return status or int(report.is_red)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

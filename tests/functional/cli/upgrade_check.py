"""``cpu-tiers-status upgrade check`` in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def check(conf: Path, *arguments: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("cpu-tiers-status"))]
    result = subprocess.run(
        [*command, "--config-file", str(conf), "upgrade", "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in result.stdout + result.stderr
    return result.returncode, result.stdout


def results(text: str) -> dict[str, tuple[int, Any]]:
    return {c["check"]: (c["result"], c["details"]) for c in json.loads(text)["checks"]}

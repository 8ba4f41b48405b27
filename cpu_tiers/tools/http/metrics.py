"""The metrics that a program shows to Prometheus."""

import math
import re
from collections.abc import Sequence

import urllib3
from urllib3.exceptions import HTTPError

from cpu_tiers.errors import InvalidInput, printable
from cpu_tiers.tools.http.bounds import Bounds, bound_fault, pool_classes

_BOUNDS = Bounds(length=2**24, seconds=10.0)


def read_metrics(url: str, names: Sequence[str]) -> tuple[float, ...]:
    """Return the values of metrics without labels.

    :raises InvalidInput: no answer in time, or an answer without one of the metrics.
    """
    try:
        text = _read(url)
        values = tuple(_value(text, name) for name in names)
    except (HTTPError, OSError, ValueError) as error:
        given = f"no metrics: {bound_fault(error) or printable(str(error))}"
        allowed = "give the URL of the metrics of cpu-tiers host watch on this host"
        raise InvalidInput.of(url, given, allowed) from error
    return values


def _read(url: str) -> str:
    with urllib3.PoolManager(timeout=_BOUNDS.seconds, retries=False) as pool:
        pool.pool_classes_by_scheme = dict(pool_classes(_BOUNDS))
        with pool.request("GET", url, redirect=False, preload_content=False) as answer:
            if answer.status != 200:
                raise ValueError(f"HTTP {answer.status}")
            # Nobody has asked for compression, of which some releases of urllib3 have no bound.
            return answer.read(_BOUNDS.length, decode_content=False).decode()


def _value(text: str, name: str) -> float:
    match = re.search(rf"^{re.escape(name)} (\S+)", text, re.MULTILINE)
    if match is None or not math.isfinite(value := float(match[1])):
        raise ValueError(f"the answer has no {name}")
    return value

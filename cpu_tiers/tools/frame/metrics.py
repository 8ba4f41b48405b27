"""Metrics as values, and their text for Prometheus and for node_exporter's textfile collector.

A file is replaced as a whole: the collector never reads a part of it, and what vanishes has no
metrics after the next run.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cpu_tiers.errors import printable
from cpu_tiers.tools.frame.safe_files import write_output

if TYPE_CHECKING:
    from prometheus_client import Metric

Samples = Iterable[tuple[Sequence[str], float]]
"""The values of a metric by the values of its labels."""


class Metrics(NamedTuple):
    """A metric with its help text.

    :param name: without ``cpu_tiers_``.
    """

    name: str
    text: str
    samples: Samples
    labels: Sequence[str] = ()
    is_counter: bool = False


def single(name: str, text: str, value: float, *, is_counter: bool = False) -> Metrics:
    """Return a metric without labels."""
    return Metrics(name, text, [((), value)], is_counter=is_counter)


def collected(metrics: Iterable[Metrics]) -> "Iterator[Metric]":
    """Yield the metrics as prometheus_client has them."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for each in metrics:
        new_family = CounterMetricFamily if each.is_counter else GaugeMetricFamily
        family = new_family(f"cpu_tiers_{each.name}", each.text, labels=each.labels)
        shown = set[tuple[str, ...]]()
        for labels, value in each.samples:
            texts = tuple(printable(label) for label in labels)
            while texts in shown and texts:  # Prometheus refuses a file with a series twice
                texts = (*texts[:-1], f"{texts[-1]}'")
            shown.add(texts)
            family.add_metric(texts, value)
        yield family


def with_label(metrics: Iterable[Metrics], name: str, value: str) -> Iterator[Metrics]:
    """Yield metrics with a further label, which comes first.

    node_exporter drops a series of a second file that has the names and labels of a first.
    """
    for each in metrics:
        samples = (((value, *labels), number) for labels, number in each.samples)
        yield each._replace(labels=(name, *each.labels), samples=samples)


class _Collector:
    def __init__(self, metrics: Iterable[Metrics]) -> None:
        self._metrics = metrics

    def collect(self) -> "Iterator[Metric]":
        return collected(self._metrics)


def write_metrics_file(path: str, metrics: Iterable[Metrics]) -> None:
    """Write a file that node_exporter, a user of its own, can read whatever the umask is.

    :raises InvalidInput: the file cannot be written.
    """
    write_output(path, metrics_text(metrics), mode=0o644)


def metrics_text(metrics: Iterable[Metrics]) -> bytes:
    """Return the content of a file."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(metrics))
    # Whole numbers, because two amounts of 10,000 hosts make 1 MB.
    return generate_latest(registry).replace(b".0\n", b"\n")

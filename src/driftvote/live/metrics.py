"""Counters of a stream and their export to Prometheus: a file for the textfile collector, or an HTTP port.

Both exports are made from the same `metric_families`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftvote._version import __version__
from driftvote.drift import KINDS
from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.models import LabelModel
from driftvote.models.timelines import bands_of

MAX_CLASSES = 100
"""Classes whose count is exported before the first such label; with more the metrics would be mostly zeros."""


@dataclass
class Counts:
    """Counters that only grow. They are saved with the state, so a restart continues them."""

    lines: int = 0
    blank_lines: int = 0
    malformed_lines: int = 0
    late_lines: int = 0
    unknown_votes: int = 0
    doubtful_rows: int = 0
    tied_rows: int = 0
    verified_rows: int = 0
    warnings: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)  # by kind
    last_event_row: int | None = None
    last_event_at: float | None = None  # Unix time of the detection
    last_line_at: float | None = None

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Counts:
        """Counters from the header of a state; missing ones start at 0, unknown ones are ignored."""
        names = {entry.name for entry in fields(cls)}
        return cls(**{name: value for name, value in saved.items() if name in names})

    def add_event(self, kind: str, row: int) -> None:
        """Count a drift event."""
        self.events[kind] = self.events.get(kind, 0) + 1
        self.last_event_row, self.last_event_at = row, time.time()


@dataclass(frozen=True)
class LabelerStatus:
    """Current estimates of one labeler."""

    name: str
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    coverage: float


@dataclass(frozen=True)
class Snapshot:
    """Everything that metrics and summaries show, taken at one moment."""

    model: str
    rows: int
    window: int
    labelers: tuple[LabelerStatus, ...]
    labels: dict[str, int]
    events: dict[str, int]
    counts: dict[str, Any]
    posts: dict[str, int]
    saved_at: float | None


def take_snapshot(
    model: LabelModel, counts: Counts, posts: dict[str, int] | None = None, saved_at: float | None = None
) -> Snapshot:
    """The present figures of a model and its counters; `posts` are those of a webhook."""
    now = model._current()
    low, high = bands_of(now, len(model.classes), "calibrated", 0.1, 0.1)
    each = zip(model.labelers, now.accuracies[0], low[0], high[0], now.coverage[0], strict=True)
    # Every class and every kind of event has a series from the start: a Prometheus rate over a series that begins
    # with 1 misses the first event.
    return Snapshot(
        model=type(model).__name__,
        rows=model.n_rows,
        window=int(now.windows[0]),
        labelers=tuple(LabelerStatus(name, *(float(value) for value in values)) for name, *values in each),
        labels={str(value): 0 for value in model.classes[:MAX_CLASSES]} | counts.labels,
        events=dict.fromkeys(KINDS, 0) | counts.events,
        counts=asdict(counts),
        posts=posts or {},
        saved_at=saved_at,
    )


Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class MetricFamily:
    """A metric with all its samples; `kind` is counter or gauge."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


_COUNTERS = {
    "lines": "Lines taken from the input.",
    "malformed_lines": "Lines that were refused.",
    "late_lines": "Lines whose time was before that of an earlier line.",
    "unknown_votes": "Votes that are none of the classes, counted as abstentions.",
    "doubtful_rows": "Rows whose label needs review: less probable than --review-below, or tied.",
    "tied_rows": "Rows without a label because the vote was tied.",
    "verified_rows": "Rows with a verified class.",
    "warnings": "Warnings about the labelers, such as near copies of each other.",
}


def metric_families(now: Snapshot) -> list[MetricFamily]:
    """All metrics of a snapshot."""
    found = [
        _gauge("info", "Version and model; always 1.", [({"version": __version__, "model": now.model}, 1.0)]),
        _counter("rows", "Rows labeled.", [({}, now.rows)]),
        *(_counter(name, text, [({}, now.counts[name])]) for name, text in _COUNTERS.items()),
        _counter("labels", "Rows by their label.", _by("label", now.labels)),
        _counter("drift_events", "Drift events by kind.", _by("kind", now.events)),
        _gauge("window_length", "Rows in the current window.", [({}, now.window)]),
        _gauge("labelers", "Labelers seen so far.", [({}, len(now.labelers))]),
        _gauge("labeler_accuracy", "Current accuracy of a labeler when it votes.", _each(now, "accuracy")),
        _gauge("labeler_accuracy_low", "Lower end of the accuracy's 95% band.", _each(now, "accuracy_low")),
        _gauge("labeler_accuracy_high", "Upper end of the accuracy's 95% band.", _each(now, "accuracy_high")),
        _gauge("labeler_coverage", "Share of the window's rows on which a labeler voted.", _each(now, "coverage")),
    ]
    optional = {
        "last_line_timestamp_seconds": ("When the last line arrived.", now.counts["last_line_at"]),
        "last_event_timestamp_seconds": ("When the last drift event was detected.", now.counts["last_event_at"]),
        "last_event_row": ("Row at which the last drift event was detected.", now.counts["last_event_row"]),
        "state_saved_timestamp_seconds": ("When the state was last saved.", now.saved_at),
    }
    found += [_gauge(name, text, [({}, value)]) for name, (text, value) in optional.items() if value is not None]
    if now.posts:
        found.append(_counter("webhook_posts", "Messages to the webhook by result.", _by("result", now.posts)))
    return found


def _counter(name: str, text: str, samples: list[Sample]) -> MetricFamily:
    return MetricFamily(f"driftvote_{name}_total", "counter", text, tuple(samples))


def _gauge(name: str, text: str, samples: list[Sample]) -> MetricFamily:
    return MetricFamily(f"driftvote_{name}", "gauge", text, tuple(samples))


def _by(label: str, counts: dict[str, int]) -> list[Sample]:
    return [({label: key}, value) for key, value in counts.items()]


def _each(now: Snapshot, attribute: str) -> list[Sample]:
    return [({"labeler": labeler.name}, getattr(labeler, attribute)) for labeler in now.labelers]


def format_metrics(now: Snapshot) -> str:
    """The metrics in Prometheus' text exposition format."""
    lines = []
    for family in metric_families(now):
        lines.append(f"# HELP {family.name} {_escape(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples:
            pairs = ",".join(f'{key}="{_escape(text, quotes=True)}"' for key, text in labels.items())
            lines.append(f"{family.name}{'{' + pairs + '}' if pairs else ''} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _escape(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def write_metrics(path: Path, now: Snapshot) -> None:
    """Write the metrics file atomically: the collector may read it at any moment."""
    with whole_file(path) as file:
        file.write(format_metrics(now).encode())


class MetricsServer:
    """Serves the metrics on a port, in a thread of prometheus_client; `snapshot` is what it shows."""

    def __init__(self, port: int, address: str, snapshot: Snapshot) -> None:
        check_metrics_extra()
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        self.snapshot = snapshot
        registry = CollectorRegistry()
        registry.register(_Collector(lambda: self.snapshot))
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as problem:
            why = getattr(problem, "strerror", None) or problem
            raise DriftvoteError(f"--metrics-port {port} on {address}: {why}; choose another") from None
        self.port = int(self._server.server_port)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def check_metrics_extra() -> None:
    """Raise an error if the library that `--metrics-port` needs is not installed."""
    if find_spec("prometheus_client") is None:
        raise MissingExtraError(
            "--metrics-port needs prometheus_client; install it with pip install 'driftvote[metrics]', or write the"
            " metrics to a file with --metrics"
        )


class _Collector:
    """The adapter that prometheus_client asks for metrics."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in metric_families(self._snapshot()):
            labels = list(family.samples[0][0]) if family.samples else []
            kind: Any = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(family.name.removesuffix("_total"), family.help, labels=labels)
            for values, value in family.samples:
                metric.add_metric(list(values.values()), value)
            yield metric

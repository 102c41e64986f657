"""Counters of a stream and their export to Prometheus: a file for the textfile collector, or an HTTP port.

Both exports show what `collect_metrics` returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftvote._version import __version__
from driftvote.drift.events import KINDS
from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.models import LabelModel

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
    questions: int = 0
    warnings: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)  # by kind
    last_event_row: int | None = None
    last_event_at: float | None = None  # Unix time of the detection
    last_line_at: float | None = None

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Counts:
        """Counters from the header of a state; missing ones start at 0, unknown ones are ignored."""
        counts = cls()
        kinds: dict[type, tuple[type, ...]] = {int: (int,), dict: (dict,), type(None): (int, float, type(None))}
        for name, start in vars(cls()).items():
            value = saved.get(name, start)
            numbers = value.values() if isinstance(value, dict) else ()
            if type(value) not in kinds[type(start)] or any(type(number) is not int for number in numbers):
                raise ValueError(f"{name} cannot be {value!r}")
            setattr(counts, name, value)
        return counts

    def add_event(self, kind: str, row: int) -> None:
        """Count a drift event."""
        self.events[kind] = self.events.get(kind, 0) + 1
        self.last_event_row, self.last_event_at = row, time.time()

    def by_label(self, classes: Sequence[Any]) -> dict[str, int]:
        """Rows by label, with a 0 for classes without rows.

        A Prometheus rate misses the first event of a series that begins with 1, so every class and every kind of event
        has a series from the start.
        """
        return {str(value): 0 for value in classes[:MAX_CLASSES]} | self.labels

    def by_kind(self) -> dict[str, int]:
        """Drift events by kind, with a 0 for kinds without events."""
        return dict.fromkeys(KINDS, 0) | self.events


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
    "questions": "Questions asked.",
    "warnings": "Warnings about the labelers, such as near copies of each other.",
}


def collect_metrics(
    model: LabelModel, counts: Counts, posts: dict[str, int] | None = None, saved_at: float | None = None
) -> list[MetricFamily]:
    """The present metrics of a stream; `posts` are those of a webhook, `saved_at` is when the state was saved."""
    low, high = model.bands()

    def each(values: Any) -> list[Sample]:
        pairs = zip(model.labelers, values, strict=False)  # in another thread, a labeler may join meanwhile
        return [({"labeler": name}, float(value)) for name, value in pairs]

    families = [
        _gauge("info", "Version and model; always 1.", [({"version": __version__, "model": type(model).__name__}, 1)]),
        _counter("rows", "Rows labeled.", [({}, model.n_rows)]),
        *(_counter(name, text, [({}, getattr(counts, name))]) for name, text in _COUNTERS.items()),
        _counter("labels", "Rows by their label.", _by("label", counts.by_label(model.classes))),
        _counter("drift_events", "Drift events by kind.", _by("kind", counts.by_kind())),
        _gauge("window_length", "Rows in the current window.", [({}, model.window)]),
        _gauge("labelers", "Labelers seen so far.", [({}, len(model.labelers))]),
        _gauge("labeler_accuracy", "Current accuracy of a labeler when it votes.", each(model.accuracies)),
        _gauge("labeler_accuracy_low", "Lower end of the accuracy's 95% band.", each(low)),
        _gauge("labeler_accuracy_high", "Upper end of the accuracy's 95% band.", each(high)),
        _gauge("labeler_coverage", "Share of the window's rows on which a labeler voted.", each(model.coverage)),
    ]
    if members := model.label_models:
        now = {one.name: one.weight for one in members}
        before = {one.name: one.before_answers for one in members}
        families += [
            _gauge("label_model_weight", "Weight of a label model in the mixture.", _by("label_model", now)),
            _gauge(
                "label_model_weight_before_answers",
                "Weight of a label model by the votes alone, without verified rows.",
                _by("label_model", before),
            ),
        ]
    optional = {
        "last_line_timestamp_seconds": ("When the last line arrived.", counts.last_line_at),
        "last_event_timestamp_seconds": ("When the last drift event was detected.", counts.last_event_at),
        "last_event_row": ("Row at which the last drift event was detected.", counts.last_event_row),
        "state_saved_timestamp_seconds": ("When the state was last saved.", saved_at),
    }
    families += [_gauge(name, text, [({}, value)]) for name, (text, value) in optional.items() if value is not None]
    if posts:
        families.append(_counter("webhook_posts", "Messages to the webhook by result.", _by("result", posts)))
    return families


def _counter(name: str, text: str, samples: list[Sample]) -> MetricFamily:
    return MetricFamily(f"driftvote_{name}_total", "counter", text, tuple(samples))


def _gauge(name: str, text: str, samples: list[Sample]) -> MetricFamily:
    return MetricFamily(f"driftvote_{name}", "gauge", text, tuple(samples))


def _by(label: str, counts: Mapping[str, float]) -> list[Sample]:
    return [({label: key}, value) for key, value in counts.items()]


def format_metrics(families: list[MetricFamily]) -> str:
    """The metrics in Prometheus' text exposition format."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples:
            pairs = ",".join(f'{key}="{_escape(text, quotes=True)}"' for key, text in labels.items())
            lines.append(f"{family.name}{'{' + pairs + '}' if pairs else ''} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _escape(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def write_metrics(path: Path, families: list[MetricFamily]) -> None:
    """Write the metrics file atomically: the collector may read it at any moment."""
    with whole_file(path) as file:
        file.write(format_metrics(families).encode())


class MetricsServer:
    """Serves `families` on a port, in a thread of prometheus_client."""

    def __init__(self, port: int, address: str, families: list[MetricFamily]) -> None:
        check_metrics_extra()
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        self.families = families
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as problem:
            why = getattr(problem, "strerror", None) or problem
            raise DriftvoteError(f"--metrics-port {port} on {address}: {why}; choose another") from None
        self.port = int(self._server.server_port)

    def collect(self) -> Iterator[Any]:
        """The metrics as prometheus_client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in self.families:
            labels = list(family.samples[0][0]) if family.samples else []
            kind: Any = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(family.name.removesuffix("_total"), family.help, labels=labels)
            for values, value in family.samples:
                metric.add_metric(list(values.values()), value)
            yield metric

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

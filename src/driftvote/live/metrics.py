"""The figures for Prometheus: as a file for the node exporter's textfile collector, or served on a port.

Both show the same families, made in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import whole_file
from driftvote.live.figures import Figures

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class Family:
    """A metric with all its samples; `kind` is counter or gauge."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


_COUNTED = {
    "lines": "Lines taken from the input.",
    "malformed_lines": "Lines that could not be taken.",
    "late_lines": "Lines whose time was before that of an earlier line.",
    "unknown_votes": "Votes without a meaning, counted as none.",
    "doubtful_rows": "Rows whose label needs review: less probable than --review-below, or tied.",
    "tied_rows": "Rows without a label because the vote was tied.",
    "verified_rows": "Rows whose class somebody verified.",
    "warnings": "Warnings about the panel, such as labelers that are near copies.",
}


def families(found: Figures) -> list[Family]:
    """All metrics."""
    made = [
        _gauge("info", "Version and model; always 1.", [({"version": found.version, "model": found.model}, 1.0)]),
        _counter("rows", "Rows labeled.", [({}, found.rows)]),
        *(_counter(name, said, [({}, found.counts[name])]) for name, said in _COUNTED.items()),
        _counter("labels", "Rows by their label.", _by("label", found.labels)),
        _counter("drift_events", "Drift events by kind.", _by("kind", found.events)),
        _gauge("window_length", "How many of the last rows count now.", [({}, found.window)]),
        _gauge("labelers", "Labelers that have been named.", [({}, len(found.labelers))]),
        _gauge("labeler_accuracy", "How often a labeler is right when it votes, now.", _each(found, "accuracy")),
        _gauge("labeler_accuracy_low", "Lower end of the accuracy's 95% band.", _each(found, "accuracy_low")),
        _gauge("labeler_accuracy_high", "Upper end of the accuracy's 95% band.", _each(found, "accuracy_high")),
        _gauge("labeler_coverage", "Share of the window's rows on which a labeler voted.", _each(found, "coverage")),
        _gauge("labeler_weight", "What a vote of a labeler counts, now.", _each(found, "weight")),
    ]
    moments = {
        "last_line_timestamp_seconds": ("When the last line came.", found.counts["last_line_at"]),
        "last_event_timestamp_seconds": ("When the last drift event was noticed.", found.counts["last_event_at"]),
        "last_event_row": ("Row at which the last drift event was noticed.", found.counts["last_event_row"]),
        "state_saved_timestamp_seconds": ("When the state was saved last.", found.saved_at),
    }
    made += [_gauge(name, said, [({}, value)]) for name, (said, value) in moments.items() if value is not None]
    if found.posts:
        made.append(
            _counter("webhook_posts", "Messages to the webhook by what became of them.", _by("result", found.posts))
        )
    return made


def _counter(name: str, said: str, samples: Any) -> Family:
    return Family(f"driftvote_{name}_total", "counter", said, tuple(samples))


def _gauge(name: str, said: str, samples: Any) -> Family:
    return Family(f"driftvote_{name}", "gauge", said, tuple(samples))


def _by(label: str, counts: dict[str, int]) -> list[Sample]:
    return [({label: key}, value) for key, value in counts.items()]


def _each(found: Figures, what: str) -> list[Sample]:
    return [({"labeler": labeler.name}, getattr(labeler, what)) for labeler in found.labelers]


def exposition(found: Figures) -> str:
    """The text exposition format of Prometheus."""
    lines = []
    for family in families(found):
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples:
            shown = ",".join(f'{key}="{_escaped(text, quotes=True)}"' for key, text in labels.items())
            lines.append(f"{family.name}{'{' + shown + '}' if shown else ''} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def write_metrics(path: Path, found: Figures) -> None:
    """Write the file whole, in the folder where it stays: the collector may read at any moment."""
    with whole_file(path) as file:
        file.write(exposition(found).encode())


class Served:
    """The figures on a port, in a thread of prometheus_client's; it shows the last look it was given."""

    def __init__(self, port: int, address: str, found: Figures) -> None:
        check_extra()
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        self.found = found
        registry = CollectorRegistry()
        registry.register(_Collector(lambda: self.found))
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as problem:
            why = getattr(problem, "strerror", None) or problem
            raise DriftvoteError(f"--metrics-port {port} on {address}: {why}; choose another") from None
        self.port = int(self._server.server_port)
        self.address = address

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def check_extra() -> None:
    """Is the library for `--metrics-port` there?"""
    if find_spec("prometheus_client") is None:
        raise MissingExtraError(
            "--metrics-port needs prometheus_client; install it with pip install 'driftvote[metrics]', or write the"
            " metrics to a file with --metrics"
        )


class _Collector:
    """What prometheus_client asks for metrics."""

    def __init__(self, look: Callable[[], Figures]) -> None:
        self._look = look

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for family in families(self._look()):
            names = list(family.samples[0][0]) if family.samples else []
            kind: Any = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            made = kind(family.name.removesuffix("_total"), family.help, labels=names)
            for labels, value in family.samples:
                made.add_metric(list(labels.values()), value)
            yield made

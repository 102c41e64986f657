"""Tables of the quality page: header and rows."""

from __future__ import annotations

from typing import Any

from driftvote.streams.scenarios import SCENARIOS
from experiments.paper.tables import Row
from experiments.quality.models import DEFAULT, MAJORITY, PAPER_ZERO, TRUE_WEIGHTS
from experiments.quality.verdicts import best_reference
from experiments.quality.verified import losses

Streams = dict[str, Any]
Table = tuple[Row, list[Row]]


def _models(streams: Streams) -> list[str]:
    return list(next(iter(streams.values()))["models"])


def _size(entry: dict[str, Any]) -> str:
    return f"{entry['rows']:,} x {entry['labelers']}, {entry['classes']}"


def _best_in_bold(entry: dict[str, Any], models: list[str], measure: str) -> list[str]:
    values = [entry["models"][name][measure] for name in models]
    best = max(value for value, name in zip(values, models, strict=True) if name != TRUE_WEIGHTS)
    return [
        f"**{value:.2f}**" if f"{value:.2f}" == f"{best:.2f}" and name != TRUE_WEIGHTS else f"{value:.2f}"
        for value, name in zip(values, models, strict=True)
    ]


def _gain(entry: dict[str, Any]) -> str:
    found = entry["models"][DEFAULT]
    return f"{found['gain']:+.2f} ({found['gain_from']:+.2f} to {found['gain_to']:+.2f})"


def _accuracies(streams: Streams, last: str) -> Table:
    models = _models(streams)
    header = ["stream", "rows x labelers, classes", *models, last]
    rows: list[Row] = [
        [name, _size(entry), *_best_in_bold(entry, models, "accuracy"), _gain(entry)] for name, entry in streams.items()
    ]
    means = [_mean(streams, model, "accuracy") for model in models]
    return header, [*rows, ["mean", "", *means, f"{_mean(streams, DEFAULT, 'gain'):+.2f}"]]


def _mean(streams: Streams, model: str, measure: str) -> float:
    values = [entry["models"][model][measure] for entry in streams.values()]
    return float(sum(values) / len(values))


def plain(streams: Streams) -> Table:
    return _accuracies(streams, "gain of the default")


def permuted(streams: Streams) -> Table:
    return _accuracies(streams, "gain of the default")


def f1(streams: Streams) -> Table:
    models = _models(streams)
    rows: list[Row] = [[name, *_best_in_bold(entry, models, "f1")] for name, entry in streams.items()]
    return ["F1 (macro)", *models], rows


def shuffled(streams: Streams) -> Table:
    header, rows = _accuracies(streams, "gain of the default")
    behind = []
    for entry in streams.values():
        reference, best = best_reference(entry)
        behind.append([f"{best - entry['models'][DEFAULT]['accuracy']:+.2f}", reference])
    return [*header, "behind", "the best"], [row + gap for row, gap in zip(rows, [*behind, ["", ""]], strict=True)]


def synthetic(streams: Streams) -> Table:
    header, rows = _accuracies(streams, "gain of the default")
    told = [*(SCENARIOS[name].drift for name in streams), ""]
    header[1] = "what drifts"
    return header, [[row[0], drift, *row[2:]] for row, drift in zip(rows, told, strict=True)]


def errors(streams: Streams) -> Table:
    """Error of the accuracies; majority estimates none, and the true weights have none."""
    models = [name for name in _models(streams) if name not in (MAJORITY, TRUE_WEIGHTS)]
    rows: list[Row] = [
        [name, *(f"{entry['models'][model]['accuracy_error']:.4f}" for model in models)]
        for name, entry in streams.items()
    ]
    return ["error of the accuracies", *models], rows


_PROBABILITIES = {"log_loss": "log-loss", "calibration": "calibration", "auroc": "AUROC", "review": "review"}


def probabilities(streams: Streams) -> Table:
    models = (DEFAULT, PAPER_ZERO, MAJORITY)
    header = ["stream", *(f"{title}, {model}" for title in _PROBABILITIES.values() for model in models)]
    rows: list[Row] = []
    for name, entry in streams.items():
        values = [entry["models"][model][measure] for measure in _PROBABILITIES for model in models]
        rows.append([name, *("" if value is None else f"{value:.3f}" for value in values)])
    return header, rows


def verified(streams: Streams) -> Table:
    shares = list(next(iter(streams.values())))
    header: Row = ["stream", *(f"{100 * float(share):g}%" for share in shares), "gain", "ever lost"]
    lost = losses(streams)
    rows: list[Row] = []
    for name, entry in streams.items():
        means = [entry[share]["accuracy"] for share in shares]
        rows.append([name, *(f"{mean:.2f}" for mean in means), f"{means[-1] - means[0]:+.2f}", f"{lost[name]:.2f}"])
    return header, rows


def unanimous(streams: Streams) -> Table:
    rows: list[Row] = [[name, entry["unanimous"], entry["unanimous_wrong"]] for name, entry in streams.items()]
    return ["stream", "unanimous rows (%)", "unanimous and wrong (%)"], rows

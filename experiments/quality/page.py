"""The page docs/quality.md with its tables and figures, from docs/quality.json alone."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from driftvote.streams import SCENARIOS
from experiments.output import BLACK, BLUE, COLOURS, GREY, ORANGE, Cells, Table, figure, markdown
from experiments.quality.measures import BINS, BLOCKS
from experiments.quality.models import ALL_PAST_DEFAULT, DEFAULT, MAJORITY, PAPER_ZERO, TRUE_WEIGHTS
from experiments.quality.streams import PERMUTED, PLAIN, SHUFFLED, SYNTHETIC
from experiments.quality.verdicts import FAIL, MISSING, PASS, best_reference, losses
from experiments.quality.work import DELAY
from experiments.runs import write_json

Streams = dict[str, Any]

# The paper's method without randomness: with it the method falls so far behind on sparse votes that nothing else could
# be read.
SHOWN = {ALL_PAST_DEFAULT: COLOURS[2], PAPER_ZERO: BLUE, DEFAULT: ORANGE}
CURVES = {MAJORITY: BLACK, PAPER_ZERO: BLUE, DEFAULT: ORANGE}
CAPTIONS = {
    "quality-gain": (PLAIN, "Gain over majority on each real stream, with 95% confidence intervals."),
    "quality-permuted": (PERMUTED, "Gain over majority when labelers change places."),
    "quality-shuffled": (SHUFFLED, "Gain over majority in random order, where there is nothing to adapt to."),
    "quality-errors": (SYNTHETIC, "Error of the estimated accuracies, by scenario; to the left is better."),
    "quality-reliability": (
        "probabilities",
        "Rows by the probability of their label: the share that is right. On the dotted line, it is what was said.",
    ),
}

INTRO = """How often the labels are right, on real vote streams and on simulated ones; the models see no true label.
This page is generated from `quality.json` beside it; both are made anew by

```
make quality              # every model on every stream; what has not changed since the last time is not run again
```

A model takes part by one line in `experiments/quality/models.py`, a stream by a table in `streams/` of the data folder
(a column for each labeler, empty cells abstain, the last column is `gold`)."""

NOTES = {
    "verdicts": """One configuration for all: `AdaptiveLabelModel()` as it comes, given nothing but the number of
classes.""",
    PLAIN: """Accuracy in per cent, the best model of each row in bold. *Gain* is over the majority of each row,
abstentions ignored, with a 95% confidence interval. Models named after a window use the default's estimator on a window
that does not adapt. Basketball's file holds all positives first, then all negatives: its drift is not natural.""",
    PERMUTED: """The paper's streams with the labelers' names shuffled anew at one row in a thousand: drift that no
labeler escapes and that majority does not notice. Means over seeds.""",
    SHUFFLED: """In random order nothing drifts, so adapting can only lose. *Behind* is the distance to the best of
majority and all the past, by the paper's estimator or by the default's. Means over seeds.""",
    SYNTHETIC: """Streams drawn by `driftvote.streams.scenario(name)`, whose truth is known. *True weights* is the vote
weighted by the true accuracies, which nobody has; it takes the classes for equally likely, which they are not in
*class-balance*. Labelers err independently given the class, except in *copies*: there some repeat another, their errors
are shared, and agreement takes them for the best. In *together* all labelers drift side by side: their weights stay
equal, so there is nothing to win by adapting. Means over seeds.""",
    "probabilities": f"""Can the probabilities be believed, and do they find the rows worth a second look? *Calibration*
is the expected calibration error ({BINS} bins; 0 is perfect). *AUROC* is the chance that a row labeled right has a
higher probability than one labeled wrong (0.5 is useless). *Review* is the share of all errors that are among the 10%
of rows with the lowest probability (0.1 is useless).""",
    "verified": f"""Somebody verifies so many rows, drawn at random, {DELAY} rows after they were labeled
(`model.feedback`); accuracy of the labels as they came out, before. *Ever lost* is the most that accuracy fell from a
smaller share to a larger one. Means over draws. See [verified labels](feedback.md).""",
    "unanimous": """A unanimous row gets the label that everybody voted for. Where they are all wrong the label is
wrong, too: the last column is the most that this promise can cost.""",
}

HOW = f"""- **Ties.** A row whose label is a tie counts one part for each of the tied classes: 1/2 with two. Where a
  model draws ties at random, the same is counted and not the luck of the draw. A row without votes is a tie of all
  classes.
- **F1** is the mean over the classes.
- **Log-loss** takes probabilities to be at least 10⁻⁶. Majority's probabilities are the shares of the votes.
- **Confidence intervals** of the gain come from {BLOCKS} blocks of time, because neighbouring rows are not independent.
  Several seeds make them narrower only where a seed draws other rows (AwA2, simulated streams); elsewhere what differs
  between seeds is added.
- **Error of the accuracies** is the mean over rows and labelers of |estimated - true| accuracy when voting.
- **The paper's rule**, for the ratio of errors, is the published method with or without its random votes for
  abstentions, whichever is closer to the truth in that scenario.
  A scenario counts as worse from a ratio of 1.005 on, 1.01 in two decimals.
- **Many classes.** How far the labels are behind the true weights depends on how long a regime lasts. The range of the
  accuracies (0.4 to 0.85) and the 40,000 rows were picked, among several, to come near earlier figures of such a
  stream; with half the rows the gap of the paper's rule is about half as large again, and near the limit of 0.3.
- **Cost** is the median ratio of the times of the default model and of the paper's estimator, taking turns in one
  process."""


def publish(results: dict[str, Any], folder: Path) -> None:
    """Write quality.json, quality.md and figures/ into a folder."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    short: dict[str, Any] = _round(_drop_curves(results))
    write_json(folder / "quality.json", short)
    with tempfile.TemporaryDirectory() as place:
        drawn = draw(short, Path(place))
        for name in drawn:
            shutil.copyfile(Path(place) / f"{name}.png", folder / "figures" / f"{name}.png")
    (folder / "quality.md").write_text(page(short, drawn), encoding="utf-8")


def _drop_curves(results: dict[str, Any]) -> dict[str, Any]:
    """The results without the reliability curves that are not drawn."""

    def keep(group: str, model: str, found: dict[str, Any]) -> dict[str, Any]:
        drawn = group == PLAIN and model in CURVES
        return {key: value for key, value in found.items() if key != "curve" or drawn}

    streams = {
        group: {
            name: entry | {"models": {model: keep(group, model, found) for model, found in entry["models"].items()}}
            for name, entry in entries.items()
        }
        for group, entries in results["streams"].items()
    }
    return results | {"streams": streams}


def _round(value: Any) -> Any:
    """The same with six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _round(part) for key, part in value.items()}
    return [_round(part) for part in value] if isinstance(value, list) else value


def page(results: dict[str, Any], drawn: list[str]) -> str:
    """The whole page as Markdown."""
    streams = results["streams"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = ["# Label quality", INTRO]
    if results["limit"] is not None:
        parts.append(f"**Only the first {results['limit']:,} rows of each stream: the verdicts say nothing.**")
    parts += [f"Made with {versions}.", _verdict_section(results)]

    def add(title: str, key: str, *tables: Table) -> None:
        pictures = [
            f"![{caption}](figures/{name}.png)\n\n*{caption}*"
            for name, (section, caption) in CAPTIONS.items()
            if section == key and name in drawn
        ]
        parts.extend([f"## {title}", NOTES[key], *pictures, *(markdown(*table) for table in tables)])

    if PLAIN in streams:
        add("Real streams", PLAIN, accuracy_table(streams[PLAIN]), f1_table(streams[PLAIN]))
    if PERMUTED in streams:
        add("Labelers that change places", PERMUTED, accuracy_table(streams[PERMUTED]))
    if SHUFFLED in streams:
        add("Controls: the same rows, shuffled", SHUFFLED, control_table(streams[SHUFFLED]))
    if SYNTHETIC in streams:
        add("Simulated drift", SYNTHETIC, scenario_table(streams[SYNTHETIC]), error_table(streams[SYNTHETIC]))
    if PLAIN in streams:
        add("Probabilities", "probabilities", probability_table(streams[PLAIN]))
        if results.get("verified"):
            add("Verified rows", "verified", verified_table(results["verified"]))
        add("Unanimous rows", "unanimous", unanimous_table(streams[PLAIN]))
    models = [[name, f"`{shown}`"] for name, shown in results["models"].items()]
    parts += ["## The models", markdown(["name", "settings, for two classes"], models), "## How it is measured", HOW]
    return "\n\n".join(parts) + "\n"


def _verdict_section(results: dict[str, Any]) -> str:
    found = [verdict["verdict"] for verdict in results["verdicts"]]
    count = ", ".join(f"{found.count(kind)} {kind.strip('*')}" for kind in (PASS, FAIL, MISSING))
    rows = [[v["statement"], v["target"], v["measured"], v["verdict"], v["note"]] for v in results["verdicts"]]
    table = markdown(["the default model", "must be", "is", "", ""], rows)
    return f"## What must hold\n\n{NOTES['verdicts']} {count[0].upper() + count[1:]}.\n\n{table}"


def _models(streams: Streams) -> list[str]:
    return list(next(iter(streams.values()))["models"])


def _best_in_bold(entry: dict[str, Any], models: list[str], measure: str) -> list[str]:
    shown = {name: f"{entry['models'][name][measure]:.2f}" for name in models}
    best = max((value for name, value in shown.items() if name != TRUE_WEIGHTS), key=float)
    return [f"**{value}**" if value == best and name != TRUE_WEIGHTS else value for name, value in shown.items()]


def accuracy_table(streams: Streams) -> Table:
    models = _models(streams)
    rows: list[Cells] = []
    for name, entry in streams.items():
        size = f"{entry['rows']:,} x {entry['labelers']}, {entry['classes']}"
        found = entry["models"][DEFAULT]
        gain = f"{found['gain']:+.2f} ({found['gain_from']:+.2f} to {found['gain_to']:+.2f})"
        rows.append([name, size, *_best_in_bold(entry, models, "accuracy"), gain])
    means = [_mean(streams, model, "accuracy") for model in models]
    header = ["stream", "rows x labelers, classes", *models, "gain of the default"]
    return header, [*rows, ["mean", "", *means, f"{_mean(streams, DEFAULT, 'gain'):+.2f}"]]


def _mean(streams: Streams, model: str, measure: str) -> float:
    values = [entry["models"][model][measure] for entry in streams.values()]
    return float(sum(values) / len(values))


def f1_table(streams: Streams) -> Table:
    models = _models(streams)
    return ["F1 (macro)", *models], [[name, *_best_in_bold(entry, models, "f1")] for name, entry in streams.items()]


def control_table(streams: Streams) -> Table:
    header, rows = accuracy_table(streams)
    for row, entry in zip(rows, streams.values(), strict=False):
        reference, best = best_reference(entry)
        row += [f"{best - entry['models'][DEFAULT]['accuracy']:+.2f}", reference]
    rows[-1] += ["", ""]
    return [*header, "behind", "the best"], rows


def scenario_table(streams: Streams) -> Table:
    header, rows = accuracy_table(streams)
    header[1] = "what drifts"
    for row, name in zip(rows, streams, strict=False):
        row[1] = SCENARIOS[name].drift
    return header, rows


def error_table(streams: Streams) -> Table:
    """Error of the accuracies; majority estimates none, and the true weights have none."""
    models = [name for name in _models(streams) if name not in (MAJORITY, TRUE_WEIGHTS)]
    rows: list[Cells] = [
        [name, *(f"{entry['models'][model]['accuracy_error']:.4f}" for model in models)]
        for name, entry in streams.items()
    ]
    return ["error of the accuracies", *models], rows


def probability_table(streams: Streams) -> Table:
    titles = {"log_loss": "log-loss", "calibration": "calibration", "auroc": "AUROC", "review": "review"}
    models = (DEFAULT, PAPER_ZERO, MAJORITY)
    rows: list[Cells] = []
    for name, entry in streams.items():
        values = [entry["models"][model][measure] for measure in titles for model in models]
        rows.append([name, *("" if value is None else f"{value:.3f}" for value in values)])
    return ["stream", *(f"{title}, {model}" for title in titles.values() for model in models)], rows


def verified_table(streams: Streams) -> Table:
    shares = list(next(iter(streams.values())))
    lost = losses(streams)
    rows: list[Cells] = []
    for name, entry in streams.items():
        means = [entry[share]["accuracy"] for share in shares]
        rows.append([name, *(f"{mean:.2f}" for mean in means), f"{means[-1] - means[0]:+.2f}", f"{lost[name]:.2f}"])
    return ["stream", *(f"{100 * float(share):g}%" for share in shares), "gain", "ever lost"], rows


def unanimous_table(streams: Streams) -> Table:
    rows: list[Cells] = [[name, entry["unanimous"], entry["unanimous_wrong"]] for name, entry in streams.items()]
    return ["stream", "unanimous rows (%)", "unanimous and wrong (%)"], rows


def draw(results: dict[str, Any], folder: Path) -> list[str]:
    """Draw what the results hold; the names of the figures."""
    streams, drawn = results["streams"], []
    for name, (section, caption) in CAPTIONS.items():
        group = PLAIN if section == "probabilities" else section
        if group not in streams:
            continue
        if name == "quality-errors":
            _draw_errors(streams[group], folder)
        elif name == "quality-reliability":
            _draw_reliability(streams[group], folder)
        else:
            _draw_gains(streams[group], folder, name, caption.split(",")[0].rstrip("."))
        drawn.append(name)
    return drawn


def _draw_gains(streams: Streams, folder: Path, name: str, title: str) -> None:
    names = list(streams)
    with figure(folder, name, figsize=(8, 1.6 + 0.36 * len(names))) as axes:
        for place, (model, colour) in enumerate(SHOWN.items()):
            found = [streams[stream]["models"][model] for stream in names]
            gains, errors = [row["gain"] for row in found], [row["gain_to"] - row["gain"] for row in found]
            lines = [line - 0.2 * (place - 1) for line in range(len(names))]
            style = {"fmt": "o", "markersize": 6 if model == DEFAULT else 4, "capsize": 2, "color": colour}
            axes.errorbar(gains, lines, xerr=errors, label=model, **style)
        _label_rows(axes, names)
        axes.axvline(0, color=BLACK, linewidth=1)
        axes.set(xlabel="points above majority", title=title)
        axes.legend(loc="best", fontsize=9)


def _label_rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _draw_errors(streams: Streams, folder: Path) -> None:
    names = list(streams)
    with figure(folder, "quality-errors", figsize=(8, 1.6 + 0.36 * len(names))) as axes:
        for model, colour in SHOWN.items():
            errors = [streams[name]["models"][model]["accuracy_error"] for name in names]
            size = 7 if model == DEFAULT else 5
            axes.plot(errors, range(len(names)), "o", color=colour, markersize=size, label=model)
        _label_rows(axes, names)
        axes.set_xscale("log")
        axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
        axes.minorticks_off()
        axes.set(xlabel="mean error of an accuracy", title="Error of the estimated accuracies")
        axes.legend(loc="best", fontsize=9)


def _draw_reliability(streams: Streams, folder: Path) -> None:
    names = list(streams)
    across = min(5, len(names))
    down = -(-len(names) // across)
    size = (2.3 * across, 2.3 * down + 0.5)
    with figure(folder, "quality-reliability", nrows=down, ncols=across, figsize=size, squeeze=False) as axes:
        for panel in axes.flat[len(names) :]:
            panel.set_axis_off()
        for panel, (name, entry) in zip(axes.flat, streams.items(), strict=False):
            panel.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
            for model, colour in CURVES.items():
                curve = entry["models"][model]["curve"]
                # A bin with a handful of rows says nothing about what is said in it.
                solid = [row for row in zip(*curve.values(), strict=True) if row[0] >= 0.005 * entry["rows"]]
                panel.plot([r[1] for r in solid], [r[2] for r in solid], "o-", color=colour, markersize=3, label=model)
            panel.set(xlim=(1 / entry["classes"] - 0.05, 1.02), ylim=(0, 1.02))
            panel.set_title(name, fontsize=9)
        axes[0, 0].set_ylabel("share right")
        axes[-1, 0].set_xlabel("probability said")
        lines, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(lines, labels, loc="outside lower center", ncols=len(CURVES))

"""The page docs/quality.md with its tables and its figure, from docs/quality.json alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from textwrap import fill
from typing import Any

from driftvote.streams import SCENARIOS
from experiments.output import BLUE, GREY, ORANGE, Cells, Table, figure, markdown
from experiments.quality.checks import FORMER, REVIEW_LIFT, answer_gains, check_all, gains_of
from experiments.quality.models import DEFAULT
from experiments.quality.peer_program import REFIT
from experiments.quality.questions import ASK, PLANS, STRETCH
from experiments.quality.questions import ROWS as QUESTION_ROWS
from experiments.quality.scoring import BINS, BLOCK, CLASS_SORTED, CLIP, DRAWS, summarize
from experiments.quality.simulated import FIRST_ROWS, LABELERS, RARE_ROWS, SHARES
from experiments.quality.suite import PARTS
from experiments.runs import Numbers, write_json

FIGURE, QUESTIONS_FIGURE = "quality-gain", "quality-questions"
EXAMPLE = "elec2_rules"
MARKS = ("<!-- figures: made by `make quality` -->", "<!-- end of figures -->")
FORMER_NAME = "the default of version 0.2.0"
SHOWN_RANGE = (-8.0, 12.0)

INTRO = """How often the labels are right, against a plain majority vote and against label models of other projects. No
model sees a true label. The page and `quality.json` beside it are made by

```
make quality                                              # everything, peers included, about 40 minutes
python -m experiments.quality --only streams,rare,random  # some parts; what has not changed is not run again
```"""

HOW = f"""- **Streams.** Real votes with gold labels: crowds, panels of language models, labeling functions,
  sensors, forecasters, frozen classifiers. Every stream whole and in its order. Each model is one
  configuration, given nothing but the votes and the number of classes; the default labels each row when
  it comes.
- **Gain**: per cent of the rows labeled right, minus that of the majority of each row's votes. Abstentions are
  ignored; a tied majority counts by its share (1/2 with two classes); a row that a model leaves unlabeled counts as
  its majority does.
- **Clipped mean**: each gain is cut at +{CLIP:g} first, so that a few streams do not decide. **Loss**: the mean of
  the negative gains, 0 where there is none. **Worst**: the lowest gain; Basketball, whose file is sorted by class,
  is left out there.
- **Intervals**: 95%, from {DRAWS:,} draws of blocks of {BLOCK} consecutive rows (shorter ones in streams below
  1,500 rows), because rows come in runs.
- **Peers** run in environments of their own, with their defaults, and see the whole stream before they label it.
  The patient user fits Snorkel's LabelModel after every {REFIT:,} rows to all rows so far and labels the next
  {REFIT:,} with it; before the first fit it is the majority. A tied or missing probability counts as unlabeled, a
  stream on which a peer fails as majority. crowd-kit's Dawid-Skene stops after two or three steps on most streams,
  by its own rule. The paper's method draws at random: the mean of two seeds.
- **Calibration**: expected calibration error, {BINS} bins of the label's probability, rows with at least one vote.
  It is compared with that of the vote share, the share of a row's votes that the majority has.
- **Review**: how many times their share of the errors the least certain 10% of the rows hold. Where half of the
  labels are wrong it can be 2 at most. Calibrated probabilities can reach (1 - 1/K) / (share of wrong labels), because
  the likeliest of K classes has probability 1/K at least.
- **Rare classes**: {RARE_ROWS:,} rows, the first {FIRST_ROWS} of which do not count; means over 4 seeds at least, 24
  where it is close. Runs of 5,000 rows: 20,000 rows.
- **Random panels**: 2 to 10 classes of any balance, 3 to 20 independent labelers, 150 to 8,000 rows, any coverage;
  every labeler votes for the true class more often than for any other, and is a tenth of the way from chance to
  perfect at least. `python -m experiments.quality.simulated SEED` measures one of them again.
- **The former default** is that of version 0.2.0; its figures are in `experiments/quality/former_default.json`.
  Cost is CPU time, both versions taking turns."""


def publish(results: Numbers, folder: Path) -> None:
    """Write quality.json, quality.md and the figure into a folder."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    short: Numbers = round_numbers(results)
    write_json(folder / "quality.json", short)
    if "streams" in short:
        with tempfile.TemporaryDirectory() as place:
            draw(short["streams"], Path(place))
            shutil.copyfile(Path(place) / f"{FIGURE}.png", folder / "figures" / f"{FIGURE}.png")
    if short.get("questions"):
        with tempfile.TemporaryDirectory() as place:
            draw_questions(short, Path(place))
            shutil.copyfile(Path(place) / f"{QUESTIONS_FIGURE}.png", folder / "figures" / f"{QUESTIONS_FIGURE}.png")
        beside = folder / "questions.md"
        if beside.exists():
            beside.write_text(fill_in_figures(beside.read_text(encoding="utf-8"), short), encoding="utf-8")
    (folder / "quality.md").write_text(page(short), encoding="utf-8")


def round_numbers(value: Any) -> Any:
    """The same with five digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: round_numbers(part) for key, part in value.items()}
    return [round_numbers(part) for part in value] if isinstance(value, list | tuple) else value


def page(results: Numbers) -> str:
    """The whole page as Markdown."""
    parts = ["# Label quality", INTRO]
    if results["limit"] is not None:
        parts.append(f"**Only the first {results['limit']:,} rows of each stream: the figures say nothing.**")
    if results.get("earlier"):
        names = ", ".join(f"`{part}`" for part in results["earlier"])
        parts.append(f"**Measured before the last change of the model, and not yet again:** {names}.")
    if "streams" in results:
        parts += ["## What to expect", expect(results), f"![{title(results['streams'])}](figures/{FIGURE}.png)"]
        parts += ["## Label models compared", compare_text(results), markdown(*model_table(results))]
    parts += ["## What must hold", check_text(results)]
    if "streams" in results:
        parts += ["## Stream by stream", STREAMS_NOTE, review_text(results["streams"])]
        parts += [markdown(*stream_table(results["streams"]))]
    simulated: dict[str, tuple[str, str, Callable[[Any], Table]]] = {
        "rare": ("Rare classes", RARE_NOTE, rare_table),
        "drift": ("Simulated drift", DRIFT_NOTE, drift_table),
    }
    for part, (heading, note, table) in simulated.items():
        if results.get(part):
            parts += [f"## {heading}", note, markdown(*table(results[part]))]
    if results.get("questions"):
        parts += ["## Twenty questions", QUESTIONS_NOTE, markdown(*question_table(results))]
        parts += [f"![{questions_title(results)}](figures/{QUESTIONS_FIGURE}.png)"]
        parts += [DRIFT_QUESTIONS_NOTE, markdown(*drift_question_table(results["questions"]["drift"]))]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts += ["## How it is measured", HOW, f"Made with {versions}."]
    return "\n\n".join(parts) + "\n"


def verdict_of(entry: Numbers) -> int:
    """1 if a stream gains, -1 if it loses, 0 if its interval holds 0."""
    return int(entry["low"] > 0) - int(entry["high"] < 0)


def count_verdicts(streams: Numbers) -> tuple[int, int, int]:
    """Streams that gain, that show no difference, that lose."""
    found = [verdict_of(entry) for entry in streams.values()]
    return found.count(1), found.count(0), found.count(-1)


def title(streams: Numbers) -> str:
    """The message of the figure."""
    better, same, worse = count_verdicts(streams)
    return (
        f"Against a majority vote, AdaptiveLabelModel() is right more often on {better} of {len(streams)} streams, "
        f"less often on {worse}; {same} show no clear difference"
    )


def expect(results: Numbers) -> str:
    """A paragraph that says in words what to expect, and how far it can be trusted."""
    streams = results["streams"]
    gains = gains_of(results)
    judged = {name: gain for name, gain in gains.items() if name not in CLASS_SORTED}
    better, same, worse = count_verdicts(streams)
    order = sorted(judged, key=judged.__getitem__)
    accuracy, majority = (mean(entry[key] for entry in streams.values()) for key in ("accuracy", "majority"))
    small = sum(abs(gain) < 1 for gain in gains.values())
    text = (
        f"On {len(streams)} real streams, `AdaptiveLabelModel()` as it comes labels {accuracy:.1f}% of the rows right, "
        f"a majority vote {majority:.1f}% (means over streams). Most often the two are close: on {small} streams they "
        f"differ by less than a point, and the median gain is {median(gains.values()):+.1f}. "
        f"It is clearly better on {better} streams and clearly worse on {worse}; on the other {same} the 95% interval "
        f"of the difference holds zero. The largest gains are {name_some(order[::-1], judged)}; "
        f"the largest losses are {name_some(order, judged)}."
    )
    timed = [gains[name] for name, entry in streams.items() if entry["time"]]
    rest = [gains[name] for name, entry in streams.items() if not entry["time"]]
    if timed and rest:
        text += f" On the {len(timed)} streams in the order of time the mean gain is {mean(timed):+.1f}, "
        text += f"on the {len(rest)} others {mean(rest):+.1f}."
    honest = (
        "These are development streams: the members of the mixture and its few constants were chosen while looking at "
        "them. Expect somewhat less on streams of your own."
    )
    return f"{fill(text, 120)}\n\n{fill(honest, 120)}"


def name_some(names: list[str], gains: dict[str, float], count: int = 3) -> str:
    return ", ".join(f"{name} ({gains[name]:+.1f})" for name in names[:count])


def compare_text(results: Numbers) -> str:
    missing = [f"{name}: {entry['reason']}" for name, entry in results.get("peers", {}).items() if "reason" in entry]
    failed = [
        f"{name} on {stream} ({reason})"
        for name, entry in results.get("peers", {}).items()
        for stream, reason in entry.get("failed", {}).items()
    ]
    text = "Gains over majority in points, over all streams, by one configuration each."
    text += f" **Not measured:** {'; '.join(missing)}." if missing else ""
    text += f" Failed, and counted as majority: {'; '.join(failed)}." if failed else ""
    return fill(text, 120)


def model_table(results: Numbers) -> Table:
    """Mean, clipped mean, loss and worst of every label model, the best clipped mean first."""
    used = results["streams"]
    gains = {DEFAULT: ("each row as it comes", gains_of(results))}
    if set(used) <= set(FORMER["streams"]) and results["limit"] is None:
        gains[FORMER_NAME] = ("each row as it comes", {name: FORMER["streams"][name] for name in used})
    gains |= {name: ("each row as it comes", found) for name, found in results.get("models", {}).items()}
    for name, entry in results.get("peers", {}).items():
        if "gains" in entry:
            gains[name] = ("the whole stream" if entry["whole_stream"] else "the rows so far", entry["gains"])
    found = {name: (fitted, summarize(values)) for name, (fitted, values) in gains.items()}
    rows: list[Cells] = []
    for name, (fitted, figures) in sorted(found.items(), key=lambda pair: -pair[1][1]["clipped"]):
        shown = f"**{name}**" if name == DEFAULT else name
        cells = [f"{figures[key]:+.2f}" for key in ("mean", "clipped", "loss")]
        rows.append([shown, fitted, *cells, f"{figures['worst']:+.1f} ({figures['worst_stream']})"])
    return ["label model", "sees", "mean", "clipped mean", "loss", "worst"], rows


def check_text(results: Numbers) -> str:
    checks = check_all(results)
    passed, failed = (sum(check.holds is value for check in checks) for value in (True, False))
    rows: list[Cells] = [
        [
            check.statement,
            check.target,
            check.measured,
            f"**{check.verdict}**" if check.holds is False else check.verdict,
            check.note,
        ]
        for check in checks
    ]
    table = markdown(["one configuration, no labels", "must be", "is", "", ""], rows)
    text = f"{passed} hold, {failed} do not."
    left = [part for part in PARTS if not results.get(part)]
    text += f" **Parts that were not measured: {', '.join(left)}.**" if left else ""
    return f"{text}\n\n{table}"


STREAMS_NOTE = """*Calibration* is the expected calibration error of the label's probability, and of the vote share for
comparison. *Review* is how many times their share of the errors the least certain 10% of the rows hold, and the most
that calibrated probabilities could. Streams marked * have no order of time."""


def review_text(streams: Numbers) -> str:
    """On how many streams the least certain rows can hold twice their share of the errors, and do."""
    possible = [entry for entry in streams.values() if entry["review_limit"] >= REVIEW_LIFT]
    reached = sum(entry["review"] >= REVIEW_LIFT for entry in possible)
    hindsight = sum(entry["review_hindsight"] >= REVIEW_LIFT for entry in streams.values())
    text = (
        f"On {len(possible)} of {len(streams)} streams the least certain 10% can hold twice their share of the errors "
        f"at all, if probabilities are calibrated; the default reaches it on {reached} of these. On the others the "
        "labels are wrong so often that these rows would have to be wrong more often than a label that is the "
        "likeliest class can be: with two classes, where more than a quarter of the labels is wrong. An order that has "
        "seen gold labels (how often labels were right on the other nine tenths of the rows, by votes, counts of votes "
        f"or probability, whichever is best) reaches it on {hindsight}, because it also knows where labels are wrong "
        "more often than right."
    )
    return fill(text, 120)


def stream_table(streams: Numbers) -> Table:
    rows: list[Cells] = []
    for name, entry in streams.items():
        size = f"{entry['rows']:,} x {entry['labelers']}, {entry['classes']}"
        gain = f"{entry['gain']:+.2f} ({entry['low']:+.2f} to {entry['high']:+.2f})"
        calibration = f"{entry['calibration']:.3f} / {entry['calibration_share']:.3f}"
        rows.append(
            [
                name + ("" if entry["time"] else " *"),
                entry["family"],
                size,
                f"{entry['coverage']:.0%}",
                f"{entry['majority']:.1f}",
                f"{entry['accuracy']:.1f}",
                gain,
                calibration,
                f"{entry['review']:.2f} / {entry['review_limit']:.2f}",
            ]
        )
    header = [
        "stream",
        "family",
        "rows x labelers, classes",
        "coverage",
        "majority",
        "ours",
        "gain",
        "calibration",
        "review",
    ]
    return header, rows


RARE_NOTE = """Independent labelers of one accuracy, two classes, nothing drifts: gain over majority in points by the
share of the rarer class. The worst of the accuracies 0.6 to 0.9 in each cell."""


def rare_table(cells: list[Numbers]) -> Table:
    found: dict[tuple[int, float], list[float]] = {}
    for cell in cells:
        if cell["kind"] == "share":
            found.setdefault((cell["labelers"], cell["case"][0]), []).append(cell["gain"])
    rows: list[Cells] = [[n, *(f"{min(found[n, share]):+.2f}" for share in SHARES)] for n in LABELERS]
    return ["labelers", *(f"{100 * share:g}%" for share in SHARES)], rows


DRIFT_NOTE = (
    """Streams drawn by `driftvote.streams.scenario(name)`; per cent of the rows labeled right, means over seeds."""
)


def drift_table(scenarios: Numbers) -> Table:
    rows: list[Cells] = []
    for name, found in scenarios.items():
        ours, former = mean(found["ours"]), mean(FORMER["drift"][name][: len(found["ours"])])
        rows.append([name, SCENARIOS[name].drift, mean(found["majority"]), former, ours, f"{ours - former:+.2f}"])
    return ["scenario", "what drifts", "majority", "former default", "ours", "difference"], rows


QUESTIONS_NOTE = f"""The model is asked for the rows that decide, gets their true classes, and labels the stream again
(`driftvote ask`, then `driftvote label --verified`). Gains over majority in points on the rows that were **not** asked
for, first {QUESTION_ROWS:,} rows of each stream. In a stream where few rows are in dispute, fewer are asked for."""

DRIFT_QUESTIONS_NOTE = f"""A simulated stream in which other labelers err together every {STRETCH:,} rows, so that votes
alone mislead; the model is asked and answered 1,000 rows into every stretch. Per cent of the labels of the rest of the
stretch that are right, before the first change and after the later ones; means over seeds."""


def question_table(results: Numbers) -> Table:
    rows: list[Cells] = []
    plans = [(0, ASK, 0.0)]
    plans += [(count, way, wrong) for (way, wrong), counts in PLANS.items() for count in counts]
    for count, way, wrong in plans:
        found = summarize(answer_gains(results, way, wrong, count))
        shown = "none: votes alone" if count == 0 else f"{count}, {way}" + (f", {wrong:.0%} wrong" if wrong else "")
        worst = f"{found['worst']:+.1f} ({found['worst_stream']})"
        rows.append([shown, *(f"{found[key]:+.2f}" for key in ("mean", "clipped", "loss")), worst])
    return ["verified rows", "mean", "clipped mean", "loss", "worst"], rows


def drift_question_table(drift: Numbers) -> Table:
    rows: list[Cells] = [[count, *(f"{mean(found[when]):.1f}" for when in found)] for count, found in drift.items()]
    return ["answers a stretch", "before a change", "after it"], rows


def questions_title(results: Numbers) -> str:
    """The message of the figure."""
    free, asked = (summarize(answer_gains(results, ASK, 0.0, count)) for count in (0, 20))
    return (
        f"Twenty answers: the mean gain over majority rises from {free['mean']:+.1f} to {asked['mean']:+.1f} points, "
        f"the worst stream from {free['worst']:+.1f} to {asked['worst']:+.1f}"
    )


def questions_text(results: Numbers) -> str:
    """What docs/questions.md says of the figures: all streams, and one of them."""
    count = len(results["questions"]["streams"])
    free, asked = (summarize(answer_gains(results, ASK, 0.0, n)) for n in (0, 20))
    five, slips = summarize(answer_gains(results, ASK, 0.0, 5)), summarize(answer_gains(results, ASK, 0.1, 20))
    one = results["questions"]["streams"][EXAMPLE]
    text = (
        f"On {count} real streams with gold labels, gains over a majority vote on the rows that were not asked for, in "
        f"points: without answers {free['mean']:+.1f} on average and {free['worst']:+.1f} on the worst stream; with 5 "
        f"answers {five['mean']:+.1f} and {five['worst']:+.1f}; with 20 answers {asked['mean']:+.1f} and "
        f"{asked['worst']:+.1f}; with 20 answers of which one in ten is wrong {slips['mean']:+.1f} and "
        f"{slips['worst']:+.1f}."
    )
    example = (
        f"One of them, {EXAMPLE}: rules vote whether the price of electricity rises. The label models disagree "
        f"on {one['disputed']:.0%} of the rows. By votes alone the labels are {abs(one['free']):.1f} points behind "
        f"majority; after twenty answers they are {one['ask, 0% wrong, 20']:.1f} points ahead, on rows that nobody "
        "looked at. Most of these rows are ties of the majority, and the answers say which way such ties fall."
    )
    return f"{fill(text, 120)}\n\n{fill(example, 120)}\n\n![{questions_title(results)}](figures/{QUESTIONS_FIGURE}.png)"


def fill_in_figures(page: str, results: Numbers) -> str:
    """A page with the text between its marks made anew."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n{questions_text(results)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def draw_questions(results: Numbers, folder: Path) -> None:
    """Gain against the number of questions: the median stream, the mean, and the worst."""
    counts = (0, *PLANS[ASK, 0.0])
    judged = {
        count: [g for name, g in answer_gains(results, ASK, 0.0, count).items() if name not in CLASS_SORTED]
        for count in counts
    }
    lines: dict[str, tuple[str, Callable[[list[float]], float]]] = {
        "mean of the streams": (BLUE, mean),
        "median stream": (GREY, median),
        "worst stream": (ORANGE, min),
    }
    with figure(folder, QUESTIONS_FIGURE, svg=False, figsize=(7.2, 4.2)) as axes:
        for name, (colour, take) in lines.items():
            heights = [take(judged[count]) for count in counts]
            axes.plot(counts, heights, marker="o", color=colour, linewidth=2)
            axes.annotate(
                name, (counts[-1], heights[-1]), (6, 0), textcoords="offset points", va="center", color=colour
            )
        axes.axhline(0, color="black", linewidth=1)
        axes.set_xlim(-1, 66)
        axes.set_xticks(counts)
        axes.set_xlabel("rows that somebody verified")
        axes.set_ylabel("points over a majority vote")
        axes.set_title(fill(questions_title(results), 70), loc="left", fontsize=12)


def draw(streams: Numbers, folder: Path) -> None:
    """Gains by stream, sorted, with their intervals."""
    order = sorted(streams, key=lambda name: streams[name]["gain"])
    colours = {1: BLUE, 0: GREY, -1: ORANGE}
    better, same, worse = count_verdicts(streams)
    low_end, high_end = SHOWN_RANGE
    with figure(folder, FIGURE, svg=False, figsize=(8.2, 1.5 + 0.19 * len(order))) as axes:
        for place, name in enumerate(order):
            entry = streams[name]
            colour = colours[verdict_of(entry)]
            shown = min(max(entry["gain"], low_end), high_end)
            axes.barh(place, shown, color=colour, alpha=0.8, height=0.72)
            if shown == entry["gain"]:
                ends = [min(max(entry[key], low_end), high_end) for key in ("low", "high")]
                axes.plot(ends, [place, place], color="black", linewidth=0.9)
            else:
                at, side = (high_end, "right") if shown == high_end else (low_end, "left")
                axes.text(at, place, f" {entry['gain']:+.1f} ", va="center", ha=side, color="white", fontsize=8)
        axes.axvline(0, color="black", linewidth=1)
        axes.set_xlim(low_end, high_end)
        axes.set_ylim(-0.7, len(order) - 0.3)
        axes.set_yticks(range(len(order)), order, fontsize=8)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("points over a majority vote (bar), 95% interval (line)")
        axes.set_title(
            f"Against a majority vote, AdaptiveLabelModel() is right more often on {better} of\n"
            f"{len(order)} real streams and less often on {worse}; {same} show no clear difference",
            loc="left",
            fontsize=12,
        )
        labels = {1: f"better ({better})", 0: f"no clear difference ({same})", -1: f"worse ({worse})"}
        for kind, label in labels.items():
            axes.barh(0, 0, color=colours[kind], alpha=0.8, label=label)
        axes.legend(loc="lower right", fontsize=9)

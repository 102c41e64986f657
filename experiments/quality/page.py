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
from experiments.output import BLUE, GREY, ORANGE, Cells, Table, figure, markdown, set_title
from experiments.quality.checks import FORMER, REVIEW_LIFT, answer_gains, check_all, gains_of
from experiments.quality.models import ALL_PAST, DEFAULT
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

INTRO = """How often are the labels right, compared with a majority vote and with other projects' label models? No model
sees a true label."""

COMMANDS = """These commands write this page and `quality.json`:

```
make quality                                              # everything, peers included; about 40 minutes
python -m experiments.quality --only streams,rare,random  # some parts; unchanged parts are not run again
```"""

NO_WINDOW = "AdaptiveLabelModel(), fitted to every row so far"

HOW = f"""- **Streams.** Real votes with gold labels: crowds, panels of language models, labeling functions,
  sensors, forecasters, trained classifiers. Each stream is used whole and in its order. Each model has one
  configuration for all streams, and gets only the votes and the number of classes. The default labels each row as
  it arrives.
- **Gain**: accuracy in per cent, minus that of a majority vote. The majority ignores abstentions. A row whose
  majority is tied counts as partly right (1/2 with two tied classes). A row that a model leaves unlabeled counts like
  its majority.
- **Clipped mean**: the mean with each gain limited to +{CLIP:g}, so that a few streams do not decide. **Loss**: the
  mean with each gain above 0 counted as 0. **Worst**: the lowest gain, without Basketball, whose file is
  sorted by class.
- **Intervals**: 95%, by a block bootstrap with {DRAWS:,} draws of blocks of {BLOCK} consecutive rows (shorter blocks in
  streams below 1,500 rows), because neighbouring rows are alike.
- **Peers** run in their own environments with their default settings, and see the whole stream before they label it.
  "Snorkel, fitted anew" fits Snorkel's LabelModel after every {REFIT:,} rows to all rows so far, and labels the next
  {REFIT:,} rows with it; before the first fit, the majority labels. A tied or missing probability counts as unlabeled.
  A stream on which a peer fails counts as majority. crowd-kit's Dawid-Skene stops after two or three steps on most
  streams, by its own stopping rule. The paper's method is random: its figures are means of two seeds.
- **Calibration**: expected calibration error of the label's probability, with {BINS} bins, on rows with at least one
  vote. It is compared with that of the vote share, the majority's share of the votes of a row.
- **Review**: the error rate of the least certain 10% of the rows, divided by that of all rows: 1 is no better than
  random rows. If half of the labels are wrong, it can be 2 at most. With calibrated probabilities it can reach
  (1 - 1/K) / (share of wrong labels), because the most likely of K classes has a probability of 1/K at least.
- **Rare classes**: {RARE_ROWS:,} rows, of which the first {FIRST_ROWS} do not count; means over at least 4 seeds, 24
  where it is close. With runs of 5,000 rows: 20,000 rows.
- **Random panels**: 2 to 10 classes of any balance, 3 to 20 independent labelers, 150 to 8,000 rows, any coverage;
  every labeler votes for the true class more often than for any other, and is at least a tenth of the way from chance
  to perfect. `python -m experiments.quality.simulated SEED` measures one of them again.
- **The former default** is that of version 0.2.0. Its figures are in `experiments/quality/former_default.json`.
  Cost is CPU time; the two versions took turns."""


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
        parts.append(f"**Only the first {results['limit']:,} rows of each stream: too few for a conclusion.**")
    if results.get("earlier"):
        names = ", ".join(f"`{part}`" for part in results["earlier"])
        parts.append(f"**Not measured again since the last change of the model:** {names}.")
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
    parts += ["## How it is measured", HOW, COMMANDS, f"Made with {versions}."]
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
        f"AdaptiveLabelModel() is right more often than a majority vote on {better} of {len(streams)} real streams, "
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
        f"On {len(streams)} real streams, the default `AdaptiveLabelModel()` labels {accuracy:.1f}% of the rows "
        f"correctly, a majority vote {majority:.1f}% (means over streams). Usually the two are close: on {small} "
        f"streams they differ by less than a point, and the median gain is {median(gains.values()):+.1f}. "
        f"It is clearly better on {better} streams and clearly worse on {worse}; on the other {same} the 95% interval "
        f"of the difference includes zero. The largest gains are {name_some(order[::-1], judged)}; "
        f"the largest losses are {name_some(order, judged)}."
    )
    timed = [gains[name] for name, entry in streams.items() if entry["time"]]
    rest = [gains[name] for name, entry in streams.items() if not entry["time"]]
    if timed and rest:
        text += f" On the {len(timed)} streams in time order the mean gain is {mean(timed):+.1f}, "
        text += f"on the {len(rest)} others {mean(rest):+.1f}."
    honest = (
        "These are development streams: we looked at them while we chose the members of the mixture and its constants. "
        "Expect somewhat less on your own streams."
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
    text = "Gains over a majority vote in points, over all streams. Each model has one configuration."
    text += f" **Not measured:** {'; '.join(missing)}." if missing else ""
    text += f" Failed, and counted as majority: {'; '.join(failed)}." if failed else ""
    return fill(text, 120)


def model_table(results: Numbers) -> Table:
    """Mean, clipped mean, loss and worst of every label model, the best clipped mean first."""
    used = results["streams"]
    gains = {DEFAULT: ("each row as it arrives", gains_of(results))}
    if set(used) <= set(FORMER["streams"]) and results["limit"] is None:
        gains[FORMER_NAME] = ("each row as it arrives", {name: FORMER["streams"][name] for name in used})
    gains |= {name: ("each row as it arrives", found) for name, found in results.get("models", {}).items()}
    for name, entry in results.get("peers", {}).items():
        if "gains" in entry:
            gains[name] = ("the whole stream" if entry["whole_stream"] else "the rows so far", entry["gains"])
    found = {name: (fitted, summarize(values)) for name, (fitted, values) in gains.items()}
    rows: list[Cells] = []
    for name, (fitted, figures) in sorted(found.items(), key=lambda pair: -pair[1][1]["clipped"]):
        shown = f"**{name}**" if name == DEFAULT else NO_WINDOW if name == ALL_PAST else name
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
    table = markdown(["one configuration, no true labels", "target", "measured", "", ""], rows)
    text = f"{passed} targets are met, {failed} are not."
    left = [part for part in PARTS if not results.get(part)]
    text += f" **Parts that were not measured: {', '.join(left)}.**" if left else ""
    return f"{text}\n\n{table}"


STREAMS_NOTE = """*Calibration* is the expected calibration error of the label's probability / of the vote share.
*Review* is the error rate of the least certain 10% of the rows, divided by that of all rows / the most that calibrated
probabilities can reach. Streams marked * have no time order."""


def review_text(streams: Numbers) -> str:
    """On how many streams the least certain rows can hold twice their share of the errors, and do."""
    possible = [entry for entry in streams.values() if entry["review_limit"] >= REVIEW_LIFT]
    reached = sum(entry["review"] >= REVIEW_LIFT for entry in possible)
    hindsight = sum(entry["review_hindsight"] >= REVIEW_LIFT for entry in streams.values())
    text = (
        f"With calibrated probabilities, review can reach {REVIEW_LIFT:g} on {len(possible)} of {len(streams)} "
        f"streams; the default reaches it on {reached} of these. On the others too many labels are wrong: a label is "
        "the most likely class, so even the least certain rows are right fairly often (with two classes, "
        f"{REVIEW_LIFT:g} is out of reach where more than a quarter of the labels are wrong). For comparison, an order "
        "learned from gold labels (how often labels were right on the other nine tenths of the rows, by votes, "
        "counts of votes or probability, "
        f"whichever is best) reaches {REVIEW_LIFT:g} on {hindsight} streams, because it also knows where labels are "
        "wrong more often than right."
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


RARE_NOTE = """Independent labelers of one accuracy, two classes, no labeler changes: gain over majority in points by
the share of the rarer class. The worst of the accuracies 0.6 to 0.9 in each cell."""


def rare_table(cells: list[Numbers]) -> Table:
    found: dict[tuple[int, float], list[float]] = {}
    for cell in cells:
        if cell["kind"] == "share":
            found.setdefault((cell["labelers"], cell["case"][0]), []).append(cell["gain"])
    rows: list[Cells] = [[n, *(f"{min(found[n, share]):+.2f}" for share in SHARES)] for n in LABELERS]
    return ["labelers", *(f"{100 * share:g}%" for share in SHARES)], rows


DRIFT_NOTE = """Streams of `driftvote.streams.scenario(name)`: accuracy in per cent, means over seeds."""


def drift_table(scenarios: Numbers) -> Table:
    rows: list[Cells] = []
    for name, found in scenarios.items():
        ours, former = mean(found["ours"]), mean(FORMER["drift"][name][: len(found["ours"])])
        rows.append([name, SCENARIOS[name].drift, mean(found["majority"]), former, ours, f"{ours - former:+.2f}"])
    return ["scenario", "what drifts", "majority", "former default", "ours", "difference"], rows


QUESTIONS_NOTE = f"""The model chooses questions, gets the true classes of these rows, and labels the stream again
(`driftvote ask`, then `driftvote label --verified`). Gains over a majority vote in points, on the **other**
rows, for the first {QUESTION_ROWS:,} rows of each stream. If few rows are in dispute, there are fewer questions."""

DRIFT_QUESTIONS_NOTE = f"""A simulated stream. Every {STRETCH:,} rows, other labelers make the same errors, so votes
alone mislead. The questions are answered 1,000 rows after each change. Accuracy in per cent on the rest of the rows
up to the next change, before the first change and after the later ones; means over seeds."""


def question_table(results: Numbers) -> Table:
    rows: list[Cells] = []
    plans = [(0, ASK, 0.0)]
    plans += [(count, way, wrong) for (way, wrong), counts in PLANS.items() for count in counts]
    for count, way, wrong in plans:
        found = summarize(answer_gains(results, way, wrong, count))
        shown = "none: votes alone" if count == 0 else f"{count}, {way}" + (f", {wrong:.0%} wrong" if wrong else "")
        worst = f"{found['worst']:+.1f} ({found['worst_stream']})"
        rows.append([shown, *(f"{found[key]:+.2f}" for key in ("mean", "clipped", "loss")), worst])
    return ["answers", "mean", "clipped mean", "loss", "worst"], rows


def drift_question_table(drift: Numbers) -> Table:
    rows: list[Cells] = [[count, *(f"{mean(found[when]):.1f}" for when in found)] for count, found in drift.items()]
    return ["answers after each change", "before the first change", "after later changes"], rows


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
        f"On {count} real streams with gold labels, gains over a majority vote on the unanswered rows, in "
        f"points: without answers {free['mean']:+.1f} on average and {free['worst']:+.1f} on the worst stream; with 5 "
        f"answers {five['mean']:+.1f} and {five['worst']:+.1f}; with 20 answers {asked['mean']:+.1f} and "
        f"{asked['worst']:+.1f}; with 20 answers of which one in ten is wrong {slips['mean']:+.1f} and "
        f"{slips['worst']:+.1f}."
    )
    example = (
        f"One of them, {EXAMPLE}: rules vote whether the price of electricity rises. The label models disagree "
        f"on {one['disputed']:.0%} of the rows. With votes alone, the labels are {abs(one['free']):.1f} points behind "
        f"majority; after twenty answers they are {one['ask, 0% wrong, 20']:.1f} points ahead, on rows that nobody "
        "looked at. Most of these rows are ties of the majority, and the answers show how such ties should be decided."
    )
    return f"{fill(text, 120)}\n\n{fill(example, 120)}\n\n![{questions_title(results)}](figures/{QUESTIONS_FIGURE}.png)"


def fill_in_figures(page: str, results: Numbers) -> str:
    """A page with the text between its marks made anew."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n{questions_text(results)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def draw_questions(results: Numbers, folder: Path) -> None:
    """Gain against the number of questions: the median stream, the mean, and the worst."""
    counts = (0, *PLANS[ASK, 0.0])
    gains = {count: answer_gains(results, ASK, 0.0, count) for count in counts}
    lines: dict[str, tuple[str, Callable[[dict[str, float]], float]]] = {
        "mean of the streams": (BLUE, lambda found: mean(found.values())),
        "median stream": (GREY, lambda found: median(found.values())),
        "worst stream": (ORANGE, lambda found: min(found[name] for name in found if name not in CLASS_SORTED)),
    }
    with figure(folder, QUESTIONS_FIGURE, svg=False, figsize=(7.2, 4.2)) as axes:
        for name, (colour, take) in lines.items():
            heights = [take(gains[count]) for count in counts]
            axes.plot(counts, heights, marker="o", color=colour, linewidth=2)
            axes.annotate(
                name, (counts[-1], heights[-1]), (6, 0), textcoords="offset points", va="center", color=colour
            )
        axes.axhline(0, color="black", linewidth=1)
        axes.set_xlim(-1, 66)
        axes.set_xticks(counts)
        axes.set_xlabel("answers")
        axes.set_ylabel("points over a majority vote")
        set_title(axes.figure, questions_title(results))


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
        set_title(axes.figure, title(streams))
        labels = {1: f"better ({better})", 0: f"no clear difference ({same})", -1: f"worse ({worse})"}
        for kind, label in labels.items():
            axes.barh(0, 0, color=colours[kind], alpha=0.8, label=label)
        axes.legend(loc="lower right", fontsize=9)

"""The page that puts the paper's statements and ours side by side, from `results.json` alone."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.output import Table, markdown
from experiments.paper import beta, images, synthetic, theory, video
from experiments.paper.measures import DIFFERS, Claim
from experiments.paper.video import DATASETS, PLAIN, PLAIN_MAJORITY

EXPERIMENTS: dict[str, ModuleType] = {
    "synthetic": synthetic,
    "video": video,
    "images": images,
    "beta": beta,
    "theory": theory,
}
CLAIMS_FIRST = ("theory", "synthetic", "video", "beta", "images")
"""The order of the claims on the page."""


def claims_by_experiment(experiments: dict[str, Any]) -> dict[str, list[Claim]]:
    """Every claim that the experiments run so far can judge."""
    return {name: EXPERIMENTS[name].claims(experiments[name]) for name in CLAIMS_FIRST if name in experiments}


def all_claims(experiments: dict[str, Any]) -> list[Claim]:
    return [claim for judged in claims_by_experiment(experiments).values() for claim in judged]


def write_results(results: dict[str, Any], out: Path) -> None:
    """Write figures, tables (CSV and Markdown) and the page into a folder, from the numbers alone."""
    (out / "tables").mkdir(parents=True, exist_ok=True)
    for name, numbers in results["experiments"].items():
        EXPERIMENTS[name].draw(numbers, out / "figures")
        tables: dict[str, Table] = EXPERIMENTS[name].tables(numbers)
        for title, (header, rows) in tables.items():
            with (out / "tables" / f"{title}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([header, *rows])
            (out / "tables" / f"{title}.md").write_text(markdown(header, rows) + "\n", encoding="utf-8")
    (out / "reproduction.md").write_text(page(results, "figures"), encoding="utf-8")


def page(results: dict[str, Any], figures: str) -> str:
    """The page as Markdown; `figures` is the folder of the figures as seen from it."""
    experiments = results["experiments"]
    judged = claims_by_experiment(experiments)
    everything = [claim for claims in judged.values() for claim in claims]
    differing = [claim for claim in everything if claim.verdict == DIFFERS]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    summary = []
    for name, claims in judged.items():
        different = sum(claim.verdict == DIFFERS for claim in claims)
        heading = EXPERIMENTS[name].HEADING
        summary.append([f"[{heading}](#{_anchor(heading)})", len(claims), len(claims) - different, different])
    parts = [
        "# The paper, reproduced",
        "Mazzetto, Esfandiarpoor, Singirikonda, Upfal and Bach: [*An Adaptive Method for Weak Supervision with Drifting"
        " Data*](https://proceedings.mlr.press/v258/mazzetto25a.html), AISTATS 2025. We checked every claim of its"
        f" experiments on the paper's own data with `AdaptiveLabelModel.paper()`. {len(everything) - len(differing)} of"
        f" {len(everything)} claims hold.",
        markdown(["experiment", "claims", "hold", "differ"], summary),
        f"{len(differing)} differ:" if differing else "No claim differs.",
        "\n".join(f"- {claim.statement}: {claim.ours}. {claim.note}".rstrip() for claim in differing),
        "## Run it",
        _RUN,
        f"The page is made from `results.json`, which also holds the seeds. Made with {versions}.",
    ]
    if "video" in experiments:
        parts += ["## What the paper's protocol hides", _protocol_section(experiments["video"])]
    parts += ["## Why we differ", _WHY]
    for name, claims in judged.items():
        module = EXPERIMENTS[name]
        rows = [[claim.statement, claim.paper, claim.ours, claim.verdict, claim.note] for claim in claims]
        parts += [
            f"## {module.HEADING}",
            *([_PERMUTE] if module is video else []),
            markdown(["claim", "the paper", "ours", "verdict", ""], rows),
            *_figures_and_tables(module, experiments[name], figures),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _anchor(heading: str) -> str:
    """The anchor that Markdown gives to a heading."""
    return "".join(letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _figures_and_tables(module: ModuleType, numbers: dict[str, Any], figures: str) -> list[str]:
    parts = [f"![{caption}]({figures}/{file}.png)\n\n*{caption}*" for file, caption in module.FIGURES.items()]
    if module is theory:
        return parts  # a table of 200 rows is for machines
    for name, (header, rows) in module.tables(numbers).items():
        title = name.partition("-")[2].title() or module.HEADING
        table = markdown(header, rows)
        parts.append(f'<details markdown="1">\n<summary>{title}: all figures</summary>\n\n{table}\n\n</details>')
    return parts


_WRENCH = "`datasets.zip` of the [WRENCH benchmark](https://github.com/JieyuZ2/wrench); copy the three folders"
_AUTHORS = (
    "`attr_detectors.csv` and `class_attr_matrix.json` of the"
    " [authors' code](https://github.com/BatsResearch/mazzetto-arxiv23-code)"
)
_RUN = f"""`make reproduce DATA=folder` runs everything and writes this page. An interrupted run continues where it
stopped.

| command | needs the data | time on two cores |
|---|---|---|
| `python -m experiments.paper data --data folder` | checks that they are there and complete | seconds |
| `python -m experiments.paper theory`, `synthetic` | no | a minute, most of it compiling |
| `python -m experiments.paper images` | `awa2` | a minute |
| `python -m experiments.paper video`, `beta` | `wrench` | about ten minutes |

The data are public, but not part of this repository. Without them, `make reproduce` names what is missing and where to
get it, and runs the rest.

| folder | what | source |
|---|---|---|
| `wrench/tennis`, `wrench/basketball`, `wrench/commercial` | votes on video frames | {_WRENCH} |
| `awa2` | outputs of attribute detectors on animal images | {_AUTHORS} |"""

_PERMUTE = """*Permute* means that before each row, with probability 1/1000, the labelers are shuffled: each takes over
the votes of another one. So their accuracies change suddenly, at known rows. *No permute* is the stream as it is.
*Competitive* is taken to mean within 0.6 points of the best fixed window, give or take two standard errors."""


def _protocol_section(numbers: dict[str, Any]) -> str:
    rows = []
    for name in DATASETS:
        means = {key: row["mean"] for key, row in numbers[name][PLAIN]["accuracy"].items()}
        ignored, adaptive = means[PLAIN_MAJORITY], means["adaptive"]
        rows.append([name.title(), ignored, means["majority"], adaptive, adaptive - ignored])
    header = [
        "",
        "majority, abstentions ignored",
        "majority, abstentions as random votes",
        "adaptive, the paper's protocol",
        "gain over the first",
    ]
    commercial = rows[DATASETS.index("commercial")]
    return (
        "The paper turns every abstention into a random vote, for the adaptive model and for the majority it is"
        " compared with. That handicaps both. A majority vote that ignores abstentions, which is what a user"
        f" would write in one line, labels {commercial[1]:.1f}% of Commercial right; the paper's protocol with the"
        f" adaptive model {commercial[3]:.1f}%. The paper treats both sides of its comparison alike, but does not make"
        " this comparison. `AdaptiveLabelModel()` therefore counts abstentions as neither agreement nor disagreement;"
        " `AdaptiveLabelModel.paper()` keeps the protocol.\n\n" + markdown(header, rows)
    )


_WHY = """- **The authors' off-by-one.** Their public code for the image stream compares window sizes with `<` where
  Algorithm 1 has `<=`, and returns the second largest window if no window was refused. The paper's 62.51 is the result
  of that code: choosing windows by its rule on the same votes gives the same number. Algorithm 1 as written is better.
- **Swapped rows.** The paper's table of data sizes swaps Tennis and Basketball.
- **Random ties.** A tied vote is a coin toss. Where many rows are tied (majority, windows 2 and 4), a figure is one
  random draw. Ours and the paper's are two draws; the last column gives the standard deviation of a draw. With the
  authors' own floating-point sums and coin tosses, every window agrees to the second decimal
  (`tests/authors_coins.py`).
- **Video.** The paper shows these results only as plots, so we check what its text says about them."""

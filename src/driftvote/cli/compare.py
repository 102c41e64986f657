"""`driftvote compare`: the labels of several models on one file, compared with each other and with the truth."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from driftvote.arrays import Floats, Ints
from driftvote.cli.options import (
    Force,
    InputOptions,
    Json,
    Quiet,
    Settings,
    make_model,
    print_summary,
    split_list,
    takes_options,
)
from driftvote.cli.pipeline import (
    ResultColumns,
    StreamLabeler,
    VoteFile,
    add_columns,
    check_paths,
    open_votes,
    read_ahead,
)
from driftvote.cli.progress import rows_done
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.table import format_of
from driftvote.files.write import closing_writer, open_writer
from driftvote.models import LabelModel


@takes_options()
def compare(
    votes: InputOptions,
    windows: Annotated[str, typer.Option("--windows", help="Fixed windows to compare with, e.g. 256,4096.")] = "1024",
    settings: Settings = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Also write the labels of every model at each row.", show_default=False),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label a file with the adaptive model, a majority vote, no window and fixed windows; compare the labels.

    Labels are compared with each other, and with the true classes if --gold names their column.

    Example: driftvote compare votes.csv --gold truth --windows 256,4096
    """
    sizes = dict.fromkeys(_window_size(text) for text in split_list(windows))
    specs = ["adaptive", "majority", "all-past", *(f"window:{size}" for size in sizes)]
    check_paths(votes.file, {"--out": out}, force)
    votes.refuse_verified()
    with open_votes(votes) as file, WholeFiles() as files:
        models = {spec: make_model(spec, file.form, settings if spec == "adaptive" else None) for spec in specs}
        result = _label_all(file, models, files, out, quiet)
    read = f"read     {file.table.shown}: {result.rows:,} rows; classes {file.describe_classes()}"
    print_summary({**file.to_dict(), **result.to_dict()}, [*file.notes, read], as_json, quiet)
    if not as_json and not quiet:
        _print_tables(result)


def _window_size(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise DriftvoteError(f"--windows: {text!r} is not a number of rows; write for example 256,4096")
    return int(text)


def _label_all(
    file: VoteFile, models: dict[str, LabelModel], files: WholeFiles, out: str | None, quiet: bool
) -> ModelComparison:
    result = ModelComparison(list(models), [str(value) for value in file.form.classes])
    writer = None if out is None else open_writer(format_of(out, None, "--out")[0], files.open(out), out)
    values = ResultColumns(file.form)
    labelers = {spec: StreamLabeler(file, model.clone) for spec, model in models.items()}
    with rows_done("comparing", quiet) as listen, closing_writer(writer, out):
        for rows in read_ahead(file.batches(writer is None or writer.typed)):
            labeled = {spec: labeler.label(rows) for spec, labeler in labelers.items()}
            result.add(np.stack([batch.codes for batch in labeled.values()]), rows.gold)
            if writer is not None:
                columns: dict[str, Any] = {}
                for spec, batch in labeled.items():
                    columns[f"label_{spec}"] = values.labels(batch.codes)
                    columns[f"probability_{spec}"] = batch.probability()
                writer.write(add_columns(rows.kept, columns))
            listen(result.rows, file.table.done())
    return result


class ModelComparison:
    """Counts of equal labels and of labels against the truth; codes are class codes, -1 for a tie."""

    def __init__(self, models: list[str], classes: list[str]) -> None:
        self.models = models
        self.classes = classes
        self.rows = 0
        self.gold_rows = 0
        n, k = len(models), len(classes)
        self._same = np.zeros((n, n), np.int64)
        self._tied = np.zeros(n, np.int64)
        self._confusion = np.zeros((n, k, k + 1), np.int64)  # truth x label, ties last

    def add(self, codes: Ints, gold: Any) -> None:
        """Count a batch of models x rows."""
        self.rows += codes.shape[1]
        self._tied += (codes < 0).sum(axis=1)
        self._same += (codes[:, None] == codes[None]).sum(axis=2)
        if gold is None:
            return
        known = gold >= 0
        truth = gold[known].astype(np.int64)
        self.gold_rows += len(truth)
        width = len(self.classes) + 1
        for place in range(len(self.models)):
            label = np.where(codes[place, known] < 0, width - 1, codes[place, known])
            counts = np.bincount(truth * width + label, minlength=width * len(self.classes))
            self._confusion[place] += counts.reshape(len(self.classes), width)

    def agreement(self) -> Floats:
        """Share of rows with the same label, model x model."""
        return np.asarray(self._same / max(1, self.rows))

    def scores(self) -> list[dict[str, Any]]:
        """For each model its ties and, with gold, its accuracy (a tie counts 1/K) and F1 by class and on average.

        The average is over the classes that occur in the truth; a tied row is a missed one.
        """
        found = []
        for place, name in enumerate(self.models):
            score: dict[str, Any] = {"model": name, "tied": int(self._tied[place])}
            if self.gold_rows:
                counts = self._confusion[place]
                right = np.diag(counts)
                ties = counts[:, -1].sum()
                score["accuracy"] = float((right.sum() + ties / len(self.classes)) / self.gold_rows)
                wrong = counts.sum(axis=1) + counts[:, :-1].sum(axis=0) - 2 * right
                f1 = 2 * right / np.maximum(1, 2 * right + wrong)
                score["f1"] = float(f1[counts.sum(axis=1) > 0].mean())
                score["f1_by_class"] = dict(zip(self.classes, f1.tolist(), strict=True))
                score["confusion"] = counts.tolist()
            found.append(score)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, for --json."""
        agreement = zip(self.models, self.agreement().tolist(), strict=True)
        return {
            "rows": self.rows,
            "gold_rows": self.gold_rows,
            "models": self.scores(),
            "agreement": {name: dict(zip(self.models, row, strict=True)) for name, row in agreement},
        }


def _print_tables(result: ModelComparison) -> None:
    """Print a table of scores and a table of agreements."""
    console, scored = Console(), bool(result.gold_rows)
    title = "no --gold column: labels are compared with each other"
    if scored:
        title = f"against gold on {result.gold_rows:,} rows (a tied row counts 1/{len(result.classes)})"
    table = Table("labels by", "tied rows", *(["right", "macro F1"] if scored else []), title=title)
    for score in result.scores():
        figures = [f"{score['accuracy']:.2%}", f"{score['f1']:.3f}"] if scored else []
        style = "bold" if score["model"] == "adaptive" else None
        table.add_row(score["model"], f"{score['tied'] / max(1, result.rows):.2%}", *figures, style=style)
    console.print(table)
    agreement = Table("same label", *result.models, title="share of rows with the same label")
    for name, row in zip(result.models, result.agreement(), strict=True):
        agreement.add_row(name, *(f"{value:.2%}" for value in row))
    console.print(agreement)

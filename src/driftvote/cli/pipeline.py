"""From a file of votes to labels, batch by batch: read ahead, label with one model per stream, write behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from driftvote.arrays import Floats, Ints
from driftvote.cli.options import InputOptions
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import follow_links
from driftvote.files.classes import declare_format, describe_classes, find_format
from driftvote.files.rows import Roles, TimeColumn, VoteRows, WideReader, find_roles, only_stream
from driftvote.files.table import Table, open_table
from driftvote.inputs import Batch, Origin
from driftvote.models import LabeledStream, LabelModel
from driftvote.votes import VoteFormat, fold_case

# -- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteFile:
    """An open file of votes: the options it was opened with, its columns and the format of its votes."""

    options: InputOptions
    table: Table
    roles: Roles
    form: VoteFormat
    declared: bool  # the format was declared, not found in the file
    notes: tuple[str, ...]

    def batches(self, typed: bool) -> Iterator[VoteRows]:
        """Rows in the order of labeling; `typed` for outputs that distinguish numbers from text."""
        options = self.options
        if self.roles.long:
            from driftvote.files.long import LongReader

            rows = iter(LongReader(self.table, self.roles, self.form, typed))
        else:
            rows = iter(WideReader(self.table, self.roles, self.form, typed))
        if options.only is not None:
            rows = only_stream(rows, options.only, self.table)
        if options.sort and not self.roles.long:  # long files are sorted by their reader
            from driftvote.files.long import sort_rows

            rows = sort_rows(rows, by_stream=options.many_streams)
        return rows

    @property
    def sorted_by_stream(self) -> bool:
        """Whether all rows of a stream come before those of the next."""
        return self.options.sort and self.options.many_streams and not self.roles.long

    def describe_classes(self) -> str:
        """The classes and where they come from."""
        return f"{describe_classes(self.form)} ({'declared' if self.declared else 'found in the file'})"

    def to_dict(self) -> dict[str, Any]:
        """How the file is read, for summaries and reports."""
        roles = self.roles
        named = {"id": roles.id, "time": roles.time, "stream": roles.stream, "gold": roles.gold}
        return {
            "file": self.table.shown,
            "layout": "long" if roles.long else "wide",
            "classes": list(self.form.classes),
            "abstain": self.form.abstain,
            "classes_from": "declared" if self.declared else "file",
            "columns": {key: value for key, value in named.items() if value},
        }


@contextmanager
def open_votes(options: InputOptions, form: VoteFormat | None = None, min_labelers: int = 3) -> Iterator[VoteFile]:
    """Open a file of votes; `form` is the format of a saved state."""
    options.check()
    declared = form or options.declared()
    with open_table(options.file, options) as table:
        roles = find_roles(table, options, min_labelers)
        known, notes = declared or _stored_format(table, options), list[str]()
        if known is None:
            columns = [roles.label] if roles.long else list(roles.labelers)
            known, notes = find_format(table, columns, options.abstain, options.fold_case)
        elif options.fold_case:
            known = fold_case(known)
        yield VoteFile(options, table, roles, known, declared is not None, (*table.notes, *notes))


def _stored_format(table: Table, options: InputOptions) -> VoteFormat | None:
    """The format of an NPZ file that holds class values for its codes."""
    classes = table.classes
    if classes is None or options.abstain is not None:
        return None
    if list(classes) == list(range(len(classes))):
        return declare_format("snorkel", len(classes), None, None)
    return declare_format(None, None, [str(value) for value in classes], None)


Item = TypeVar("Item")
_END = object()


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, produced in a thread that is one item ahead."""
    source = iter(items)
    with ThreadPoolExecutor(1, "reader") as reader:
        try:
            item: Any = reader.submit(next, source, _END).result()
            while item is not _END:
                following = reader.submit(next, source, _END)
                yield item
                item = following.result()
        finally:
            close: Any = getattr(source, "close", None)
            if close is not None:
                reader.submit(close)


@contextmanager
def write_behind(work: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """A function that runs `work` on an item in a thread, one item behind; it raises the error of the item before."""
    with ThreadPoolExecutor(1, "writer") as writer:
        before: Future[None] = writer.submit(lambda: None)

        def put(item: Item) -> None:
            nonlocal before
            before.result()
            before = writer.submit(work, item)

        yield put
        before.result()


# -- labeling ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabeledBatch:
    """Labels of a batch of rows; columns of labelers are in the order of `labelers`."""

    labelers: tuple[str, ...]
    codes: Ints
    proba: Floats
    windows: Ints
    n_votes: Ints
    accuracies: Floats | None = None
    weights: Floats | None = None
    events: tuple[tuple[Hashable, DriftEvent], ...] = ()  # with the name of their stream
    stream: LabeledStream | None = None  # of a file without streams

    def probability(self) -> Floats:
        """Probability of the most likely class of each row."""
        return max_by_row(self.proba)

    def needs_review(self, below: float) -> Any:
        """Rows that are tied or less probable than `below`."""
        return (self.probability() < below) | (self.codes < 0)


def max_by_row(table: Floats) -> Floats:
    """Largest value of each row; with few columns, column by column is faster than `max(axis=1)`."""
    if table.shape[1] > 8:
        return np.asarray(table.max(axis=1))
    best = table[:, 0]
    for column in range(1, table.shape[1]):
        best = np.maximum(best, table[:, column])
    return best


class StreamLabeler:
    """Labels batches in time order with one model for each stream; a file without streams is the stream None.

    Parameters
    ----------
    votes
        The file that the batches come from.
    make
        Makes a model for a new stream.
    models
        Models of a saved state, by stream.
    keep_models
        Hold all models until the end, even if the file is sorted by stream and one model at a time would do.
    accuracies, weights
        Which figures of each labeler the batches contain.
    """

    def __init__(
        self,
        votes: VoteFile,
        make: Callable[[], LabelModel],
        models: dict[Hashable, LabelModel] | None = None,
        *,
        keep_models: bool = False,
        accuracies: bool = False,
        weights: bool = False,
    ) -> None:
        self.models = dict(models or {})
        self.n_finished = 0
        self._votes = votes
        self._make = make
        self._keep_models = keep_models or not votes.sorted_by_stream
        self._accuracies = accuracies
        self._weights = weights
        self._time_column = TimeColumn(votes.table, votes.roles.time) if votes.roles.time else None

    def model(self, stream: Hashable = None) -> LabelModel:
        """The model of a stream, a new one if there is none."""
        if stream not in self.models:
            if not self._keep_models:
                self.n_finished += len(self.models)
                self.models.clear()
            self.models[stream] = self._make()
        return self.models[stream]

    def any_model(self) -> LabelModel:
        """One of the models, for what they have in common."""
        return next(iter(self.models.values())) if self.models else self._make()

    def label(self, rows: VoteRows) -> LabeledBatch:
        """Learn from these rows and label them."""
        if not self._votes.options.many_streams:
            return self._label_stream(None, rows)
        table = self._votes.table
        if rows.streams.null_count:
            row = int(rows.rows[np.argmax(rows.streams.is_null().to_numpy(zero_copy_only=False))])
            raise DriftvoteError(f"{table.shown}: {table.place(row)}: the stream is empty; every row needs one")
        named = rows.streams.dictionary_encode()
        names, member = named.dictionary.to_pylist(), named.indices.to_numpy()
        order = np.argsort(member, kind="stable")
        borders = np.searchsorted(member[order], np.arange(len(names) + 1))
        by_stream = rows.votes_only().take(order)
        parts = []
        for name, first, last in zip(names, borders, borders[1:], strict=False):
            parts.append(self._label_stream(name, by_stream[first:last]))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return _join(parts, back)

    def _label_stream(self, stream: Hashable, rows: VoteRows) -> LabeledBatch:
        model = self.model(stream)
        if len(rows.labelers) < model.min_labelers and not model.labelers:
            raise DriftvoteError(
                f"{self._votes.table.shown}: at least {model.min_labelers} labelers are needed, and there are"
                f" {len(rows.labelers)}: {', '.join(rows.labelers)}"
            )
        if rows.times is not None and self._time_column is not None:
            where = "" if stream is None else f" in stream {stream!r}"
            self._time_column.check_order(rows.times, rows.rows, model.last_time, where)
        verified = None if rows.verified is None else rows.verified.astype(np.int64)
        out = model.label_batch(
            Batch(rows.labelers, rows.codes, rows.literal, rows.times, Origin("wide"), verified=verified)
        )
        return LabeledBatch(
            out.labelers,
            out.codes,
            out.proba,
            out.windows,
            out.n_votes,
            accuracies=out.accuracies if self._accuracies else None,
            weights=out.weights if self._weights else None,
            events=tuple((stream, event) for event in out.events),
            stream=out if stream is None else None,
        )


def _join(parts: list[LabeledBatch], back: Ints) -> LabeledBatch:
    """Batches of several streams as one, in the order of the file."""
    labelers = tuple(dict.fromkeys(name for part in parts for name in part.labelers))

    def rows(field: str) -> Any:
        return np.concatenate([getattr(part, field) for part in parts])[back]

    def columns(field: str) -> Any:
        if getattr(parts[0], field) is None:
            return None
        tables = []
        for part in parts:
            wide = np.zeros((len(part.codes), len(labelers)))
            wide[:, [labelers.index(name) for name in part.labelers]] = getattr(part, field)
            tables.append(wide)
        return np.concatenate(tables)[back]

    return LabeledBatch(
        labelers,
        rows("codes"),
        rows("proba"),
        rows("windows"),
        rows("n_votes"),
        accuracies=columns("accuracies"),
        weights=columns("weights"),
        events=tuple(event for part in parts for event in part.events),
    )


# -- writing -------------------------------------------------------------------------------------


class ResultColumns:
    """Converts labels to the columns of an output file."""

    def __init__(self, form: VoteFormat, kept: Sequence[str] = (), review_below: float = 0.0) -> None:
        self.form = form
        self._review_below = review_below
        self._probabilities = list(form.by_class(np.zeros((0, form.n_classes))))
        self._values = _class_values(form)
        ours = ["label", "probability", *self._probabilities, "window", "n_votes", "needs_review"]
        refuse_repeated([*kept, *ours])

    def batch(self, labeled: LabeledBatch, kept: Any) -> Any:
        """A record batch: the columns in `kept`, then the results."""
        columns: dict[str, Any] = {"label": self.labels(labeled.codes), "probability": labeled.probability()}
        for place, name in enumerate(self._probabilities):
            columns[name] = np.ascontiguousarray(labeled.proba[:, place])
        columns["window"] = labeled.windows
        columns["n_votes"] = labeled.n_votes
        columns["needs_review"] = labeled.needs_review(self._review_below)
        for figure, table in (("accuracy", labeled.accuracies), ("weight", labeled.weights)):
            if table is not None:
                for place, name in enumerate(labeled.labelers):
                    columns[f"{figure}_{name}"] = np.ascontiguousarray(table[:, place])
        return add_columns(kept, columns)

    def votes(self, codes: Any) -> Any:
        """Votes as class values; an abstention is an empty cell."""
        import pyarrow as pa

        places = pa.array(codes.astype(np.int64), mask=codes < 0)
        if pa.types.is_string(self._values.type):
            return pa.DictionaryArray.from_arrays(places.cast(pa.int16()), self._values.slice(0, self.form.n_classes))
        return self._values.take(places)

    def labels(self, codes: Any) -> Any:
        """Labels as class values; a tie is the value of an abstention, or an empty cell."""
        import pyarrow as pa

        if self.form.name == "snorkel":
            return pa.array(codes)
        if pa.types.is_integer(self._values.type) and not self._values.null_count:
            return pa.array(self._values.to_numpy()[codes])
        if pa.types.is_string(self._values.type):
            places = np.where(codes < 0, self.form.n_classes, codes).astype(np.int16)
            if self.form.abstain is None:
                return pa.DictionaryArray.from_arrays(pa.array(places, mask=codes < 0), self._values[:-1])
            return pa.DictionaryArray.from_arrays(pa.array(places), self._values)
        return self._values.take(pa.array(np.where(codes < 0, self.form.n_classes, codes)))


def add_columns(kept: Any, columns: dict[str, Any]) -> Any:
    """A record batch with `columns` to the right of those in `kept`."""
    import pyarrow as pa

    names = [*kept.schema.names, *columns]
    refuse_repeated(names)
    arrays = [array if isinstance(array, pa.Array) else pa.array(array) for array in columns.values()]
    return pa.RecordBatch.from_arrays([*kept.columns, *arrays], names=names)


def refuse_repeated(names: list[str]) -> None:
    """Refuse a column of the file that has the name of a result."""
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise DriftvoteError(
            f"column {repeated!r} of the file has the name of a result; ignore it with --drop {repeated}, or rename it"
        )


def _class_values(form: VoteFormat) -> Any:
    """The class values and, last, that of an abstention, as an Arrow array of integers, floats or text."""
    import pyarrow as pa

    values = [*form.classes, form.abstain]
    present = [value for value in values if value is not None]
    if all(type(value) is int for value in present):
        return pa.array(values, pa.int64())
    if all(isinstance(value, (int, float)) for value in present):
        return pa.array(values, pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def check_paths(
    source: str, outputs: dict[str, str | Path | None], force: bool, state: str | Path | None = None
) -> None:
    """Refuse an output that exists (without --force), that is the input, that is named twice, or that has no folder.

    Called before anything is read, because labeling a long file takes time. `outputs` are by option; `state` may exist.
    """
    checked: dict[str, Path] = {}
    for option, name in [*outputs.items(), ("--state", state)]:
        if name is None or str(name) == "-":
            continue
        path = Path(name)
        if path.is_dir():
            raise DriftvoteError(f"{path}: this is a folder; name a file in it")
        target = follow_links(path)
        if source != "-" and _same_file(source, path):
            raise DriftvoteError(f"{path}: {option} is the input itself; choose another name")
        for other, taken in checked.items():
            if _same_file(path, taken):
                raise DriftvoteError(f"{path}: {option} and {other} name one file; choose two names")
        checked[option] = path
        if path.exists() and option != "--state" and not force:
            raise DriftvoteError(f"{path}: the file exists; pass --force to overwrite it, or choose another name")
        folder = target.parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise DriftvoteError(f"{path}: there is no folder {folder}; create it, or choose another folder")
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _same_file(one: str | Path, other: str | Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)

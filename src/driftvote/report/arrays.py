"""A report of votes in memory, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.errors import VoteError
from driftvote.inputs import align_rows
from driftvote.kernels.layout import Ints
from driftvote.models import AdaptiveLabelModel, LabeledStream, LabelModel
from driftvote.report.builder import ReportBuilder
from driftvote.report.context import Report
from driftvote.votes import BAD, VoteFormat


def from_arrays(
    votes: Any,
    model: LabelModel | None = None,
    *,
    out: LabeledStream | None = None,
    gold: Any = None,
    times: Any = None,
    ids: Any = None,
    title: str = "Labels from drifting labelers",
    source: str = "",
    review_below: float = 0.7,
) -> Report:
    """Label votes and report on it.

    Parameters
    ----------
    votes
        Rows in time order, in any form that `label_stream` takes at once: an array, a wide frame, a list of dicts.
    model
        Says how votes are read and weighed; `AdaptiveLabelModel()` by default. It is not changed: the votes are
        labeled by a fresh copy.
    out
        What `model.label_stream(votes)` gave, when that was done already.
    gold
        True labels in the classes of the votes; missing or the abstention value where unknown.
    times, ids
        One entry a row: numbers, dates or text.
    title, source, review_below
        As in `ReportBuilder`.

    Examples
    --------
    >>> import numpy as np
    >>> votes = np.random.default_rng(0).integers(0, 2, size=(500, 5))
    >>> report = from_arrays(votes)
    >>> report.tally.rows, len(report.labelers)
    (500, 5)
    """
    model = AdaptiveLabelModel() if model is None else model
    fresh = model.clone()
    form: VoteFormat = fresh._form
    batch = fresh._families.read(votes, form, fresh._roster)
    said: LabeledStream = fresh.label_stream(votes) if out is None else out
    codes = batch.codes
    if batch.names is not None and tuple(batch.names) != tuple(said.labelers):
        codes = align_rows(batch, model._roster if out is not None else fresh._roster)
    settings = {"model": type(model).__name__, **_told(model.get_params())}
    builder = ReportBuilder(
        labelers=said.labelers,
        classes=form.classes,
        title=title,
        source=source,
        settings=settings,
        reading={"votes": form.describe()},
        has_gold=gold is not None,
        review_below=review_below,
    )
    builder.add(codes, said, times=_array(times), ids=_array(ids), gold=None if gold is None else encoded(gold, form))
    return builder.finish()


def encoded(gold: Any, form: VoteFormat) -> Ints:
    """True labels as class codes, -1 where unknown."""
    values = np.asarray(gold)
    if values.dtype.kind == "f":
        # How frames write whole numbers with gaps.
        values = np.array([None if np.isnan(value) else value for value in values.tolist()], object)
    codes = form.encode(values).astype(np.int64)
    bad = np.flatnonzero(codes == BAD)
    if len(bad):
        row = int(bad[0])
        raise VoteError(
            f"gold of row {row} is {values[row]!r}, which is none of the classes; leave it missing where the truth is"
            " unknown"
        )
    return codes


def _array(values: Any) -> Any:
    return None if values is None else np.asarray(values)


def _told(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that say something: names and classes are shown elsewhere."""
    return {
        name: value
        for name, value in settings.items()
        if value is not None and name not in ("labelers", "classes", "n_jobs")
    }

"""What labeling gives back: a `LabeledStream` for many rows, a `Step` for one, and an `Explanation` of a label."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import numpy.typing as npt

from driftvote import settings
from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.engine import Estimates, Labeled
from driftvote.core.label_models import Mixture
from driftvote.core.label_models.mixture import MEMBERS
from driftvote.core.voting import majority_vote
from driftvote.drift.bands import bound_half_width, calibrated_half_width
from driftvote.drift.events import DriftEvent
from driftvote.errors import SettingError, VoteError
from driftvote.inputs import ARRAY, Origin, make_frame
from driftvote.models.questions import Scores, score
from driftvote.models.show import html_note, html_table, plot_stream
from driftvote.times import Times
from driftvote.votes import VoteFormat

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from narwhals.typing import IntoDataFrame

    from driftvote.committee import StepCertificate
    from driftvote.report import Report


@dataclass(frozen=True)
class Contribution:
    """One labeler's part in a label.

    Attributes
    ----------
    labeler: its name.
    vote: the class it voted for; None where it abstained.
    share: what its vote adds to the log-odds of the label; negative if it speaks against it, 0 where it abstained.
    accuracy: how often it is right when it votes, as estimated then.
    for_label: whether it voted for the label.
    """

    labeler: str
    vote: Any
    share: float
    accuracy: float
    for_label: bool


@dataclass(frozen=True)
class Explanation:
    """Why a row got its label: parts that add up to the log-odds of the label.

    `log_odds` is `base`, plus the `share` of each vote, plus `together`. No class has larger log-odds than the label.

    Attributes
    ----------
    label, probability: the label, in the caller's class values, and how likely it is.
    proba: probability of each class.
    majority: what a plain majority says; the abstention value where it is tied.
    window: rows that the label model was fitted to.
    explained: the class that the parts are about: the label, or the first of the likeliest classes where they tie.
    log_odds: ln(p / (1 - p)) of its probability; at most 27.6, where p differs from 1 by 1e-12.
    base: the same if nobody had voted: class balance, and what abstaining says.
    together: what the votes add together beyond their shares: they confirm or repeat each other. It holds random votes
        (`abstentions="random"`), too.
    votes: one `Contribution` for each labeler, the largest share first, whatever its sign, abstentions last.
    verified: whether the class was verified: then `base` is all there is.
    row: number of the row in the stream; None for a row that was not learned from.
    """

    label: Any
    probability: float
    proba: dict[Any, float]
    majority: Any
    window: int
    explained: Any
    log_odds: float
    base: float
    together: float
    votes: tuple[Contribution, ...]
    verified: bool = False
    row: int | None = None

    @property
    def overruled(self) -> bool:
        """Whether the label is not the majority's."""
        return bool(self.label != self.majority)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"overruled": self.overruled, "votes": [asdict(vote) for vote in self.votes]}

    def _parts(self) -> tuple[list[tuple[str, float, str]], list[float]]:
        """Return the parts of the log-odds with a note on each, and their values rounded so that they add up."""
        cast = [vote for vote in self.votes if vote.vote is not None]
        lines = [(f"{v.labeler}: {v.vote!r}", v.share, f"right {v.accuracy:.0%} of the time") for v in cast]
        lines += [("without any vote", self.base, ""), ("votes together", self.together, "")]
        return lines, round_parts(self.log_odds, [part for _, part, _ in lines], 2)

    def _repr_html_(self) -> str:
        title, *_ = str(self).split("\n")
        if self.verified:
            return html_note(title)
        lines, shown = self._parts()
        rows = [(name, f"{part:+.2f}", note) for (name, _, note), part in zip(lines, shown, strict=True)]
        total = (f"log-odds of {self.explained!r}", f"{self.log_odds:+.2f}", "the sum")
        return html_note(title, after=html_table(("part", "log-odds", ""), [*rows, total]))

    def __str__(self) -> str:
        row = "row" if self.row is None else f"row {self.row:,}"
        majority = f"the majority says {self.majority!r}" if self.overruled else "the majority says the same"
        if self.verified:
            return f"{row}: {self.label!r}, verified; {majority}"
        silent = [vote.labeler for vote in self.votes if vote.vote is None]
        lines, shown = self._parts()
        total = f"log-odds of {self.explained!r}"
        width = max(len(total), *(len(name) for name, _, _ in lines))
        return "\n".join(
            [
                f"{row}: {self.label!r} with probability {self.probability:.3f}, from the last {self.window:,} rows;"
                f" {majority}",
                *(
                    f"  {name:<{width}} {part:+7.2f}{note and '  (' + note + ')'}"
                    for (name, _, note), part in zip(lines, shown, strict=True)
                ),
                f"  {total:<{width}} {self.log_odds:+7.2f}  (the sum)",
                *([f"  no vote: {', '.join(silent)}"] if silent else []),
            ]
        )


def round_parts(total: float, parts: Sequence[float], digits: int) -> list[float]:
    """Return the parts rounded, the last one so that their sum is the rounded total.

    >>> round_parts(1.0, [0.334, 0.333, 0.333], 2)
    [0.33, 0.33, 0.34]
    """
    shown = [round(part, digits) + 0.0 for part in parts[:-1]]
    return [*shown, round(round(total, digits) - sum(shown), digits) + 0.0]


def explain_row(
    votes: Codes, code: int, proba: Floats, estimates: Estimates, form: VoteFormat, names: tuple[str, ...]
) -> Explanation:
    """Return the explanation of one row: `votes` are its codes, `estimates` those of this row alone."""
    majority = int(majority_vote(votes[None], np.zeros(0), form.n_classes)[0][0])
    explained = code if code >= 0 else int(proba.argmax())
    parts = estimates.share_log_odds(votes[None], np.array([explained]), proba[None])
    contributions = [
        Contribution(
            labeler=name,
            vote=form.decode_one(int(votes[place])) if votes[place] >= 0 else None,
            share=float(parts.shares[0, place]),
            accuracy=float(estimates.accuracies[0, place]),
            for_label=bool(votes[place] >= 0 and votes[place] == code),
        )
        for place, name in enumerate(names)
    ]
    return Explanation(
        label=form.decode_one(code),
        probability=float(proba.max()),
        proba=dict(zip(form.classes, proba.tolist(), strict=True)),
        majority=form.decode_one(majority),
        window=int(estimates.windows[0]),
        explained=form.decode_one(explained),
        log_odds=float(parts.total[0]),
        base=float(parts.base[0]),
        together=float(parts.together[0]),
        votes=tuple(sorted(contributions, key=lambda part: (part.vote is None, -abs(part.share)))),
    )


def accuracy_bands(
    estimates: Estimates, kind: str = "calibrated", tau: float = 0.1, delta: float = 0.1
) -> tuple[Floats, Floats]:
    """Return lower and upper ends of a band around each accuracy; see `LabeledStream.bands`."""
    settings.one_of("kind", kind, ("calibrated", "bound"))
    panel, accuracies, k = estimates.panel, estimates.accuracies, estimates.panel.n_classes
    if panel.estimator.bands is None:
        return np.zeros(accuracies.shape), np.ones(accuracies.shape)  # nothing is estimated
    windows = estimates.windows.astype(np.float64)
    if kind == "bound":
        for name, value, most in (("tau", tau, 1.0 - 1.0 / k), ("delta", delta, 1.0)):
            if not 0.0 < value <= most:
                raise SettingError(f"{name} must lie above 0 and be at most {most:.4g}, not {value!r}")
        half = bound_half_width(windows, panel.n_labelers, k, panel.n_windows, float(delta), float(tau))[:, None]
    else:
        half = calibrated_half_width(accuracies, estimates.coverage, windows, k, panel.diluted, panel.estimator.bands)
    return np.maximum(accuracies - half, 0.0), np.minimum(accuracies + half, 1.0)


@dataclass(frozen=True)
class MemberWeight:
    """The weight of a label model in a mixture: now, and by the votes alone, without verified rows."""

    name: str
    weight: float
    before_answers: float


def member_weights(estimates: Estimates) -> list[MemberWeight]:
    """Return the weights of the label models of a mixture at the last row; of other models, an empty list."""
    if not len(estimates.places) or not isinstance(estimates.panel.estimator, Mixture):
        return []
    fits, place = estimates.fits, estimates.places[-1]
    columns = MEMBERS, fits.weights[place].tolist(), fits.free[place].tolist()
    return [MemberWeight(*one) for one in zip(*columns, strict=True)]


class LabeledStream:
    """Labels of consecutive rows, with the estimates behind them.

    Rows are in time order; arrays have one entry, or one line, for each row.

    Attributes
    ----------
    labels
        The label in the caller's own class values; the abstention value where the vote was tied.
    codes
        The same as class codes 0 .. K-1, with -1 for an abstention.
    proba
        Probability of each class (columns in the order of `classes`).
    windows
        Number of rows, this one included, that the estimates come from.
    n_votes
        How many labelers did not abstain on the row.
    events
        Drift events (`DriftEvent`) that were detected at these rows, in order.
    first_row
        Number of the first of these rows in the stream.
    ids
        Ids of the rows, where they came with some; None otherwise.
    labelers, classes
        Names of the columns of the arrays above and below.

    Examples
    --------
    >>> from driftvote import AdaptiveLabelModel
    >>> out = AdaptiveLabelModel().label_stream([[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    >>> out.labels
    array([1, 0, 1, 0])
    >>> out.accuracies.shape, out[-1].window
    ((4, 3), 4)
    """

    def __init__(
        self,
        labeled: Labeled,
        votes: Codes,
        form: VoteFormat,
        labelers: tuple[str, ...],
        origin: Origin = ARRAY,
        events: Sequence[DriftEvent] | None = None,
        first_row: int = 0,
        times: Times | None = None,
        ids: Sequence[Any] | None = None,
    ) -> None:
        self.codes = labeled.labels
        self.proba = labeled.proba
        self.votes = votes  # class codes, -1 abstains: rows x labelers
        self.labelers = labelers
        self.first_row = first_row
        self.ids = ids
        self.events = list(events or ())
        self.looked_for_events = events is not None
        self._estimates = labeled.estimates
        self._verified = labeled.verified
        self._form = form
        self._origin = origin
        self._times = times

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The labels in the caller's own class values."""
        return self._form.decode(self.codes)

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `proba`."""
        return self._form.classes

    @property
    def vote_format(self) -> VoteFormat:
        """How votes are read: class values, their codes, and the value that abstains."""
        return self._form

    @property
    def verified(self) -> Ints:
        """Class codes of the rows that came with a verified class, -1 for the others; empty if no row did."""
        return self._verified

    @property
    def times(self) -> npt.NDArray[Any] | None:
        """The times of the rows: numbers, text, or `datetime64` in UTC; None if they came without times."""
        return None if self._times is None else self._times.to_array()

    @cached_property
    def n_votes(self) -> Ints:
        """How many labelers did not abstain, at each row."""
        # Counted when asked for: it costs as much as a majority vote.
        return np.asarray((self.votes >= 0).sum(axis=1))

    @property
    def windows(self) -> Ints:
        """Number of rows, this one included, that the estimates come from."""
        return self._estimates.windows

    @property
    def probability(self) -> Floats:
        """Probability of the most likely class: how sure the label is."""
        return np.asarray(self.proba.max(axis=1))

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes, at each row."""
        return self._estimates.accuracies

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy with every abstention counted as a blind guess: 1/K + coverage (accuracy - 1/K)."""
        return self._estimates.diluted_accuracies

    @cached_property
    def weights(self) -> Floats:
        """Log-odds that a vote of the labeler for this class adds to it on average; 0 where the labeler abstained.

        They do not add up to the log-odds of a label; the shares of `explain` do.
        """
        return self._estimates.vote_weights(self.votes)

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._estimates.coverage

    @property
    def label_models(self) -> list[MemberWeight]:
        """Weight of each label model of the mixture at the last of these rows; empty for other models."""
        return member_weights(self._estimates)

    def score(self, places: Ints) -> Scores:
        """Return what the label models of the mixture say of some of these rows, by their places."""
        at = self._estimates
        return score(Estimates(at.panel, at.fits, at.places[places]), self.votes[places])

    @property
    def calibrated_for(self) -> str | None:
        """The label model whose calibrated bands fit the accuracies; None where nothing is estimated."""
        return self._estimates.panel.estimator.bands

    @property
    def error_bounds(self) -> Floats | None:
        """The certified error of the row's committee, at each row; None for models without certificates."""
        return getattr(self._estimates, "error_bounds", None)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> LabeledStream: ...
    def __getitem__(self, place: int | slice) -> Step | LabeledStream:
        if not isinstance(place, slice):
            return Step(self, range(len(self))[place])
        places, origin = range(len(self))[place], self._origin
        return LabeledStream(
            Labeled(self.codes[place], self.proba[place], self._estimates[place], self._verified[place]),
            self.votes[place],
            self._form,
            self.labelers,
            replace(
                origin,
                index=None if origin.index is None else origin.index[place],
                tasks=None if origin.tasks is None else origin.tasks[place],
            ),
            [event for event in self.events if event.row - self.first_row in places]
            if self.looked_for_events
            else None,
            self.first_row + places.start,
            None if self._times is None else self._times[place],
            None if self.ids is None else self.ids[place],
        )

    def __iter__(self) -> Iterator[Step]:
        return (Step(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"LabeledStream({len(self)} rows, {len(self.labelers)} labelers, classes {list(self.classes)})"

    def _repr_html_(self) -> str:
        some = range(len(self)) if len(self) <= 10 else [*range(5), *range(len(self) - 5, len(self))]
        times, labels = self.times, [self._form.decode_one(int(self.codes[place])) for place in some]
        head = ["row", *(["id"] if self.ids is not None else []), *(["time"] if times is not None else [])]
        rows = [
            [
                self.first_row + place,
                *([] if self.ids is None else [self.ids[place]]),
                *([] if times is None else [str(times[place]).removesuffix(".000000000")]),
                str(label),
                float(self.proba[place].max()),
                int(self.windows[place]),
                int((self.votes[place] >= 0).sum()),
            ]
            for place, label in zip(some, labels, strict=True)
        ]
        events = [event.sentence for event in self.events[-5:]]
        if self.looked_for_events and not events:
            events = ["no lasting change"]
        title = f"{len(self):,} rows, {len(self.labelers)} labelers, {len(self.classes)} classes"
        return html_note(title, *events, after=html_table([*head, "label", "probability", "window", "votes"], rows))

    def plot(self) -> Figure:
        """Return a matplotlib figure of these rows: accuracies with bands and events, the window, labels by class.

        A notebook shows it; elsewhere `out.plot().savefig("stream.png")`. Needs the extra `plots`.
        """
        return plot_stream(self)

    def report(
        self, path: str | Path | None = None, *, gold: Any = None, times: Any = None, ids: Any = None, **names: Any
    ) -> Report:
        """Return the report on these rows, and write it to `path` if one is given: `.html` or `.json`.

        `gold` are true labels, missing where unknown. Times and ids are those that the rows came with, unless others
        are given. `title`, `source` and `review_below` are as in `driftvote.report.from_result`.

        >>> from driftvote import AdaptiveLabelModel
        >>> AdaptiveLabelModel().label_stream([[1, 1, 1], [0, 0, 0], [1, 0, 1]]).report(title="Three rows")
        Report('Three rows': 3 rows, 3 labelers)
        """
        from driftvote.report import check_report_path, from_result

        if path is not None:
            check_report_path(Path(path))
        report = from_result(self, gold=gold, times=times, ids=ids, **names)
        if path is not None:
            report.save(path)
        return report

    def explain(self, row: int = -1) -> Explanation:
        """Return why a row (its place among these rows) got its label; `print` it.

        >>> from driftvote import AdaptiveLabelModel
        >>> out = AdaptiveLabelModel.paper().label_stream([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, -1]])
        >>> print(out.explain(0))
        row 0: 1 with probability 0.900, from the last 1 rows; the majority says the same
          labeler_0: 1       +2.20  (right 100% of the time)
          labeler_1: 1       +2.20  (right 100% of the time)
          labeler_2: 0       -2.20  (right 100% of the time)
          without any vote   +0.00
          votes together     +0.00
          log-odds of 1      +2.20  (the sum)
        """
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} is not among these {len(self)} rows; they are counted from 0")
        place = range(len(self))[row]
        estimates, code = self._estimates[place : place + 1], int(self.codes[place])
        why = explain_row(self.votes[place], code, self.proba[place], estimates, self._form, self.labelers)
        if len(self._verified) and self._verified[place] >= 0:
            votes = tuple(replace(vote, share=0.0) for vote in why.votes)
            why = replace(why, base=why.log_odds, together=0.0, votes=votes, verified=True)
        return replace(why, row=self.first_row + place)

    def bands(self, kind: str = "calibrated", tau: float = 0.1, delta: float = 0.1) -> tuple[Floats, Floats]:
        """Return lower and upper ends of a band around `accuracies`, rows x labelers.

        `"calibrated"`: held the truth 95 times in 100 in simulated streams without drift inside the window.
        `"bound"`: what the theorem promises with probability 1 - `delta` in any such stream, if every labeler is right
        with probability at least 1/K + `tau`; wide. docs/events.md has both.
        """
        return accuracy_bands(self._estimates, kind, tau, delta)

    def timeline(self, every: int | None = None, backend: str | None = None) -> IntoDataFrame:
        """Return the labelers over time as a tidy frame: one line per labeler and row, or for some of the rows.

        Columns: t (the row's number in the stream), time (if the rows came with times), labeler, accuracy, low, high
        (the calibrated band), coverage, weight, window. `every` is chosen so that about 500 rows are listed; the last
        row is always listed.
        """
        step = max(1, -(-len(self) // 500)) if every is None else settings.n_rows("every", every)
        rows = np.unique(np.append(np.arange(0, len(self), step), max(0, len(self) - 1)))[: len(self)]
        low, high = self.bands()
        columns = {
            "t": np.repeat(self.first_row + rows, len(self.labelers)),
            **({} if self.times is None else {"time": np.repeat(self.times[rows], len(self.labelers))}),
            "labeler": list(self.labelers) * len(rows),
            "accuracy": self.accuracies[rows].ravel(),
            "low": low[rows].ravel(),
            "high": high[rows].ravel(),
            "coverage": self.coverage[rows].ravel(),
            "weight": self.weights[rows].ravel(),
            "window": np.repeat(self.windows[rows], len(self.labelers)),
        }
        return make_frame(columns, backend or self._origin.backend or "pyarrow")

    def to_frame(self, backend: str | None = None, per_labeler: bool = False) -> IntoDataFrame:
        """Return the labels as a frame: of the library that the votes came from, or of `backend`.

        Columns: the task (after a long frame), label, probability, one probability for each class, window,
        n_votes; with `per_labeler` also accuracy, weight and coverage of each labeler. A pandas frame
        keeps its index. Votes that came as an array give an Arrow table unless `backend` says
        "pandas" or "polars".
        """
        columns: dict[str, Any] = {}
        if self._origin.tasks is not None:
            columns[self._origin.task_column] = self._origin.tasks
        results: dict[str, Any] = {"label": self.labels.tolist(), "probability": self.probability}
        results |= self._form.by_class(self.proba)
        results |= {"window": self.windows, "n_votes": self.n_votes}
        if per_labeler:
            for place, name in enumerate(self.labelers):
                results[f"accuracy_{name}"] = self.accuracies[:, place]
                results[f"weight_{name}"] = self.weights[:, place]
                results[f"coverage_{name}"] = self.coverage[:, place]
        clash = set(columns) & set(results)
        if clash:
            raise VoteError(f"the task column is named {clash.pop()!r}, as one of the results is; rename it first")
        return make_frame(columns | results, backend or self._origin.backend or "pyarrow", self._origin.index)

    def to_pandas(self, per_labeler: bool = False) -> pd.DataFrame:
        """Return the labels as a pandas frame; see `to_frame`."""
        return cast("pd.DataFrame", self.to_frame("pandas", per_labeler))


class Step:
    """The label of one row, with the estimates behind it.

    Examples
    --------
    >>> from driftvote import AdaptiveLabelModel
    >>> model = AdaptiveLabelModel(classes=["safe", "unsafe"])
    >>> step = model.update({"judge-a": "safe", "judge-b": "safe", "judge-c": "unsafe"})
    >>> step.label, step.window
    ('safe', 1)
    >>> step
    Step(label='safe', probability=0.658, window=1, n_votes=3)
    """

    __slots__ = ("_row", "_stream")

    def __init__(self, stream: LabeledStream, row: int) -> None:
        self._stream = stream
        self._row = row

    @property
    def _one(self) -> LabeledStream:
        return self._stream if len(self._stream) == 1 else self._stream[self._row : self._row + 1]

    @property
    def label(self) -> Hashable:
        """The label in the caller's class values, or the abstention value."""
        return self._stream._form.decode_one(self.code)

    @property
    def code(self) -> int:
        """The label as a class code; -1 is an abstention."""
        return int(self._stream.codes[self._row])

    @property
    def proba(self) -> Floats:
        """Probability of each class, in the order of `classes`."""
        return self._stream.proba[self._row]

    @property
    def probability(self) -> float:
        """Probability of the most likely class."""
        return float(self.proba.max())

    @property
    def window(self) -> int:
        """Number of rows, this one included, that the estimates come from."""
        return int(self._stream.windows[self._row])

    @property
    def n_votes(self) -> int:
        """How many labelers did not abstain."""
        return int(self._stream.n_votes[self._row])

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each labeler when it votes."""
        return self._one.accuracies[0]

    @property
    def diluted_accuracies(self) -> Floats:
        """Accuracy of each labeler with abstentions counted as blind guesses."""
        return self._one.diluted_accuracies[0]

    @property
    def weights(self) -> Floats:
        """Log-odds that a vote like each labeler's adds to its class on average; 0 where it abstained."""
        return self._one.weights[0]

    @property
    def coverage(self) -> Floats:
        """Share of the rows in the window on which each labeler voted."""
        return self._one.coverage[0]

    @property
    def certificate(self) -> StepCertificate | None:
        """The committee behind the label and its certified error; None for models without certificates."""
        certificate_at = getattr(self._stream._estimates, "certificate_at", None)
        return None if certificate_at is None else certificate_at(self._row)

    @property
    def event(self) -> DriftEvent | None:
        """The drift event that was detected at this row; None nearly always."""
        return next((one for one in self._stream.events if one.row == self._stream.first_row + self._row), None)

    def explain(self) -> Explanation:
        """Return why the row got its label: what each vote adds to its log-odds, and what the majority says."""
        return self._stream.explain(self._row)

    @property
    def labelers(self) -> tuple[str, ...]:
        """Names, in the order of the arrays."""
        return self._stream.labelers

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class values, in the order of `proba`."""
        return self._stream.classes

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python values, labelers and classes by name."""

        def by_name(values: Floats) -> dict[str, float]:
            return dict(zip(self.labelers, values.tolist(), strict=True))

        certificate = self.certificate
        certified = {} if certificate is None else {"certificate": certificate.to_dict()}
        return certified | {
            "label": self.label,
            "probability": self.probability,
            "proba": dict(zip(self.classes, self.proba.tolist(), strict=True)),
            "window": self.window,
            "n_votes": self.n_votes,
            "accuracies": by_name(self.accuracies),
            "weights": by_name(self.weights),
            "coverage": by_name(self.coverage),
        }

    def _repr_html_(self) -> str:
        title = f"label {self.label}, probability {self.probability:.3f}"
        events = [] if self.event is None else [self.event.sentence]
        shares = html_table([str(value) for value in self.classes], [self.proba.tolist()])
        return html_note(title, f"{self.n_votes} votes, window of {self.window:,} rows", *events, after=shares)

    def __repr__(self) -> str:
        return (
            f"Step(label={self.label!r}, probability={self.probability:.3f},"
            f" window={self.window}, n_votes={self.n_votes})"
        )

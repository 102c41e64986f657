"""A committee whose error is certified whatever the dependence between labelers.

The model runs the adaptive window in segments that end where a search is due. A search takes the agreements of the
current window and chooses a committee; until the next one, rows get the plain majority of that committee. Searches
happen at fixed row numbers, so chunks, saving and loading change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftvote import settings, theory
from driftvote.arrays import Arrays, Bools, Codes, Floats, Ints
from driftvote.committee import PanelFacts, StepCertificate, find_committee
from driftvote.committee.facts import AccuracyRange, accuracy_range
from driftvote.committee.program import require_solver
from driftvote.committee.search import MAX_LABELERS, MAX_SIZE
from driftvote.core.engine import NO_CLASSES, Engine, Estimates, Labeled, LogOdds, Mark
from driftvote.core.label_models import Triplet
from driftvote.core.state import agreement_matrix, check_array, n_pairs
from driftvote.core.voting import majority_vote
from driftvote.core.windows import WindowGrid, WindowRule
from driftvote.drift.events import DriftEvent
from driftvote.errors import SettingError, StateError
from driftvote.models.base import LabelModel, keep_given
from driftvote.settings import Number
from driftvote.votes import Roster


class CommitteeLabelModel(LabelModel):
    """The majority of a committee, with a bound on its error that holds however labelers depend on each other.

    The other models assume that labelers err independently. This one assumes only that each labeler is right, when it
    votes, with probability at least 1/K + `tau`. From that and from the agreements in the adaptive window a linear
    program gives the largest error that the majority of a set of labelers can have; the committee is the set with
    the smallest such bound. It is searched every `search_every` rows, and before that at rows 1, 4, 16, 64 ...

    The bound is about the rows of the window at the last search: it holds with probability 1 - `delta` as long as
    no labeler changes inside that window and the accuracies are as declared. A row on which the committee is tied, or
    abstains as a whole, counts half an error. Needs SciPy: `pip install 'driftvote[lp]'`.

    Parameters that are not listed are those of `AdaptiveLabelModel`. The estimated `accuracies` are reported, and not
    used.

    Parameters
    ----------
    tau
        Each labeler is right, when it votes, with probability at least 1/K + tau.
    known_accuracies
        Better knowledge of some labelers, for instance from verified labels: a dict from names to an accuracy, or to a
        pair (at least, at most).
    largest
        Largest size of a committee, up to 9; odd sizes are searched.
    search_every
        Rows between two searches.
    allowance
        How far the true agreements may be from those of the window; None takes the bound of the window, A / sqrt(rows).
    windows
        A `WindowRule` under `bound="mcdiarmid"`, or window sizes.

    Examples
    --------
    Four labelers that are right 85 times in 100, as verified labels show, and two copies of the last:

    >>> from driftvote.streams import simulate
    >>> votes = simulate(np.full((40_000, 4), 0.85), seed=1).votes[:, [0, 1, 2, 3, 3, 3]]
    >>> accuracies = {f"labeler_{i}": (0.84, 1) for i in range(6)}
    >>> model = CommitteeLabelModel(known_accuracies=accuracies, search_every=10_000)
    >>> step = model.label_stream(votes)[-1]
    >>> step.certificate.members, round(step.certificate.bound, 2)
    (('labeler_0', 'labeler_1', 'labeler_2'), 0.12)
    """

    _resolved_defaults: ClassVar[dict[str, Any]] = {"windows": WindowRule(bound="mcdiarmid"), "n_classes": 2}

    def __init__(
        self,
        *,
        tau: Number = 0.1,
        known_accuracies: Mapping[str, AccuracyRange] | None = None,
        largest: int = 5,
        search_every: int = 250,
        allowance: Number | None = None,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        windows: WindowRule | Iterable[int] | None = None,
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
        false_event_rate: Number | None = 2e-7,
        on_event: Callable[[DriftEvent], Any] | None = None,
    ) -> None:
        params = {name: value for name, value in locals().items() if name not in ("self", "on_event", "__class__")}
        require_solver()
        self.windows = windows if isinstance(windows, WindowRule) else WindowRule(windows, bound="mcdiarmid")
        if self.windows.bound != "mcdiarmid":
            raise SettingError(f"a committee is certified under bound='mcdiarmid', not {self.windows.bound!r}")
        super().__init__(params, self.windows, Triplet(), on_event)
        self.windows.check_exact(self._form.n_classes)
        self.tau = _check_number("tau", tau, 1.0 - 1.0 / self._form.n_classes, "accuracy above chance")
        self.known_accuracies = _check_accuracies(known_accuracies)
        self.largest = settings.whole("largest", largest)
        self.search_every = settings.n_rows("search_every", search_every)
        self.allowance = None if allowance is None else _check_number("allowance", allowance, 2.0, "or None")
        if not 1 <= self.largest <= MAX_SIZE:
            raise SettingError(f"largest must be a committee size from 1 to {MAX_SIZE}, not {largest!r}")
        declared = self._stream.roster
        undeclared = sorted({*(self.known_accuracies or ())} - {*declared.names}) if declared.closed else []
        if undeclared:
            raise SettingError(
                f"known_accuracies names {undeclared[0]!r}, which labelers= does not declare; correct the name"
            )
        own = ("tau", "known_accuracies", "largest", "search_every", "allowance", "windows")
        self._params |= {name: keep_given(params[name], getattr(self, name)) for name in own}

    @classmethod
    def paper(cls, n_classes: int = 2, **overrides: Any) -> CommitteeLabelModel:
        """Return the committee under the paper's protocol: its window rule, abstentions and ties decided at random.

        >>> CommitteeLabelModel.paper(seed=7, tau=0.2).tie_break_policy
        'random'
        """
        protocol: dict[str, Any] = {
            "n_classes": None if "classes" in overrides else n_classes,
            "windows": WindowRule(WindowGrid.powers_of_two(20), bound="mcdiarmid", beta=0.1, delta=0.1),
            "abstentions": "random",
            "tie_break_policy": "random",
        }
        return cls(**(protocol | overrides))

    @classmethod
    def _from_settings(cls, plain: dict[str, Any]) -> Any:
        return cls(**(plain | {"windows": WindowRule(**plain["windows"])}))

    # -- results -------------------------------------------------------------------------------

    @property
    def certificate(self) -> StepCertificate:
        """The current committee, and the bound on its error from the last search."""
        return self._committee_engine().certificate

    @property
    def committee(self) -> tuple[str, ...]:
        """Names of the current members; all labelers before the first row."""
        return self.certificate.members if self.n_rows else self.labelers

    def facts(self) -> PanelFacts:
        """Return what the current window says of the panel.

        `worst_case(model.facts(), model.committee)` certifies the committee for the current window, with a proof.
        """
        with self._lock:
            return self._committee_engine().facts()

    @property
    def memory_rows(self) -> int:
        """How many rows before a row, with their numbers, decide its label: a window before the last search."""
        return self.windows.grid[-1] + self.search_every

    def _describe_labelers(self) -> list[str]:
        now = self.certificate
        lines = [
            f"  committee: {', '.join(now.members)}; wrong on at most {now.bound:.1%} of the rows, whatever the"
            " dependence, if the accuracies are as declared by tau and known_accuracies",
            f"  searched at row {now.searched_at} from {now.window} rows, agreements within {now.allowance:.3f}",
        ]
        return lines + super()._describe_labelers()

    # -- engine --------------------------------------------------------------------------------

    def _plan(self, names: tuple[str, ...]) -> SearchPlan:
        if len(names) > MAX_LABELERS:
            raise SettingError(
                f"a committee can be searched among {MAX_LABELERS} labelers at most, not {len(names)}; name the ones to"
                " use with labelers=[...], or make groups of them with groups="
            )
        at_least, known = 1.0 / self._form.n_classes + self.tau, self.known_accuracies or {}
        return SearchPlan(
            labelers=names,
            accuracies=tuple(known.get(name, (at_least, 1.0)) for name in names),
            every=self.search_every,
            largest=self.largest,
            allowance=self.allowance,
            delta=self.windows.delta,
            n_windows=len(self.windows.grid),
            n_classes=self._form.n_classes,
            random_votes=self.abstentions == "random",
        )

    def _new_engine(self, roster: Roster) -> Any:
        return CommitteeEngine(super()._new_engine(roster), self._plan(roster.names))

    def _widen_engine(self, engine: Any, roster: Roster) -> Any:
        inner = super()._widen_engine(engine.inner, roster)
        return CommitteeEngine(inner, self._plan(roster.names), engine.certificate)

    def _first_vote(self, codes: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return majority_vote(codes, draws, self._form.n_classes)

    def _committee_engine(self) -> CommitteeEngine:
        engine: Any = self._fitted_engine()
        return engine


def _check_number(name: str, value: Any, highest: float, meaning: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= highest:
        raise SettingError(f"{name} must be a number from 0 to {highest:.4g} ({meaning}), not {value!r}")
    return float(value)


def _check_accuracies(accuracies: Any) -> dict[str, tuple[float, float]] | None:
    if accuracies is None:
        return None
    if not isinstance(accuracies, Mapping):
        raise SettingError(f"known_accuracies must be a dict from names to accuracies or pairs, not {accuracies!r}")
    return {str(name): accuracy_range(str(name), value) for name, value in accuracies.items()}


# -- searches --------------------------------------------------------------------------------------


def last_search(n_rows: int, every: int) -> int:
    """Return the last row number up to `n_rows` with a search: a multiple of `every`, before that a power of four.

    >>> [last_search(n_rows, every=100) for n_rows in (0, 1, 3, 4, 99, 100, 256, 999)]
    [0, 1, 1, 4, 64, 100, 200, 900]
    """
    if n_rows >= every:
        return n_rows - n_rows % every
    return int(4 ** ((n_rows.bit_length() - 1) // 2)) if n_rows else 0


def next_search(n_rows: int, every: int) -> int:
    """Return the first row number after `n_rows` with a search."""
    last = last_search(n_rows, every)
    return last + every if last >= every else min(every, max(1, 4 * last))


@dataclass(frozen=True)
class SearchPlan:
    """When a committee of these labelers is searched, and from which facts."""

    labelers: tuple[str, ...]
    accuracies: tuple[tuple[float, float], ...]  # (at least, at most) for each of them
    every: int
    largest: int
    allowance: float | None
    delta: float
    n_windows: int
    n_classes: int
    random_votes: bool  # random votes replace abstentions

    def allowances(self, votes: Ints, window: int) -> tuple[float, float]:
        """Return how far agreements and coverages of a window may be off: as declared, or by the window's bound."""
        if self.allowance is not None:
            return self.allowance, self.allowance / 2.0
        # The failure probability is shared by all agreements, and by the coverages where some labeler abstains.
        count = n_pairs(len(votes)) + (len(votes) if votes.min() < window else 0)
        factor = theory.statistics_factor(count, self.n_windows, self.delta)
        return theory.window_allowances(factor, window, self.n_classes)

    def facts(self, sums: Ints, votes: Ints, window: int) -> PanelFacts:
        """Return what the pair sums and vote counts of a window say of the panel."""
        allowance, coverage_allowance = self.allowances(votes, window)
        facts = PanelFacts.from_agreements(
            agreement_matrix(sums, len(votes), window, self.n_classes),
            accuracies=self.accuracies,
            allowance=allowance,
            coverage=votes / window,
            coverage_allowance=coverage_allowance,
            names=self.labelers,
            n_classes=self.n_classes,
        )
        return facts.with_random_votes() if self.random_votes else facts


class CommitteeEngine:
    """A window engine, run in segments that end where a search is due, and the committee of the last search."""

    def __init__(self, inner: Engine, plan: SearchPlan, certificate: StepCertificate | None = None) -> None:
        self.inner = inner
        self.plan = plan
        # Before the first search all labelers vote, and nothing is certified.
        self.certificate = certificate or StepCertificate(
            members=plan.labelers, bound=1.0, searched_at=0, window=0, allowance=2.0
        )

    def __getattr__(self, name: str) -> Any:
        """Whatever concerns the window is that of the window engine."""
        if name == "inner":  # not there yet, while a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.inner.nbytes + sum(array.nbytes for array in self._search_arrays().values())

    # -- rows ----------------------------------------------------------------------------------

    def label(self, rows: Codes, draws: Floats, verified: Ints = NO_CLASSES, n_jobs: int = 1) -> Labeled:
        """Learn from each row, then label it."""
        parts: list[Estimates] = []
        certificates, searches = [self.certificate], np.empty(len(rows), np.int64)
        for segment in self._segments(len(rows)):
            parts.append(self.inner.label(rows[segment], draws[segment]).estimates)
            searches[segment] = len(certificates) - 1
            if last_search(self.inner.n_rows, self.plan.every) == self.inner.n_rows:
                self.search()
                searches[segment.stop - 1] = len(certificates)
                certificates.append(self.certificate)
        estimates = CommitteeEstimates(Estimates.join(parts), self.plan.labelers, certificates, searches)
        labels, proba = self._vote(rows, draws, estimates.membership)
        return Labeled(labels, proba, estimates)

    def predict(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        """Label rows by the current committee; learn nothing."""
        return self._vote(rows, draws, _membership(self.certificate, self.plan.labelers))

    def _vote(self, rows: Codes, draws: Floats, membership: Bools) -> tuple[Ints, Floats]:
        return majority_vote(np.where(membership, rows, rows.dtype.type(-1)), draws, self.plan.n_classes)

    def current(self) -> Estimates:
        """Return the estimates after the rows seen, as for one row."""
        if not self.inner.n_rows:
            return self.inner.current()
        return CommitteeEstimates(self.inner.current(), self.plan.labelers, [self.certificate], np.zeros(1, np.int64))

    def _segments(self, n_rows: int) -> Iterator[slice]:
        """Yield the parts of a chunk up to each search; each part must be learned before the next one is asked for."""
        begin = 0
        while begin < n_rows:
            end = min(n_rows, begin + next_search(self.inner.n_rows, self.plan.every) - self.inner.n_rows)
            yield slice(begin, end)
            begin = end

    def mark(self, n_rows: int) -> tuple[Mark, StepCertificate]:
        """Return what `rewind` needs to take back the next `n_rows` rows."""
        return self.inner.mark(n_rows), self.certificate

    def rewind(self, mark: tuple[Mark, StepCertificate]) -> None:
        """Be as at the mark again."""
        self.inner.rewind(mark[0])
        self.certificate = mark[1]

    # -- searches ------------------------------------------------------------------------------

    def search(self) -> None:
        """Choose the committee anew, from the current window."""
        _, votes, window = self.inner.window_sums()
        best = find_committee(self.facts(), self.plan.largest)
        allowance, _ = self.plan.allowances(votes, window)
        self.certificate = StepCertificate(
            members=best.members, bound=best.bound, searched_at=self.inner.n_rows, window=window, allowance=allowance
        )

    def facts(self) -> PanelFacts:
        """Return what the current window says of the panel."""
        return self.plan.facts(*self.inner.window_sums())

    # -- state ---------------------------------------------------------------------------------

    def start_at(self, row: int, before: Codes) -> None:
        """Move an engine without rows to row `row` of a stream whose last rows are `before`."""
        last = last_search(row, self.plan.every)
        past, since = before[: len(before) - (row - last)], before[len(before) - (row - last) :]
        self.inner.start_at(last, past[-self.inner.largest_window :])
        self.search()
        if len(since):
            self.inner.label(since, np.zeros(0))

    def _search_arrays(self) -> Arrays:
        last = self.certificate
        return {
            "committee_search": np.array([last.searched_at, last.window], np.int64),
            "committee_members": _membership(last, self.plan.labelers),
            "committee_bound": np.array([last.bound, last.allowance]),
        }

    def to_arrays(self) -> Arrays:
        """Return the state as named arrays."""
        return self.inner.to_arrays() | self._search_arrays()

    def restore(self, arrays: Arrays) -> None:
        """Take over a saved state."""
        self.inner.restore(arrays)
        check_array(arrays, "committee_search", np.int64, (2,))
        check_array(arrays, "committee_members", np.bool_, (len(self.plan.labelers),))
        check_array(arrays, "committee_bound", np.float64, (2,))
        row, window = arrays["committee_search"].tolist()
        bound, allowance = arrays["committee_bound"].tolist()
        members = tuple(np.array(self.plan.labelers)[arrays["committee_members"]].tolist())
        if not members or row < 0 or window < 0 or not 0.0 <= bound <= 1.0:
            raise StateError("the state's arrays 'committee_...' are not those of a committee")
        self.certificate = StepCertificate(
            members=members, bound=bound, searched_at=row, window=window, allowance=allowance
        )


def _membership(certificate: StepCertificate, labelers: tuple[str, ...]) -> Bools:
    return np.array([name in certificate.members for name in labelers])


class CommitteeEstimates(Estimates):
    """Estimates of the window; the votes of the members of the row's committee weigh 1, and those of others 0."""

    def __init__(
        self, window: Estimates, labelers: tuple[str, ...], certificates: list[StepCertificate], searches: Ints
    ) -> None:
        super().__init__(window.panel, window.fits, window.places)
        self.labelers = labelers
        self.certificates = certificates
        self.searches = searches  # (rows,): which certificate holds

    @cached_property
    def membership(self) -> Bools:
        """(rows, labelers): whether the labeler is a member."""
        return np.array([_membership(one, self.labelers) for one in self.certificates])[self.searches]

    def vote_weights(self, rows: Codes) -> Floats:
        return np.where(rows >= 0, self.membership, 0.0)

    def share_log_odds(self, rows: Codes, targets: Ints, proba: Floats) -> LogOdds:
        members = np.where(self.membership, rows, rows.dtype.type(-1))
        majority = Estimates.unknown(len(rows), rows.shape[1], self.panel.n_classes)
        return majority.share_log_odds(members, targets, proba)

    @property
    def error_bounds(self) -> Floats:
        """(rows,): the bound on the error of the row's committee."""
        return np.array([one.bound for one in self.certificates])[self.searches]

    def certificate_at(self, row: int) -> StepCertificate:
        """Return the certificate of a row."""
        return self.certificates[int(self.searches[row])]

    def __getitem__(self, rows: slice) -> CommitteeEstimates:
        return CommitteeEstimates(super().__getitem__(rows), self.labelers, self.certificates, self.searches[rows])

    @classmethod
    def join(cls, parts: Sequence[Any]) -> CommitteeEstimates:
        """Return the estimates of one part after the other."""
        certificates: list[StepCertificate] = []
        searches = []
        for part in parts:
            searches.append(part.searches + len(certificates))
            certificates += part.certificates
        return cls(super().join(parts), parts[-1].labelers, certificates, np.concatenate(searches))

"""A committee whose error is certified whatever the dependence between labelers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from driftvote.committee import Certificate, Known, worst_case
from driftvote.committee.known import accuracy_range
from driftvote.errors import DriftvoteError, SettingError
from driftvote.kernels.layout import Codes, Floats, Ints
from driftvote.labels import plain_vote
from driftvote.models.adaptive import AdaptiveLabelModel
from driftvote.models.committee_engine import CommitteeEngine, Plan
from driftvote.models.engine import Engine, WindowEngine
from driftvote.models.settings import Number, whole
from driftvote.votes import Roster


class CommitteeLabelModel(AdaptiveLabelModel):
    """The majority of a committee, with a bound on its error that holds however labelers depend on each other.

    The other models take labelers to err independently. This one takes only that each is right, when it votes, with
    probability at least 1/K + `tau`. From that and from the agreements in the adaptive window a linear program
    gives the largest error that the majority of a set of labelers can have; the committee is the set with the
    smallest such bound. It is searched again every `refresh` rows and whenever the window falls to half or less.

    The bound is about the rows of the window: it holds with probability 1 - `delta` as long as nothing drifts inside
    it and the accuracies are what you say. A row on which the committee is tied, or silent, counts half an error.

    Parameters
    ----------
    tau
        Every labeler is right, when it votes, with probability at least 1/K + tau; one number, or a dict by name
        (others: 0).
    accuracies
        What is known better, for instance from verified labels: a dict from names to an accuracy, or to a pair
        (at least, at most). `"estimated"` takes the estimates of the window, less the allowance, as the lower ends:
        larger committees, but estimates do take errors to be independent, and the bound is then only as good.
    largest
        Members of a committee at most, up to 9; odd sizes are searched.
    refresh
        Rows between two searches.
    allowance
        By how much the true agreements may differ from those of the window; None takes the bound of the window,
        A / sqrt(rows).

    The other parameters are those of `AdaptiveLabelModel`; estimated `accuracies` are reported, and not used.

    Examples
    --------
    Four labelers that are right 85 times in 100, as verified labels show, and two copies of the last:

    >>> from driftvote.streams import simulate
    >>> votes = simulate(np.full((40_000, 4), 0.85), seed=1).votes[:, [0, 1, 2, 3, 3, 3]]
    >>> model = CommitteeLabelModel(accuracies={f"labeler_{i}": (0.84, 1) for i in range(6)})
    >>> step = model.label_stream(votes)[-1]
    >>> step.certificate.members, round(step.certificate.bound, 2)
    (('labeler_0', 'labeler_1', 'labeler_2'), 0.12)
    """

    def __init__(
        self,
        *,
        tau: Any = 0.1,
        accuracies: Mapping[str, Any] | str | None = None,
        largest: int = 5,
        refresh: int = 1000,
        allowance: Number | None = None,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        windows: Iterable[int] | None = None,
        beta: Number = 0.1,
        delta: Number = 0.1,
        clip: tuple[Number, Number] = (0.1, 0.9),
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
    ) -> None:
        super().__init__(
            n_classes=n_classes,
            votes=votes,
            classes=classes,
            abstain=abstain,
            labelers=labelers,
            windows=windows,
            beta=beta,
            delta=delta,
            clip=clip,
            abstentions=abstentions,
            tie_break_policy=tie_break_policy,
            seed=seed,
            n_jobs=n_jobs,
            groups=groups,
            estimator="triplet",
            bound="mcdiarmid",
            watch="agreements",
            false_event_rate=None,
        )
        for name in ("estimator", "bound", "watch", "class_balance", "false_event_rate"):
            del self._settings[name]  # a committee has no choice in these
        self.tau = _checked_tau(tau, self._form.n_classes)
        self.estimated = isinstance(accuracies, str) and accuracies == "estimated"
        self.known_accuracies = _checked_accuracies(None if self.estimated else accuracies)
        self.largest = whole("largest", largest)
        self.refresh = whole("refresh", refresh)
        self.allowance = None if allowance is None else _checked_allowance(allowance)
        if not 1 <= self.largest <= 9:
            raise SettingError(f"largest must be a committee size from 1 to 9, not {largest!r}")
        if self.refresh < 1:
            raise SettingError(f"refresh must be a number of rows, at least 1, not {refresh!r}")
        self._entering: tuple[str, ...] = ()
        self._check_names()
        self._settings |= {
            "tau": self.tau,
            "accuracies": "estimated" if self.estimated else None if accuracies is None else self.known_accuracies,
            "largest": self.largest,
            "refresh": self.refresh,
            "allowance": self.allowance,
        }

    def _check_names(self) -> None:
        told = {*self.known_accuracies, *(self.tau if isinstance(self.tau, dict) else ())}
        strangers = sorted(told - set(self._roster.names))
        if self._roster.closed and strangers:
            raise SettingError(
                f"tau or accuracies names {strangers[0]!r}, which labelers= does not declare; correct the name"
            )

    # -- engine --------------------------------------------------------------------------------

    def _engine_for(self, roster: Roster) -> Engine:
        self._entering = roster.names  # accuracies are given by name, and an engine knows only places
        try:
            return super()._engine_for(roster)
        finally:
            self._entering = ()

    def _plan(self, n_labelers: int) -> Plan:
        if n_labelers > 40:
            raise SettingError(
                f"a committee can be searched among 40 labelers at most, not {n_labelers}; name the ones to use with"
                " labelers=[...], or make families of them with groups="
            )
        names = self._entering or self._roster.names
        low, high = self._accuracy_ranges(names)
        return Plan.made(
            np.array(self.windows, np.int64),
            self.refresh,
            largest=self.largest,
            allowance=self.allowance,
            delta=self.delta,
            accuracy_low=low,
            accuracy_high=high,
            estimated=self.estimated,
        )

    def _accuracy_ranges(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        chance = 1.0 / self._form.n_classes
        tau = self.tau if isinstance(self.tau, dict) else dict.fromkeys(names, self.tau)
        ranges = [self.known_accuracies.get(name, (chance + tau.get(name, 0.0), 1.0)) for name in names]
        return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])

    def _new_engine(self, n_labelers: int) -> Any:
        inner = WindowEngine(self._rule(n_labelers), n_labelers, self.n_jobs)
        return CommitteeEngine(inner, self._plan(n_labelers))

    def _grown(self, engine: Engine, newcomers: Codes) -> Engine:
        assert isinstance(engine, CommitteeEngine)
        width = engine.n_labelers + newcomers.shape[1]
        return engine.joined_by(newcomers, self._rule(width), self._plan(width))

    def _first_vote(self, rows: Codes, draws: Floats) -> tuple[Ints, Floats]:
        return plain_vote(rows, draws, self._form.n_classes)

    def _started(self) -> Any:
        if not isinstance(self._engine, CommitteeEngine) or not self.n_rows:
            raise DriftvoteError("there is no committee yet: the model has seen no rows")
        return self._engine

    # -- what is known now ---------------------------------------------------------------------

    @property
    def committee(self) -> tuple[str, ...]:
        """Names of the members now; everybody before the first row."""
        if self._engine is None:
            return self.labelers
        members = self._engine.record.members  # type: ignore[attr-defined]
        return tuple(name for name, member in zip(self.labelers, members, strict=True) if member)

    def facts(self) -> Known:
        """What the last search went by: ranges of accuracies, agreements and coverages, for `worst_case`."""
        engine: CommitteeEngine = self._started()
        found, _ = engine.facts(engine.record)
        return Known(self.labelers, *found, n_classes=self._form.n_classes)

    def certificate(self, whole_panel: bool = False) -> Certificate:
        """The committee's certificate with its proof and its worst distribution (needs `driftvote[lp]`).

        With `whole_panel` the agreements with those outside the committee count too: never looser, often tighter.
        """
        return worst_case(self.facts(), self.committee, whole_panel=whole_panel)

    def _describe_labelers(self) -> list[str]:
        engine: CommitteeEngine = self._started()
        record = engine.record
        lines = [
            f"  committee: {', '.join(self.committee)}; wrong on at most {record.bound:.1%} of the rows, whatever the"
            f" dependence, if the accuracies are what tau and accuracies say",
            f"  searched at row {record.row} from {record.window} rows, agreements within {record.allowance:.3f}",
        ]
        return lines + super()._describe_labelers()


def _checked_tau(tau: Any, n_classes: int) -> Any:
    room = 1.0 - 1.0 / n_classes

    def one(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = -1.0
        if isinstance(value, bool) or not 0.0 <= number <= room:
            raise SettingError(f"{name} must be a number from 0 to {room:.4g} (accuracy above chance), not {value!r}")
        return number

    if isinstance(tau, Mapping):
        return {str(name): one(f"tau of {name!r}", value) for name, value in tau.items()}
    return one("tau", tau)


def _checked_accuracies(accuracies: Any) -> dict[str, tuple[float, float]]:
    if accuracies is None:
        return {}
    if not isinstance(accuracies, Mapping):
        raise SettingError(
            f"accuracies must be a dict from names to accuracies or pairs, or 'estimated', not {accuracies!r}"
        )
    return {str(name): accuracy_range(str(name), value) for name, value in accuracies.items()}


def _checked_allowance(allowance: Number) -> float:
    if isinstance(allowance, bool) or not isinstance(allowance, (int, float)) or not 0.0 <= allowance <= 2.0:
        raise SettingError(
            f"allowance must be a number from 0 to 2, or None for the bound of the window, not {allowance!r}"
        )
    return float(allowance)

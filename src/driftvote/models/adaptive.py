"""`AdaptiveLabelModel`: a window that adapts to the drift at every row, and a label model fitted inside it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np

from driftvote import settings, theory
from driftvote.arrays import Floats
from driftvote.core.engine import Engine
from driftvote.core.label_models import ESTIMATORS, EmEstimator, Estimator, Mixture
from driftvote.core.label_models.mixture import MEMBERS
from driftvote.core.windows import WindowGrid, WindowRule, WindowTest
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError, SettingError
from driftvote.models.base import LabelModel, serialized
from driftvote.models.questions import Question, Questions, choose_from_window, dispute
from driftvote.settings import Number

WINDOW_SHORTCUTS = ("bound", "beta", "delta")
ESTIMATOR_SHORTCUTS = ("refresh", "class_balance", "clip", "answer_errors")


class AdaptiveLabelModel(LabelModel):
    """Labels from noisy labelers that drift, without ground truth.

    For each row, the model chooses how many of the last rows still count (the window), estimates from the votes in
    that window how reliable each labeler is, and labels the row. The window never reaches back beyond a drift event
    that changed a labeler. Where accuracies explain how often labelers agree, it grows only as long as the
    agreements in a larger window differ by no more than noise.

    The window rule is that of Mazzetto, Esfandiarpoor, Singirikonda, Upfal and Bach, "An Adaptive Method for
    Weak Supervision with Drifting Data" (AISTATS 2025); the default goes beyond it in the threshold and in the
    label model. `AdaptiveLabelModel.paper()` is exactly the paper's method.

    Parameters
    ----------
    n_classes
        Number of classes, default 2. Votes are 0 .. K-1 and -1 abstains, unless declared otherwise.
    votes
        `"snorkel"` (0 .. K-1, -1 abstains; assumed if no format is declared) or `"signed"` (-1 and +1, 0
        abstains: the paper, FlyingSquid). Passing `"snorkel"` also switches off the check that refuses a
        first batch of only -1 and +1.
    classes, abstain
        Any other values: the classes in order, and the value that abstains (missing always does).
    labelers
        Names. Declared names are all there are, and select the columns of a wide frame; without them
        names come with the votes, and new ones may join later (their past is all abstentions).
    windows
        A `WindowRule`: window sizes to choose from, threshold, sensitivity. A list of sizes or a `WindowGrid` stands
        for a rule with these sizes. Its settings `bound`, `beta` and `delta` are taken as keywords, too.
    estimator
        The label model that is fitted in the window: `"mixture"` (the default: a mixture of label models that fail on
        different streams), `"confusion"` (how each labeler votes, or abstains, on each class), `"one_coin"` (one
        accuracy for each labeler), `"wawa"` (weights by agreement with the majority), `"triplet"` (the paper's: one
        accuracy for each labeler from the agreements of three), or one of the objects `Mixture`, `Confusion`,
        `OneCoin`, `Wawa`, `Triplet`. Their settings `refresh`, `class_balance` and `clip` are taken as keywords, too.
    abstentions
        `"zero"`: a pair with an abstention counts neither as agreeing nor as disagreeing.
        `"random"`: the paper's protocol, an abstention is a random vote (drawn from `seed`).
    tie_break_policy
        `"abstain"`, or `"random"` (drawn from `seed`).
    seed
        Of the draws above. Draws belong to rows, so chunks do not change them.
    n_jobs
        Threads that share a batch of half a million rows or more, for the estimators `"mixture"`, `"confusion"`,
        `"one_coin"` and `"wawa"`. The result does not depend on it.
    groups
        Groups of labelers that cast one vote each, the one that most members cast: a dict from labelers to their
        group, or a list of lists. A labeler in no group is a group of its own; all results are by group.
    false_event_rate
        Drift events that chance alone may make, per row, while no labeler changes; None: do not look for events.
    on_event
        Called with each `DriftEvent`, in order, once the rows of the call are learned. Not a setting: it is neither
        saved nor cloned; the attribute `on_event` can be set at any time.

    Examples
    --------
    >>> model = AdaptiveLabelModel(n_classes=2)
    >>> step = model.update([1, 0, -1, 1])
    >>> step.label, step.window
    (1, 1)
    >>> out = model.label_stream([[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, -1]])
    >>> out.labels
    array([0, 1, 0])
    >>> model.n_rows, model.window
    (4, 4)
    """

    _resolved_defaults: ClassVar[dict[str, Any]] = {"windows": WindowRule(), "estimator": Mixture(), "n_classes": 2}

    def __init__(
        self,
        *,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        windows: WindowRule | Iterable[int] | None = None,
        estimator: Estimator | str = "mixture",
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
        false_event_rate: Number | None = 2e-7,
        on_event: Callable[[DriftEvent], Any] | None = None,
        **shortcuts: Any,
    ) -> None:
        params = {name: value for name, value in locals().items() if name in _PARAMS}
        unknown = [name for name in shortcuts if name not in (*WINDOW_SHORTCUTS, *ESTIMATOR_SHORTCUTS)]
        if unknown:
            known = (*_PARAMS, *WINDOW_SHORTCUTS, *ESTIMATOR_SHORTCUTS)
            raise settings.unknown_keyword(type(self).__name__, unknown[0], known, settings.SETTING_HINTS, "setting")
        self.windows = resolve_rule(windows, {name: shortcuts[name] for name in WINDOW_SHORTCUTS if name in shortcuts})
        self.estimator = resolve_estimator(
            estimator, {name: shortcuts[name] for name in ESTIMATOR_SHORTCUTS if name in shortcuts}
        )
        params |= {"windows": self.windows, "estimator": self.estimator}
        super().__init__(params, self.windows, self.estimator, on_event)
        self.windows.check_exact(self._form.n_classes)

    @classmethod
    def paper(cls, n_classes: int = 2, **overrides: Any) -> AdaptiveLabelModel:
        """Return the paper's method exactly, independent of the defaults.

        One accuracy for each labeler, from agreements alone, windows 1, 2, 4 ... 2^19, beta = delta = 0.1,
        accuracies clipped to [0.1, 0.9], abstentions and ties decided at random (seeded).

        >>> AdaptiveLabelModel.paper(seed=7).abstentions
        'random'
        """
        protocol: dict[str, Any] = {
            "n_classes": None if "classes" in overrides else n_classes,
            "windows": WindowGrid.powers_of_two(20),
            "estimator": "triplet",
            "bound": "mcdiarmid",
            "beta": 0.1,
            "delta": 0.1,
            "clip": (0.1, 0.9),
            "abstentions": "random",
            "tie_break_policy": "random",
        }
        return cls(**(protocol | overrides))

    @classmethod
    def _from_settings(cls, plain: dict[str, Any]) -> Any:
        windows, estimator = dict(plain["windows"]), dict(plain["estimator"])
        kind = ESTIMATORS[estimator.pop("name")]
        return cls(**(plain | {"windows": WindowRule(**windows), "estimator": kind(**estimator)}))

    def guarantee(self, tau: Number = 0.1) -> theory.Guarantee:
        """Return the method's guarantee as numbers at the current row: what is proved, and what remains unknown.

        Proved for `bound="mcdiarmid"`; under a sharper bound the numbers are those of the paper's rule at this window,
        and say so. `tau`: every labeler is right with probability at least 1/K + tau, abstentions counted as blind
        guesses.

        >>> model = AdaptiveLabelModel.paper()
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0]] * 2048)
        >>> proof = model.guarantee(tau=0.3)
        >>> proof.window, round(proof.factor, 2), round(proof.phi, 1), round(proof.agreement_error, 3)
        (4096, 3.94, 76.1, 0.062)
        """
        engine = self._fitted_engine()
        most = 1.0 - 1.0 / self._form.n_classes
        if not 0.0 < settings.positive("tau", tau) <= most:
            raise SettingError(f"tau must lie above 0 and be at most {most:.4g}, not {tau!r}")
        return theory.make_guarantee(
            self.windows.grid,
            engine.n_labelers,
            self._form.n_classes,
            beta=self.windows.beta,
            delta=self.windows.delta,
            rows=self.n_rows,
            window=self.window,
            tau=tau,
            proved=self.windows.bound == "mcdiarmid" and not self.windows.restarts,
        )

    @property
    def confusions(self) -> Floats:
        """How each labeler votes on each class: labelers x classes x (classes + 1), the last column abstains."""
        return self._em_estimator().confusions(self._current().fits)[0]

    @property
    def estimated_class_balance(self) -> Floats:
        """Share of each class in the window."""
        return self._em_estimator().class_shares(self._current().fits)[0]

    @property
    def mixture(self) -> dict[str, float]:
        """Weight of each label model of the mixture, now; the weights add up to 1."""
        self._mixture_engine()
        return dict(zip(MEMBERS, self._current().fits.weights[0].tolist(), strict=True))

    @property
    def mixture_before_answers(self) -> dict[str, float]:
        """Weight of each label model by the votes alone, without the verified rows; see `mixture`."""
        self._mixture_engine()
        return dict(zip(MEMBERS, self._current().fits.free[0].tolist(), strict=True))

    def _mixture_engine(self) -> Engine:
        engine = self._fitted_engine()
        if not isinstance(self.estimator, Mixture):
            raise DriftvoteError(f"estimator={self.estimator.name!r} is one label model, not a mixture")
        return engine

    @serialized
    def ask(self, n: int = 20, *, since: int = 0) -> Questions:
        """Return the rows whose true class says most about the others, most valuable first; nothing changes.

        They are rows of the current window on which the label models of the mixture disagree. Give the answers to
        `feedback`: they move the weights of the label models, and the probabilities of rows like the verified ones.
        There are fewer questions than `n`, or none, where little is in dispute; `note` says so. Without an answer, the
        same questions come again. `since` is the first row that may be asked for, if older ones cannot be looked up.

        Examples
        --------
        >>> from driftvote.streams import swap
        >>> stream = swap(4_000)
        >>> model = AdaptiveLabelModel()
        >>> _ = model.label_stream(stream.votes)
        >>> questions = model.ask(3)
        >>> len(questions), sorted(questions[0].classes)
        (3, [0, 1])
        >>> model.feedback({question.row: stream.truth[question.row] for question in questions})
        """
        count = settings.whole("n", n)
        if count < 0:
            raise SettingError(f"n must be a number of questions from 0, not {n}")
        engine, stream = self._mixture_engine(), self._stream
        chosen, named, proba = choose_from_window(engine, count, self.seed, settings.whole("since", since))
        rows, _ = engine.rows_at(np.array(chosen.rows, np.int64))
        found = []
        for place, row in enumerate(chosen.rows):
            classes, why = dispute(named[place], proba[place], self._form, chosen.likes[row])
            votes = {
                name: self._form.decode_one(code)
                for name, code in zip(self.labelers, rows[place].tolist(), strict=True)
                if code >= 0
            }
            time = None if stream.detector is None else stream.detector.time_of(row)
            found.append(Question(row, stream.ids.by_row.get(row), time, votes, classes, why))
        return Questions(found, chosen.expected_change, chosen.note)

    def _em_estimator(self) -> EmEstimator:
        self._fitted_engine()
        if not isinstance(self.estimator, EmEstimator):
            raise DriftvoteError(f"estimator={self.estimator.name!r} does not estimate how labelers vote on each class")
        return self.estimator

    def why_window(self) -> list[WindowTest]:
        """Return the comparisons behind the current window: which larger one was refused, and by which pair.

        An empty list says that agreements do not decide: the window holds every row since the last drift event that
        changed a labeler, because accuracies do not explain how the labelers agree (docs/estimators.md).

        >>> model = AdaptiveLabelModel.paper(windows=[2, 4])
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
        >>> print(model.why_window()[0])
        4 rows accepted after 2: largest change of agreement 0.5000 (labeler_0, labeler_1) <= 2.0671
        """
        with self._lock:
            return self._fitted_engine().explain_window(self.labelers)


_PARAMS = (
    "n_classes",
    "votes",
    "classes",
    "abstain",
    "labelers",
    "windows",
    "estimator",
    "abstentions",
    "tie_break_policy",
    "seed",
    "n_jobs",
    "groups",
    "false_event_rate",
)


def resolve_rule(windows: WindowRule | Iterable[int] | None, shortcuts: dict[str, Any]) -> WindowRule:
    """Return the window rule of the settings."""
    if isinstance(windows, WindowRule):
        return replace(windows, **shortcuts) if shortcuts else windows
    return WindowRule(windows, **shortcuts)


def resolve_estimator(estimator: Estimator | str, shortcuts: dict[str, Any]) -> Estimator:
    """Return the label model of the settings; a setting that it does not have is refused."""
    if not isinstance(estimator, Estimator):
        estimator = ESTIMATORS[settings.one_of("estimator", estimator, ESTIMATORS)]()
    for name in shortcuts:
        if name not in {part.name for part in fields(estimator)}:  # type: ignore[arg-type]
            fitting = [kind.name for kind in ESTIMATORS.values() if name in kind.__dataclass_fields__]  # type: ignore[attr-defined]
            raise SettingError(f"{name} goes with estimator={' or '.join(map(repr, fitting))}, not {estimator.name!r}")
    return replace(estimator, **shortcuts) if shortcuts else estimator  # type: ignore[type-var]

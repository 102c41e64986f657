"""The paper's method: a window that adapts to the drift at every row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError, SettingError
from driftvote.kernels.bounds import Watch
from driftvote.kernels.confusion import Fit
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.models.engine import Engine
from driftvote.models.guarantee import Guarantee, make_guarantee
from driftvote.models.settings import Number, class_shares, one_of, positive, probability, watching, whole
from driftvote.models.tally_engine import ConfusionEngine, TallyEngine, TripletEngine, periods_of
from driftvote.models.windowed import WindowedLabelModel
from driftvote.tallies import BOUNDS, WATCHED, explain_watch, watch_rule
from driftvote.windows import WindowGrid, WindowTest, check_exact, explain_choice, level_tests

ESTIMATORS = ("confusion", "triplet")


class AdaptiveLabelModel(WindowedLabelModel):
    """Labels from noisy labelers that drift, without ground truth.

    As rows come in, the model picks how many of the last ones still count (the window), learns from how the
    labelers vote together in that window how each of them votes on each class, and labels the row by it. The
    window grows as long as what is watched in a larger one differs from a smaller one by no more than noise
    would explain.

    The window rule is that of Mazzetto, Esfandiarpoor, Singirikonda, Upfal and Bach, "An Adaptive Method for
    Weak Supervision with Drifting Data" (AISTATS 2025); the default goes beyond it in what it watches, in the
    threshold and in the estimator. `AdaptiveLabelModel.paper()` is the paper to the letter.

    Parameters
    ----------
    n_classes
        Number of classes, default 2. Votes are 0 .. K-1 and -1 abstains, unless declared otherwise.
    votes
        `"snorkel"` (0 .. K-1, -1 abstains; assumed when nothing is said) or `"signed"` (-1 and +1, 0
        abstains: the paper, FlyingSquid). Saying `"snorkel"` also switches off the check that refuses a
        first batch of nothing but -1 and +1.
    classes, abstain
        Any other values: the classes in order, and the value that abstains (missing always does).
    labelers
        Names. Declared names are all there are, and select the columns of a wide frame; without them
        names come with the votes, and new ones may join later (their past is all abstentions).
    windows
        Window sizes to choose from, increasing; a list or a `WindowGrid`. Default 1, 2, 4 ... 2^19.
    estimator
        `"confusion"`: how each labeler votes, or abstains, on each class, with the class balance; looked at every
        `refresh` rows. `"triplet"`: one accuracy for each labeler from the agreements of three, at every row, as
        in the paper.
    bound
        Threshold of the window rule: `"normal"` (sharpest; by the normal approximation), `"bernstein"` (a
        theorem that looks at the variance), `"mcdiarmid"` (the paper's theorem).
    watch
        What the window rule watches: `"agreements"`, as in the paper, or `"votes"` (agreements, and who votes for
        what how often, so that the window falls when the class balance or who abstains drifts, too).
    class_balance
        Shares of the classes, if you know them; otherwise they are estimated. For `estimator="confusion"`.
    refresh
        Rows between two looks at the window and the labelers, for `estimator="confusion"`.
    beta
        Sensitivity: how much drift is tolerated before a larger window is refused. The paper uses 0.1.
    delta
        Probability, at a fixed row, that the guarantee fails.
    clip
        Accuracies are limited to this range before they become weights (`estimator="triplet"`, and `weights`).
    abstentions
        `"zero"`: a pair with an abstention counts neither as agreeing nor as disagreeing.
        `"random"`: the paper's protocol, an abstention is a random vote (drawn from `seed`).
    tie_break_policy
        `"abstain"`, or `"random"` (drawn from `seed`).
    seed
        Of the draws above. Draws belong to rows, so chunks do not change them.
    n_jobs
        Threads for long batches: for the labels with `estimator="triplet"`, with the default for the watch beside them.
        The result does not depend on it.
    groups
        Families of labelers that cast one vote each, the one that most members cast: a dict from labelers to their
        group, or a list of lists. Who is in no group is a family of its own; all results are by family.
    false_event_rate
        Drift events that chance alone may make, per row, while nothing drifts; None: do not look for events.
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

    def __init__(
        self,
        *,
        n_classes: int | None = None,
        votes: str | None = None,
        classes: Sequence[Hashable] | None = None,
        abstain: Hashable = None,
        labelers: Sequence[object] | None = None,
        windows: Iterable[int] | None = None,
        estimator: str = "confusion",
        bound: str = "normal",
        watch: str = "agreements",
        class_balance: Sequence[Number] | None = None,
        refresh: int = 32,
        beta: Number = 0.1,
        delta: Number = 0.1,
        clip: tuple[Number, Number] = (0.1, 0.9),
        abstentions: str = "zero",
        tie_break_policy: str = "abstain",
        seed: int = 0,
        n_jobs: int = 1,
        groups: Any = None,
        false_event_rate: Number | None = 2e-7,
        on_event: Callable[[DriftEvent], Any] | None = None,
    ) -> None:
        super().__init__(
            n_classes=n_classes,
            votes=votes,
            classes=classes,
            abstain=abstain,
            labelers=labelers,
            clip=clip,
            abstentions=abstentions,
            tie_break_policy=tie_break_policy,
            seed=seed,
            n_jobs=n_jobs,
            groups=groups,
        )
        self.windows = WindowGrid.powers_of_two() if windows is None else WindowGrid(windows)
        check_exact(self.windows, self._form.n_classes)
        self.beta = positive("beta", beta)
        self.delta = probability("delta", delta)
        self.estimator = one_of("estimator", estimator, ESTIMATORS)
        self.bound = one_of("bound", bound, tuple(BOUNDS))
        self.watch = one_of("watch", watch, WATCHED)
        self.class_balance = class_shares(class_balance, self._form.n_classes)
        self.refresh = whole("refresh", refresh)
        if not 1 <= self.refresh <= 2**20:
            raise SettingError(f"refresh must be a number of rows from 1 to {2**20}, not {refresh!r}")
        self.false_event_rate, self.on_event = watching(false_event_rate, on_event)
        if self.class_balance is not None and self.estimator != "confusion":
            raise SettingError("class_balance goes with estimator='confusion'; the paper's estimator has no use for it")
        self._settings |= {
            "windows": self.windows,
            "estimator": self.estimator,
            "bound": self.bound,
            "watch": self.watch,
            "class_balance": None if self.class_balance is None else list(self.class_balance),
            "refresh": self.refresh,
            "beta": self.beta,
            "delta": self.delta,
            "false_event_rate": self.false_event_rate,
        }

    @classmethod
    def paper(cls, n_classes: int = 2, **overrides: Any) -> AdaptiveLabelModel:
        """The paper to the letter, whatever the defaults become.

        One accuracy for each labeler, from agreements alone, windows 1, 2, 4 ... 2^19, beta = delta = 0.1,
        accuracies clipped to [0.1, 0.9], abstentions and ties decided at random (seeded).

        >>> AdaptiveLabelModel.paper(seed=7).abstentions
        'random'
        """
        settings: dict[str, Any] = {
            "n_classes": None if "classes" in overrides else n_classes,
            "windows": WindowGrid.powers_of_two(20),
            "estimator": "triplet",
            "bound": "mcdiarmid",
            "watch": "agreements",
            "beta": 0.1,
            "delta": 0.1,
            "clip": (0.1, 0.9),
            "abstentions": "random",
            "tie_break_policy": "random",
        }
        return cls(**(settings | overrides))

    def _rule(self, n_labelers: int) -> Rule:
        tests = level_tests(self.windows, n_labelers, self._form.n_classes, self.beta, self.delta)
        return Rule(
            sizes=np.array(self.windows, np.int64),
            near=tests.near,
            far=tests.far,
            limit=tests.limit,
            certain=tests.certain,
            **self._rule_ends(n_labelers),
        )

    def guarantee(self, tau: Number = 0.1) -> Guarantee:
        """The method's guarantee as numbers at the current row: what is proved, and what nobody knows.

        Proved for `bound="mcdiarmid"`; under a sharper bound the numbers are those of the paper's rule at this window,
        and say so. `tau`: every labeler is right with probability at least 1/K + tau, abstentions counted as blind
        guesses.

        >>> model = AdaptiveLabelModel.paper()
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0]] * 2048)
        >>> told = model.guarantee(tau=0.3)
        >>> told.window, round(told.factor, 2), round(told.phi, 1), round(told.agreement_error, 3)
        (4096, 3.94, 76.1, 0.062)
        """
        if not self.n_rows or self._engine is None:
            raise DriftvoteError("there is nothing to guarantee yet: the model has seen no rows")
        low, high = 0.0, 1.0 - 1.0 / self._form.n_classes
        if not low < positive("tau", tau) <= high:
            raise SettingError(f"tau must lie above 0 and be at most {high:.4g}, not {tau!r}")
        return make_guarantee(
            self.windows,
            self._engine.n_labelers,
            self._form.n_classes,
            (self.beta, self.delta),
            (self.n_rows, self.window),
            tau,
            proved=self.bound == "mcdiarmid",
        )

    def _watch(self, n_labelers: int) -> Watch:
        k = self._form.n_classes
        return watch_rule(self.windows, n_labelers, k, self.bound, self.watch, self.beta, self.delta)

    def _new_engine(self, n_labelers: int) -> Engine:
        if (self.estimator, self.bound, self.watch) == ("triplet", "mcdiarmid", "agreements"):
            return super()._new_engine(n_labelers)  # decided in integers
        rule = self._rule(n_labelers)
        if self.estimator == "confusion":
            given = np.full(rule.n_classes, -1.0) if self.class_balance is None else np.array(self.class_balance)
            return ConfusionEngine(self._watch(n_labelers), rule, n_labelers, (self.refresh, given))
        return TripletEngine(self._watch(n_labelers), rule, n_labelers)

    def _grown(self, engine: Engine, newcomers: Codes) -> Engine:
        if not isinstance(engine, (ConfusionEngine, TripletEngine)):
            return super()._grown(engine, newcomers)
        n = engine.n_labelers + newcomers.shape[1]
        return engine.joined_by(newcomers, self._watch(n), self._rule(n))

    @property
    def reach(self) -> int | None:
        """How many rows before a block, with their numbers, decide what it comes out as."""
        largest = self.windows[-1]
        if self.estimator != "confusion":
            return largest
        return largest + int(periods_of(np.array([largest]), self.refresh)[0])

    def _tallied(self) -> tuple[Ints, Ints, int]:
        if isinstance(self._engine, TallyEngine) and self.n_rows:
            return self._engine.window_tally()
        return super()._tallied()

    @property
    def confusions(self) -> Floats:
        """How each labeler votes on each class: labelers x classes x (classes + 1), the last column abstains."""
        return np.asarray(self._last_fit().theta[0])

    @property
    def estimated_class_balance(self) -> Floats:
        """Share of each class in the window."""
        return np.asarray(self._last_fit().balance[0])

    def _last_fit(self) -> Fit:
        if not isinstance(self._engine, ConfusionEngine) or not self.n_rows:
            raise DriftvoteError("nothing is fitted: estimator='confusion' is needed, and at least one row")
        return self._engine.fit

    def why_window(self) -> list[WindowTest]:
        """The comparisons behind the current window: which larger one was refused, and by which pair.

        >>> model = AdaptiveLabelModel.paper(windows=[2, 4])
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
        >>> print(model.why_window()[0])
        4 rows accepted after 2: largest change of agreement 0.5000 (labeler_0, labeler_1) <= 2.0671
        """
        if isinstance(self._engine, TallyEngine) and self.n_rows:
            return explain_watch(self._engine.tally, self._engine.watch, self.labelers)
        engine = self._started()
        tests = level_tests(self.windows, engine.n_labelers, self._form.n_classes, self.beta, self.delta)
        sums = engine.state.memory.sums
        return explain_choice(self.windows, sums, self.n_rows, tests, self._form.n_classes, self.labelers)

"""The paper's method: a window that adapts to the drift at every row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.layout import Rule
from driftvote.models.guarantee import Guarantee, make_guarantee
from driftvote.models.settings import Number, positive, probability
from driftvote.models.windowed import WindowedLabelModel
from driftvote.windows import WindowGrid, WindowTest, check_exact, explain_choice, level_tests


class AdaptiveLabelModel(WindowedLabelModel):
    """Labels from noisy labelers that drift, without ground truth.

    At every row the model picks how many of the last rows still count (the window), estimates each
    labeler's accuracy from how the labelers agree in that window, and takes the vote weighted by the
    log-odds of the accuracies. The window grows as long as the agreements of a larger one differ from
    those of a smaller one by no more than noise would explain; the choice is provably close to the best
    window in hindsight, without knowing how fast anything drifts.

    This is Algorithm 1 of Mazzetto, Esfandiarpoor, Singirikonda, Upfal and Bach, "An Adaptive Method
    for Weak Supervision with Drifting Data" (AISTATS 2025), extended to abstentions and many classes.

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
    beta
        Sensitivity: how much drift is tolerated before a larger window is refused. The paper uses 0.1.
    delta
        Probability, at a fixed row, that the guarantee fails.
    clip
        Accuracies are limited to this range before they become weights.
    abstentions
        `"zero"`: a pair with an abstention counts neither as agreeing nor as disagreeing.
        `"random"`: the paper's protocol, an abstention is a random vote (drawn from `seed`).
    tie_break_policy
        `"abstain"`, or `"random"` (drawn from `seed`).
    seed
        Of the draws above. Draws belong to rows, so chunks do not change them.
    n_jobs
        Threads for long batches; the result does not depend on it.
    groups
        Families of labelers that cast one vote each, the one that most members cast: a dict from labelers to their
        group, or a list of lists. Who is in no group is a family of its own; all results are by family.

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
        self._settings |= {"windows": self.windows, "beta": self.beta, "delta": self.delta}

    @classmethod
    def paper(cls, n_classes: int = 2, **overrides: Any) -> AdaptiveLabelModel:
        """The paper to the letter, whatever the defaults become.

        Windows 1, 2, 4 ... 2^19, beta = delta = 0.1, accuracies clipped to [0.1, 0.9], abstentions and
        ties decided at random (seeded).

        >>> AdaptiveLabelModel.paper(seed=7).abstentions
        'random'
        """
        settings: dict[str, Any] = {
            "n_classes": None if "classes" in overrides else n_classes,
            "windows": WindowGrid.powers_of_two(20),
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

        `tau`: every labeler is right with probability at least 1/K + tau, abstentions counted as blind guesses.

        >>> model = AdaptiveLabelModel()
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0]] * 2048)
        >>> told = model.guarantee(tau=0.3)
        >>> told.window, round(told.factor, 2), round(told.phi, 1), round(told.agreement_error, 3)
        (4096, 3.94, 76.1, 0.062)
        """
        engine = self._started()
        low, high = 0.0, 1.0 - 1.0 / self._form.n_classes
        if not low < positive("tau", tau) <= high:
            raise SettingError(f"tau must lie above 0 and be at most {high:.4g}, not {tau!r}")
        return make_guarantee(
            self.windows,
            engine.n_labelers,
            self._form.n_classes,
            (self.beta, self.delta),
            (self.n_rows, self.window),
            tau,
        )

    def why_window(self) -> list[WindowTest]:
        """The comparisons behind the current window: which larger one was refused, and by which pair.

        >>> model = AdaptiveLabelModel(windows=[2, 4])
        >>> _ = model.label_stream([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
        >>> print(model.why_window()[0])
        4 rows accepted after 2: largest change of agreement 0.5000 (labeler_0, labeler_1) <= 2.0671
        """
        engine = self._started()
        tests = level_tests(self.windows, engine.n_labelers, self._form.n_classes, self.beta, self.delta)
        sums = engine.state.memory.sums
        return explain_choice(self.windows, sums, self.n_rows, tests, self._form.n_classes, self.labelers)

"""What the page says around its tables."""

from __future__ import annotations

from experiments.quality.measures import BINS, BLOCKS
from experiments.quality.streams import PERMUTED, PLAIN, SHUFFLED, SYNTHETIC
from experiments.quality.verified import DELAY

INTRO = """How often the labels are right, on real vote streams and on simulated ones; the models see no true label.
This page is generated from `quality.json` beside it; both are made anew by

```
make quality              # every model on every stream; what has not changed since the last time is not run again
```

A model takes part by one line in `experiments/quality/models.py`, a stream by a table in `streams/` of the data folder
(a column for each labeler, empty cells abstain, the last column is `gold`)."""

NOTES = {
    "verdicts": """One configuration for all: `AdaptiveLabelModel()` as it comes, told nothing but the number of
classes.""",
    PLAIN: """Accuracy in per cent, the best model of each row in bold. *Gain* is over the majority of each row,
abstentions ignored, with a 95% confidence interval. Models named after a window use the default's estimator on a window
that does not adapt. Basketball's file holds all positives first, then all negatives: its drift is not natural.""",
    PERMUTED: """The paper's streams with the labelers' names shuffled anew at one row in a thousand: drift that no
labeler escapes and that majority does not notice. Means over seeds.""",
    SHUFFLED: """In random order nothing drifts, so adapting can only lose. *Behind* is the distance to the best of
majority and all the past, by the paper's estimator or by the default's. Means over seeds.""",
    SYNTHETIC: """Streams drawn by `driftvote.streams.scenario(name)`, whose truth is known. *True weights* is the vote
weighted by the true accuracies, which nobody has; it takes the classes for equally likely, which they are not in
*class-balance*. Labelers err independently given the class, except in *copies*: there some repeat another, their errors
are shared, and agreement takes them for the best. In *together* all labelers drift side by side: their weights stay
equal, so there is nothing to win by adapting. Means over seeds.""",
    "probabilities": f"""Can the probabilities be believed, and do they find the rows worth a second look? *Calibration*
is the expected calibration error ({BINS} bins; 0 is perfect). *AUROC* is the chance that a row labeled right has a
higher probability than one labeled wrong (0.5 is useless). *Review* is the share of all errors that are among the 10%
of rows with the lowest probability (0.1 is useless).""",
    "verified": f"""Somebody verifies so many rows, drawn at random, {DELAY} rows after they were labeled
(`model.feedback`); accuracy of the labels as they came out, before. *Ever lost* is the most that accuracy fell from a
smaller share to a larger one. Means over draws. See [verified labels](feedback.md).""",
    "unanimous": """A unanimous row gets the label that everybody voted for. Where they are all wrong the label is
wrong, too: the last column is the most that this promise can cost.""",
}

HOW = f"""- **Ties.** A row whose label is a tie counts one part for each of the tied classes: 1/2 with two. Where a
  model draws ties at random, the same is counted and not the luck of the draw. A row without votes is a tie of all
  classes.
- **F1** is the mean over the classes.
- **Log-loss** takes probabilities to be at least 10⁻⁶. Majority's probabilities are the shares of the votes.
- **Confidence intervals** of the gain come from {BLOCKS} blocks of time, because neighbouring rows are not independent.
  Several seeds make them narrower only where a seed draws other rows (AwA2, simulated streams); elsewhere what differs
  between seeds is added.
- **Error of the accuracies** is the mean over rows and labelers of |estimated - true| accuracy when voting.
- **The paper's rule**, for the ratio of errors, is the published method with or without its random votes for
  abstentions, whichever is closer to the truth in that scenario.
  A scenario counts as worse from a ratio of 1.005 on, 1.01 in two decimals.
- **Many classes.** How far the labels are behind the true weights depends on how long a regime lasts. The range of the
  accuracies (0.4 to 0.85) and the 40,000 rows were picked, among several, to come near earlier figures of such a
  stream; with half the rows the gap of the paper's rule is about half as large again, and near the limit of 0.3.
- **Cost** is the median ratio of the times of the default model and of the paper's estimator, taking turns in one
  process."""

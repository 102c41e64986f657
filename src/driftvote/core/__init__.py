"""The algorithm: from the votes of a stream to its labels. Start here.

Input is a table of class codes, one row for each item and one column for each labeler: 0 .. K-1 is a vote, -1 an
abstention. (`votes.py` and `inputs.py` make such codes from arrays, frames and dicts, `files/` from files.) Output is,
for each row, a class code (-1 for a tie), the probability of each class, and the estimates behind them.

What happens to a row
---------------------
1. **Add it to the state** (`state.add_row`). A `StreamState` holds the last rows in a ring buffer, and running totals
   of pair agreements and of votes. Totals are stored at fixed row numbers, so the sum over any window is a difference
   of two totals, and a row costs the same whatever the windows are. All sums are integers.
2. **Choose the window** (`windows.choose_window`), if that is due. The window rule starts from the smallest window and
   takes the next one as long as no pair agreement changes by more than a threshold. There are three thresholds
   (`BOUNDS`); their formulas are in `driftvote.theory`. A `FixedWindow` takes the place of the rule in fixed-window
   models. The drift detector sees rows before the engine does; from the row after an event on, no window holds rows
   from before the change (`Floor`). The default label model asks the rule only where accuracies explain the agreements
   (`follows_agreements`); elsewhere the largest window counts.
3. **Fit the label model to the window** (`fit_window`), if that is due. A label model (in the public interface an
   estimator) estimates from the votes of the window how reliable each labeler is. `majority` learns nothing, `triplet`
   (the paper's) needs the sums of the window only; the others read the distinct rows of the window (`patterns.py`),
   with verified classes where there are some: `wawa` counts, `one_coin` and `confusion` run EM, and `mixture` (the
   default) combines six such fits.
4. **Label the row** by the last fit (`label_row`): scores of the classes, ties, probabilities (`voting.py`).

`engine.label_rows` is the one loop over rows, compiled. A row that arrives alone goes through it, and so does a batch
of a million rows. `engine.Engine` owns state, rule, label model and last fit, and is all that models need to know.

When choices and fits are due
-----------------------------
The schedule depends on the row number only, so results do not depend on how rows are cut into chunks. The window is
chosen in each of the first `refresh` rows, then every `refresh` rows (32 by default, 1 for `triplet`). A window is
fitted again when about an eighth of it is new; before a window is full, an eighth of the rows there are. Where a
floor takes effect, the window is chosen and fitted before the next row. Label models with `fits_every_row` are fitted
at every row. Each fit starts from nothing, never from the fit before.

Finite memory
-------------
The label of a row depends on the last `Engine.memory_rows` rows, on the row's number, and on nothing older: the largest
window, plus the rows that a fit may be old. So memory is bounded, a model forgets any past, a labeler can join (the
remembered rows are replayed with an empty column), a saved state is the last rows and the last fit, and a block of a
long stream can be labeled anywhere given the rows before it (`Engine.start_at`). Verified classes belong to remembered
rows; drift events and the floors that they set are recorded beside them. The exception is a window of all the past: it
keeps totals and no rows.

How one loop serves every label model
-------------------------------------
A label model is one file in `label_models/`: named tuples for its settings, its fits and its tables, five kernels, and
an `Estimator`, the frozen dataclass that users pass as `estimator=`. The kernels are registered by the type of the
settings (`KERNELS` in `label_models/interface.py`); the compiler picks those of the type that the loop was called with.

Reading order
-------------
`state.py`, `windows.py`, `voting.py`, `label_models/interface.py`, `label_models/majority.py`,
`label_models/triplet.py`, `engine.py`; then `patterns.py`, `label_models/confusion.py`, `label_models/mixture.py`.
`jit.py` and `compiler.py` say how kernels are compiled. `CONTRIBUTING.md` says how to add a label model or a bound.
"""

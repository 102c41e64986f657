"""What has to be said beside each table of the performance page so that nobody reads more into it."""

from __future__ import annotations

AXES = """One thread; a new model each time. With more than two classes, or abstentions (0), the yardstick is still
the one line of the intro on an array of the same shape; a majority over many classes costs more than
that. Peak memory is that of a process that loads the votes and labels them once, above the same process
idle after its imports; it holds votes, outputs and the compiled kernels."""
THREADS = """The majority line, one thread and two, taking turns on the same votes."""
GROWTH = """Pairs of labelers grow 12.7-fold from 6 to 20."""
LATENCY = """`update()` with an array row on a warm model, beside what a user would build today: one river ADWIN for
each pair of labelers, told whether the pair agrees. ADWIN raises an alarm and nothing else: it estimates
no accuracy and gives no label, so it solves an easier problem. *adwin* gets the agreements ready-made,
only feeding them is timed, and the target is judged against it; *fed from the votes* works them out from
the row as a user must. Mean cost is that of blocks of rows that take turns; the percentiles are of
single rows, and the largest may be a pause of the system and not of the code."""
RECOMPUTE = """Algorithm 1 by its definition in NumPy (`benchmarks/recompute.py`): at every row the agreements of every
window are computed from the votes, as the mean over the rows of the outer product. The target is judged
against that one. A float matrix product gives the same agreements for less and is shown beside it. The
stream is steady, so that windows grow to their full size."""
CHUNKED = """`label_stream` on an iterator of chunks, each result read and dropped, each length in a fresh process.
Chunks are cut from a small pool, so that making them costs nothing; the pool is counted as ours. Peak
memory is above the same process idle after its imports."""
PEERS = """The same votes, peers in environments of their own, in turns with driftvote. **All three solve an easier,
static problem**: they fit one set of accuracies to all rows at once, give no window, cannot go on with a
stream, and see the future of every row they label; driftvote labels each row from the rows up to it.
Neither importing nor a first call is timed: 50 rows for a peer, for driftvote the votes themselves,
because its kernels are compiled then. Share right: rows labeled as the simulated truth, on a stream
whose accuracies change every 1,000 rows."""

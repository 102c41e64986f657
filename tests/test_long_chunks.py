"""Long chunks go by blocks of time, on several threads; nothing of that shows in the results."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, stretches
from driftvote.kernels.bits import GROUP
from driftvote.kernels.block_estimates import find_strongest
from driftvote.kernels.levels import WORTH_A_LOOK
from driftvote.models import engine
from driftvote.streams import simulate

from streams_for_tests import PAPERS_RULE, random_chunks, random_stream, rows_for

MODELS = [
    AdaptiveLabelModel(windows=[1, 2, 4, 8, 16, 32, 64, 128, 256], delta=0.9, beta=0.02, **PAPERS_RULE),
    AdaptiveLabelModel(windows=[3, 10, 44, 150, 400], delta=0.9, beta=0.02, **PAPERS_RULE),
    AdaptiveLabelModel(n_classes=3, windows=[2, 4, 16, 128, 512], tie_break_policy="random", seed=4, **PAPERS_RULE),
    AdaptiveLabelModel.paper(6, windows=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
    FixedWindowLabelModel(window=90),
    FixedWindowLabelModel(window=1),
]
NAMES = ("codes", "proba", "windows", "accuracies", "diluted_accuracies", "weights", "coverage")


def row_by_row(model, votes):
    """The same model with blocks switched off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "LONG", 10**9)
        return model.clone().label_stream(votes)


def same(left, right):
    for name in NAMES:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize("abstain", [0.0, 0.4])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_blocks_say_what_rows_say(model, abstain):
    votes = random_stream(6, rows_for(6000, 700), 5, len(model.classes), abstain, blocks=6)
    expected = row_by_row(model, votes)
    same(model.clone().label_stream(votes), expected)
    chunked = model.clone()
    parts = [chunked.label_stream(votes[part]) for part in random_chunks(3, len(votes), 1500)]
    for name in NAMES:
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(expected, name)), name
    learned = model.clone().fit(votes)
    assert np.array_equal(learned.weights, expected.weights[-1])


@pytest.mark.parametrize("abstain", [0.0, 0.3])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_windows_beyond_the_history_are_followed_from_the_rows(model, abstain, monkeypatch):
    """With little memory for running sums most windows are far; with little room, stretches are short."""
    votes = random_stream(7, rows_for(5000, 700), 6, len(model.classes), abstain, blocks=5)
    expected = row_by_row(model, votes)
    for memory in (1 << 12, 1 << 14, 1 << 16):
        monkeypatch.setattr(stretches, "HISTORY_BYTES", memory)
        same(model.clone().label_stream(votes), expected)


def test_a_stream_that_begins_to_abstain(monkeypatch):
    """Votes are counted from the first abstention on; before, everybody votes."""
    votes = random_stream(8, 2000, 4, 2, 0.0)
    votes[1100:, 1] = -1
    model = AdaptiveLabelModel(windows=[1, 2, 4, 8, 16, 32, 64], delta=0.9, **PAPERS_RULE)
    expected = row_by_row(model, votes)
    chunked = model.clone()
    parts = [chunked.label_stream(votes[at : at + 500]) for at in range(0, 2000, 500)]
    for name in NAMES:
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(expected, name)), name
    # And when the abstentions have left every window, nothing of them is left.
    again = random_stream(9, 1000, 4, 2, 0.0)
    late = chunked.label_stream(again)
    assert late.coverage[-1].tolist() == [1.0] * 4
    assert np.array_equal(late.proba[-900:], row_by_row(model, np.vstack([votes, again])).proba[-900:])


def test_updates_between_long_chunks():
    votes = random_stream(10, 3000, 5, 2, 0.1)
    model = AdaptiveLabelModel(windows=[1, 2, 4, 8, 16, 32, 64, 128], delta=0.9, **PAPERS_RULE)
    expected = row_by_row(model, votes)
    found = [model.label_stream(votes[:1000]).proba]
    found += [model.update(row).proba[None] for row in votes[1000:1100]]
    found.append(model.label_stream(votes[1100:2500]).proba)
    found += [model.copy().label_stream(votes[2500:]).proba]
    assert np.array_equal(np.concatenate(found), expected.proba)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_show(n_jobs):
    votes = random_stream(11, rows_for(40_000, 900), 6, 2, 0.2, blocks=5)
    one = AdaptiveLabelModel(**PAPERS_RULE).label_stream(votes)
    many = AdaptiveLabelModel(n_jobs=n_jobs, **PAPERS_RULE)
    same(many.label_stream(votes), one)
    same(many.label_stream(votes[:300]), AdaptiveLabelModel(**PAPERS_RULE).fit(votes).label_stream(votes[:300]))


@pytest.mark.slow  # without the compiler: every piece is a block
@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_shares_of_threads_do_not_show(model, monkeypatch):
    """Small pieces, so that threads join late, take from each other, and lack rows at the beginning of a chunk."""
    votes = random_stream(12, rows_for(9000, 1200), 5, len(model.classes), 0.1, blocks=6)
    expected = row_by_row(model, votes)
    monkeypatch.setattr(stretches, "LEAST_ROWS", 50)
    for piece, n_jobs in ((37, 4), (256, 2), (700, 3)):
        monkeypatch.setattr(stretches, "PIECE", piece)
        chunked = type(model)(**model.get_params() | {"n_jobs": n_jobs})
        parts = [chunked.label_stream(votes[part]) for part in random_chunks(piece, len(votes), 3000)]
        for name in NAMES:
            assert np.array_equal(np.concatenate([getattr(p, name) for p in parts]), getattr(expected, name)), name


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "nth"), [("label_blocks", 3), ("extend_lines", 1)])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_thread_that_fails_leaves_the_state_as_it_was(n_jobs, kernel, nth, monkeypatch):
    votes = random_stream(13, 6000, 5, 2, 0.0, blocks=4)
    model = AdaptiveLabelModel(windows=[3, 10, 44, 150, 400], delta=0.9, beta=0.02, n_jobs=n_jobs, **PAPERS_RULE)
    expected = row_by_row(model, votes)
    monkeypatch.setattr(stretches, "LEAST_ROWS", 100)
    monkeypatch.setattr(stretches, "STRETCH", 512)
    monkeypatch.setattr(stretches, "PIECE", 512)
    found = [model.label_stream(votes[:3000])]
    inner, calls = getattr(stretches, kernel), count(1)

    def failing(*arguments):
        call = next(calls)
        inner(*arguments)
        if call == nth:
            raise MemoryError

    monkeypatch.setattr(stretches, kernel, failing)
    with pytest.raises(MemoryError):
        model.label_stream(votes[3000:])
    assert model.n_rows == 3000
    found.append(model.label_stream(votes[3000:]))
    assert np.array_equal(np.concatenate([part.proba for part in found]), expected.proba)


def test_n_jobs_is_checked():
    for bad in (0, -1, 1.5, True, 10**6):
        with pytest.raises(ValueError, match="n_jobs"):
            AdaptiveLabelModel(n_jobs=bad, **PAPERS_RULE)


@pytest.mark.slow
def test_a_real_length_of_stream_against_rows():
    """Half a million rows, so that the default grid's largest windows fill, slide and wrap around."""
    accuracies = np.repeat(np.random.default_rng(1).uniform(0.55, 0.9, size=(3, 4)), 250_000, axis=0)
    votes = simulate(accuracies, 5).votes
    model = AdaptiveLabelModel(**PAPERS_RULE)
    same(model.clone().label_stream(votes), row_by_row(model, votes))
    wide = simulate(np.tile(np.linspace(0.6, 0.8, 14), (600_000, 1)), 6).votes  # 105 lines: the last window is far
    assert np.array_equal(model.clone().label_stream(wide[:, :14]).proba, row_by_row(model, wide[:, :14]).proba)


@pytest.mark.slow
def test_very_many_labelers_go_by_sums_of_logs():
    """Products of 300 odds would overflow; the labels are then made from sums of weights."""
    votes = random_stream(12, 60, 300, 2, 0.0)
    out = AdaptiveLabelModel(windows=[1, 4, 16], **PAPERS_RULE).label_stream(votes)
    assert np.isfinite(out.proba).all()
    score = (out.weights * np.where(votes == 1, 1, -1)).sum(axis=1)
    assert np.array_equal(out.codes[np.abs(score) > 1e-6], (score > 0)[np.abs(score) > 1e-6])
    assert AdaptiveLabelModel(windows=[1, 4, 16], **PAPERS_RULE).fit(votes).predict(votes[:5]).shape == (5,)


@pytest.mark.parametrize("abstain", [0.0, 0.3])
def test_wide_windows_are_looked_at_only_when_they_must_be(abstain):
    """Windows so wide that one look settles many rows: passing, failing, and close to the limit."""
    quiet = random_stream(13, 5000, 3, 2, abstain, blocks=1)
    jump = random_stream(14, 2500, 3, 2, abstain, blocks=1)[:, ::-1]
    flip = np.where(jump[:, :1] >= 0, 1 - jump[:, :1], -1)
    votes = np.vstack([quiet, np.hstack([flip, jump[:, 1:]])])
    model = AdaptiveLabelModel(windows=[1500, 3000, 4500], beta=0.05, **PAPERS_RULE)
    doubling = AdaptiveLabelModel(windows=[1400, 2800, 5600], beta=0.05, **PAPERS_RULE)
    for each in (model, doubling):
        expected = row_by_row(each, votes)
        assert len(set(expected.windows[4500:].tolist())) > 1  # the jump is noticed
        same(each.clone().label_stream(votes), expected)


def test_the_steepest_possible_change_is_not_overlooked():
    """A look settles as many rows as the gap needs at its fastest; here it grows that fast, 4 a row, from 0.

    The agreement x of labeler 1 with the others is written down: -1 on the first 100 rows, +1 on the 100 rows that will
    leave the small window, the rest such that both windows sum to 0 when the larger one is full; then -1 throughout.
    """
    size = 2800
    first = np.concatenate([-np.ones(100), np.ones(100), np.tile([1, -1], (size - 200) // 2)])
    second = np.concatenate([np.ones(100), -np.ones(100), np.tile([1, -1], (size - 200) // 2)])
    x = np.concatenate([first, second, -np.ones(600)])
    votes = np.ones((len(x), 3), np.int8)
    votes[:, 1] = x > 0
    model = AdaptiveLabelModel(windows=[size, 2 * size], **PAPERS_RULE)
    expected = row_by_row(model, votes)
    refused = np.flatnonzero(expected.windows[2 * size :] == size)
    assert 60 < refused[0] < 90  # limit / 4 rows after the larger window is full
    same(model.clone().label_stream(votes), expected)


@pytest.mark.slow
def test_a_peak_between_two_looks_is_not_overlooked():
    """The gap of two windows climbs as fast as it can to just beyond the limit, and falls as fast, anywhere in a block.

    With the agreement x of labeler 1, the gap |S_2r - 2 S_r| changes by -x(t) + 2 x(t - r) - x(t - 2r): by 4 at most,
    where the three rows take turns. It is 0 before and after, so looks further apart than the limit allows see nothing.
    """
    size, block = 8192, 1024
    model = AdaptiveLabelModel(windows=[size, 2 * size], **PAPERS_RULE)
    limit = int(model._rule(3).limit[0])
    assert limit // (2 * GROUP * 4) >= WORTH_A_LOOK  # else every gap is measured, and nothing could be overlooked
    climb = limit // 4 + 1
    tent = np.concatenate([-np.ones(climb), np.ones(climb)])
    for shift in range(0, block // 2, GROUP):
        x = np.tile([1.0, -1.0], (2 * size + 2 * block) // 2)
        for begin, sign in ((0, 1), (size, -1), (2 * size, 1)):
            x[begin + shift : begin + shift + 2 * climb] = sign * tent
        votes = np.ones((len(x), 3), np.int8)
        votes[:, 1] = x > 0
        expected = row_by_row(model, votes)
        refused = np.flatnonzero(expected.windows[2 * size :] == size)
        assert 0 < len(refused) < 40  # the peak, and nothing else
        same(model.clone().label_stream(votes), expected)


def test_the_strongest_pair_whether_or_not_numbers_fit_together():
    """Sums and numbers of pairs share 32 bits where they can; ties go to the first pair either way."""
    rng = np.random.default_rng(3)
    for n in (3, 6, 20):
        i, j = np.triu_indices(n, 1)
        places, sums = np.stack([i, j], axis=1), rng.integers(-4, 5, size=(len(i), 1024)).astype(np.int32)
        for without in (-1, 0, n - 1):
            allowed = np.flatnonzero((i != without) & (j != without))
            expected = allowed[np.abs(sums[allowed]).argmax(axis=0)]
            for largest in (4, 2**30):
                best, chosen, lines = np.zeros(1024, np.int32), np.zeros(1024, np.int32), np.zeros(len(i), np.int64)
                find_strongest(sums, places, lines, without, largest, best, chosen)
                assert np.array_equal(chosen, expected), (n, without, largest)


def test_places_without_a_row_name_a_pair_that_exists():
    """The last block of a batch is not full; what stands behind its rows may be anything, but not lead astray."""
    i, j = np.triu_indices(5, 1)
    places, sums = np.stack([i, j], axis=1), np.full((10, 64), 2**31 - 1, np.int32)
    best, chosen, lines = np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(10, np.int64)
    sums[:, 1] = -(2**30)
    with np.errstate(over="ignore"):
        find_strongest(sums, places, lines, -1, 100, best, chosen)
    assert chosen.min() >= 0
    assert chosen.max() < 10

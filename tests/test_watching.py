"""The watch for drift against its definition, row by row, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive_diagnosis
from driftvote.diagnosis import Sides, deviate, diagnose, locate, moves, packed
from driftvote.kernels import watching as kernel
from driftvote.kernels.agreements import recount
from driftvote.kernels.counting import BLOCK, count_classes, count_two_classes, n_digits
from driftvote.kernels.sides import leads_and_votes
from driftvote.models.recent import recounted
from driftvote.watching import Watcher, threshold
from naive_watching import NaiveWatch, counted, most

from streams_for_tests import COMPILED

WHAT = {kernel.AGREEMENT: "agreement", kernel.COVERAGE: "coverage", kernel.BALANCE: "balance"}


def drifting(seed, n, n_classes, coverage, n_rows, at, drop=0.5):
    """Labelers at 0.85, the first of which falls by `drop` half-way."""
    rng = np.random.default_rng(seed)
    accuracy = np.full((n_rows, n), 0.85)
    accuracy[at:, 0] -= drop
    truth = rng.integers(0, n_classes, (n_rows, 1))
    wrong = (truth + rng.integers(1, n_classes, (n_rows, n))) % n_classes
    votes = np.where(rng.random((n_rows, n)) < accuracy, truth, wrong).astype(np.int8)
    votes[rng.random((n_rows, n)) >= coverage] = -1
    return votes


@pytest.mark.parametrize(("n", "n_classes", "coverage"), [(3, 2, 1.0), (5, 2, 0.6), (4, 3, 0.8), (4, 10, 1.0)])
def test_every_look_is_the_definitions(n, n_classes, coverage, monkeypatch):
    votes = drifting(1, n, n_classes, coverage, 3200 if COMPILED else 1000, 1500 if COMPILED else 600)
    watcher, naive = Watcher(n, n_classes, 1e-3), None
    naive = NaiveWatch(n_classes, watcher.limit)
    found, begun = [], []
    inner = Watcher._begin

    def begin(self, row, end):
        head = self.watched.head
        found.append((WHAT[int(head[kernel.FIRED_WHAT])] + f" {head[kernel.FIRED_WHO]}", int(head[kernel.FIRED_SPAN])))
        inner(self, row, end)
        begun.append((self.start // BLOCK, end // BLOCK))

    monkeypatch.setattr(Watcher, "_begin", begin)
    fired = 0
    for row in votes:
        watcher.feed(row[None])
        told = naive.add(row.tolist())
        assert (told is not None) == (len(found) > fired)
        if told is not None:
            assert found[-1] == told
            naive.begin(*begun[-1])
            fired += 1
    assert fired
    assert {name: watcher.watched.prior[place] for name, place in (("agreement 0", n), ("coverage 1", 2 * n + 1))} == {
        name: pytest.approx(naive.prior[name]) for name in ("agreement 0", "coverage 1")
    }


@pytest.mark.parametrize("n", [3, 4, 7, 8, 33])
def test_counting_is_the_definitions(n):
    rng = np.random.default_rng(n)
    for n_classes, low in ((2, -3), (2, -1), (2, 0), (3, -4), (11, -1)):
        rows = np.ascontiguousarray(rng.integers(low, n_classes, (BLOCK, n)), np.int8)
        said = counted(np.maximum(rows, -1).tolist(), n_classes)
        shares = min(n_classes, 8)
        want = [said[f"agreement {h}"][1] for h in range(n)] + [said[f"agreement {h}"][0] for h in range(n)]
        want += [said[f"coverage {h}"][0] for h in range(n)] + [said[f"balance {s}"][0] for s in range(shares)]
        now = np.zeros(3 * n + shares, np.int64)
        words, digits = np.empty((n_classes, n), np.uint64), np.empty((n_classes, n_digits(n)), np.uint64)
        count_classes(rows, 0, np.ones(n, bool), words, digits, now)
        assert now.tolist() == want
        if n_classes == 2:
            count_two_classes(rows, 0, np.ones(n, bool), words, digits, now)
            assert now.tolist() == want
        counts, votes = np.zeros(n_classes, np.int64), np.zeros(n, np.int64)
        leads_and_votes(packed(rows, n_classes)[0], counts, votes)
        leaders = [most(row) for row in rows.tolist()]
        assert counts.tolist() == [leaders.count(c) for c in range(n_classes)]
        assert votes.tolist() == (rows >= 0).sum(axis=0).tolist()
        pairs = n * (n - 1) // 2
        for part in (rows, rows[:0], rows[:37]):  # two ways to count pairs, and the random fill (below -1) in one only
            fast, slow = (np.zeros((1, pairs), np.int64), np.zeros((1, n), np.int64)), np.zeros((1, pairs), np.int64)
            recounted(part, n_classes, *fast)
            recount(part, n_classes, np.array([len(part)]), slow, votes[None].copy())
            assert fast[0].tolist() == slow.tolist()
            assert fast[1][0].tolist() == (part >= 0).sum(axis=0).tolist()


@pytest.mark.parametrize(("n", "n_classes", "low"), [(3, 2, -1), (6, 2, 0), (5, 3, -1), (4, 11, -1), (9, 2, -2)])
def test_tables_are_the_definitions(n, n_classes, low):
    rng = np.random.default_rng(n)
    rows = np.ascontiguousarray(rng.integers(low, n_classes, (400, n)), np.int8)
    for split in (1, 63, 64, 190, 399):
        counted_sides, panel = Sides(rows, n_classes, split), rng.random(n) < 0.7
        panel[:2] = True
        lines = np.array([0 if t < split % 64 else 1 + (t - split % 64) // 64 for t in range(split)] + [-1] * 400)[:400]
        lines[lines < 0] = split // 64 + 1
        others, strata = naive_diagnosis.sides(rows, panel), min(n_classes, 8)
        said = np.array([most(row) for row in rows.tolist()])

        def check(table, line, stratum, h, hits, tries, lines=lines):
            inside = lines == line
            assert table[line, stratum, :, h].tolist() == [(hits & tries & inside).sum(), (tries & inside).sum()]

        agreement, shares, votes = counted_sides.agreement(panel), counted_sides.shares(), counted_sides.votes()[0]
        for line in range(split // 64 + 2):
            for h in range(n):
                check(votes, line, 0, h, rows[:, h] >= 0, np.ones(400, bool))
                check(counted_sides.pairs(1), line, 0, h, rows[:, h] == rows[:, 1], (rows[:, [1, h]] >= 0).all(axis=1))
                for s in range(strata):
                    seen = (rows[:, h] >= 0) & (others[:, h] >= 0) & (others[:, h] % 8 == s)
                    check(agreement, line, s, h, rows[:, h] == others[:, h], seen)
            for s in range(strata):
                check(shares, line, 0, s, said % 8 == s, said >= 0)


@pytest.mark.parametrize(("n", "n_classes", "coverage"), [(6, 2, 1.0), (5, 2, 0.6), (4, 3, 0.8), (4, 10, 1.0)])
def test_a_diagnosis_is_the_definitions(n, n_classes, coverage):
    kinds = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        at = int(rng.integers(300, 900))
        rows = drifting(seed, n, n_classes, coverage, 1200, at, drop=rng.choice([0.0, 0.3, 0.5]))
        if seed % 4 == 1:
            rows[at:, 1][rng.random(1200 - at) < 0.6] = -1
        if seed % 4 == 2:
            rows[at:] = np.where(rng.random((1200 - at, 1)) < 0.6, n_classes - 1, rows[at:])
        if seed % 4 == 3:
            rows[: at - 130, 2] = -1
        for what, who in ((kernel.AGREEMENT, 0), (kernel.COVERAGE, 1), (kernel.BALANCE, 1)):
            found = (what, who, min(1100, (at + 40) // 64 * 64))
            told, want = (module(rows, n_classes, found, 9.0) for module in (diagnose, naive_diagnosis.diagnose))
            assert (told is None) == (want is None)
            if told is None or want is None:
                continue
            kinds.add(told.kind)
            assert (told.about, told.since, told.kind) == want[:3]
            assert list(told.moved) == list(want[3])
            assert list(told.votes) == list(want[4])
            assert [*told.moved.values(), *told.votes.values()] == pytest.approx([*want[3].values(), *want[4].values()])
            assert told.pairs == want[5]
    assert len(kinds) >= 3


def test_surprise_by_hand():
    # 48 of 64 before, 16 of 64 since; together 1 in 2.
    assert kernel.surprise(16, 64, 48, 64) == pytest.approx(4 * (16 * math.log(0.5) + 48 * math.log(1.5)))
    assert kernel.surprise(64, 64, 64, 64) == kernel.surprise(0, 64, 0, 64) == 0.0


def test_deviates_are_those_of_the_watch():
    hits = np.concatenate([np.arange(640) % 4 > 0, np.arange(128) % 4 == 0])[:, None]
    rows = np.hstack([hits, np.ones_like(hits), np.ones_like(hits)]).astype(np.int8)
    plain, inside = moves(Sides(rows, 2, 640).pairs(1))
    assert plain[0] == pytest.approx(-math.sqrt(kernel.surprise(32, 128, 480, 640)))
    # One stratum: (hits - expected) over the root of a hypergeometric variance.
    assert inside[0] == pytest.approx((32 - 128 * 512 / 768) / math.sqrt(128 * 640 * 512 * 256 / 768**2 / 767))


def test_the_threshold_shares_the_rate_among_all_comparisons():
    looks = 3 + 4 / 8 + 4 / 16 + 4 / 32 + 4 / 64 + 4 / 128
    assert math.erfc(math.sqrt(threshold(6, 2, 1e-6) / 2)) == pytest.approx(64e-6 / (looks * 13), rel=1e-6)
    assert threshold(20, 2, 1e-6) > threshold(6, 2, 1e-6) > threshold(6, 2, 1e-5)
    assert deviate(0.01) == pytest.approx(2.5758, abs=1e-3)


def test_the_row_of_a_change_is_found():
    hits = np.array([True] * 300 + [False] * 100)
    assert locate(hits, np.ones(400, bool), 320) == (300, (300, 300))


def fed(votes, n_classes=2):
    return Watcher(votes.shape[1], n_classes, 2e-7).feed(votes)


def test_kinds_and_names():
    worse = fed(drifting(2, 6, 2, 1.0, 4000, 2000))
    assert [(one.told.kind, set(one.told.moved)) for one in worse] == [("labeler worse", {0})]
    assert worse[0].since[0] <= 2000 <= worse[0].since[1]
    better = fed(drifting(2, 6, 2, 1.0, 4000, 2000)[::-1])
    assert [(one.told.kind, set(one.told.moved)) for one in better] == [("labeler better", {0})]
    rare = drifting(3, 6, 2, 1.0, 4000, 4000)
    rare[2000:, 2][np.random.default_rng(0).random(2000) < 0.6] = -1
    assert [(one.told.kind, list(one.told.votes), one.told.moved) for one in fed(rare)] == [("coverage", [2], {})]
    rng = np.random.default_rng(4)
    truth = (rng.random((4000, 1)) < np.where(np.arange(4000) < 2000, 0.5, 0.8)[:, None]).astype(np.int64)
    shares = np.where(rng.random((4000, 5)) < 0.8, truth, 1 - truth).astype(np.int8)
    assert [(one.told.kind, one.told.moved, one.told.votes) for one in fed(shares)] == [("class balance", {}, {})]
    names = drifting(5, 6, 2, 1.0, 4000, 0)
    names[2000:] = names[2000:, ::-1]  # the poor labeler is another one now
    told = fed(names)[0].told
    assert (told.kind, set(told.moved)) == ("labelers changed", {0, 5})


def test_who_joins_is_no_drift_and_who_falls_silent_is():
    votes = drifting(6, 6, 2, 1.0, 6000, 6000)
    late = votes.copy()
    late[:3000, 5] = -1
    assert fed(late) == []
    watcher = Watcher(5, 2, 2e-7)
    first = watcher.feed(np.ascontiguousarray(votes[:3000, :5]))
    assert first + watcher.joined_by(1).feed(votes[3000:]) == []
    gone = votes.copy()
    gone[3000:, 5] = -1
    assert [(one.told.kind, list(one.told.votes)) for one in fed(gone)] == [("coverage", [5])]


def test_nothing_to_answer_for_is_no_event():
    rows = drifting(7, 4, 2, 1.0, 1000, 1000)
    assert diagnose(rows, 2, (kernel.AGREEMENT, 0, 800), 25.0) is None


@pytest.mark.skipif(not COMPILED, reason="many rows")
def test_a_quiet_stream_stays_quiet():
    for seed, (n, k, coverage) in enumerate([(3, 2, 1.0), (6, 2, 0.7), (5, 4, 0.8)]):
        assert fed(drifting(10 + seed, n, k, coverage, 40_000, 40_000), k) == []

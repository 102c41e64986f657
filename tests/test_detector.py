"""The drift detector against its definition, by hand, and as people use it without a model."""

from __future__ import annotations

import copy
import dataclasses
import json
import math

import numpy as np
import pytest

import naive_diagnosis
from driftvote import (
    AccuracyEstimate,
    AdaptiveLabelModel,
    DriftDetector,
    LabelerError,
    SettingError,
    StateError,
    VoteError,
)
from driftvote.core.jit import jit
from driftvote.drift.detector import REMEMBERED, STEP, surprise_threshold
from driftvote.drift.diagnosis import (
    SPLIT,
    Finding,
    add_up,
    compare_agreement,
    compare_coverage,
    compare_pairs,
    compare_totals,
    diagnose,
    find_majorities,
    flag_parts,
    locate,
    new_sides,
    pack_sides,
)
from driftvote.drift.statistics import (
    AGREEMENT,
    BALANCE,
    BLOCK,
    COVERAGE,
    flag_rows,
    list_statistics,
    normal_deviate,
    surprise,
)
from driftvote.times import Times
from naive_detector import NaiveDetector, counted, most

from streams_for_tests import COMPILED

NAMES = {AGREEMENT: "agreement", COVERAGE: "coverage", BALANCE: "balance"}
HALF = 0.02
compiled = pytest.mark.skipif(not COMPILED, reason="many rows, or a model")


def drifting(seed, n, n_classes, coverage, n_rows, at, drop=0.5):
    """Labelers at 0.85, the first of which falls by `drop` at row `at`."""
    rng = np.random.default_rng(seed)
    accuracy = np.full((n_rows, n), 0.85)
    accuracy[at:, 0] -= drop
    truth = rng.integers(0, n_classes, (n_rows, 1))
    wrong = (truth + rng.integers(1, n_classes, (n_rows, n))) % n_classes
    votes = np.where(rng.random((n_rows, n)) < accuracy, truth, wrong).astype(np.int8)
    votes[rng.random((n_rows, n)) >= coverage] = -1
    return votes


def restless(seed, n, n_classes, coverage, n_rows):
    """Accuracies, coverage or the class balance change every few hundred rows; the last labeler joins late."""
    rng = np.random.default_rng(seed)
    parts, begin = [], 0
    accuracy, silent = rng.uniform(0.5, 0.95, n), np.full(n, 1.0 - coverage)
    balance = np.full(n_classes, 1.0 / n_classes)
    while begin < n_rows:
        length = int(rng.integers(250, 700))
        what = rng.integers(4)
        if what == 0:
            accuracy = rng.uniform(0.4, 0.98, n)
        elif what == 1:
            accuracy[rng.integers(n)] = rng.uniform(0.1, 0.98)
        elif what == 2:
            silent[rng.integers(n)] = rng.choice([0.0, 0.5, 1.0])
        else:
            balance = rng.dirichlet(np.ones(n_classes))
        truth = rng.choice(n_classes, (length, 1), p=balance)
        wrong = (truth + rng.integers(1, n_classes, (length, n))) % n_classes
        votes = np.where(rng.random((length, n)) < accuracy, truth, wrong)
        votes[rng.random((length, n)) < silent] = -1
        parts.append(votes)
        begin += length
    votes = np.concatenate(parts)[:n_rows].astype(np.int8)
    votes[: n_rows // 3, n - 1] = -1
    return votes


def by_majority(rows):
    """Accuracies for tests: how often each labeler votes as most do."""
    leaders = np.array([most(row) for row in rows.tolist()])[:, None]
    votes = np.maximum(1, ((rows >= 0) & (leaders >= 0)).sum(axis=0))
    return AccuracyEstimate(((rows == leaders) & (rows >= 0)).sum(axis=0) / votes, np.full(rows.shape[1], HALF))


def naive_events(votes, n_classes, threshold):
    """Row, about, since, kind, changes by labeler and pairs of every event, by definition."""
    naive, events = NaiveDetector(n_classes, threshold), []
    for t, row in enumerate(votes):
        found = naive.add(row.tolist())
        if found is None:
            continue
        name, span = found
        what, member = name.split()
        first, change = max(naive.start * BLOCK, t + 1 - 16384), t + 1 - span * BLOCK
        rows = votes[first : t + 1]
        told = naive_diagnosis.diagnose(rows, n_classes, (what, int(member), change - first), threshold)
        end, new = change, t + 1
        shares = [other for other in naive.names() if other.startswith("balance")]
        if told is not None and told[2] == "class balance":
            since = max(1, (t + 1) // BLOCK - (first + told[0]) // BLOCK - 1)
            told = told if any(naive.is_new_share(other, since) for other in shares) else None
        if told is not None:
            about, (end, new), kind, agreement, coverage, pairs = told
            before, after = (
                by_majority(part).accuracies for part in (rows[max(0, about - 8192) : about], rows[about:])
            )
            changes = naive_diagnosis.changed(kind, agreement, coverage, before, after, HALF)
            end, new = first + end, first + new
            events.append((t, first + about, (end, new), kind, list(changes.items()), pairs))
        blocks = (t + 1) // BLOCK
        naive.begin(min(blocks, max(-(-new // BLOCK), blocks - 128)), end // BLOCK)
    return events


@pytest.mark.parametrize(("n", "n_classes", "coverage"), [(3, 2, 1.0), (5, 2, 0.6), (4, 3, 0.8), (4, 10, 1.0)])
def test_every_event_is_the_definitions(n, n_classes, coverage):
    n_events, kinds = 0, set()
    for seed in range(4):
        votes = restless(seed, n, n_classes, coverage, 3200)
        names = [f"{h}" for h in range(n)]
        detector = DriftDetector(n, n_classes, false_event_rate=1e-3, labelers=names, estimate=by_majority)
        events = [event for row in votes for event in detector.update(row)]
        want = naive_events(
            votes, n_classes, surprise_threshold(2 * n + (1 if n_classes == 2 else min(n_classes, 8)), 1e-3)
        )
        assert [
            (
                event.row,
                event.about,
                event.since,
                event.kind,
                [(int(who.name), who.change) for who in event.labelers],
                tuple((int(i), int(j)) for i, j in event.pairs),
            )
            for event in events
        ] == want
        n_events += len(events)
        kinds |= {event.kind for event in events}
    assert n_events >= 6
    assert len(kinds) >= 3


@jit
def compare_by(rows, panel, kind, member, sides, overall, inside, coverage):
    """Call the kernels that only kernels call: the deviates of all labelers by a panel, and of one statistic."""
    pack_sides(rows, sides)
    for h in range(rows.shape[1]):
        coverage[h] = compare_coverage(h, 0, sides)
    find_majorities(panel, sides)
    for h in range(rows.shape[1]):
        overall[h], inside[h] = compare_agreement(h, panel[h], sides)
    flag_parts(kind, member, sides)
    add_up(sides)
    return compare_totals(sides)[0]


def compare_sides(rows, n_classes, split, panel, kind=BALANCE, member=0):
    """Sides of a change at row `split`; agreement over all rows and inside classes, coverage, and one statistic."""
    sides, found = new_sides(rows, n_classes), np.empty((3, rows.shape[1]))
    sides.size[SPLIT] = split
    one = compare_by(rows, panel, kind, member, sides, *found)
    return sides, *found, one


@pytest.mark.parametrize("n", [3, 4, 7, 8, 33])
def test_statistics_are_the_definitions(n):
    rng = np.random.default_rng(n)
    for n_classes, low in ((2, -3), (2, -1), (2, 0), (3, -4), (11, -1)):
        rows = np.ascontiguousarray(rng.integers(low, n_classes, (BLOCK, n)), np.int8)
        sides = compare_sides(rows, n_classes, 0, np.ones(n, bool))[0]
        counts = {}
        for kind, member in list_statistics(n, n_classes).entries():
            hits, tries = flag_rows(kind, member, sides.votes[0], sides.leads[0], sides.margins[0])
            assert int(hits) & ~int(tries) == 0
            counts[f"{NAMES[kind]} {member}"] = int(hits).bit_count(), int(tries).bit_count()
        want = counted(np.maximum(rows, -1).tolist(), n_classes)
        assert counts == {name: want[name] for name in counts}
        assert len(counts) == len(want) - (n_classes == 2)  # of two classes, one share says all


@pytest.mark.parametrize(("n", "n_classes", "low"), [(3, 2, -1), (6, 2, 0), (5, 3, -1), (4, 11, -1), (9, 2, -2)])
def test_sides_are_compared_by_definition(n, n_classes, low):
    rng = np.random.default_rng(n)
    rows = np.ascontiguousarray(rng.integers(low, n_classes, (400, n)), np.int8)
    rows[300:, 0] = rows[300:, 1]
    every = np.ones(400, bool)
    for split in (17, 63, 64, 190, 399):
        panel = rng.random(n) < 0.7
        panel[:2] = True
        others = naive_diagnosis.sides(rows, panel)
        sides, overall, inside, coverage, _ = compare_sides(rows, n_classes, split, panel)
        pairs = np.empty((1, n))
        compare_pairs(np.array([1]), sides, pairs)
        for h in range(n):
            voted = rows[:, h] >= 0
            hits, tries = rows[:, h] == others[:, h], voted & (others[:, h] >= 0)
            assert overall[h] == pytest.approx(naive_diagnosis.moved(hits, tries, split))
            strata = min(n_classes, 8)
            assert inside[h] == pytest.approx(naive_diagnosis.moved_inside(hits, tries, others[:, h], split, strata))
            both = voted & (rows[:, 1] >= 0)
            assert pairs[0, h] == pytest.approx(naive_diagnosis.moved(rows[:, h] == rows[:, 1], both, split))
            assert coverage[h] == pytest.approx(naive_diagnosis.moved(voted, every, split))
        leaders = np.array([most(row) for row in rows.tolist()])
        for kind, member in list_statistics(0, n_classes).entries():
            found = compare_sides(rows, n_classes, split, np.ones(n, bool), kind, member)[-1]
            assert found == pytest.approx(naive_diagnosis.moved(leaders % 8 == member, leaders >= 0, split))


@pytest.mark.parametrize(("n", "n_classes", "coverage"), [(6, 2, 1.0), (5, 2, 0.6), (4, 3, 0.8), (4, 10, 1.0)])
def test_a_diagnosis_is_the_definitions(n, n_classes, coverage):
    kinds = set()
    for seed in range(9):
        rng = np.random.default_rng(seed)
        at = int(rng.integers(300, 900))
        rows = drifting(seed, n, n_classes, coverage, 1200, at, drop=rng.choice([0.0, 0.3, 0.5]))
        if seed % 4 == 1:
            rows[at:, 1][rng.random(1200 - at) < 0.6] = -1
        if seed % 4 == 2:
            rows[at:] = np.where(rng.random((1200 - at, 1)) < 0.6, n_classes - 1, rows[at:])
        if seed % 4 == 3:
            rows[: at - 130, 2] = -1
        if seed == 8:
            rows[at:, :3] = (rows[at:, :3] + 1) % n_classes  # most labelers turn round
        for kind, member in ((AGREEMENT, 0), (COVERAGE, 1), (BALANCE, 0)):
            change = min(1100, (at + 40) // 64 * 64)
            told = diagnose(rows, 7, n_classes, Finding(kind, member, change), 9.0, by_majority)
            want = naive_diagnosis.diagnose(rows, n_classes, (NAMES[kind], member, change), 9.0)
            assert (told is None) == (want is None)
            if told is None or want is None:
                continue
            kinds.add(told.kind)
            assert (told.row, told.about - 7, tuple(row - 7 for row in told.since), told.kind) == (1206, *want[:3])
            assert list(told.agreement) == list(want[3])
            assert list(told.coverage) == list(want[4])
            deviates = [*told.agreement.values(), *told.coverage.values()]
            assert deviates == pytest.approx([*want[3].values(), *want[4].values()])
            assert told.pairs == want[5]
            for side, part in enumerate((rows[: want[0]], rows[want[0] :])):
                leaders = [leader for leader in map(most, part.tolist()) if leader >= 0]
                assert told.balance[side].tolist() == [leaders.count(c) / len(leaders) for c in range(n_classes)]
                assert told.votes[side].tolist() == (part >= 0).mean(axis=0).tolist()
    assert len(kinds) >= 3


def test_surprise_by_hand():
    # 48 of 64 before, 16 of 64 since; together 1 in 2.
    assert surprise(16, 64, 48, 64) == pytest.approx(4 * (16 * math.log(0.5) + 48 * math.log(1.5)))
    assert surprise(64, 64, 64, 64) == surprise(0, 64, 0, 64) == 0.0


def test_deviates_by_hand():
    hits = np.concatenate([np.arange(640) % 4 > 0, np.arange(128) % 4 == 0])[:, None]
    rows = np.hstack([hits, np.ones_like(hits), np.ones_like(hits)]).astype(np.int8)
    _, overall, inside, _, _ = compare_sides(rows, 2, 640, np.ones(3, bool))
    assert overall[0] == pytest.approx(-math.sqrt(surprise(32, 128, 480, 640)))
    # One stratum: (hits - expected) over the root of a hypergeometric variance.
    assert inside[0] == pytest.approx((32 - 128 * 512 / 768) / math.sqrt(128 * 640 * 512 * 256 / 768**2 / 767))


def test_the_threshold_shares_the_rate_among_all_comparisons():
    looks = 3 + 4 / 8 + 4 / 16 + 4 / 32 + 4 / 64 + 4 / 128
    assert math.erfc(math.sqrt(surprise_threshold(13, 1e-6) / 2)) == pytest.approx(64e-6 / (looks * 13), rel=1e-6)
    assert surprise_threshold(41, 1e-6) > surprise_threshold(13, 1e-6) > surprise_threshold(13, 1e-5)
    assert normal_deviate(0.01) == pytest.approx(2.5758, abs=1e-3)


def test_the_row_of_a_change_is_located():
    hits = np.array([True] * 300 + [False] * 100)
    assert locate(hits, np.ones(400, bool), 320) == (300, 300, 300)


def test_without_a_clear_cause_there_is_no_event():
    rows = drifting(7, 4, 2, 1.0, 1000, 1000)
    assert diagnose(rows, 0, 2, Finding(AGREEMENT, 0, 800), 25.0, by_majority) is None


def events_of(votes, n_classes=2):
    return DriftDetector(votes.shape[1], n_classes).update(votes)


def changes_of(events):
    return [(event.kind, [(who.name, who.change) for who in event.labelers]) for event in events]


@compiled
def test_kinds_and_names():
    worse = events_of(drifting(2, 6, 2, 1.0, 4000, 2000))
    assert changes_of(worse) == [("labeler worse", [("labeler_0", "worse")])]
    assert worse[0].since[0] <= 2000 <= worse[0].since[1]
    better = events_of(drifting(2, 6, 2, 1.0, 4000, 2000)[::-1])
    assert changes_of(better) == [("labeler better", [("labeler_0", "better")])]
    rare = drifting(3, 6, 2, 1.0, 4000, 4000)
    rare[2000:, 2][np.random.default_rng(0).random(2000) < 0.6] = -1
    assert changes_of(events_of(rare)) == [("coverage", [("labeler_2", "votes less")])]
    rng = np.random.default_rng(4)
    truth = (rng.random((4000, 1)) < np.where(np.arange(4000) < 2000, 0.5, 0.8)[:, None]).astype(np.int64)
    shares = np.where(rng.random((4000, 5)) < 0.8, truth, 1 - truth).astype(np.int8)
    assert changes_of(events_of(shares)) == [("class balance", [])]
    names = drifting(5, 6, 2, 1.0, 4000, 0)
    names[2000:] = names[2000:, ::-1]  # the poor labeler is another one now
    swapped = events_of(names)[0]
    assert swapped.kind == "labelers changed"
    assert {(who.name, who.change) for who in swapped.labelers} == {("labeler_0", "better"), ("labeler_5", "worse")}


@compiled
def test_a_labeler_that_joins_is_no_drift_and_one_that_falls_silent_is():
    votes = drifting(6, 6, 2, 1.0, 6000, 6000)
    late = votes.copy()
    late[:3000, 5] = -1
    assert events_of(late) == []
    detector = DriftDetector(5, labelers=list("abcde"))
    events = detector.update(votes[:3000, :5])
    detector.add_labelers(["late"])
    assert events + detector.update(votes[3000:]) == []
    assert detector.labelers == (*"abcde", "late")
    silent = detector.update(np.where(np.arange(6) == 5, -1, votes[:1000]))
    assert changes_of(silent) == [("coverage", [("late", "votes less")])]
    with pytest.raises(LabelerError, match="'late' is there already"):
        detector.add_labelers(["new", "late"])
    assert detector.n_labelers == 6
    gone = votes.copy()
    gone[3000:, 5] = -1
    assert changes_of(events_of(gone)) == [("coverage", [("labeler_5", "votes less")])]


@compiled
def test_labelers_that_join_leave_the_same_events_as_those_that_abstain():
    votes = restless(3, 6, 3, 0.9, 6000)
    votes[:2345, 4:] = -1
    whole = DriftDetector(6, 3, labelers=list("abcdef"), false_event_rate=1e-3, estimate=by_majority)
    grown = DriftDetector(4, 3, labelers=list("abcd"), false_event_rate=1e-3, estimate=by_majority)
    # The threshold counts the labelers, so events before they join may differ: there are none.
    votes[:2345, :4] = np.random.default_rng(0).integers(0, 3, (2345, 4))
    assert whole.update(votes[:2345]) == grown.update(votes[:2345, :4]) == []
    grown.add_labelers(["e", "f"])
    assert whole.update(votes[2345:]) == grown.update(votes[2345:]) != []


@compiled
def test_labelers_may_join_between_the_detection_of_a_change_and_its_report():
    rng = np.random.default_rng(8)
    truth = (rng.random((4000, 1)) < np.where(np.arange(4000) < 2000, 0.5, 0.8)[:, None]).astype(np.int64)
    votes = np.where(rng.random((4000, 7)) < 0.8, truth, 1 - truth)
    votes[:, 4:] = -1
    before = DriftDetector(4).update(votes[:, :4])[0]
    assert before.kind == "class balance"
    detector = DriftDetector(4)
    assert detector.update(votes[: before.row - 20, :4]) == []
    detector.add_labelers(["e", "f", "g"])
    after = detector.update(votes[before.row - 20 :])[0]
    assert (after.row, after.about, after.kind) == (before.row, before.about, before.kind)


@compiled
def test_a_quiet_stream_stays_quiet():
    for seed, (n, k, coverage) in enumerate([(3, 2, 1.0), (6, 2, 0.7), (5, 4, 0.8)]):
        assert events_of(drifting(10 + seed, n, k, coverage, 40_000, 40_000), k) == []


@compiled
@pytest.mark.parametrize(("n", "n_classes", "coverage"), [(5, 2, 1.0), (6, 3, 0.8)])
def test_without_a_model_events_are_those_of_a_model(n, n_classes, coverage):
    votes = restless(1, n, n_classes, coverage, 6000)
    votes[0] = 0
    model = AdaptiveLabelModel(n_classes=n_classes)
    out = model.label_stream(votes)
    assert len(out.events) > 3
    assert DriftDetector(n, n_classes).update(votes, windows=out.windows) == out.events
    bare = [dataclasses.replace(event, window_before=None, window_after=None) for event in out.events]
    assert DriftDetector(n, n_classes).update(votes) == bare
    begun = DriftDetector(n, n_classes, first_row=1000)
    assert begun.update(votes[1000:])[-1].about == bare[-1].about
    assert begun.n_rows == 6000


@compiled
def test_events_do_not_depend_on_how_rows_come():
    votes, times = restless(2, 5, 2, 0.8, 9000), np.arange(9000) / 4
    windows = np.random.default_rng(0).integers(1, 99, 9000)

    def make():
        return DriftDetector(5, false_event_rate=1e-5, classes=["no", "yes"])

    whole = make()
    events = whole.update(votes, windows=windows, times=Times("number", times))
    assert len(events) > 5
    assert events == whole.events
    assert all(event.time == event.row / 4 for event in events)
    assert all(event.window_after == windows[event.row] for event in events)
    assert list(events[0].balance_before) == ["no", "yes"]
    one = make()
    singly = [
        event
        for row, window, time in zip(votes, windows, times, strict=True)
        for event in one.update(row, windows=[window], times=Times("number", [time]))
    ]
    assert singly == events
    for seed in range(4):
        rng, chunked, begin, found = np.random.default_rng(seed), make(), 0, []
        while begin < 9000:
            part = slice(begin, begin + int(rng.choice([1, 3, 63, 64, 65, 300, 5000])))
            begin = part.stop
            if rng.random() < 0.2:  # in the middle of a block, by way of JSON
                header, arrays = chunked.to_state()
                chunked = make()
                chunked.restore(json.loads(json.dumps(header)), arrays)
            if rng.random() < 0.2:
                chunked = copy.deepcopy(chunked)
            if rng.random() < 0.5:
                found += chunked.update(votes[part], windows=windows[part], times=Times("number", times[part]))
            else:  # the two halves; other work can be done between them
                worker = chunked.fork(part.stop - part.start)
                changes = worker.scan(votes[part])
                assert chunked.n_rows == part.start
                chunked = worker
                found += chunked.report(changes, windows[part], Times("number", times[part]))
        assert found == events
        assert (chunked.n_rows, chunked.n_events, chunked.events) == (9000, len(events), events)


@compiled
def test_copies_are_independent():
    class Panel:
        def estimate(self, rows):
            return by_majority(rows)

    votes, panel = restless(4, 4, 2, 1.0, 4000), Panel()
    detector = DriftDetector(4, false_event_rate=1e-3, estimate=panel.estimate)
    detector.update(votes[:1000])
    deep, light = copy.deepcopy(detector), detector.fork(3000)
    assert light.estimate.__self__ is panel
    assert deep.estimate.__self__ is not panel
    events = light.update(votes[1000:])
    assert events
    assert deep.n_rows == detector.n_rows == 1000
    assert deep.update(votes[1000:]) == detector.update(votes[1000:]) == events


@compiled
@pytest.mark.parametrize("n_rows", [STEP - 1, STEP, STEP + 1, 3 * STEP])
def test_a_fork_leaves_the_detector_as_it_is(n_rows):
    votes = restless(5, 4, 2, 1.0, 2 * REMEMBERED)
    detector = DriftDetector(4, false_event_rate=1e-3, estimate=by_majority)
    detector.update(votes[:REMEMBERED])
    header, arrays = detector.to_state()
    before, kept = json.dumps(header), {name: part.copy() for name, part in arrays.items()}
    found = detector.fork(n_rows).update(votes[REMEMBERED : REMEMBERED + n_rows])
    assert found
    header, arrays = detector.to_state()
    assert json.dumps(header) == before
    assert all(np.array_equal(part, kept[name]) for name, part in arrays.items())
    assert detector.update(votes[REMEMBERED : REMEMBERED + n_rows]) == found


def test_bad_votes_are_refused_and_change_nothing():
    votes = drifting(1, 4, 3, 0.9, 400, 200)
    detector, other = (DriftDetector(4, 3, labelers=list("abcd"), estimate=by_majority) for _ in range(2))
    detector.update(votes[:100])
    bad = votes[100:200].astype(np.int64)
    bad[57, 2] = 3
    for wrong, message in [
        (bad, r"row 57 of this batch \(counting from 0\), column 'c': 3 is neither a class code \(0 to 2\)"),
        (np.where(bad == 3, -5, bad), "column 'c': -5 is neither"),
        (np.where(bad == 3, 259, bad), "column 'c': 259 is neither"),
        (np.where(bad == 3, -5, bad).astype(np.int8), "column 'c': -5 is neither"),
        ([0, 1, 2, 3], "row 0 .* column 'd': 3"),
        ([0, 1, 2], r"4 columns, one for each labeler, not shape \(1, 3\)"),
        (votes[:, :3], r"4 columns, .* not shape \(400, 3\)"),
        (votes[None], r"not shape \(1, 400, 4\)"),
        (5, r"not shape \(\)"),
        (votes.astype(float), "class codes, whole numbers .* not float64"),
        ([["a", "b", "c", "d"]], "class codes"),
        ([0, None, 1, 1], "class codes"),
        ([[0, 1, 0, 1], [0, 1]], "votes must be a table"),
        (np.full((2, 4), 2**63, np.uint64), "class codes"),
    ]:
        with pytest.raises(VoteError, match=message):
            detector.update(wrong)
    for keys in ({"windows": [1, 2]}, {"times": Times("number", [1.0, 2.0])}):
        with pytest.raises(VoteError, match=f"2 {next(iter(keys))} for 1 rows"):
            detector.update(votes[100], **keys)
    assert detector.n_rows == 100
    detector.update(np.asfortranarray(votes[100:200]).astype(np.int16))
    detector.update(votes[200:].tolist())
    other.update(votes)
    header, arrays = detector.to_state()
    assert (header, {name: part.tolist() for name, part in arrays.items()}) == (
        other.to_state()[0],
        {name: part.tolist() for name, part in other.to_state()[1].items()},
    )
    assert detector.update(np.zeros((0, 4), np.int8)) == []


def test_settings_are_checked():
    for wrong, message in [
        ({"false_event_rate": 0.0}, "false_event_rate must be above 0"),
        ({"false_event_rate": 0.01}, "at most 0.001"),
        ({"n_classes": 1}, "n_classes must be a whole number from 2"),
        ({"n_classes": 3, "classes": "ab"}, "n_classes=3 but classes names 2"),
        ({"labelers": ["a"]}, "n_labelers=4 but labelers names 1"),
        ({"first_row": -1}, "first_row"),
        ({"first_row": 0.5}, "first_row must be a whole number"),
        ({"false_event_rate": None}, "a detector needs a rate"),
    ]:
        with pytest.raises(SettingError, match=message):
            DriftDetector(4, **wrong)
    with pytest.raises(SettingError, match="n_labelers"):
        DriftDetector(0)
    assert DriftDetector(4, classes="abc").n_classes == 3


def test_a_state_that_does_not_fit_is_refused():
    detector = DriftDetector(4)
    detector.update(drifting(1, 4, 2, 1.0, 100, 100))
    header, arrays = detector.to_state()
    assert detector.nbytes == DriftDetector(4).nbytes
    for other in (DriftDetector(5), DriftDetector(4, 3)):
        with pytest.raises(StateError, match="drift_"):
            other.restore(header, arrays)
    for name in set(arrays) - {"drift_shares"}:  # which states of 0.2.0 do not have
        with pytest.raises(StateError, match=name):
            DriftDetector(4).restore(header, {key: part for key, part in arrays.items() if key != name})
        with pytest.raises(StateError, match=name):
            DriftDetector(4).restore(header, {**arrays, name: arrays[name].astype(np.float32)})


@compiled
def test_only_the_latest_events_are_remembered():
    votes = np.repeat(np.random.default_rng(0).integers(0, 2, (200_000, 1)), 4, axis=1).astype(np.int8)
    votes[np.arange(200_000) // 320 % 2 == 1, 0] ^= 1  # one labeler begins to contradict, and ends, again and again
    detector = DriftDetector(4)
    events = detector.update(votes)
    assert len(events) == detector.n_events > 256
    assert detector.events == events[-256:]

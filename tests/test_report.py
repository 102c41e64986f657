"""The report: counts, buckets and findings against the same computed by definition."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from driftvote import (
    AdaptiveLabelModel,
    DriftvoteError,
    FixedWindowLabelModel,
    LabelerError,
    MajorityLabelModel,
    SettingError,
    VoteError,
)
from driftvote.drift.bands import half_width
from driftvote.report import Report, ReportBuilder, data, from_arrays, report_from_json, report_to_json
from driftvote.report.buckets import MAX_CELLS, max_buckets
from driftvote.report.charts import charts
from driftvote.streams import simulate, swap

from reports_for_tests import dataclasses_of, full
from streams_for_tests import COMPILED, PAPERS_RULE, random_chunks, random_stream, rows_for

N_CLASSES = 3


def built(votes, out, chunks=None, n_classes=N_CLASSES, **columns) -> Report:
    builder = ReportBuilder(
        labelers=out.labelers, classes=[f"class {c}" for c in range(n_classes)], has_gold="gold" in columns
    )
    for part in chunks or [slice(0, len(votes))]:
        builder.add(votes[part], out[part], **{name: values[part] for name, values in columns.items()})
    return builder.finish()


@pytest.fixture(scope="module")
def stream():
    """Votes with abstentions and silent rows, what the model says of them, and true labels for most rows."""
    rng = np.random.default_rng(5)
    votes = random_stream(5, rows_for(5_000, 1_300), 5, N_CLASSES, abstain=0.4)
    gold = rng.integers(-1, N_CLASSES, size=len(votes))
    out = AdaptiveLabelModel(n_classes=N_CLASSES, votes="snorkel", **PAPERS_RULE).label_stream(votes)
    return votes, out, gold


@pytest.fixture(scope="module")
def report(stream):
    votes, out, gold = stream
    return built(votes, out, gold=gold)


def test_rows_are_counted(stream, report):
    votes, out, _ = stream
    silent = (votes < 0).all(axis=1)
    assert report.tally.rows == len(votes)
    assert report.tally.silent == silent.sum() > 0
    assert report.tally.labeled == (out.codes >= 0).sum()
    assert report.tally.tied == ((out.codes < 0) & ~silent).sum() > 0
    assert report.tally.review == (~silent & ((out.codes < 0) | (out.probability < 0.6))).sum()
    assert report.tally.votes == (votes >= 0).sum()
    assert report.tally.abstentions == (votes < 0).sum()


def test_the_majority_is_that_of_the_model(stream, report):
    votes, out, _ = stream
    majority = MajorityLabelModel(n_classes=N_CLASSES, votes="snorkel").label_stream(votes).codes
    voted = (votes >= 0).any(axis=1)
    found = report.differences
    assert found.overruled == (voted & (out.codes >= 0) & (majority >= 0) & (out.codes != majority)).sum() > 0
    assert found.settled == (voted & (out.codes >= 0) & (majority < 0)).sum() > 0
    assert found.opened == (voted & (out.codes < 0) & (majority >= 0)).sum()
    named = [None if code < 0 else f"class {code}" for code in majority]
    for example in [*found.examples, *report.review]:
        assert example.majority == named[example.row]


def test_labelers_and_agreement(stream, report):
    votes, out, gold = stream
    for h, who in enumerate(report.labelers):
        cast = votes[:, h] >= 0
        assert who.votes == cast.sum()
        assert who.coverage == pytest.approx(cast.mean(), abs=1e-4)
        known = cast & (gold >= 0)
        assert who.gold_accuracy == pytest.approx((votes[known, h] == gold[known]).mean(), abs=1e-4)
        labeled = cast & (out.codes >= 0)
        assert who.with_label == pytest.approx((votes[labeled, h] == out.codes[labeled]).mean(), abs=1e-4)
        assert who.weight == pytest.approx(out.weights[cast, h].mean(), abs=1e-4)
        counts = np.bincount(votes[cast, h], minlength=N_CLASSES)
        assert who.usual_class == f"class {counts.argmax()}"
        assert who.classes_voted == (counts > 0).sum()
    both = (votes[:, 1] >= 0) & (votes[:, 3] >= 0)
    assert report.agreement.rows[1][3] == report.agreement.rows[3][1] == both.sum()
    assert report.agreement.share[1][3] == pytest.approx((votes[both, 1] == votes[both, 3]).mean(), abs=1e-4)
    assert report.agreement.rows[2][2] == report.labelers[2].votes
    assert [one.labels for one in report.classes] == [int((out.codes == c).sum()) for c in range(N_CLASSES)]


def test_gold_is_compared_with_the_models(stream, report):
    votes, out, gold = stream
    others = [
        MajorityLabelModel(n_classes=N_CLASSES, votes="snorkel"),
        FixedWindowLabelModel(window=None, n_classes=N_CLASSES, votes="snorkel"),
    ]
    known = gold >= 0
    labels = [out.codes, *(model.label_stream(votes).codes for model in others)]
    for score, codes in zip(report.gold.scores, labels, strict=True):
        right = np.where(codes < 0, 1 / N_CLASSES, codes == gold)[known]
        assert score.accuracy == pytest.approx(right.mean(), abs=1e-4)
    assert report.gold.rows == known.sum()
    table = np.array(report.gold.confusion)
    assert table.shape == (N_CLASSES, N_CLASSES + 1)
    assert table[1, 2] == ((gold == 1) & (out.codes == 2)).sum()
    assert table[1, -1] == ((gold == 1) & (out.codes == -1)).sum()
    assert report.gold.ranges[0].first_row == 0
    assert report.gold.ranges[-1].last_row == len(votes) - 1


def test_buckets_keep_means_and_extremes(stream, report):
    votes, out, _ = stream
    line = report.timeline
    assert line.step > 1
    assert len(line.first_row) <= max_buckets(5)
    assert line.last_row[-1] == len(votes) - 1
    for bucket in (0, len(line.first_row) // 2, len(line.first_row) - 1):
        part = slice(line.first_row[bucket], line.last_row[bucket] + 1)
        known = out.coverage[part, 2] > 0
        p = out.accuracies[part, 2][known]
        assert line.window_low[bucket] == out.windows[part].min()
        assert line.window_high[bucket] == out.windows[part].max()
        assert line.window_mean[bucket] == pytest.approx(out.windows[part].mean(), abs=0.06)
        assert line.coverage[2][bucket] == pytest.approx((votes[part, 2] >= 0).mean(), abs=1e-4)
        if known.any():
            assert line.band_low[2][bucket] < p.min() + 1e-4
            assert line.band_high[2][bucket] > p.max() - 1e-4
            assert line.accuracy[2][bucket] == pytest.approx(p.mean(), abs=1e-4)
        else:
            assert line.accuracy[2][bucket] is None
    assert min(line.window_low) == out.windows.min()
    assert max(line.window_high) == out.windows.max()


def test_batches_do_not_show(stream, report):
    votes, out, gold = stream
    in_parts = built(votes, out, random_chunks(3, len(votes)), gold=gold)
    assert report_to_json(in_parts) == report_to_json(report)


def test_the_global_random_generator_is_not_used(stream):
    votes, out, _ = stream
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    built(votes, out)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_memory_is_bounded_by_labelers_and_not_by_rows():
    votes = random_stream(0, rows_for(200_000, 1_500), 4)
    model = AdaptiveLabelModel()
    out = model.label_stream(votes)
    builder = ReportBuilder(labelers=out.labelers, classes=[0, 1])
    sizes = []
    for _ in range(3):
        builder.add(votes, out)
        sizes.append(builder.nbytes)
    assert sizes[0] == sizes[1] == sizes[2] < 1_000_000
    line = builder.finish().timeline
    assert builder.finish().tally.rows == 3 * len(votes)
    assert len(line.first_row) <= max_buckets(4)
    # A thousand labelers get fewer buckets instead of more memory.
    assert max_buckets(1_000) * 1_000 <= MAX_CELLS
    assert ReportBuilder(labelers=range(1_000), classes=[0, 1]).nbytes < 100_000_000


def test_weights_of_an_example_make_its_label(stream, report):
    votes, out, _ = stream
    assert len(report.differences.examples) == 12
    assert [e.row for e in report.differences.examples] == sorted(e.row for e in report.differences.examples)
    for example in report.differences.examples:
        total = sum(vote.share for vote in example.votes) + example.base + example.together
        assert example.probability == pytest.approx(1 / (1 + np.exp(-total)), abs=1e-3)
        assert len(example.votes) == (votes[example.row] >= 0).sum()
        assert example.window == out.windows[example.row]
    sure = [example.probability for example in report.review]
    assert sure == sorted(sure)
    voted = (votes >= 0).any(axis=1)
    assert sure[0] == pytest.approx(out.probability[voted].min(), abs=1e-6)


def test_the_default_model_labels_silent_rows_and_weighs_votes_by_class():
    votes = random_stream(5, rows_for(2_000, 500), 5, 2, abstain=0.5)
    votes[:, 4] = np.where(votes[:, 4] == 0, 0, -1)  # votes for one class only
    out = AdaptiveLabelModel(votes="snorkel").label_stream(votes)
    report = built(votes, out, gold=np.full(len(votes), -1))
    silent = (votes < 0).all(axis=1)
    assert report.tally.silent == silent.sum() > 0
    assert report.tally.labeled == (out.codes >= 0).sum() > len(votes) - silent.sum()
    weights = out.weights
    assert (weights[votes < 0] == 0).all()
    assert (weights[votes >= 0] != 0).all()
    for h, who in enumerate(report.labelers):
        assert who.weight == pytest.approx(weights[votes[:, h] >= 0, h].mean(), abs=1e-4)


def test_labelers_may_join_and_fall_silent():
    votes = random_stream(1, rows_for(3_000, 600), 4)
    third = len(votes) // 3
    votes[:third, 3] = -1
    votes[2 * third :, 0] = -1
    model = AdaptiveLabelModel(windows=[16, 32, 64])
    rows = [{f"judge-{h}": int(v) for h, v in enumerate(row) if v >= 0} for row in votes]
    builder = ReportBuilder(labelers=[], classes=["no", "yes"], has_gold=True)
    for part, width in ((slice(0, third), 3), (slice(third, len(votes)), 4)):
        builder.add(votes[part, :width], model.label_stream(rows[part]), gold=np.zeros(len(votes[part]), int))
    report = builder.finish()
    assert [who.name for who in report.labelers] == [f"judge-{h}" for h in range(4)]
    line = report.timeline
    joined = [a for a, last in zip(line.accuracy[3], line.last_row, strict=True) if last < third]
    assert set(joined) == {None}
    # A window of 64 rows without a vote: no estimate, rather than one that looks like guessing.
    assert line.accuracy[0][-1] is None
    assert report.labelers[3].coverage == pytest.approx(2 / 3, abs=0.01)
    assert report_from_json(report_to_json(report)) == report


@pytest.mark.skipif(not COMPILED, reason="several hundred streams; that needs compiled kernels")
@pytest.mark.parametrize(
    ("n_classes", "coverage", "window", "accuracies"),
    [
        (2, 1.0, 256, [0.9, 0.85, 0.8, 0.7, 0.6]),
        (2, 0.4, 1024, [0.9, 0.85, 0.8, 0.8, 0.7, 0.6]),
        (5, 1.0, 256, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]),
        (6, 0.5, 512, [0.9, 0.8, 0.7, 0.6, 0.8, 0.8]),
    ],
)
def test_the_band_holds_the_truth_19_times_in_20(n_classes, coverage, window, accuracies):
    inside = []
    for seed in range(40):
        stream = simulate(np.tile(accuracies, (5 * window, 1)), seed, n_classes, coverage)
        out = FixedWindowLabelModel(window=window, n_classes=n_classes, votes="snorkel").label_stream(stream.votes)
        ends = np.arange(window - 1, 5 * window, window)  # windows that share no row
        band = half_width(out.accuracies[ends], out.coverage[ends], out.windows[ends].astype(float), n_classes)
        inside.append(np.abs(out.accuracies[ends] - np.array(accuracies)) <= band)
    # 200 windows each: two standard errors of a share of 95% are 3 points, labelers of one window move together.
    assert 0.92 <= np.mean(inside) <= 0.98


def test_the_band_of_random_abstentions_is_wider():
    p, c, w = np.full((1, 4), 0.8), np.full((1, 4), 0.5), np.array([400.0])
    assert (half_width(p, c, w, 2, filled=True) > half_width(p, c, w, 2)).all()
    assert half_width(p[:, :2], c[:, :2], w, 2).tolist() == [[1.0, 1.0]]


@pytest.mark.skipif(not COMPILED, reason="long streams; that needs compiled kernels")
def test_changes_are_reported_where_there_are_some_and_only_there():
    for seed in range(8):
        still = simulate(np.tile([0.9, 0.85, 0.8, 0.7, 0.6], (8_000, 1)), seed, coverage=0.9)
        report = from_arrays(still.votes)
        assert report.verdict.startswith("No lasting change in 8,000 rows; ")
        assert not any(step.section == "events" for step in report.next_steps)
        stream = swap(20_000, seed)
        swapped = from_arrays(stream.votes)
        assert re.match(
            r"All 5 labelers changed around row (9,9|10,0)\d\d: 3 got worse \(labeler_\d most: ", swapped.verdict
        )
        assert swapped.next_steps[0].section == "events"
        assert swapped.window_drops == []  # the event says it
        fixed = from_arrays(stream.votes, AdaptiveLabelModel(false_event_rate=None))
        assert fixed.events is None
        assert 10_000 <= fixed.window_drops[0].row <= 10_600
        assert fixed.verdict.startswith(
            f"The agreement changed near row {fixed.window_drops[0].row:,}: the window fell"
        )


def test_every_field_is_documented():
    """Beside its declaration, or (drift events) in the docstring of its class."""
    kinds = dataclasses_of(Report)
    assert {data.Timeline, data.DriftEvent, data.NearCopy} <= set(kinds)
    for kind in kinds:
        fields = {field.name for field in dataclasses.fields(kind)}
        if kind.__module__ == data.__name__:
            documented = set(re.findall(r"^    (\w+): .*  # \S", inspect.getsource(kind), re.MULTILINE))
        else:
            attributes = kind.__doc__.split("Attributes\n", 1)[1]
            lines = re.findall(r"^ *([\w, ]+): ", attributes, re.MULTILINE)
            documented = {name for line in lines for name in line.split(", ")}
        assert documented == fields, kind


def test_json_comes_back_whole_and_never_holds_nan(report):
    for one in (report, full(report)):
        text = report_to_json(one)
        assert report_from_json(text) == one
        assert "NaN" not in text
        assert "Infinity" not in text
        assert json.loads(text) == one.to_dict()
    with pytest.raises(ValueError, match="not JSON compliant"):
        report_to_json(dataclasses.replace(report, tally=dataclasses.replace(report.tally, review_below=float("nan"))))


def test_json_that_is_no_report_is_refused(report, tmp_path):
    (tmp_path / "r.json").write_text(report_to_json(report))
    assert report_from_json(tmp_path / "r.json") == report
    for text, message in [
        ("{", "not the JSON of a report"),
        ("[]", "not a report of format 3"),
        ('{"format": 99}', "not a report of format 3 but of 99; make the report again"),
        ('{"format": 3}', "damaged"),
    ]:
        with pytest.raises(DriftvoteError, match=message):
            report_from_json(text)


def test_from_arrays_takes_what_label_stream_takes():
    classes = ["ham", "spam"]
    votes = random_stream(2, 300, 4, abstain=0.2)
    names = [f"rule {h}" for h in range(4)]
    words = [[None if v < 0 else classes[v] for v in column] for column in votes.T]
    model = AdaptiveLabelModel(classes=classes)
    gold = [None if row % 3 else classes[row % 2] for row in range(300)]
    table = pa.table(dict(zip(names, words, strict=True)))
    report = from_arrays(table, model, gold=gold, title="Mail", source="inbox")
    assert model.n_rows == 0
    assert [who.name for who in report.labelers] == names
    assert [one.name for one in report.classes] == classes
    assert report.gold.rows == 100
    assert report.settings["model"] == "AdaptiveLabelModel"
    assert "ham" in report.reading["votes"]
    out = model.label_stream(table)
    assert report_to_json(
        from_arrays(table, model, out=out, gold=gold, title="Mail", source="inbox")
    ) == report_to_json(report)
    shuffled = table.select(names[::-1])
    again = from_arrays(shuffled, AdaptiveLabelModel(classes=classes, labelers=names))
    assert [who.votes for who in again.labelers] == [who.votes for who in report.labelers]
    with pytest.raises(VoteError, match="gold of row 1 is 'eggs', which is none of the classes"):
        from_arrays(table, model, gold=["ham", "eggs", *gold[2:]])
    assert from_arrays(votes, gold=[np.nan, 1.0, *([0] * 298)]).gold.rows == 299
    assert repr(report) == "Report('Mail': 300 rows, 4 labelers)"
    assert "<li>300 rows" in report._repr_html_()
    assert report_to_json(out.report(gold=gold, title="Mail", source="inbox")) == report_to_json(
        dataclasses.replace(report, settings={})
    )


@pytest.mark.parametrize("kind", ["number", "date", "aware", "text", "repeated", "daily"])
def test_times_are_an_axis_where_they_grow(kind):
    n = 2_500 if COMPILED else 300
    votes = random_stream(4, n, 3)
    times = {
        "number": np.arange(n) * 0.5,
        "date": np.datetime64("2026-01-01") + np.arange(n),
        "aware": [
            datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))) + timedelta(days=row) for row in range(n)
        ],
        "text": [f"2026-01-01T{row // 3600:02}:{row // 60 % 60:02}:{row % 60:02}" for row in range(n)],
        "repeated": ["spring"] * n,
        "daily": np.datetime64("2026-01-01") + np.arange(n) // 50,
    }[kind]
    report = from_arrays(votes, times=times)
    line = report.timeline
    assert line.by_time == (kind not in ("repeated", "daily"))
    axis = charts(report)["axis"]
    assert axis["kind"] == {"number": "number", "repeated": "row", "daily": "row"}.get(kind, "date")
    assert ("times" in axis) == (kind == "daily")
    if kind == "daily":
        assert axis["times"][0] == [0, "2026-01-01"]
    if kind == "date":
        assert axis["high"] - axis["low"] == (n - 1) * 86_400_000  # up to the last row
    assert len(line.first_time) == len(line.first_row) == len(line.last_time)
    if kind in ("date", "aware"):
        assert line.first_time[0] == "2026-01-01"
        assert line.last_time[-1] == str(np.datetime64("2026-01-01") + n - 1)
    if kind == "number":
        assert line.last_time[-1] == (n - 1) * 0.5


def test_streams_at_the_edge():
    assert ReportBuilder(labelers=[], classes=[0, 1]).finish().verdict == "No rows were read."
    silent = from_arrays(np.full((50, 3), -1), AdaptiveLabelModel(votes="snorkel"))
    assert silent.tally.silent == 50
    assert silent.tally.review == 0
    assert silent.agreement.share[0][1] is None
    assert silent.labelers[0].accuracy is None
    one = from_arrays([[1, 0, 1]])
    assert one.tally.rows == 1
    many = 300
    votes = np.random.default_rng(0).integers(0, many, size=(400, 3))
    wide = from_arrays(votes, AdaptiveLabelModel(n_classes=many, votes="snorkel"), gold=votes[:, 0])
    assert len(wide.classes) == 200
    assert wide.classes[-1].name == "other classes"
    assert wide.classes[-1].votes == (votes >= 199).sum()
    assert {who.usual_class for who in wide.labelers} == {"other classes"}
    assert len(wide.gold.confusion_classes) == 12
    assert sum(map(sum, wide.gold.confusion)) == 400


def test_wrong_input_is_refused_before_anything_is_counted(stream):
    votes, out, gold = stream
    builder = ReportBuilder(labelers=out.labelers, classes=range(N_CLASSES), has_gold=True)
    builder.add(votes[:100], out[:100], gold=gold[:100])
    before = report_to_json(builder.finish())
    for message, arguments in [
        ("votes must be rows x labelers of class codes, not float64", ((votes * 0.5)[:10], out[:10])),
        ("votes are 9 rows x 5 labelers, but the labels are of 10 rows", (votes[:9], out[:10])),
        ("votes: class code 7 is none of the 3 classes", (np.full((10, 5), 7), out[:10], None, None, gold[:10])),
        ("gold: class code 9 is none of the 3 classes", (votes[:10], out[:10], None, None, np.full(10, 9))),
        ("times has 3 entries for 10 rows", (votes[:10], out[:10], [1, 2, 3], None, gold[:10])),
        ("gold comes with every batch or with none", (votes[:10], out[:10])),
    ]:
        with pytest.raises(VoteError, match=message):
            builder.add(*arguments)
    assert report_to_json(builder.finish()) == before
    with pytest.raises(LabelerError, match="the report knows 2 labelers but the labels are of 5"):
        ReportBuilder(labelers=["a", "b"], classes=range(N_CLASSES)).add(votes[:10], out[:10])
    with pytest.raises(SettingError, match="at least two classes"):
        ReportBuilder(labelers=["a"], classes=["b"])
    with pytest.raises(SettingError, match="review_below must be a probability from 0 to 1, not 7"):
        ReportBuilder(labelers=["a"], classes=[0, 1], review_below=7)

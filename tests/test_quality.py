"""The quality suite, small: how labels are scored, by hand; the grids, in part; what is cached."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from driftvote import MajorityLabelModel, VoteError
from experiments.quality import cost, models, peers, questions, scoring, simulated, streams, suite
from experiments.quality.__main__ import keep_other_parts, main
from experiments.quality.checks import FORMER, check_all, show_cell
from experiments.quality.page import fill_in_figures, page, publish
from experiments.quality.peers import Peer
from experiments.quality.streams import GoldStream

from streams_for_tests import DATA, needs_data, random_stream

ROOT = Path(__file__).parents[1]

# Of the README of the data: abstentions ignored, a tied row counts by its share.
MAJORITIES = {
    "air_co": 87.5, "elec2_lf": 59.8, "noaa_rules": 72.5, "weatherweb_temperature": 94.8, "flusight_dir_h2": 79.6,
    "care_civilcomments": 70.9, "wrench_youtube": 85.2, "tennis": 86.7, "basketball": 75.3, "commercial": 90.3,
    "room_count": 89.3, "outdoor_objects": 41.0, "crowd_leaves": 64.1, "wrench_semeval": 78.9,
}  # fmt: skip


class TestScoring:
    def test_majority(self):
        votes = np.array([[0, 1, 1], [0, 1, 2], [0, -1, 2], [-1, -1, -1]])
        assert scoring.majority_shares(votes, 3).tolist() == [[0, 1, 0], [1 / 3] * 3, [0.5, 0, 0.5], [1 / 3] * 3]
        assert scoring.credit_majority(votes, np.array([1, 1, 1, 0]), 3).tolist() == [1, 1 / 3, 0, 1 / 3]

    def test_majority_gains_nothing_over_itself(self):
        for n_classes in (2, 4):
            votes = random_stream(1, 400, 5, n_classes, abstain=0.4)
            stream = GoldStream(votes, np.random.default_rng(0).integers(n_classes, size=400), n_classes)
            out = MajorityLabelModel(n_classes=n_classes).label_stream(votes)
            found = scoring.score(stream, out.codes, out.proba)
            assert found["gain"] == found["low"] == found["high"] == 0.0
            assert found["calibration"] == pytest.approx(found["calibration_share"])

    def test_gain_by_hand(self):
        # Majority: right, tied, wrong, no votes. Labels: wrong, left open, right, left open.
        stream = GoldStream(np.array([[1, 1], [0, 1], [0, 0], [-1, -1]]), np.array([1, 1, 1, 0]), 2)
        found = scoring.score(stream, np.array([0, -1, 1, -1]))
        assert found["accuracy"] == pytest.approx(100 * (0 + 0.5 + 1 + 0.5) / 4)
        assert found["gain"] == pytest.approx(100 * (-1 + 0 + 1 + 0) / 4)

    def test_interval_of_runs_is_wider(self):
        # The same 10% of gains: spread, or in runs of 50 rows that begin with a block.
        spread = (np.arange(10_000) % 10 == 0).astype(float)
        runs = (np.arange(10_000) // 50 % 10 == 0).astype(float)
        (low, high), (low_runs, high_runs) = scoring.gain_interval(spread), scoring.gain_interval(runs)
        assert low == high == pytest.approx(10)
        assert low_runs < 7 < 13 < high_runs
        assert scoring.gain_interval(runs) == (low_runs, high_runs)

    def test_interval_holds_the_truth_nine_times_in_ten(self):
        held = []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            gains = np.repeat(rng.normal(0.02, 0.3, 100), 25)
            low, high = scoring.gain_interval(gains)
            held.append(low <= 2.0 <= high)
        assert 0.88 <= np.mean(held) <= 0.98

    def test_calibration(self):
        # Two bins: 0.6 to 0.667 with one row of two right, 0.933 to 1 with both right.
        said, right = np.array([0.61, 0.65, 0.95, 1.0]), np.array([1.0, 0.0, 1.0, 1.0])
        assert scoring.calibration_error(said, right) == pytest.approx((abs(1.26 - 1) + abs(1.95 - 2)) / 4)

    def test_review_meets_equal_rows_in_any_order(self):
        # A tenth of 20 rows is 2. One row is least certain and wrong, four are next, two of them wrong.
        said = np.array([0.5, *[0.6] * 4, *[0.9] * 15])
        right = np.array([0.0, 0.0, 0.0, 1.0, 1.0, *[1.0] * 14, 0.0])
        assert scoring.review_lift(said, right) == pytest.approx((1 + 2 / 4) / 4 / 0.1)

    def test_review_has_a_limit(self):
        right = np.array([*[0.0] * 3, *[1.0] * 7])
        assert scoring.review_limit(right, 2) == pytest.approx(0.5 / 0.3)
        assert scoring.review_limit(right, 10) == pytest.approx(0.9 / 0.3)
        assert scoring.review_limit(np.ones(4), 2) == 10

    def test_hindsight_knows_the_other_rows_only(self):
        rng = np.random.default_rng(0)
        right = (rng.random(4000) < 0.8).astype(float)
        alone, tenth = np.arange(4000)[:, None], np.arange(4000)[:, None] % 10
        assert scoring.review_hindsight(alone, right) == pytest.approx(1), "groups of one row teach nothing"
        right[::10] = 0
        assert scoring.review_hindsight(tenth, right) == pytest.approx(0.1 / (1 - right.mean()) / 0.1)

    def test_summary(self):
        found = scoring.summarize({"a": 7.0, "b": -1.0, "c": -2.0, "basketball": -8.0})
        assert (found["mean"], found["clipped"], found["loss"]) == (-1.0, -1.5, -2.75)
        assert (found["worst"], found["worst_stream"]) == (-2.0, "c")


class TestStreams:
    def test_families(self):
        names = {
            "tennis": "video",
            "crowd_zencrowd_in": "zencrowd",
            "crowd_dog": "crowd_dog",
            "srft_warm": "weather-models",
        }
        assert {name: streams.family_of(name) for name in names} == names
        assert not streams.has_time("crowd_dog")
        assert streams.has_time("crowdtruth_medical")

    def test_a_table_is_read(self, tmp_path):
        path = tmp_path / "streams" / "mine.csv"
        path.parent.mkdir()
        path.write_text("a,b,gold\n1,,0\n,,1\n0,3,1\n")
        stream = streams.load(str(tmp_path), "mine")
        assert stream.votes.tolist() == [[1, -1], [-1, -1], [0, 3]]
        assert stream.n_classes == 4
        path.write_text("a,b\n1,0\n")
        with pytest.raises(VoteError, match="a last column named 'gold'"):
            streams._load_table(path)
        path.write_text("a,gold\nx,0\n")
        with pytest.raises(VoteError, match="not a table of class codes"):
            streams._load_table(path)

    def test_shuffling_keeps_rows_together(self):
        stream = GoldStream(np.arange(20).reshape(10, 2), np.arange(10), 20)
        moved = stream.shuffled(1)
        assert moved.truth.tolist() != stream.truth.tolist()
        assert (moved.votes[:, 0] == 2 * moved.truth).all()

    @needs_data
    @pytest.mark.parametrize("name", MAJORITIES)
    def test_majority_is_as_published(self, name):
        assert scoring.describe(streams.load(str(DATA), name))["majority"] == pytest.approx(MAJORITIES[name], abs=0.051)


class TestSimulated:
    def test_rare_classes(self):
        """A part of the grid of `make quality`."""
        cells = [
            cell
            for kind, n in (("share", 3), ("share", 5), ("absent", 3), ("runs", 3))
            for cell in simulated.rare(kind, n, accuracies=(0.7, 0.9), seeds=2)["cells"]
        ]
        lost = {show_cell(cell): round(cell["gain"], 2) for cell in cells if cell["gain"] < -0.5}
        assert not lost

    def test_the_grid_of_rare_classes_can_fail(self, monkeypatch):
        monkeypatch.setattr(simulated, "label", lambda stream: type("Out", (), {"codes": 1 - stream.truth % 2}))
        cells = simulated.rare("share", 3, accuracies=(0.9,), seeds=1)["cells"]
        assert all(cell["gain"] < -50 for cell in cells)
        (check,) = check_all({"rare": cells})
        assert check.holds is False
        assert "7 of 7 cells lose more" in check.note

    def test_shares_are_what_they_say(self):
        for share in (0.2, 0.01):
            stream = simulated.rare_stream("share", 20, 0.7, (share,), 0)
            assert stream.truth.mean() == pytest.approx(share, rel=0.4)
            assert (stream.votes == stream.truth[:, None]).mean() == pytest.approx(0.7, abs=0.01)
        stream = simulated.rare_stream("absent", 5, 0.7, (10, 1), 0)
        assert (stream.truth == 0).all()
        assert set(np.unique(stream.votes)) == set(range(10))

    def test_random_labelers_are_best_at_the_true_class(self):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            n_classes = int(rng.integers(2, 11))
            tables = simulated.random_tables(rng, 4, n_classes, by_class=seed % 2 == 0)
            assert tables.sum(axis=2) == pytest.approx(1.0)
            assert (tables.argmax(axis=2) == np.arange(n_classes)).all()
            assert tables.diagonal(axis1=1, axis2=2).min() > 1 / n_classes

    def test_random_streams_are_as_wide_as_they_say(self):
        drawn = [simulated.random_stream(seed) for seed in range(60)]
        assert {stream.n_classes for stream in drawn} == set(range(2, 11))
        assert min(len(stream.truth) for stream in drawn) < 300
        assert max(len(stream.truth) for stream in drawn) > 5_000
        assert simulated.random_stream(3).votes.tolist() == drawn[3].votes.tolist()
        shares = [np.bincount(stream.truth).max() / len(stream.truth) for stream in drawn]
        assert min(shares) < 0.2 < 0.9 < max(shares)

    def test_random_panels(self):
        gains = simulated.random(0, 20)["gains"]
        assert min(gains.values()) > -5, gains

    def test_one_labeler_falls(self):
        for sparse in (False, True):
            stream, _ = simulated.abrupt_stream(sparse, 0)
            right = stream.votes == stream.truth[:, None]
            voted = stream.votes >= 0
            before, after = slice(0, simulated.CHANGE_ROW), slice(simulated.CHANGE_ROW, None)
            assert right[before, 0].sum() / voted[before, 0].sum() == pytest.approx(0.85, abs=0.03)
            assert right[after, 0].sum() / voted[after, 0].sum() == pytest.approx(0.40, abs=0.04)
            assert set(voted.sum(axis=1)) == {4 if sparse else 6}

    def test_windows_that_reach_across_an_event(self):
        event = type("Event", (), {"row": 5, "since": (3, 4)})
        out = type(
            "Out",
            (),
            {"__len__": lambda self: 10, "windows": np.array([1, 2, 3, 4, 5, 6, 4, 8, 6, 8]), "events": [event]},
        )
        # Rows 6 to 9: their windows begin at rows 3, 0, 3 and 2.
        assert simulated.rows_across(out()).tolist() == [0, 1, 0, 1]

    def test_runs(self):
        stream = simulated.runs_stream(200, by_class=False, rows=50_000)
        changes = np.flatnonzero(np.diff(stream.truth)) + 1
        assert np.mean(np.diff(changes)) == pytest.approx(400, rel=0.25)  # half of the draws keep the class
        assert np.diff(simulated.runs_stream(1, by_class=False, rows=10_000).truth).any()

    def test_former_figures_are_of_the_same_scenarios(self):
        assert set(FORMER["drift"]) == set(simulated.SCENARIOS)
        assert {len(found) for found in FORMER["drift"].values()} == {simulated.DRIFT_SEEDS}


@needs_data
class TestCommand:
    NAMES = ("tennis", "crowd_leaves", "wrench_youtube", "gas_sensor_lf16_b1")

    def test_streams(self, tmp_path, capsys):
        arguments = ["--data", str(DATA), "--out", str(tmp_path), "--limit", "1500", "--jobs", "1", "--only", "streams"]
        assert main([*arguments, "--names", ",".join(self.NAMES)]) == 0
        shown = capsys.readouterr()
        assert "worst stream, Basketball aside" in shown.out
        assert "4 of 4 runs" in shown.err
        assert main([*arguments, "--names", ",".join(self.NAMES)]) == 0
        assert "4 of 4 runs\nstreams" in capsys.readouterr().err  # nothing was run again
        assert main(["--data", str(DATA), "--only", "stream"]) == 1
        assert "there is no part 'stream'" in capsys.readouterr().err
        assert main(["--data", str(tmp_path), "--only", "streams"]) == 1
        assert "no vote streams there" in capsys.readouterr().err

    def test_figures_of_every_model(self):
        for name in models.MODELS:
            found = models.run(str(DATA), "crowd_leaves", name, 0, 0, None)
            assert found["gain"] == pytest.approx(found["accuracy"] - found["majority"])
            assert found["low"] <= found["gain"] <= found["high"]
            assert found["gain"] > -15

    def test_shuffled(self, tmp_path):
        small = suite.Suite(Path(DATA), tmp_path, ["crowd_dog"], 300, 1)
        found = small.shuffled()["crowd_dog"]
        assert [len(values) for values in found.values()] == [2, 2]
        assert (tmp_path / "runs" / "quality.models" / "crowd_dog-0-0-2-300.json").exists()


class TestQuestions:
    @needs_data
    def test_answers_help_where_label_models_disagree(self):
        """Twenty answers turn the stream on which the mixture does worst."""
        found = questions.run(str(DATA), "elec2_rules", 3_000)
        twenty = found["ask, 0% wrong, 20"]
        assert found["free"] < -1
        assert twenty > 0
        assert twenty > found["random rows, 0% wrong, 20"]
        assert set(found) == {"free", "disputed", "expected", "changed"} | {
            f"{way}, {wrong:.0%} wrong, {count}" for (way, wrong), counts in questions.PLANS.items() for count in counts
        }

    def test_while_it_drifts(self, monkeypatch):
        monkeypatch.setattr(questions, "ASKED", (0, 20))
        found = questions.run(seed=0)
        for when in ("before", "after"):
            assert found["20"][when] > found["0"][when] + 2

    def test_ways_of_choosing(self):
        votes = np.random.default_rng(0).integers(2, size=(600, 5)).astype(np.int8)
        out = models.adaptive(2).label_stream(votes)
        scores = out.score(np.arange(600))
        for way in (questions.ASK, questions.DISPUTED, questions.ANY):
            rows = questions.choose(way, 10, scores, [], 1)
            assert len(np.unique(rows)) == 10
            assert way == questions.ANY or scores.disputed[rows].all()

    def test_checks_can_fail(self):
        figures = dict.fromkeys(("free", "ask, 0% wrong, 5", "ask, 0% wrong, 10", "ask, 0% wrong, 20"), 2.0)
        figures |= {"ask, 10% wrong, 20": 2.0} | {f"random rows, 0% wrong, {count}": 1.0 for count in (10, 20, 40)}
        part = {
            "streams": {"a": figures},
            "drift": {"0": {"before": [80], "after": [80]}, "20": {"before": [85], "after": [85]}},
            "time": {"label": 1.0, "ask": 0.01},
        }
        assert all(check.holds for check in check_all({"questions": part}))
        worse = {name: 0.9 if name.startswith("ask") else value for name, value in figures.items()}
        part = part | {"streams": {"a": worse}, "time": {"label": 1.0, "ask": 0.06}}
        part["drift"] = {"0": {"before": [80], "after": [80]}, "20": {"before": [85], "after": [84]}}
        failed = [check.statement for check in check_all({"questions": part}) if not check.holds]
        assert len(failed) == 8


class TestPeers:
    """The exchange with peers, without any of them: a method of the program that needs nothing stands for one."""

    PEER = Peer("majority", "none", "majority")

    @pytest.fixture
    def panel(self, monkeypatch):
        monkeypatch.setitem(peers.ENVIRONMENTS, "none", ("majority==1",))
        votes = random_stream(2, 60, 4, 3, abstain=0.5)
        votes[-2:] = -1
        return {"a": GoldStream(votes, np.random.default_rng(0).integers(3, size=60), 3)}

    def test_votes_go_out_and_probabilities_come_back(self, panel, tmp_path):
        files = peers.label_with(self.PEER, panel, tmp_path, python=Path(sys.executable))
        proba = np.load(files["a"])["proba"]
        voted = (panel["a"].votes >= 0).any(axis=1)
        assert (proba[voted] == scoring.majority_shares(panel["a"].votes, 3)[voted]).all()
        assert np.isnan(proba[~voted]).all()
        assert [path.name for path in (tmp_path / "peers" / "majority").iterdir()] == [files["a"].name]
        found = peers.measure_peer(self.PEER, panel, tmp_path)  # from the cache: there is no environment to run
        assert found == {"gains": {"a": 0.0}, "failed": {}}

    def test_a_result_depends_on_votes_and_versions(self, panel, monkeypatch):
        before = peers.digest(self.PEER, panel["a"])
        votes = panel["a"].votes.copy()
        votes[0] = votes[0][::-1].copy()
        assert peers.digest(self.PEER, GoldStream(votes, panel["a"].truth, 3)) != before
        assert peers.digest(self.PEER, GoldStream(panel["a"].votes, panel["a"].truth, 4)) != before
        monkeypatch.setitem(peers.ENVIRONMENTS, "none", ("majority==2",))
        assert peers.digest(self.PEER, panel["a"]) != before

    def test_a_peer_that_fails_is_named(self, panel, tmp_path, monkeypatch, capsys):
        (tmp_path / "envs" / "none" / "bin").mkdir(parents=True)
        (tmp_path / "envs" / "none" / "bin" / "python").symlink_to(sys.executable)
        monkeypatch.setattr(peers, "install", lambda name, folder: None)
        unknown = Peer("unknown", "none", "unknown")
        found = peers.measure_peers(panel, tmp_path, 1, [unknown])
        assert found["unknown"]["reason"] == "KeyError: 'unknown'"
        assert "unknown is left out: KeyError" in capsys.readouterr().err
        # A stream on which it fails counts as majority.
        files = {"a": "no reason", "b": tmp_path / "b.npz"}
        np.savez(files["b"], proba=np.eye(3)[panel["a"].truth])
        monkeypatch.setattr(peers, "label_with", lambda peer, streams, out: files)
        found = peers.measure_peers(panel | {"b": panel["a"]}, tmp_path, 1, [unknown])["unknown"]
        assert found["gains"]["a"] == 0.0 < found["gains"]["b"]
        assert "unknown failed on a: no reason" in capsys.readouterr().err

    def test_an_environment_that_cannot_be_made_is_named(self, panel, tmp_path, monkeypatch, capsys):
        def refuse(*args, **kwargs):
            raise OSError("no space left in /nowhere/here")

        monkeypatch.setattr(peers.venv, "create", refuse)
        found = peers.measure_peers(panel, tmp_path, 1, [self.PEER])
        assert found["majority"]["reason"] == "not installed: no space left in ..."
        assert "majority is left out" in capsys.readouterr().err
        (check,) = check_all({"streams": {"a": {"gain": 1.0}}, "peers": found}, ["peers"])
        assert check.holds is None

    def test_being_ahead(self):
        results = {"streams": {"a": {"gain": 1.0}, "b": {"gain": 0.0}}}
        for gain, holds in ((-1.0, True), (3.0, False)):
            found = {"other": {"whole_stream": True, "gains": {"a": gain, "b": -1.0}}}
            (check,) = check_all(results | {"peers": found}, ["peers"])
            assert check.holds is holds


def test_cost_without_the_former_commit(tmp_path, capsys):
    assert "not in this checkout" in str(cost.check_out(tmp_path / "former", "0" * 40))
    (tmp_path / "src").mkdir()
    assert cost.check_out(tmp_path) is None
    (check, _) = check_all({"cost": {"row": 2.1, "batch": 1.0}})
    assert check.holds is False


class TestPage:
    @pytest.fixture
    def results(self):
        entry = {
            "family": "f", "time": True, "rows": 100, "labelers": 3, "classes": 2, "coverage": 0.5, "majority": 80.0,
            "calibration": 0.1, "calibration_share": 0.2, "review": 2.5,
            "review_limit": 2.75, "review_hindsight": 1.5,
        }  # fmt: skip
        gains = {"up": (20.0, 18.0, 22.0), "same": (0.5, -1.0, 2.0), "down": (-2.0, -3.0, -1.0)}
        streams = {
            name: entry | {"accuracy": 80 + gain, "gain": gain, "low": low, "high": high}
            for name, (gain, low, high) in gains.items()
        }
        return {"versions": {"driftvote": "1"}, "limit": None, "streams": streams}

    def test_it_says_what_to_expect(self, results, tmp_path):
        publish(results, tmp_path)
        text = (tmp_path / "quality.md").read_text()
        assert "clearly better on 1 streams and clearly worse on 1; on the other 1" in " ".join(text.split())
        assert "labels 86.2% of the rows correctly, a majority vote 80.0%" in " ".join(text.split())
        assert "| **AdaptiveLabelModel()** | each row as it arrives | +6.17 | +1.17 | -0.67 | -2.0 (down) |" in text
        assert (
            "| up | f | 100 x 3, 2 | 50% | 80.0 | 100.0 | +20.00 (+18.00 to +22.00) | 0.100 / 0.200 | 2.50 / 2.75 |"
            in text
        )
        assert "| clipped mean gain | at least +0.9 | +1.17 | pass | 3 streams |" in text
        assert "| worst stream, Basketball aside | at least -3 | -2.00 (down) | pass |" in text
        assert (tmp_path / "figures" / "quality-gain.png").stat().st_size > 5_000

    def test_peers_that_are_missing_are_named(self, results):
        results["peers"] = {
            "one": {"whole_stream": True, "reason": "not installed: no wheel"},
            "two": {
                "whole_stream": True,
                "gains": dict.fromkeys(results["streams"], 0.0),
                "failed": {"up": "it broke"},
            },
        }
        text = " ".join(page(results).split())
        assert "**Not measured:** one: not installed: no wheel." in text
        assert "Failed, and counted as majority: two on up (it broke)." in text
        assert "| two | the whole stream | +0.00 | +0.00 | +0.00 | +0.0 (up) |" in text

    def test_the_committed_page_is_that_of_its_figures(self):
        docs = ROOT / "docs"
        assert (docs / "quality.md").read_text() == page(json.loads((docs / "quality.json").read_text()))

    def test_the_page_about_questions_has_its_figures(self):
        docs = ROOT / "docs"
        text = (docs / "questions.md").read_text()
        assert text == fill_in_figures(text, json.loads((docs / "quality.json").read_text()))

    def test_checks_can_fail(self):
        """Each statement once with figures that hold and once with figures that do not."""
        drift = {name: {"ours": found, "majority": found} for name, found in FORMER["drift"].items()}
        worse = {"ours": [x - 0.6 for x in FORMER["drift"]["swap"]], "majority": [0.0]}
        held = {"error": 0.04, "error_others": 0.01, "held": {"200": 0.9}, "across": 0.0, "detected": 1.0}
        still = {length: {"window": 8192.0, "events": 0} for length in ("1", "10", "200")}
        both = {models.DEFAULT: [80.0, 80.0], models.ALL_PAST: [80.2, 80.2]}
        cases = [
            ({"random": {"count": 100, "behind": 1, "worst": {"3": -4.0}}}, {"random": {"count": 100, "behind": 2, "worst": {"3": -6.0}}}),
            ({"drift": drift}, {"drift": drift | {"swap": worse}}),
            ({"abrupt": {"a": held}}, {"abrupt": {"a": held | {"error": 0.06, "held": {"200": 0.8}, "across": 0.1}}}),
            ({"runs": {"a": still}}, {"runs": {"a": still | {"10": {"window": 2048.0, "events": 5}}}}),
            ({"shuffled": {"a": both}}, {"shuffled": {"a": both | {models.DEFAULT: [79.0, 79.0]}}}),
        ]  # fmt: skip
        for good, bad in cases:
            assert all(check.holds for check in check_all(good)), good
            assert not any(check.holds for check in check_all(bad)), bad


def test_a_page_of_some_parts_keeps_the_others_and_says_so(tmp_path):
    committed = json.loads((ROOT / "docs" / "quality.json").read_text())
    path = tmp_path / "quality.json"
    path.write_text(json.dumps(committed))
    results = {key: committed[key] for key in ("versions", "limit", "streams", "peers", "models")} | {"seconds": {}}
    keep_other_parts(results, path)
    assert results["rare"] == committed["rare"]
    assert "rare" in results["earlier"]
    assert "streams" not in results["earlier"]
    assert "since the last change of the model:** `rare`" in page(results)
    whole = dict(committed)
    keep_other_parts(whole, path)
    assert whole["earlier"] == []
    assert "since the last change" not in page(whole)

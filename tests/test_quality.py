"""The quality suite, small: its measures by hand, its verdicts, what it keeps, and the committed figures."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, MajorityLabelModel, SettingError, VoteError
from experiments import runs
from experiments.quality import measures, models, streams, suite, work
from experiments.quality import trial as trial_module
from experiments.quality.__main__ import main
from experiments.quality.measures import average
from experiments.quality.page import CAPTIONS, page
from experiments.quality.trial import evaluate, judge
from experiments.quality.trial import main as trial
from experiments.quality.verdicts import FAIL, MISSING, PASS, verdicts

from streams_for_tests import DATA, needs_data, random_stream

ROOT = Path(__file__).parents[1]

# Of the README of the data: abstentions ignored, a tied row counts half.
MAJORITIES = {
    "air_co": 87.5, "elec2_lf": 59.8, "noaa_rules": 72.5, "weatherweb_temperature": 94.8, "flusight_dir_h2": 79.6,
    "care_civilcomments": 70.9, "wrench_youtube": 85.2, "wrench_imdb": 73.6, "tennis": 86.7, "basketball": 75.3,
    "commercial": 90.3,
}  # fmt: skip


class TestMeasures:
    def test_a_tie_is_shared_out(self):
        proba = np.array([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7], [1 / 3] * 3, [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]])
        codes = np.array([-1, 2, -1, -1, 0])
        third = [1 / 3] * 3
        # The fourth row abstains though a class is ahead; the last one is tied and was decided.
        expected = [[0.5, 0.5, 0], [0, 0, 1], third, third, [1, 0, 0]]
        assert measures.shares(codes, proba, drawn=False).tolist() == expected
        expected[4] = [0.5, 0.5, 0]
        assert measures.shares(codes, proba, drawn=True).tolist() == expected

    def test_majority(self):
        votes = np.array([[0, 1, 1], [0, 1, 2], [0, -1, 2], [-1, -1, -1]])
        parts = measures.majority_shares(votes, 3)
        assert parts.tolist() == [[0, 1, 0], [1 / 3] * 3, [0.5, 0, 0.5], [1 / 3] * 3]
        assert measures.credit(parts, np.array([1, 1, 1, 0])).tolist() == [1, 1 / 3, 0, 1 / 3]

    def test_majority_is_what_the_model_says(self):
        for n_classes in (2, 4):
            votes = random_stream(1, 400, 5, n_classes, abstain=0.4)
            out = MajorityLabelModel(n_classes=n_classes).label_stream(votes)
            found = measures.shares(out.codes, out.proba, drawn=False)
            assert found == pytest.approx(measures.majority_shares(votes, n_classes))

    def test_f1(self):
        # Class 0: 1.5 hits, 1.5 named, 2 true; class 1: 2 hits, 2.5 named, 2 true; class 2 never occurs.
        parts = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 1, 0]])
        truth = np.array([0, 0, 1, 1])
        assert measures.macro_f1(parts, truth) == pytest.approx((3 / 3.5 + 4 / 4.5) / 2)

    def test_log_loss(self):
        proba = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
        assert measures.log_loss(proba[:2], np.array([0, 0])) == pytest.approx((np.log(2) + np.log(4)) / 2)
        assert measures.log_loss(proba[2:], np.array([1])) == pytest.approx(6 * np.log(10))

    def test_calibration(self):
        proba = np.array([[0.52, 0.48], [0.46, 0.54], [0.01, 0.99], [1.0, 0.0]])
        curve = measures.reliability(proba, np.array([1.0, 0.5, 1.0, 1.0]))
        assert curve["rows"] == [2, 2]
        assert curve["said"] == pytest.approx([0.53, 0.995])
        assert curve["right"] == pytest.approx([0.75, 1.0])
        assert measures.calibration_error(curve) == pytest.approx((0.22 + 0.005) / 2)

    def test_auroc_by_all_pairs(self):
        rng = np.random.default_rng(0)
        score, right = rng.integers(5, size=60) / 5, rng.choice([0.0, 0.5, 1.0], size=60)
        above = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
        pairs = right[:, None] * (1 - right)[None, :]
        assert measures.auroc(score, right) == pytest.approx((above * pairs).sum() / pairs.sum())
        assert measures.auroc(score, np.ones(60)) is None

    def test_review(self):
        score = np.array([0.5, 0.5, 0.6, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9])
        right = np.array([0, 1, 0, 1, 1, 1, 1, 1, 1, 0.0])
        assert measures.found_by_review(score, right, 0.1) == pytest.approx(0.5 / 3)  # one of two equal rows
        assert measures.found_by_review(score, right, 0.3) == pytest.approx(2 / 3)
        assert measures.found_by_review(score, right, 1.0) == pytest.approx(1.0)
        assert measures.found_by_review(score, np.ones(10)) is None

    def test_intervals_hold_for_rows_that_depend_on_each_other(self):
        """A row's value is the mean of the noise of 20 rows: an interval that takes rows for independent fails."""
        rng, inside, naive = np.random.default_rng(3), 0, 0
        for _ in range(300):
            noise = np.convolve(rng.standard_normal(3019), np.ones(20) / 20, mode="valid")
            mean, error = measures.mean_by_blocks(noise)
            inside += abs(mean) <= measures.T_30 * error
            naive += abs(mean) <= 1.96 * noise.std() / len(noise) ** 0.5
        assert 0.91 <= inside / 300 <= 0.99
        assert naive / 300 < 0.6
        assert measures.mean_by_blocks(np.array([2.0])) == (2.0, 0.0)

    def test_true_weights(self):
        votes = np.array([[0, 1, 1], [0, 1, -1], [0, -1, 0]])
        accuracies = np.array([[0.9, 0.6, 0.6], [0.7, 0.7, 0.9], [0.7, 0.5, 0.7]])
        codes, proba = measures.true_weight_vote(votes, accuracies, 2)
        assert codes.tolist() == [0, -1, 0]  # ln 9 > 2 ln 1.5; a tie; agreement
        assert proba[:, 0] == pytest.approx([9 / (9 + 2.25), 0.5, 49 / 58])


class TestWork:
    def test_a_run_by_hand(self):
        votes = np.array([[1, 1, 1], [0, 0, 1], [0, 1, -1], [1, 1, -1]], np.int8)
        stream = streams.GoldStream(votes, np.array([1, 1, 1, 0]), 2, np.full((4, 3), 0.8))
        proba = np.array([[0.1, 0.9], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8]])
        found = measures.measure_labels(stream, np.array([1, 1, -1, 1]), proba, np.full((4, 3), 0.7))
        assert found["accuracy"] == pytest.approx(100 * 2.5 / 4)
        assert found["gain"] == pytest.approx(100 * (2.5 - 1.5) / 4)
        assert found["accuracy_error"] == pytest.approx(0.1)
        assert found["against_unanimous"] == 0
        assert measures.measure_labels(stream, np.array([0, 1, -1, 0]), proba)["against_unanimous"] == 2
        assert measures.unanimity(stream) == {"unanimous": 50.0, "unanimous_wrong": 25.0}

    def test_draws_are_other_draws_with_another_seed(self):
        assert work.with_seed(models.paper(3), 5).get_params()["seed"] == 5
        steady = models.adaptive(2)
        assert work.with_seed(steady, 5) is steady

    def test_means_over_seeds(self):
        curve = {"rows": [10], "said": [0.8], "right": [0.5]}
        run = {"rows": 9, "accuracy": 80.0, "gain": 1.0, "gain_se": 0.3, "against_unanimous": 1, "curve": curve}
        other = {**run, "accuracy": 82.0, "gain": 3.0, "curve": {"rows": [30], "said": [0.84], "right": [1.0]}}
        same_rows = average(streams.StreamSpec("tennis", "permuted", 0), [run, other])
        assert (same_rows["accuracy"], same_rows["gain"], same_rows["lowest"]) == (81.0, 2.0, 80.0)
        assert same_rows["gain_se"] == pytest.approx((0.09 + 1) ** 0.5)
        assert same_rows["curve"]["rows"] == [40]
        assert same_rows["curve"]["said"] == pytest.approx([0.83])
        assert same_rows["curve"]["right"] == pytest.approx([0.875])
        assert average(streams.StreamSpec("swap", "synthetic", 0), [run, other])["gain_se"] == pytest.approx(1.0)
        assert average(streams.StreamSpec("swap", "synthetic", 0), [run, run])["gain_se"] == pytest.approx(0.3 / 2**0.5)
        assert same_rows["auroc"] is None

    def test_settings_tell_models_apart(self):
        made = {name: json.dumps(suite._settings_by_classes(make)) for name, make in models.MODELS.items()}
        assert made[models.PAPER] != made[models.PAPER_ZERO]
        assert len(set(made.values())) >= 7
        wider = models.adaptive(2, beta=0.2)
        assert models.settings_of(wider) != models.settings_of(models.adaptive(2))
        assert models.settings_of(wider) == models.settings_of(models.adaptive(2, beta=0.2))

    def test_docstrings_and_comments_do_not_make_results_stale(self):
        long, short = '"""Old."""\ndef f():\n    """Say."""\n    return 1\n', "def f():\n    return 1  # why\n"
        trees = [runs.ast.dump(runs.without_docstrings(runs.ast.parse(text))) for text in (long, short)]
        assert trees[0] == trees[1]

    def test_only_code_that_changes_results_makes_them_stale(self, tmp_path):
        for name in runs.NO_EFFECT:
            assert (runs.PACKAGE / name).exists(), f"{name} is no part of the package any more"

        def digest_of(name: str, edited: str) -> str:
            root = tmp_path / name
            for part in ("models/a.py", "votes.py", "live/b.py", "spark/c.py", "__main__.py"):
                path = root / part
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x = 2" if part == edited else "x = 1")
            return runs.code_digest(root)

        before = digest_of("none", "")
        for place, part in enumerate(("live/b.py", "spark/c.py", "__main__.py")):
            assert digest_of(f"aside{place}", part) == before
        for place, part in enumerate(("models/a.py", "votes.py")):
            assert digest_of(f"inside{place}", part) != before

    def test_a_run_is_recognised_by_settings_and_code(self, monkeypatch):
        spec = streams.StreamSpec("tennis", "plain", 0)
        run, renamed = (work.plan_run(DATA, spec, name, {"beta": 1}, None, seed=0) for name in ("a", "b"))
        assert run.fingerprint == renamed.fingerprint
        assert run.fingerprint != work.plan_run(DATA, spec, "a", {"beta": 2}, None, seed=0).fingerprint
        before = run.fingerprint
        monkeypatch.setattr(runs, "_digest_of", lambda modules: "other")
        assert run.fingerprint != before


class TestStreams:
    @needs_data
    def test_every_stream_takes_part(self):
        names = streams.real_names(DATA)
        assert len(names) == 4 + len(list((DATA / "streams").glob("*.csv"))) >= 14
        specs = streams.catalogue(DATA)
        assert {spec.name for spec in specs if spec.group == "plain"} == set(names)
        assert {spec.name for spec in specs if spec.group == "shuffled"} == set(names)
        assert {spec.name for spec in specs if spec.group == "permuted"} == set(streams.PAPER)
        assert {spec.seed for spec in specs if (spec.name, spec.group) == ("awa2", "plain")} == {0, 1, 2}
        assert all(sum(s.name == name for s in specs if s.group == "synthetic") == 5 for name in ("swap", "paper"))

    @needs_data
    def test_majority_is_the_published_one(self):
        for name, accuracy in MAJORITIES.items():
            stream = streams.load(str(DATA), streams.StreamSpec(name, "plain", 0))
            parts = measures.majority_shares(stream.votes, stream.n_classes)
            assert 100 * measures.credit(parts, stream.truth).mean() == pytest.approx(accuracy, abs=0.06)

    @needs_data
    def test_controls_hold_the_same_rows(self):
        plain, shuffled, again, other = (
            streams.load(str(DATA), streams.StreamSpec("wrench_youtube", group, seed))
            for group, seed in (("plain", 0), ("shuffled", 0), ("shuffled", 0), ("shuffled", 1))
        )
        assert (shuffled.votes == again.votes).all()
        assert (shuffled.votes != other.votes).any()
        both = [np.column_stack([s.votes, s.truth]) for s in (plain, shuffled)]
        assert sorted(map(tuple, both[0])) == sorted(map(tuple, both[1]))

    def test_tables(self, tmp_path):
        folder = tmp_path / "streams"
        folder.mkdir()
        (folder / "toy.csv").write_text("a,b,silent,gold\n0,2,,1\n,1,,0\n")
        assert streams.real_names(tmp_path) == [*streams.PAPER, "toy"]
        toy = streams.load(str(tmp_path), streams.StreamSpec("toy", "plain", 0))
        assert toy.votes.tolist() == [[0, 2, -1], [-1, 1, -1]]
        assert (toy.truth.tolist(), toy.n_classes) == ([1, 0], 3)
        for text, message in [
            ("a,b\n0,1\n", "a last column named 'gold'"),
            ("a,gold\n", "it needs rows"),
            ("a,gold\nx,1\n", "not a table of class codes"),
            ("a,gold\n-2,1\n", "votes are classes from 0 on or empty"),
            ("a,gold\n1,\n", "every row needs a gold class"),
        ]:
            (folder / "bad.csv").write_text(text)
            with pytest.raises(VoteError, match=message):
                streams._table(folder / "bad.csv")
        with pytest.raises(VoteError, match="not a table"):
            streams._table(folder / "none.csv")

    def test_what_is_missing_is_said(self, tmp_path, monkeypatch, capsys):
        monkeypatch.delenv("DRIFTVOTE_DATA", raising=False)
        with pytest.raises(SettingError, match="no group of streams 'noise'; choose plain"):
            streams.catalogue(DATA, ["noise"])
        assert main(["--out", str(tmp_path)]) == 1
        assert "name their folder with --data" in capsys.readouterr().err
        assert main(["--data", str(tmp_path), "--out", str(tmp_path)]) == 1
        assert "no vote streams there" in capsys.readouterr().err
        with pytest.raises(Exception, match="the real vote streams are needed"):
            evaluate(models.adaptive)
        with pytest.raises(SettingError, match="no stream 'swop' in synthetic"):
            evaluate(models.adaptive, groups=["synthetic"], names=["swop"])


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("quality")


ARGUMENTS = {"groups": streams.GROUPS, "names": ["tennis", "basketball", "swap", "many-classes"], "most_seeds": 2}


def small(out, **more):
    return suite.measure(DATA, out, **(ARGUMENTS | {"limit": 400, "cost_rounds": 0} | more))


@needs_data
@pytest.mark.slow
class TestSuite:
    def test_everything_is_measured(self, out):
        heard = []
        results = small(out, progress=lambda *news: heard.append(news))
        assert heard[-1][1] == heard[-1][2] == len(heard) - 1  # the first call counts what is cached
        assert set(results["streams"]) == set(streams.GROUPS)
        tennis = results["streams"]["plain"]["tennis"]
        assert (tennis["rows"], tennis["labelers"], tennis["classes"]) == (400, 6, 2)
        assert set(tennis["models"]) == set(models.MODELS)
        assert tennis["models"][models.PAPER]["seeds"] == 5  # its abstentions are drawn
        assert tennis["models"][models.DEFAULT]["seeds"] == 1
        assert tennis["models"][models.MAJORITY]["gain"] == 0.0
        direct = evaluate(models.adaptive, DATA, ["plain"], names=["tennis"], limit=400)["tennis"]
        assert direct["accuracy"] == tennis["models"][models.DEFAULT]["accuracy"]
        checked = results["verified"]
        assert set(checked) == {"tennis", "basketball"}
        assert checked["tennis"]["0"]["accuracy"] == tennis["models"][models.DEFAULT]["accuracy"]
        assert [checked["tennis"][share]["runs"] for share in ("0.01", "0.05", "0.1")] == [3, 3, 3]
        swap = results["streams"]["synthetic"]["swap"]
        assert swap["models"][models.TRUE_WEIGHTS]["accuracy"] >= swap["models"][models.DEFAULT]["accuracy"]
        assert swap["models"][models.DEFAULT]["accuracy_error"] < 0.2
        assert swap["models"][models.MAJORITY]["accuracy_error"] is None

    def test_a_second_time_nothing_is_run_again(self, out, monkeypatch):
        first = small(out)
        monkeypatch.setattr(runs, "perform", lambda run: pytest.fail(f"{run.name} was run again"))
        assert small(out) == first

    def test_a_changed_model_alone_is_run_again(self, out, monkeypatch):
        small(out)
        done, perform = [], runs.perform
        monkeypatch.setattr(runs, "perform", lambda run: done.append(run) or perform(run))
        monkeypatch.setitem(models.MODELS, "bold", lambda n_classes: models.adaptive(n_classes, beta=0.5))
        results = small(out)
        assert "bold" in results["streams"]["plain"]["tennis"]["models"]
        assert {run.arguments["model"] for run in done} == {"bold"}
        assert len(done) == sum(spec.name in ARGUMENTS["names"] for spec in streams.catalogue(DATA, most_seeds=2))
        # Other code, everything again.
        monkeypatch.setattr(runs, "code_digest", lambda package: "other")
        stored = runs.RunCache(out / "runs")
        assert stored.load(done[0]) is None

    def test_the_command_writes_the_page(self, out, tmp_path, capsys):
        told = ["--data", str(DATA), "--out", str(tmp_path), "--limit", "60", "--seeds", "1", "--rounds", "1"]
        assert main([*told, "--names", "tennis,wrench_youtube,swap", "--jobs", "1"]) == 0
        said = capsys.readouterr()
        assert "rows labeled against a unanimous vote: 0 (0)" in said.out
        assert "runs" in said.err
        text = (tmp_path / "quality.md").read_text()
        kept = json.loads((tmp_path / "quality.json").read_text())
        assert text == page(kept, list(CAPTIONS))
        assert "Only the first 60 rows of each stream: the verdicts say nothing" in text
        for name in CAPTIONS:
            assert f"figures/{name}.png" in text
            assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5_000

    def test_judging_a_model_in_place_of_the_default(self, out, monkeypatch):
        monkeypatch.setattr(trial_module, "measure", lambda data, out, cost_rounds: small(out))
        before, done, perform = dict(models.MODELS), [], runs.perform
        small(out)
        monkeypatch.setattr(runs, "perform", lambda run: done.append(run.arguments["model"]) or perform(run))
        found = judge(lambda k: AdaptiveLabelModel(n_classes=k, votes="snorkel", windows=[1, 2]), DATA, out)
        assert set(done) == {models.DEFAULT}
        assert any(verdict.verdict == FAIL for verdict in found)
        assert before == models.MODELS
        monkeypatch.setattr(AdaptiveLabelModel, "__module__", "somebody.s_notebook")
        first, second = (models.settings_of(models.adaptive(2)) for _ in range(2))
        assert first != second, "its code may have changed"

    def test_trial(self, capsys):
        trial(["--data", str(DATA), "--groups", "plain", "--names", "awa2,tennis", "--limit", "500", "beta=0.5"])
        shown = capsys.readouterr().out
        assert "awa2 plain" in shown
        assert "mean of plain" in shown
        with pytest.raises(SettingError, match="'beta' is not a setting such as beta=0.2"):
            trial(["beta"])
        with pytest.raises(KeyError):
            evaluate(models.adaptive, DATA, ["plain"], names=["tennis"], limit=50)["tennis/permuted"]


@pytest.fixture(scope="module")
def kept():
    return json.loads((ROOT / "docs" / "quality.json").read_text())


class TestCommitted:
    def test_the_page_is_made_from_the_figures(self, kept):
        assert (ROOT / "docs" / "quality.md").read_text() == page(kept, list(CAPTIONS))
        assert kept["limit"] is None
        assert [v.to_dict() for v in verdicts(kept)] == kept["verdicts"]
        assert not any(v["verdict"] == MISSING for v in kept["verdicts"] if "verified" not in v["statement"])

    def test_a_verdict_follows_its_figures(self, kept):
        """Good figures pass, and each of them spoiled fails the one line that it is about."""
        good = ideal(kept)
        assert {v.verdict for v in verdicts(good)} <= {PASS, MISSING}
        groups = good["streams"]
        for spoil, line in [
            (lambda s: s["plain"]["awa2"]["models"]["default"].update(accuracy=80.9), "awa2: accuracy"),
            (lambda s: s["permuted"]["awa2"]["models"]["default"].update(accuracy=77.9), "awa2, permuted: accuracy"),
            (lambda s: s["plain"]["noaa_rules"]["models"]["default"].update(gain=-1.1), "least gain"),
            (lambda s: [e["models"]["default"].update(gain=2.4) for e in s["plain"].values()], "mean gain"),
            (lambda s: s["shuffled"]["tennis"]["models"]["majority"].update(accuracy=99.4), "shuffled controls"),
            (lambda s: s["shuffled"]["tennis"]["models"][models.ALL_PAST].update(accuracy=99.4), "shuffled controls"),
            (lambda s: s["synthetic"]["swap"]["models"]["default"].update(accuracy_error=0.101), "worst scenario"),
            (lambda s: s["synthetic"]["many-classes"]["models"]["default"].update(accuracy=98.6), "many classes"),
            (lambda s: s["plain"]["tennis"]["models"]["default"].update(against_unanimous=1), "unanimous"),
        ]:
            spoiled = copy.deepcopy(groups)
            spoil(spoiled)
            failed = [v.statement for v in verdicts(good | {"streams": spoiled}) if v.verdict == FAIL]
            assert len(failed) == 1
            assert line in failed[0]
        slow = good | {"cost": {"label_stream": {"times": 3.0}, "update": {"times": 10.1}}}
        assert [v.statement for v in verdicts(slow) if v.verdict == FAIL] == [
            "cost per row, times the paper's estimator, 6 labelers"
        ]
        for name, share, accuracy, line in [("awa2", "0.01", 81.9, "with 1%"), ("tennis", "0.1", 94.6, "ever lost")]:
            spoiled = copy.deepcopy(good["verified"])
            spoiled[name] = {
                key: {"accuracy": min(found["accuracy"], accuracy), "lowest": 0, "runs": 3} if key == share else found
                for key, found in spoiled[name].items()
            }
            failed = [v.statement for v in verdicts(good | {"verified": spoiled}) if v.verdict == FAIL]
            assert any(line in statement for statement in failed)
        for entry in groups["synthetic"].values():
            entry["models"]["default"]["accuracy_error"] = 0.081
        assert ["mean ratio" in v.statement for v in verdicts(good) if v.verdict == FAIL] == [True]
        nothing = verdicts({"streams": {}, "cost": None})
        assert {v.verdict for v in nothing if "unanimous" not in v.statement} == {MISSING}

    @needs_data
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("group", "names"),
        [
            ("plain", ["awa2", "tennis", "air_co", "noaa_rules", "wrench_youtube"]),
            ("permuted", ["tennis"]),
            ("shuffled", ["wrench_youtube"]),
            ("synthetic", ["swap", "class-balance"]),
        ],
    )
    def test_the_default_model_still_reaches_them(self, kept, group, names):
        """Whoever changes what the default model says makes the page anew: `make quality`."""
        found = evaluate(lambda k: AdaptiveLabelModel(n_classes=k), DATA, [group], names=names)
        for name in names:
            now, then = found[f"{name}/{group}"], kept["streams"][group][name]["models"][models.DEFAULT]
            assert now["accuracy"] == pytest.approx(then["accuracy"], abs=0.05)
            assert now["log_loss"] == pytest.approx(then["log_loss"], abs=0.005)
            if then["accuracy_error"] is not None:
                assert now["accuracy_error"] == pytest.approx(then["accuracy_error"], abs=0.001)


def ideal(kept):
    """The committed figures, made so good that everything holds."""
    made = copy.deepcopy(kept)
    for entries in made["streams"].values():
        for entry in entries.values():
            for name, found in entry["models"].items():
                found |= {"accuracy": 99.0, "against_unanimous": 0, "gain": 5.0}
                found["accuracy_error"] = 0.05 if name == models.DEFAULT else 0.1
    rising = {"0": 94.0, "0.01": 94.5, "0.05": 95.0, "0.1": 95.0}
    made["verified"] = {
        name: {share: {"accuracy": value, "lowest": value, "runs": 3} for share, value in rising.items()}
        for name in made["streams"]["plain"]
    }
    made["cost"] = {"label_stream": {"times": 3.0}, "update": {"times": 2.0}}
    return made

"""Questions: which rows are asked for, and what the answers change."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, DriftvoteError, SettingError, load
from driftvote.core.label_models.mixture import MEMBERS, MIXTURE_ROWS
from driftvote.models.questions import ENOUGH, Kind, Pool, known_stretches, score, stretch_starts

from streams_for_tests import random_stream


def panel_that_errs_together(rows: int = 3_000, seed: int = 0, favoured: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Four labelers that take a third of one class for the other, all on the same rows, and three that err alone."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=rows)
    together = (truth != favoured) & (rng.random(rows) < 0.35)
    shared = np.where(together, favoured, truth)
    votes = np.empty((rows, 7), np.int8)
    for h in range(4):
        votes[:, h] = np.where(rng.random(rows) < 0.93, shared, 1 - shared)
    for h in range(4, 7):
        votes[:, h] = np.where(rng.random(rows) < 0.8, truth, 1 - truth)
    return votes, truth


VOTES, TRUTH = panel_that_errs_together()


def panel_that_changed(rows: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    """The same panel later: the three that erred alone are at chance now."""
    votes, truth = panel_that_errs_together(rows, seed=1)
    votes[:, 4:] = np.random.default_rng(2).integers(2, size=(rows, 3))
    return votes, truth


def fed(votes: np.ndarray = VOTES, cuts: int = 1, **settings) -> AdaptiveLabelModel:
    model = AdaptiveLabelModel(**settings)
    for part in np.array_split(votes, cuts):
        model.label_stream(part)
    return model


def arrays_of(model: AdaptiveLabelModel) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.to_state()[1].items()}


class TestAsk:
    def test_asking_changes_nothing(self):
        model, untouched = fed(), fed()
        assert model.ask() == model.ask()
        assert arrays_of(model) == arrays_of(untouched)

    def test_the_same_for_every_chunking(self, tmp_path):
        whole, cut = fed(), fed(cuts=17)
        cut.save(tmp_path / "state.npz")
        assert whole.ask(30) == cut.ask(30) == load(tmp_path / "state.npz").ask(30)
        assert whole.ask(30) != fed(seed=1).ask(30)

    def test_rows_in_dispute_none_twice_and_none_that_is_verified(self):
        model = fed()
        questions = model.ask(20)
        rows = [question.row for question in questions]
        assert len(set(rows)) == 20
        assert min(rows) >= model.n_rows - model.window
        assert all(len(set(question.votes.values())) > 1 and len(question.classes) > 1 for question in questions)
        assert all(question.votes == dict(zip(model.labelers, VOTES[question.row].tolist(), strict=True)) for question in questions)  # fmt: skip
        model.feedback({row: int(TRUTH[row]) for row in rows})
        assert not set(rows) & {question.row for question in model.ask(20)}

    def test_rows_that_are_too_old_are_left_out(self):
        model = fed()
        first = model.n_rows - 400
        assert min(question.row for question in model.ask(20)) < first
        assert min(question.row for question in model.ask(20, since=first)) >= first
        assert model.ask(2, since=first) == model.ask(20, since=first)[:2] != []
        assert model.ask(5, since=model.n_rows) == model.ask(5, since=10**9) == []

    def test_fewer_questions_are_a_prefix(self):
        model = fed()
        assert [q.row for q in model.ask(5)] == [q.row for q in model.ask(20)][:5]

    def test_they_are_spread_over_kinds_of_disagreement(self):
        model = fed()
        assert len({question.why for question in model.ask(20)}) >= 2

    def test_nothing_to_ask_where_all_agree(self):
        model = AdaptiveLabelModel()
        model.label_stream([[0, 0, 0, 0], [1, 1, 1, 1]] * 200)
        questions = model.ask()
        assert questions == []
        assert questions.note == "The label models agree on every row: there is nothing to ask."
        assert str(questions) == questions.note

    def test_enough_is_said(self):
        votes = np.repeat(np.random.default_rng(0).integers(2, size=(4000, 1)), 5, axis=1)
        votes[7] = [0, 0, 1, 1, 1]
        votes[9] = [1, 1, 0, -1, -1]
        questions = fed(votes).ask()
        assert questions == [] or len(questions) < 20
        assert questions.note
        assert questions.expected_change < ENOUGH

    def test_ids_times_names(self):
        model = AdaptiveLabelModel(classes=["no", "yes"], labelers=[f"judge_{h}" for h in range(7)])
        for row, votes in enumerate(VOTES[:600]):
            model.update(["yes" if vote else "no" for vote in votes], id=f"mail-{row}", time=float(row))
        question = model.ask(1)[0]
        assert question.id == f"mail-{question.row}"
        assert abs(question.time - question.row) < 64
        assert set(question.votes) == set(model.labelers)
        assert set(question.classes) == {"no", "yes"}
        assert question.to_dict()["classes"][0]["class"] == next(iter(question.classes))
        assert f"row {question.row} (mail-{question.row}): " in str(question)
        model.feedback(question.id, "yes")
        assert model.verified == {question.row: "yes"}

    @pytest.mark.parametrize(
        "settings", [{"abstentions": "random"}, {"groups": [["labeler_0", "labeler_1"]]}, {"n_classes": 4}]
    )
    def test_other_streams(self, settings):
        votes = random_stream(3, 800, 6, settings.get("n_classes", 2), 0.3)
        model = fed(votes, **settings)
        for question in model.ask(10):
            assert question.row < 800
            assert 0 < len(question.votes) <= len(model.labelers)
            assert len(question.classes) > 1

    def test_a_sample_of_a_large_window(self):
        votes, _ = panel_that_errs_together(20_000)
        model = fed(votes)
        assert model.window > 2**13
        assert len(model.ask(20)) == 20

    def test_refused(self):
        with pytest.raises(SettingError, match="n must be a number of questions from 0, not -1"):
            fed().ask(-1)
        with pytest.raises(DriftvoteError, match="one label model, not a mixture"):
            fed(estimator="confusion").ask()
        assert fed().ask(0) == []


class TestAnswers:
    def test_they_move_the_weights_and_the_labels(self):
        model = fed()
        before, without = model.mixture, (model.predict(VOTES) == TRUTH).mean()
        assert before == model.mixture_before_answers
        model.feedback({q.row: int(TRUTH[q.row]) for q in model.ask(20)})
        assert model.mixture != pytest.approx(before, abs=0.05)
        assert model.mixture_before_answers == pytest.approx(before, abs=0.05)
        assert sum(model.mixture.values()) == pytest.approx(1)
        assert tuple(model.mixture) == MEMBERS
        assert (model.predict(VOTES) == TRUTH).mean() > without + 0.01

    def test_one_slip_does_not_decide(self):
        gained, slipped = [], []
        for seed in range(4):
            votes, truth = panel_that_errs_together(seed=seed)
            model, other = fed(votes), fed(votes)
            questions = model.ask(10)
            answers = {q.row: int(truth[q.row]) for q in questions}
            model.feedback(answers)
            other.feedback(answers | {questions[0].row: 1 - answers[questions[0].row]})
            plain = (fed(votes).predict(votes) == truth).mean()
            gained.append((model.predict(votes) == truth).mean() - plain)
            slipped.append((other.predict(votes) == truth).mean() - plain)
        assert np.mean(gained) > 0.01
        assert np.mean(slipped) > 0.5 * np.mean(gained)

    def test_answers_that_are_trusted_less_move_less(self):
        moved = []
        for errors in (0.01, 0.05, 0.4):
            model = fed(answer_errors=errors)
            free = model.mixture
            model.feedback({q.row: int(TRUTH[q.row]) for q in fed().ask(10)})
            moved.append(sum(abs(model.mixture[name] - free[name]) for name in MEMBERS))
        assert moved[0] > moved[1] > moved[2] > 0
        with pytest.raises(SettingError, match="answer_errors must lie above 0 and below 0.5"):
            AdaptiveLabelModel(answer_errors=0.5)

    def test_unanimous_rows_keep_their_class(self):
        model = fed()
        model.feedback({q.row: 1 - int(TRUTH[q.row]) for q in model.ask(20)})
        assert model.predict([[0] * 7, [1] * 7]).tolist() == [0, 1]

    def test_they_end_at_a_drift_event(self):
        model = fed()
        model.feedback({q.row: int(TRUTH[q.row]) for q in model.ask(20)})
        model.label_stream(panel_that_changed()[0])
        assert model.n_events
        assert model.window <= 3_000
        assert model.mixture == model.mixture_before_answers

    def test_saved_and_resumed(self, tmp_path):
        model = fed()
        model.feedback({q.row: int(TRUTH[q.row]) for q in model.ask(20)})
        model.save(tmp_path / "state.npz")
        again, more = load(tmp_path / "state.npz"), panel_that_errs_together(500, 2)[0]
        assert again.mixture == model.mixture
        np.testing.assert_array_equal(again.label_stream(more).proba, model.label_stream(more).proba)


class TestLabeledAgain:
    """Answers that count for a whole stretch, before and after them, as in a file."""

    def ask_file(self, votes, n=20):
        out = AdaptiveLabelModel().label_stream(votes)
        pool = Pool(seed=0)
        pool.add(np.arange(len(votes)), score(out._estimates, out.votes))
        starts = stretch_starts(out.events)
        rows = np.sort(pool.choose(n, starts).rows)
        return out, rows, starts

    def known(self, out, rows, truth, starts):
        estimates = type(out._estimates)(out._estimates.panel, out._estimates.fits, out._estimates.places[rows])
        return known_stretches(rows, score(estimates, out.votes[rows]), truth[rows], starts)

    def test_without_answers_nothing_changes(self):
        out, _, starts = self.ask_file(VOTES)
        model = AdaptiveLabelModel()
        model.know(self.known(out, np.zeros(0, np.int64), TRUTH, starts))
        np.testing.assert_array_equal(model.label_stream(VOTES).proba, out.proba)

    @pytest.mark.parametrize("cuts", [1, 9, 61])
    def test_rows_before_an_answer_gain_too_and_chunks_do_not_matter(self, cuts):
        out, rows, starts = self.ask_file(VOTES)
        known = self.known(out, rows, TRUTH, starts)
        whole, model = AdaptiveLabelModel(), AdaptiveLabelModel()
        whole.know(known)
        model.know(known)
        expected = whole.label_stream(VOTES)
        found = np.concatenate([model.label_stream(part).proba for part in np.array_split(VOTES, cuts)])
        np.testing.assert_array_equal(found, expected.proba)
        early = slice(200, int(rows[3]))
        assert (expected.codes == TRUTH)[early].mean() > (out.codes == TRUTH)[early].mean()

    def test_a_stretch_has_its_own_answers(self):
        later, truth_later = panel_that_changed()
        votes, truth = np.concatenate([VOTES, later]), np.concatenate([TRUTH, truth_later])
        out, rows, starts = self.ask_file(votes)
        assert starts
        assert abs(starts[0] - 3_000) < 200
        known = [one for one in self.known(out, rows, truth, starts) if one.begin == 0]
        model = AdaptiveLabelModel()
        model.know(known)
        again = model.label_stream(votes)
        assert (again.proba[: starts[0]] != out.proba[: starts[0]]).any()
        np.testing.assert_array_equal(again.proba[-1000:], out.proba[-1000:])


class TestExpectedChange:
    @pytest.mark.parametrize(("doubt", "answers"), [(0.3, 3), (0.45, 7), (0.1, 1), (0.2, 20)])
    def test_against_draws(self, doubt, answers):
        """By definition: draw how many are wrong, draw answers, see whether most of the evidence is against."""
        rng = np.random.default_rng(0)
        own = MIXTURE_ROWS
        wrong = rng.beta(own * doubt, own * (1 - doubt), 200_000)
        against = rng.binomial(answers, wrong)
        flips = (own * doubt + against > own * (1 - doubt) + answers - against).mean()
        kind = Kind(1000, 1000 * doubt, 0, np.arange(1000))
        assert kind.expected_change(answers) == pytest.approx(1000 * flips, rel=0.03)

    def test_less_after_answers(self):
        first, later = (Kind(100, 40, answered, np.arange(100)) for answered in (0, 20))
        assert first.expected_change(20) > 2 * later.expected_change(20)
        assert first.value() > 10 * later.value()

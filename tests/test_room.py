"""Large panels have empty columns for labelers that join: from outside nothing is different, but joins are cheap."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, VoteError, load
from driftvote.core import engine, windows

MOST = 51


@pytest.fixture
def small(monkeypatch):
    """Panels of more than 16 labelers are large."""
    monkeypatch.setattr(windows, "SMALL_PANEL", 16)
    windows._window_tests.cache_clear()
    yield
    windows._window_tests.cache_clear()


def rows_of(seed, n_rows=700):
    """Rows in which labelers join one by one or a few at a time; half-way, some of them change."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_rows)
    skill, there = rng.uniform(0.55, 0.95, MOST), 10
    found = []
    for row in range(n_rows):
        there = min(MOST, there + (int(rng.integers(1, 4)) if rng.random() < 0.1 else 0))
        skill[:4] = 0.9 if row < n_rows // 2 else 0.2
        voters = {*rng.choice(there, 6, replace=False).tolist(), 0, 1, 2, 3, there - 1}
        right = rng.random(MOST) < skill
        wrong = (truth[row] + rng.integers(1, 3)) % 3
        found.append({f"n{h}": int(truth[row] if right[h] else wrong) for h in voters})
    return found


def follow(model, rows, sizes, path):
    """Everything that a model says on its way through the rows, in chunks of these sizes; and the model."""
    said, row, roomy = [], 0, 0
    for place, size in enumerate(sizes):
        out = model.label_stream(rows[row : row + size])
        row += size
        roomy += type(model._stream.engine) is engine.RoomyEngine
        values = out.proba, out.codes, out.windows, out.accuracies, out.coverage, out.weights
        said += [*(value.tobytes() for value in values), [event.to_dict() for event in out.events]]
        asked = [one.row for one in model.ask(3)]
        said += [asked, model.predict(rows[:5]).tobytes(), model.explain(rows[0]).to_dict()]
        if row > 60 and asked:
            model.feedback(asked[0], 1, by="row", replace=True)
        with pytest.raises(VoteError):  # half-way through a batch with a newcomer: nothing changes
            model.label_stream([rows[0] | {"late": 1}, {"n0": "colour"}])
        if place % 25 == 24:
            model.save(path)
            model = load(path)
            path.unlink()
    return said, model.agreements.tolist(), repr(model.why_window()), roomy, model


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("settings", [{}, {"windows": [16, 32, 64], "tie_break_policy": "random"}])
def test_room_changes_nothing(small, monkeypatch, tmp_path, seed, settings):
    rows, rng = rows_of(seed), np.random.default_rng(seed)
    sizes = [1] * 40 + rng.integers(1, 60, 11).tolist() + [1] * 20 + [200]
    *said, roomy, model = follow(AdaptiveLabelModel(n_classes=3, **settings), rows, sizes, tmp_path / "state")
    state = model.to_state()
    monkeypatch.setattr(engine.Engine, "_room_for", lambda self, n: n)
    *said_too, plain, model = follow(AdaptiveLabelModel(n_classes=3, **settings), rows, sizes, tmp_path / "state")
    assert roomy > 5
    assert plain == 0
    assert said == said_too
    for name, array in model.to_state()[1].items():
        np.testing.assert_array_equal(state[1][name], array, err_msg=name)


def test_few_states_are_built_for_many_joins(monkeypatch):
    built, build = [], engine.empty_state
    monkeypatch.setattr(engine, "empty_state", lambda *args: built.append(args[1]) or build(*args))
    model, names = AdaptiveLabelModel(windows=[16]), [f"n{h}" for h in range(340)]
    model.label_stream([dict.fromkeys(names[:256], 1)])
    built.clear()
    for h in range(256, 340):
        model.update({names[h]: 1, "n0": 1, "n1": 0})
    assert len(model.labelers) == 340
    assert built == [288, 320, 352]

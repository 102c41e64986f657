"""The grid, and the story behind a choice."""

from __future__ import annotations

import numpy as np

from driftvote import AdaptiveLabelModel, WindowGrid
from driftvote.kernels.windows import choose_level, nothing_known
from driftvote.windows import level_tests

from streams_for_tests import PAPERS_RULE, random_stream, rows_for


def test_a_grid_is_a_sequence_of_sizes():
    grid = WindowGrid([1, 4, 9])
    assert grid == WindowGrid(np.array([1, 4, 9]))
    assert grid != WindowGrid([1, 4])
    assert hash(grid) == hash(WindowGrid((1, 4, 9)))
    assert (len(grid), grid[1], grid[-2:], list(grid)) == (3, 4, (4, 9), [1, 4, 9])
    assert AdaptiveLabelModel(windows=grid).windows == grid
    assert list(WindowGrid.geometric(1, 8, ratio=1.2)) == [1, 2, 3, 4, 5, 6, 7]


def test_the_story_ends_where_the_kernel_stopped():
    model = AdaptiveLabelModel(windows=[3, 7, 20, 61, 150, 333], beta=0.01, delta=0.9, **PAPERS_RULE)
    refusals = 0
    for row in random_stream(4, rows_for(1500, 500), 5, 2, 0.1, blocks=5):
        step = model.update(row)
        story = model.why_window()
        accepted = [test for test in story if test.accepted]
        assert step.window == (accepted[-1].next_window if accepted else min(3, model.n_rows))
        for test in story:
            assert test.accepted == (test.difference <= test.threshold)
        refusals += bool(story) and not story[-1].accepted
    assert refusals > 20


def test_levels_that_cannot_fail_are_the_ones_that_never_do():
    """Skipping them must not show: with the skip switched off the same level is chosen."""
    model = AdaptiveLabelModel(delta=0.9, **PAPERS_RULE)
    for row in random_stream(4, rows_for(1500, 300), 4, 2, 0.1, blocks=5):
        model.update(row)
        memory, rule = model._engine.state.memory, model._engine.rule
        patient = rule._replace(certain=np.zeros_like(rule.certain))
        known = nothing_known(rule)
        assert choose_level(memory, rule, known) == choose_level(memory, patient, nothing_known(rule))


def test_limits_never_exceed_what_can_happen():
    for n_classes in (2, 5):
        sizes = [3, 8, 9, 40]
        tests = level_tests(sizes, 4, n_classes, 0.5, 0.01)
        for k in range(3):
            g = np.gcd(sizes[k], sizes[k + 1])
            assert tests.limit[k] <= n_classes * (sizes[k + 1] - sizes[k]) * sizes[k] // g

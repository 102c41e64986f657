"""The recipes of CONTRIBUTING.md: the names in it exist, and what it says to add works when it is added."""

from __future__ import annotations

import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numba.core.caching import NullCache

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, load, theory
from driftvote.core import engine, windows
from driftvote.core.jit import KernelTable
from driftvote.core.label_models import ESTIMATORS, Estimator, interface
from driftvote.core.voting import majority_row
from driftvote.drift import events, statistics
from driftvote.files import table, write

from streams_for_tests import COMPILED, random_stream, rows_for

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = ROOT / "src" / "driftvote"
ELSEWHERE = {"DRIFTVOTE_DATA", "ModuleNotFoundError"}  # names that are not of the package


def quoted() -> list[str]:
    """What stands between single backquotes, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))


def test_files_that_the_page_names_exist():
    named = [text for text in quoted() if re.fullmatch(r"[\w./-]+(\.py|\.md|\.json|/)", text)]
    assert len(named) > 25
    for text in named:
        places = (ROOT, PACKAGE, PACKAGE / "core", PACKAGE / "core" / "label_models")
        assert any((place / text).exists() for place in places), text


def test_names_that_the_page_uses_are_in_the_source():
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    words = [text for text in quoted() if re.fullmatch(r"[A-Za-z_]\w*", text)]
    assert {"ESTIMATORS", "BOUNDS", "FORMATS", "WRITERS", "KINDS", "EVENT_KINDS", "KERNELS"} <= set(words)
    for word in words:
        assert word in ELSEWHERE or re.search(rf"\b{word}\b", source), word


def test_targets_that_the_page_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z][a-z-]+)", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_registries_are_where_the_page_says():
    assert ESTIMATORS["confusion"]().name == "confusion"
    assert set(windows.BOUNDS) == {"normal", "bernstein", "mcdiarmid"}
    assert "csv" in table.FORMATS
    assert "csv" in write.WRITERS
    assert set(statistics.EVENT_KINDS.values()) <= set(events.KINDS)
    assert isinstance(interface.KERNELS, KernelTable)


# -- a new label model -------------------------------------------------------------------------


class SecondSettings(NamedTuple):
    n_classes: int


class SecondFit(NamedTuple):
    votes: np.ndarray
    window: np.ndarray


class SecondTables(NamedTuple):
    ready: np.ndarray


def select_fit(settings, fits, place):
    return SecondFit(fits.votes[place], fits.window[place])


def fit_window(settings, state, level, window, begun, room, tables, fit):
    n = fit.votes.shape[0]
    for h in range(n):
        fit.votes[h] = state.sums[level, state.sums.shape[1] - n + h]
    fit.window[0] = window


def fill_tables(settings, fit, tables):
    tables.ready[0] = 1


def label_row(settings, tables, row, draw, support, proba):
    return majority_row(row, draw, support, proba)


@dataclass(frozen=True)
class Second(Estimator):
    """A majority under another name, written as the recipe says."""

    refresh: int = 8
    name: ClassVar[str] = "second"

    def settings(self, n_labelers, n_classes, diluted):
        return SecondSettings(n_classes)

    def empty_fits(self, n_fits, n_labelers, n_classes):
        return SecondFit(np.zeros((n_fits, n_labelers), np.int64), np.zeros((n_fits, 1), np.int64))

    def new_tables(self, settings, n_labelers):
        return SecondTables(np.zeros(1, np.int64))

    def accuracies(self, settings, fits):
        return np.full(fits.votes.shape, 0.75)

    def vote_weights(self, settings, fits, places, rows):
        return np.where(rows >= 0, 1.0, 0.0)


@pytest.fixture
def second(monkeypatch):
    for kernel in (engine.label_rows, engine.predict_rows, engine.fit_if_due):
        # The index of Numba's cache names the types of the arguments. With those of this file in it, no process that
        # cannot import this file could read it.
        if COMPILED:
            monkeypatch.setattr(kernel.dispatcher, "_cache", NullCache())
    interface.KERNELS.register(
        SecondSettings,
        select_fit=select_fit,
        fit_window=fit_window,
        fill_tables=fill_tables,
        follows_agreements=interface.always_follow,
        label_row=label_row,
    )
    monkeypatch.setitem(ESTIMATORS, "second", Second)
    yield
    del interface.KERNELS._kernels[SecondSettings]


def test_a_new_label_model_is_one_file_and_one_line(second, tmp_path):
    votes = random_stream(3, rows_for(900, 120), 5, n_classes=3, abstain=0.2)
    model = AdaptiveLabelModel(estimator="second", refresh=16, n_classes=3)
    out = model.label_stream(votes)
    np.testing.assert_array_equal(out.codes, MajorityLabelModel(n_classes=3).label_stream(votes).codes)
    assert out.windows.max() > 16
    assert (out.accuracies == 0.75).all()
    one_by_one = model.clone()
    for row in votes[:40]:
        one_by_one.update(row)
    np.testing.assert_array_equal(one_by_one.label_stream(votes[40:]).windows, out.windows[40:])
    model.save(tmp_path / "second.npz")
    again = load(tmp_path / "second.npz")
    assert again.get_params() == model.get_params()
    assert again.estimator == Second(refresh=16)
    newcomer = dict(zip([*model.labelers, "newcomer"], [0, 1, 1, -1, 1, 1], strict=True))
    assert again.update(newcomer).label == model.update(newcomer).label == 1
    assert FixedWindowLabelModel(window=64, estimator=Second(), n_classes=3).label_stream(votes).windows[-1] == 64


def test_the_label_model_of_this_file_is_gone_again():
    assert "second" not in ESTIMATORS
    with pytest.raises(ValueError, match="estimator must be"):
        AdaptiveLabelModel(estimator="second")


# -- a new bound -------------------------------------------------------------------------------


def test_a_new_bound_is_a_name_and_a_factor():
    """A bound without branches of its own has thresholds of the form factor x half range."""
    comparison = windows.Comparison(16, 32, 99, 0.5, 0.0, 0.0)
    assert windows.threshold(0.3, 1.0, comparison) == 0.5
    assert windows.threshold(0.3, 2.0, comparison) == 1.0
    factor = theory.statistics_factor(3, 20, 0.1)
    assert windows.WindowRule(bound="mcdiarmid").tests(3, 2).plain[4] == theory.threshold(factor, 0.1, 16, 32)


# -- a new file format -------------------------------------------------------------------------


def test_a_new_file_format_is_one_class_and_one_line(tmp_path, monkeypatch):
    class DigitTable(table.Table):
        textual = True

        def __init__(self, path, options, shown=None, compression=None):
            super().__init__(path, options, shown, compression)
            self.lines = self.path.read_text().split()
            self.names = [f"w{place}" for place in range(len(self.lines[0]))]

        def batches(self, columns, votes=()):
            cells = {name: [line[self.names.index(name)] for line in self.lines] for name in columns}
            yield from self._cut(pa.RecordBatch.from_pydict(cells))

    module = types.ModuleType("driftvote.files.digits")
    module.DigitTable = DigitTable
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(table.FORMATS, "digits", table.FileFormat("digits:DigitTable", (".digits",), is_text=True))
    path = tmp_path / "votes.digits"
    path.write_text("110\n011\n")
    with table.open_table(str(path), table.FileOptions()) as votes:
        assert votes.names == ["w0", "w1", "w2"]
        assert [batch.to_pydict() for batch in votes.batches(["w2", "w0"])] == [{"w2": ["0", "1"], "w0": ["1", "0"]}]


# -- a new drift diagnosis ---------------------------------------------------------------------


def test_every_statistic_of_the_panel_has_an_event_with_a_sentence():
    """Statistics of single labelers are named by the diagnosis; all others need a kind of event."""
    kinds = {kind for kind, _ in statistics.list_statistics(3, 3).entries()}
    assert kinds - {statistics.AGREEMENT, statistics.COVERAGE} == set(statistics.EVENT_KINDS)
    shares = {"a": 0.5, "b": 0.5}
    for kind in statistics.EVENT_KINDS.values():
        event = events.DriftEvent(9, None, (1, 2), None, 1, None, kind, (), (), None, None, shares, shares)
        assert event.what

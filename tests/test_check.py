"""`driftvote check`: exit codes, and what it says."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, cli
from test_metrics import samples_of

from watch_for_tests import CLASSES, JUDGES, line_of, votes_that_drift

DRIFTED, CHANGE = 4000, 3200


def check(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["check", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


@pytest.fixture(scope="module")
def drifted(tmp_path_factory):
    """A file whose first labeler falls at row 3,200."""
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    np.savetxt(path, votes_that_drift(DRIFTED, CHANGE), fmt="%d", delimiter=",", header=",".join(JUDGES), comments="")
    return path


def test_drift_is_exit_code_3_and_said_once(drifted):
    code, said = check(drifted)
    assert code == 3
    assert re.search(r"drift    since about row 3,\d\d\d, judge-a@v1 is right \d\d% of the time instead of \d\d%", said)
    assert "result   drift (exit code 3)" in said
    code, said = check(drifted, "--json")
    found = json.loads(said)
    out = AdaptiveLabelModel().label_stream(np.loadtxt(drifted, delimiter=",", skiprows=1, dtype=np.int8))
    assert [event["row"] for event in found["events"]] == [event.row for event in out.events]
    assert found["events"][0]["labelers"][0]["name"] == JUDGES[0]
    assert (code, found["exit_code"], found["rows"], found["last"]) == (3, 3, DRIFTED, 1000)
    review = (out.probability[-1000:] < 0.6) | (out.codes[-1000:] < 0)
    assert found["doubtful"]["rows"] == review.sum()


def test_drift_before_the_last_rows_is_past(drifted):
    code, said = check(drifted, "--last", 50)
    assert code == 0
    assert "drift    none in the last 50 rows (1 before)" in said
    assert "result   OK (exit code 0)" in said


def test_too_many_doubtful_rows_are_exit_code_4(drifted, tmp_path):
    code, said = check(drifted, "--last", 50, "--most-doubtful", 0, "--review-below", 1)
    assert code == 4
    assert "review   50 of the last 50 rows (100.0%) need review; limit 0%" in said
    assert "result   too many rows need review (exit code 4)" in said
    code, said = check(drifted, "--most-doubtful", 0, "--review-below", 1, "--metrics", tmp_path / "m.prom")
    assert code == 3, "drift first"
    assert "result   drift and too many rows need review (exit code 3)" in said
    samples = samples_of((tmp_path / "m.prom").read_text())
    assert samples["driftvote_rows_total", ()] == samples["driftvote_doubtful_rows_total", ()] == DRIFTED
    assert sum(value for (name, _), value in samples.items() if name == "driftvote_drift_events_total") == 1


def test_bad_input_is_exit_code_2(drifted, tmp_path, monkeypatch, capsys):
    """As a shell sees it."""
    cases = [
        (["no.csv"], 2, "no.csv: there is no such file"),
        ([drifted, "--last", 0], 2, "Invalid value for '--last'"),
        ([drifted, "--state", tmp_path / "no.npz"], 2, "no.npz: there is no such state file"),
        ([drifted, "--stream", JUDGES[0], "--metrics", tmp_path / "m"], 2, "metrics are about one stream"),
        ([drifted, "--quiet"], 3, ""),
    ]
    for arguments, code, message in cases:
        monkeypatch.setattr(sys, "argv", ["driftvote", "check", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        assert message in shown.err
        assert shown.out == ""


def test_a_state_is_begun_with_and_left_alone(tmp_path):
    """A short file says nothing by itself; after a past it does."""
    votes = votes_that_drift(3600, 3000)
    path, state = tmp_path / "today.jsonl", tmp_path / "s.npz"
    path.write_text("\n".join(line_of(number, row) for number, row in enumerate(votes[3000:])))
    declared = ["--id", "id", "--classes", ",".join(CLASSES), "--quiet"]
    assert check(path, *declared)[0] == 0
    model = AdaptiveLabelModel(classes=CLASSES)
    model.label_stream([{name: CLASSES[code] for name, code in zip(JUDGES, row, strict=True)} for row in votes[:3000]])
    model.save(state)
    before = state.read_bytes()
    assert check(path, *declared, "--state", state) == (3, "")
    assert state.read_bytes() == before


def test_streams_are_looked_at_one_by_one(tmp_path):
    """The one that drifts is named; rows count in each stream."""
    votes = {"calm": votes_that_drift(DRIFTED, 10**6, seed=1), "restless": votes_that_drift(DRIFTED, CHANGE)}
    lines = [",".join(["site", *JUDGES])]
    for rows in zip(*votes.values(), strict=True):
        lines += [",".join([site, *map(str, row)]) for site, row in zip(votes, rows, strict=True)]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    code, said = check(tmp_path / "v.csv", "--stream", "site")
    assert code == 3
    assert "drift    stream restless: since about row 3,2" in said
    assert "stream calm" not in said

"""The command line, run as a user runs it."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from driftvote import DriftvoteError, __version__, cli
from driftvote.files.labels import write_table

from streams_for_tests import rows_for

runner = CliRunner()


def test_demo_tells_the_story(tmp_path):
    rows = rows_for(20_000, 2_000)
    done = runner.invoke(cli.app, ["demo", "--out", str(tmp_path / "demo"), "--rows", str(rows)])
    assert done.exit_code == 0, done.output
    second = {
        name: float(re.search(rf"{name}.*?([\d.]+)%\D+([\d.]+)%", done.output)[2])
        for name in ("majority vote", "all past", "adaptive window", "true weights")
    }
    if rows == 20_000:
        # The published comparison: batch models 57.9, majority 84.0, the best possible 91.3.
        assert second["all past"] < 60
        assert second["majority vote"] == pytest.approx(84.0, abs=1)
        assert second["adaptive window"] > 90
        assert second["true weights"] == pytest.approx(91.3, abs=0.7)
    assert "just before the swap" in done.output
    with (tmp_path / "demo" / "labels.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == rows
    assert list(lines[0]) == ["label", "probability", "proba_0", "proba_1", "window", "n_votes"]


def test_version_and_help():
    assert runner.invoke(cli.app, ["--version"]).output.strip() == f"driftvote {__version__}"
    assert "demo" in runner.invoke(cli.app, ["--help"]).output


def test_every_command_is_documented_with_an_example():
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
    assert cli.app.registered_commands
    for command in cli.app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"`driftvote {name}`" in page
        assert f"Example: driftvote {name}" in command.callback.__doc__


def test_an_error_is_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "from driftvote.cli import main; main()", "demo", "--rows", "200", "--out", str(tmp_path / "file" / "x")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("driftvote: ")
    assert done.stderr.count("\n") == 1


def test_main_turns_our_errors_into_one_line(monkeypatch, capsys):
    def fail():
        raise DriftvoteError("the sky is falling; wear a hat")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "driftvote: the sky is falling; wear a hat\n"


def test_tables_are_written_by_extension(tmp_path):
    table = pa.table({"a": [1, 2]})
    write_table(tmp_path / "t.parquet", table)
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").equals(table)
    with pytest.raises(DriftvoteError, match=r"cannot tell the format from '.doc'; name it .csv or .parquet"):
        write_table(tmp_path / "t.doc", table)
    assert not (tmp_path / "t.doc").exists()

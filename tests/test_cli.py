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
import typer
from typer.testing import CliRunner

from driftvote import DriftvoteError, __version__, cli
from driftvote.files.write import write_table

from streams_for_tests import rows_for

runner = CliRunner()


def test_demo_tells_the_story(tmp_path):
    rows = rows_for(20_000, 2_000)
    done = runner.invoke(cli.app, ["demo", "--out", str(tmp_path / "demo"), "--rows", str(rows)])
    assert done.exit_code == 0, done.output
    second = {
        name: float(re.search(rf"{name}.*?([\d.]+)%\D+([\d.]+)%", done.output)[2])
        for name in ("majority vote", "every row so far", "adaptive window", "true weights")
    }
    if rows == 20_000:
        # The published comparison: batch models 57.9, majority 84.0, the best possible 91.3.
        assert second["every row so far"] < 60
        assert second["majority vote"] == pytest.approx(84.0, abs=1)
        assert second["adaptive window"] > 90
        assert second["true weights"] == pytest.approx(91.3, abs=0.7)
    assert "just before the swap" in done.output
    with (tmp_path / "demo" / "labels.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == rows
    # The printed figure can be worked out again from the file.
    half = [line for line in lines if int(line["row"]) >= rows // 2]
    right = sum(0.5 if line["label"] == "-1" else line["label"] == line["truth"] for line in half) / len(half)
    assert second["adaptive window"] == pytest.approx(100 * right, abs=0.051)
    assert {"vote_labeler_4", "accuracy_labeler_4", "window"} <= set(lines[0])


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


MISTAKES = [
    (["demo", "--rows", "x"], "Invalid value for '--rows'"),
    (["dem"], "No such command 'dem'"),
    (["demo", "--out", "{file}/x"], "file/x: Not a directory; choose another path"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    arguments = [argument.format(file=tmp_path / "file") for argument in arguments]
    done = subprocess.run([sys.executable, "-m", "driftvote", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("driftvote: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (DriftvoteError("the sky is falling; wear a hat"), "the sky is falling; wear a hat"),
        (OSError(28, "No space left on device", "x.csv"), "x.csv: No space left on device; choose another path"),
        (typer.BadParameter("not like this"), "Invalid value: not like this ('driftvote --help' lists the commands)"),
    ],
)
def test_main_turns_errors_into_one_line(monkeypatch, capsys, problem, sentence):
    def fail(standalone_mode):
        raise problem

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"driftvote: {sentence}\n"


def test_an_interruption_has_its_own_exit_code(monkeypatch, capsys):
    for problem in (typer.Abort(), KeyboardInterrupt()):
        monkeypatch.setattr(cli, "app", lambda standalone_mode, problem=problem: (_ for _ in ()).throw(problem))
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == 130
        assert capsys.readouterr().err.startswith("driftvote: interrupted")


def test_without_arguments_the_command_helps(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["driftvote"])
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr()
    assert "demo" in shown.out + shown.err


def test_a_command_that_works_exits_with_0(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["driftvote", "--version"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 0


def test_tables_are_written_by_extension(tmp_path):
    table = pa.table({"a": [1, 2]})
    write_table(tmp_path / "t.parquet", table)
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").equals(table)
    with pytest.raises(DriftvoteError, match=r"cannot tell the format from the ending '.doc'; pass --to"):
        write_table(tmp_path / "t.doc", table)
    assert not (tmp_path / "t.doc").exists()

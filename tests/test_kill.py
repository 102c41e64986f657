"""A small `make kill`: the commands are killed a few times, at random and between two renames."""

from __future__ import annotations

import pytest

import kill

pytestmark = pytest.mark.slow


class Chosen(kill.Killer):
    """Kills at these system calls, one after the other."""

    def __init__(self, moments: list[int]) -> None:
        super().__init__(seed=0, kills=len(moments))
        self.next = moments
        self.seen: list[list[str]] = []  # the files that were there after each run

    def run(self, arguments, seconds, **streams):
        self.rng.random = lambda: 0.0  # at a system call
        self.moments = self.next.pop(0) - 1 if self.next else self.moments
        code = super().run(arguments, seconds, **streams)
        state = arguments[arguments.index("--state") + 1]
        self.seen.append(sorted(path.name for path in state.parent.glob("[ls]*") if path.suffix != ".lock"))
        return code


def test_label_killed_between_its_renames(tmp_path):
    """Before the labels have their name, when the state has not, and when both have."""
    killer = Chosen([9, 10, 14])
    kill.kill_label(killer, tmp_path, n_rows=2_000, days=1)
    assert killer.counts["at a system call"] == 3
    assert killer.seen == [[], ["l0.csv"], ["l0.csv", "s.npz"], ["l0.csv", "s.npz"]]


def test_watch_killed_while_it_saves(tmp_path):
    killer = Chosen([33, 60])
    kill.kill_watch(killer, tmp_path, n_rows=1_000)
    assert killer.counts == {"at a system call": 2, "runs of watch that ended right": 1}


def test_what_a_kill_must_not_do_is_seen(tmp_path):
    (tmp_path / "answers").write_text('{"row": 0}\n{"row": 0}\n{"row"')
    with pytest.raises(AssertionError, match="row 0 was answered twice"):
        kill.read_answers(tmp_path / "answers")
    (tmp_path / "driftvote-stdin-x").touch()
    with pytest.raises(AssertionError, match="left behind"):
        kill.check_left(tmp_path, {"answers"})

"""Twenty seconds of `make fuzz`, and what the fuzzer itself promises."""

from __future__ import annotations

import os
import random
import time

import pytest

import fuzz

pytestmark = pytest.mark.slow


def test_twenty_seconds_of_damage(tmp_path):
    """Every target, by fixed seeds from 1 on: nothing but files that are read and files that are refused."""
    counts = fuzz.run(20.0, seed=1, keep=tmp_path / "kept", targets=list(fuzz.TARGETS))
    print(counts)
    assert {target for target, outcomes in counts.items() if not sum(outcomes.values())} == set()
    assert not (tmp_path / "kept").exists(), [
        f"{folder.name}: {(folder / 'why.txt').read_text()}" for folder in (tmp_path / "kept").iterdir()
    ]


def crash(rng: random.Random, folder) -> str:
    os.abort()


def hang(rng: random.Random, folder) -> str:
    time.sleep(1000)
    return "well"


def eat(rng: random.Random, folder) -> str:
    (folder / "input").write_text("what it was given")
    return "well" if bytearray(100 << 30) else "refused"


def fail(rng: random.Random, folder) -> str:
    raise fuzz.BrokenError("exit code 1")


@pytest.mark.parametrize(
    ("harm", "outcome"), [("crash", "crash"), ("hang", "timeout"), ("eat", "MemoryError"), ("fail", "BrokenError")]
)
def test_what_breaks_is_seen_and_kept(harm, outcome, tmp_path, monkeypatch):
    """Targets that crash, hang, take memory or fail: counted by outcome, kept, and the next case runs."""
    monkeypatch.setattr(fuzz, "START", 30.0)
    monkeypatch.setattr(fuzz, "PATIENCE", 1.0)
    monkeypatch.setattr(fuzz, "__file__", __file__)  # children find the targets of this module
    counts = fuzz.run(0.0, seed=7, keep=tmp_path / "kept", targets=["harmless", harm, "harmless again"])
    assert counts[harm] == {outcome: 1}
    assert counts["harmless"] == counts["harmless again"] == {"well": 1}
    assert [folder.name for folder in (tmp_path / "kept").iterdir()] == [f"{harm}-7"]
    assert "--only" in (tmp_path / "kept" / f"{harm}-7" / "why.txt").read_text()


if __name__ == "__main__":  # a child of the test above
    fuzz.START = 2.0
    fuzz.TARGETS.update({name: (lambda rng, folder: "well") for name in ("harmless", "harmless again")})
    fuzz.TARGETS.update({"crash": crash, "hang": hang, "eat": eat, "fail": fail})
    fuzz.work(fuzz.MEMORY)

"""State files: atomic, versioned, and refused by name of what is wrong."""

from __future__ import annotations

import json
import os
import stat
import zipfile

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, StateError
from driftvote.files import state as state_file

from streams_for_tests import PAPERS_RULE, random_stream


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "state.npz"
    AdaptiveLabelModel(windows=[1, 2, 4, 8], **PAPERS_RULE).fit(random_stream(1, 50, 4)).save(path)
    return path


def rewritten(path, change):
    """The same file with its parts changed by hand."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    change(parts)
    np.savez(path, **parts)
    return path


def edit_header(parts, reseal=True, **changes):
    _, _, text = parts["header"].tobytes().decode().partition("\n")
    header = {**json.loads(text), **changes}
    text = json.dumps(header, sort_keys=True)
    seal = state_file._seal(text) if reseal else parts["header"].tobytes().decode().partition("\n")[0] + "\n" + text
    parts["header"] = np.frombuffer(seal.encode(), np.uint8)


def refuse(path, message, kind=AdaptiveLabelModel):
    with pytest.raises(StateError, match=message) as caught:
        kind.load(path)
    assert str(path) in str(caught.value)


def test_it_is_a_plain_npz_with_a_json_header(saved):
    with np.load(saved, allow_pickle=False) as archive:
        drift = {f"drift_{name}" for name in ("rows", "totals", "base", "born", "prior", "head", "shares")}
        fit = {f"fit_{name}" for name in ("weighing", "votes", "window")}
        assert set(archive.files) == {"header", "rows", "verified", "clock"} | fit | drift
        header = json.loads(archive["header"].tobytes().decode().partition("\n")[2])
    assert header["version"] == 2
    assert header["model"] == "AdaptiveLabelModel"
    assert header["settings"]["windows"]["sizes"] == [1, 2, 4, 8]
    assert header["driftvote"] == driftvote.__version__


def test_another_version(saved):
    refuse(rewritten(saved, lambda p: edit_header(p, version=3)), "version 3 .* reads version 2; update driftvote")


def test_a_state_of_driftvote_0_1_says_how_to_rebuild_it(saved):
    rebuild = "version 1 .*0.1.0.* reads version 2; label the history again and save: `driftvote label HISTORY --state"
    refuse(rewritten(saved, lambda p: edit_header(p, version=1, driftvote="0.1.0")), rebuild)


HEADER = {"model": "AdaptiveLabelModel", "settings": {"beta": 0.1}, "labelers": ["a", "b", "c"], "last_time": None}
ARRAYS = {"votes": np.array([[0, 1, -1], [1, 1, 0]], np.int8), "clock": np.array(2)}


def assert_same_state(state, header, arrays):
    assert state[0] == header
    assert set(state[1]) == set(arrays)
    for name, array in arrays.items():
        assert state[1][name].dtype == array.dtype
        np.testing.assert_array_equal(state[1][name], array)


def test_what_is_written_is_what_is_read(tmp_path):
    state_file.write_state(tmp_path / "s.npz", HEADER, ARRAYS)
    assert_same_state(state_file.read_state(tmp_path / "s.npz"), HEADER, ARRAYS)


def test_a_state_in_memory_is_a_state_file(tmp_path):
    data = state_file.pack_state(HEADER, ARRAYS)
    assert_same_state(state_file.unpack_state(data, "key 7"), HEADER, ARRAYS)
    (tmp_path / "s.npz").write_bytes(data)
    assert_same_state(state_file.read_state(tmp_path / "s.npz"), HEADER, ARRAYS)
    with pytest.raises(StateError, match="^key 7: not a whole state file"):
        state_file.unpack_state(data[:-1], "key 7")
    with pytest.raises(StateError, match="^key 7: the header lacks 'labelers'"):
        state_file.unpack_state(state_file.pack_state({"model": "M", "settings": {}, "last_time": None}, {}), "key 7")


def test_many_streams_in_one_file(tmp_path):
    path = tmp_path / "s.npz"
    other = {"votes": np.array([[1]], np.int16)}
    streams = {
        "north": (HEADER, ARRAYS),
        7: ({**HEADER, "labelers": ["d"]}, other),
        1: (HEADER, {}),
        "1": (HEADER, other),  # the text "1" and the number 1 are two streams
    }
    state_file.write_states(path, streams, {"last_input": {"mark": "x"}})
    read, common = state_file.read_states(path)
    assert list(read) == list(streams)
    for name, (header, arrays) in streams.items():
        assert_same_state(read[name], header, arrays)
    assert common["last_input"] == {"mark": "x"}
    assert common["model"] == state_file.MANY_STREAMS
    with pytest.raises(StateError, match="this is the state of many streams, not of"):
        driftvote.load(path)


def test_more_than_ten_streams_keep_their_arrays_apart(tmp_path):
    streams = {f"s{k}": (HEADER, {"clock": np.array(k)}) for k in range(12)}
    state_file.write_states(tmp_path / "s.npz", streams)
    read, _ = state_file.read_states(tmp_path / "s.npz")
    assert [int(arrays["clock"]) for _, arrays in read.values()] == list(range(12))


def test_a_file_of_one_model_is_the_stream_none(tmp_path, saved):
    read, common = state_file.read_states(saved)
    assert list(read) == [None]
    assert common["model"] == read[None][0]["model"] == "AdaptiveLabelModel"
    state_file.write_states(tmp_path / "again.npz", read, {"last_input": {"mark": "x"}})
    assert state_file.read_state(tmp_path / "again.npz")[0]["last_input"] == {"mark": "x"}
    assert driftvote.load(tmp_path / "again.npz").n_rows == 50


def test_a_stream_that_json_cannot_name(tmp_path):
    for name in (("a", 1), None):
        with pytest.raises(StateError, match="cannot be written to a state file; name streams by text or numbers"):
            state_file.write_states(tmp_path / "s.npz", {name: (HEADER, ARRAYS), "b": (HEADER, ARRAYS)})
    assert not os.listdir(tmp_path)


def test_another_model(saved):
    refuse(saved, "this is the state of AdaptiveLabelModel, not of MajorityLabelModel", MajorityLabelModel)
    refuse(rewritten(saved, lambda p: edit_header(p, model="Oracle")), "state of Oracle")


def test_cut_short(saved):
    whole = saved.read_bytes()
    for keep in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:keep])
        refuse(saved, "not a whole state file")


def test_a_changed_array(saved):
    def change(parts):
        parts["clock"] = parts["clock"] + 1

    refuse(rewritten(saved, change), "'clock' does not match its checksum")


def test_a_flipped_bit_anywhere_is_noticed(saved):
    whole = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(saved) as archive:
        infos = archive.infolist()
    for info in infos:  # a bit inside the data of each part
        inside = info.header_offset + 30 + len(info.filename) + 100
        broken = bytearray(whole)
        broken[inside + int(rng.integers(0, 10))] ^= 1
        saved.write_bytes(broken)
        with pytest.raises(StateError):
            AdaptiveLabelModel.load(saved)


def test_a_changed_header(saved):
    refuse(
        rewritten(saved, lambda p: edit_header(p, reseal=False, labelers=["x", "y", "z", "w"])), "header does not match"
    )


def test_a_missing_or_foreign_array(saved, tmp_path):
    whole = saved.read_bytes()
    refuse(rewritten(saved, lambda p: p.pop("clock")), "'clock' is missing")
    saved.write_bytes(whole)
    refuse(rewritten(saved, lambda p: p.update(extra=np.ones(2))), "'extra' does not belong")
    saved.write_bytes(whole)
    refuse(rewritten(saved, lambda p: p.pop("header")), "it has no header")


def reshaped(parts, **arrays):
    """Arrays replaced together with their checksums: a file that is whole but does not fit."""
    parts.update(arrays)
    sums = {name: state_file._checksum(np.ascontiguousarray(a)) for name, a in parts.items() if name != "header"}
    edit_header(parts, checksums=sums)


def test_arrays_that_do_not_fit_the_model(saved):
    whole = saved.read_bytes()
    refuse(
        rewritten(saved, lambda p: reshaped(p, fit_votes=np.zeros((2, 2), np.int64))),
        r"'fit_votes' is int64 of shape \(2, 2\), not",
    )
    saved.write_bytes(whole)

    def drop(parts):
        del parts["rows"]
        reshaped(parts)

    refuse(rewritten(saved, drop), "lacks the array 'rows'")
    saved.write_bytes(whole)

    def negative_beta(parts):
        header = json.loads(parts["header"].tobytes().decode().partition("\n")[2])
        header["settings"]["windows"]["beta"] = -1
        edit_header(parts, settings=header["settings"])

    refuse(rewritten(saved, negative_beta), "does not fit AdaptiveLabelModel: beta must be")


def test_foreign_files(tmp_path):
    refuse(tmp_path / "none.npz", "no such state file")
    (tmp_path / "text.npz").write_text("hello")
    refuse(tmp_path / "text.npz", "not a whole state file")
    np.save(tmp_path / "array.npy", np.ones(3))
    refuse(tmp_path / "array.npy", "not a whole state file")
    np.savez(tmp_path / "other.npz", header=np.frombuffer(b"seal\n[1]", np.uint8))
    refuse(tmp_path / "other.npz", "its header is of another kind")
    np.savez(tmp_path / "noise.npz", header=np.frombuffer(b"\xff\xfe", np.uint8))
    refuse(tmp_path / "noise.npz", "header is damaged")
    np.savez(tmp_path / "pickle.npz", header=np.array([{"a": 1}], object))
    refuse(tmp_path / "pickle.npz", "not a whole state file")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        AdaptiveLabelModel().fit([[1, 1, 1]]).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file or directory: '.*missing'"):
        AdaptiveLabelModel().save(tmp_path / "missing" / "s.npz")


def test_classes_that_json_cannot_hold(tmp_path):
    model = AdaptiveLabelModel(classes=[("a", 1), ("b", 2)])
    assert model.update({"x": ("a", 1), "y": ("b", 2), "z": ("a", 1)}).label == ("a", 1)
    with pytest.raises(StateError, match=r"class \('a', 1\) cannot be written"):
        model.save(tmp_path / "s.npz")
    assert not os.listdir(tmp_path)


def test_the_file_has_ordinary_permissions(saved):
    os.chmod(saved, 0o640)
    AdaptiveLabelModel().fit([[1, 1, 1]]).save(saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640


def test_the_file_does_not_grow_with_the_rows(tmp_path):
    model = FixedWindowLabelModel(window=64, false_event_rate=None)  # the detector has a longer memory of its own
    sizes = []
    for _ in range(3):
        model.label_stream(random_stream(1, 500, 5))
        model.save(tmp_path / "s.npz")
        sizes.append((tmp_path / "s.npz").stat().st_size)
    # The header writes the row count and the time as text, so a few bytes may come.
    assert max(sizes) - min(sizes) < 64


def test_text_classes_and_names_come_back(tmp_path):
    model = AdaptiveLabelModel(classes=["no", "yes"], abstain="?")
    model.update({"ä": "no", "β": "yes", "c d": "?"})
    model.save(tmp_path / "s.npz")
    loaded = driftvote.load(tmp_path / "s.npz")
    assert loaded.labelers == ("ä", "β", "c d")
    assert loaded.update({"new one": "yes"}).label == model.update({"new one": "yes"}).label
    assert loaded.labelers[-1] == "new one"

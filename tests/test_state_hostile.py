"""State files that somebody made: right checksums and wrong values, archives that unpack to more than they are."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, StateError, load
from driftvote.cli.state import SavedModels
from driftvote.files import state as state_file
from driftvote.live.state import Position

import fuzz
from streams_for_tests import COMPILED, random_stream

BIG = 2**40


def resealed(path, header, arrays):
    path.write_bytes(state_file.pack_state(header, arrays))
    return path


def parts_of(model):
    header, arrays = model.to_state()
    return json.loads(json.dumps(header, default=list)), {name: array.copy() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def default():
    """Header and arrays of the default model, with ids and a verified row."""
    model = AdaptiveLabelModel(windows=[16, 64], labelers=["a", "b", "c", "d"], false_event_rate=1e-4)
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (700, 1))
    votes = np.where(rng.random((700, 4)) < 0.9, truth, 1 - truth)
    votes[400:, 0] = 1 - votes[400:, 0]
    model.label_stream(votes, ids=[f"row {row}" for row in range(700)])
    model.feedback("row 690", 1)
    return parts_of(model)


OUT_OF_RANGE = [
    ("rows", 2),
    ("rows", -2),
    ("rows", 100),
    ("verified", 2),
    ("verified", -2),
    ("clock", 0),
    ("clock", -1),
    ("clock", 2**63 - 1),
    ("follows", 2),
    ("fit_theta", np.nan),
    ("fit_theta", 2.0),
    ("fit_weights", np.inf),
    ("fit_window", BIG),
    ("fit_votes", -1),
    ("floors", BIG),
    ("floors", -1),
    ("drift_rows", 100),
    ("drift_rows", -100),
    ("drift_totals", -1),
    ("drift_totals", BIG),
    ("drift_base", BIG),
    ("drift_born", 100),
    ("drift_prior", np.nan),
    ("drift_head", 100_000),
    ("drift_shares", np.nan),
    ("drift_shares", 7.0),
    ("id_rows", -1),
    ("id_rows", 700),
    ("id_ends", BIG),
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_value_out_of_range_never_reaches_a_kernel(default, tmp_path, name, value):
    header, arrays = default
    arrays = {key: array.copy() for key, array in arrays.items()}
    if name == "floors" and name not in arrays:
        arrays["floors"] = np.array([[600, 400]])
    path = tmp_path / "state.npz"
    assert load(resealed(path, header, arrays)).n_rows == 700
    arrays[name].flat[-1] = value
    with pytest.raises(StateError, match="state.npz: the state does not fit AdaptiveLabelModel"):
        load(resealed(path, header, arrays))


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", [1, 2, 3, 128, 200])
def test_the_head_of_the_detector_fits_its_blocks(default, tmp_path, place, value):
    """Whatever the numbers say, a model either refuses them or can go on."""
    header, arrays = default
    for stage in (0, 1, 2):
        head = arrays["drift_head"].copy()
        head[1], head[place] = stage, value
        try:
            model = load(resealed(tmp_path / "state.npz", header, arrays | {"drift_head": head}))
        except StateError:
            continue
        model.label_stream(random_stream(2, 300 if COMPILED else 70, 4))


def test_codes_of_other_models(tmp_path):
    votes = random_stream(1, 100, 4, abstain=0.2)
    for model, wrong in (
        (AdaptiveLabelModel.paper(windows=[16, 64]), -4),
        (AdaptiveLabelModel(windows=[16], estimator="triplet"), -2),
        (MajorityLabelModel(), 2),
    ):
        header, arrays = parts_of(model.fit(votes))
        arrays["rows"].flat[0] = wrong
        with pytest.raises(StateError, match="'rows' holds values out of range"):
            load(resealed(tmp_path / "state.npz", header, arrays))
    header, arrays = parts_of(FixedWindowLabelModel(window=None).fit(votes))
    arrays["totals"][0] = 2**50
    with pytest.raises(StateError, match="'totals' holds values out of range"):
        load(resealed(tmp_path / "state.npz", header, arrays))


HEADERS = [
    {"model": []},
    {"model": "LabelModel"},
    {"settings": []},
    {"settings": {"windows": 7}},
    {"labelers": 7},
    {"labelers": ["a", "a", "b", "c"]},
    {"labelers": ["a", "b", "c"]},
    {"labelers": [1, 2, 3, 4]},
    {"labelers": ["a", "b", "c", ["d"]]},
    {"members": None},
    {"last_time": ["number", "x"]},
    {"last_time": ["week", 3]},
    {"last_time": 3},
    {"drift": {}},
    {"drift": []},
]
DRIFTS = [
    {"n_rows": 3},
    {"n_rows": 2**80},
    {"events": [1]},
    {"events": [{}]},
    {"n_events": -1},
    {"log": []},
    {"log": [0, [[1]]]},
    {"log": ["x", []]},
    {"log": [3, [[16, {}]]]},
    {"warned": 3},
]


@pytest.mark.parametrize("change", HEADERS, ids=str)
def test_a_header_with_anything_in_it(default, tmp_path, change):
    header, arrays = default
    with pytest.raises(StateError, match="state.npz: "):
        load(resealed(tmp_path / "state.npz", header | change, arrays))


@pytest.mark.parametrize("change", DRIFTS, ids=str)
def test_the_header_of_the_detector(default, tmp_path, change):
    header, arrays = default
    with pytest.raises(StateError, match="state.npz: the state does not fit"):
        load(resealed(tmp_path / "state.npz", header | {"drift": header["drift"] | change}, arrays))


def test_an_event_with_other_fields(default, tmp_path):
    header, arrays = default
    assert header["drift"]["events"]
    for change in ({"row": "x"}, {"row": 10**9}, {"kind": "miracle"}, {"labelers": [3]}, {"since": None}):
        event = header["drift"]["events"][0] | change
        changed = header | {"drift": header["drift"] | {"events": [event]}}
        with pytest.raises(StateError, match="does not fit"):
            load(resealed(tmp_path / "state.npz", changed, arrays))


def test_the_version_is_a_number(default, tmp_path, monkeypatch):
    monkeypatch.setattr(state_file, "VERSION", True)
    path = resealed(tmp_path / "state.npz", *default)
    monkeypatch.undo()
    with pytest.raises(StateError, match="version True"):
        load(path)


# -- memory ----------------------------------------------------------------------------------------


def write_archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy_bytes(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def refuse_within(megabytes: int, path, match: str) -> None:
    """The file is refused, and no array that is larger than it may be is made on the way."""
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(StateError, match=match):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes << 20


def test_a_state_does_not_unpack_to_more_than_it_is(tmp_path):
    zeros = npy_bytes(np.zeros(100 << 20, np.uint8))
    path = write_archive(tmp_path / "bomb.npz", {"rows": zeros}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    refuse_within(10, path, "not a whole state file")


def test_an_array_that_says_it_is_larger(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (10**12,)})
    path = write_archive(tmp_path / "claim.npz", {"header": head.getvalue() + b"short"})
    refuse_within(10, path, "not a whole state file")


def test_members_that_lie_over_each_other(tmp_path):
    """An archive whose directory names the same bytes again and again."""
    member = npy_bytes(np.zeros(1 << 20, np.uint8))
    path = write_archive(tmp_path / "one.npz", {"a": member})
    with zipfile.ZipFile(path, "a") as archive:
        first = archive.infolist()[0]
        for place in range(500):
            twin = zipfile.ZipInfo(f"b{place}.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC", "compress_type"):
                setattr(twin, field, getattr(first, field))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True
    refuse_within(30, path, "not a whole state file")


def test_numbers_in_the_header_do_not_take_memory(default, tmp_path):
    header, arrays = default
    path = tmp_path / "state.npz"
    many = header | {"settings": header["settings"] | {"n_classes": 32_000}}
    refuse_within(30, resealed(path, many, arrays), "does not fit")
    names = [f"labeler {place}" for place in range(100_000)]
    settings = header["settings"] | {"labelers": None}
    refuse_within(60, resealed(path, header | {"labelers": names, "settings": settings}, arrays), "does not fit")
    deep = json.dumps(header)[:-1] + ', "deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
    sealed = np.frombuffer(state_file._seal(deep).encode(), np.uint8)
    refuse_within(30, write_archive(path, {"header": npy_bytes(sealed)}), "header is damaged")


# -- what commands keep beside the models ----------------------------------------------------------


@pytest.mark.parametrize(
    "saved", [3, [], {}, {"counts": 3}, {"counts": {"lines": "x"}}, {"counts": {"labels": {"a": "b"}}}, {"first": 3}]
)
def test_a_position_in_the_stream_with_anything_in_it(default, tmp_path, saved):
    header, arrays = default
    if isinstance(saved, dict) and saved:
        saved = Position().to_dict() | saved
    path = resealed(tmp_path / "state.npz", header | {"position": saved}, arrays)
    with pytest.raises(StateError, match="position in the stream cannot be read"):
        Position.read(path)


def test_a_list_of_streams_with_anything_in_it(default, tmp_path):
    header, arrays = default
    path = tmp_path / "state.npz"
    for streams in (
        None,
        3,
        [3],
        [["a"]],
        [[["a"], header]],
        [["a", 3]],
        [["a", header], ["a", header]],
        [[None, header]],
    ):
        common = {"model": state_file.MANY_STREAMS, "settings": {"streams": streams}, "labelers": [], "last_time": None}
        with pytest.raises(StateError, match="list of streams in the header is damaged"):
            SavedModels.read(resealed(path, common, {}), many_streams=True)
    other = {
        "model": state_file.MANY_STREAMS,
        "settings": {"streams": [["a", header]]},
        "labelers": [],
        "last_time": None,
    }
    read = SavedModels.read(
        resealed(path, other | {"last_input": 3}, {f"0.{name}": array for name, array in arrays.items()}), True
    )
    assert read.models["a"].n_rows == 700
    assert read.last_input is None


def test_damaged_states_with_right_checksums(tmp_path):
    """The fuzzer of `make fuzz`, in this process and by fixed seeds."""
    for seed in range(100 if COMPILED else 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = fuzz.run_case("state", seed, folder)
        assert outcome["outcome"] in fuzz.FAIR, f"seed {seed}: {outcome['why']}"

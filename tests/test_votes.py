"""The one encoder: every kind of column gives the codes that its values give one by one."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from driftvote import LabelerError
from driftvote.votes import BAD, Roster, declare_votes

NAN = math.nan
SNORKEL = declare_votes(n_classes=3)
SIGNED = declare_votes(votes="signed")
TEXT = declare_votes(classes=["no", "yes"], abstain="?")
NUMBERS = declare_votes(classes=[1, 2.5, 400], abstain=0)
MIXED = declare_votes(classes=["1", "2", "none of them"])

# format, value, code in memory, code in a file or message
VALUES = [
    (SNORKEL, 2, 2, 2),
    (SNORKEL, 2.0, 2, 2),
    (SNORKEL, np.uint8(2), 2, 2),
    (SNORKEL, True, 1, 1),
    (SNORKEL, Decimal(1), 1, 1),
    (SNORKEL, -1, -1, -1),
    (SNORKEL, None, -1, -1),
    (SNORKEL, NAN, BAD, -1),
    (SNORKEL, 3, BAD, BAD),
    (SNORKEL, 0.5, BAD, BAD),
    (SNORKEL, math.inf, BAD, BAD),
    (SNORKEL, "2", BAD, 2),
    (SNORKEL, " 2.0", BAD, 2),
    (SNORKEL, "NA", BAD, -1),
    (SNORKEL, "", BAD, -1),
    (SNORKEL, "1_0", BAD, BAD),
    (SNORKEL, [1], BAD, BAD),
    (SIGNED, -1, 0, 0),
    (SIGNED, 1.0, 1, 1),
    (SIGNED, 0, -1, -1),
    (SIGNED, False, BAD, BAD),
    (SIGNED, "0", BAD, -1),
    (SIGNED, 2, BAD, BAD),
    (TEXT, "yes", 1, 1),
    (TEXT, " yes ", BAD, 1),
    (TEXT, "?", -1, -1),
    (TEXT, NAN, BAD, -1),
    (TEXT, 1, BAD, BAD),
    (NUMBERS, 400, 2, 2),
    (NUMBERS, 2.5, 1, 1),
    (NUMBERS, 0, -1, -1),
    (NUMBERS, "2.5", BAD, 1),
    (NUMBERS, 401, BAD, BAD),
    (MIXED, "1", 0, 0),
    (MIXED, 1, BAD, 0),
    (MIXED, 1.0, BAD, 0),
    (MIXED, NAN, -1, -1),
]


@pytest.mark.parametrize(("form", "value", "in_memory", "in_file"), VALUES)
def test_single_values(form, value, in_memory, in_file):
    assert form.code_of(value) == in_memory
    assert form.code_of(value, lenient=True) == in_file


COLUMNS = [
    [0, 1, 2, -1, 1],
    [0, None, 2, -1],
    [0, 1, 7, 2],
    [0, 10**9, 2],
    [0.0, NAN, 2.0, 1.5],
    [0.0, None, 2.0],
    [None, None],
    ["yes", "no", "?", None, "maybe", "yes"],
    [" yes", "NA", ""],
    [1, 400, 0, 2],
    [1.0, 2.5, 400.0, 0.0, NAN],
    ["1", "2.0", "0"],
    [True, False, None],
    [Decimal("1"), Decimal("2.5"), None],
    [],
]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("form", [SNORKEL, SIGNED, TEXT, NUMBERS, MIXED])
@pytest.mark.parametrize("values", COLUMNS, ids=str)
def test_columns_of_every_kind_give_the_codes_of_their_values(values, form, lenient):
    """A missing cell of a column abstains without being written out; the declared abstention is written out."""
    missing = [value is None or value != value for value in values]
    codes = [-1 if gone else form.code_of(value, lenient=lenient) for value, gone in zip(values, missing, strict=True)]
    words = ("", "NA") if lenient else ()
    literal = any(
        code == -1 and not gone and value not in words for code, value, gone in zip(codes, values, missing, strict=True)
    )
    array = pa.array(values)
    columns = [values, array, pa.chunked_array([array[:1], array[1:]]), np.array(values, object)]
    if not pa.types.is_null(array.type):
        columns.append(array.dictionary_encode())
        columns.append(pa.concat_arrays([array, array])[len(array) :])  # with an offset
    if values and all(type(value) in (int, float) for value in values):
        columns.append(np.array(values))
    for column in columns:
        encoded = form.encode_column(column, lenient=lenient)
        assert encoded.codes.tolist() == codes, type(column)
        assert encoded.codes.dtype == form.dtype
        assert (encoded.literal, encoded.has_bad) == (literal, BAD in codes), type(column)
        if encoded.has_bad:
            assert encoded.first_bad() == codes.index(BAD)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64, np.int64, np.float32, np.float64])
def test_arrays_of_any_number_type(dtype):
    values = np.array([[0, 1, 2], [2, 1, 0]]).astype(dtype)
    for form in (SNORKEL, SIGNED, NUMBERS, TEXT):
        expected = [[form.code_of(value) for value in row] for row in values.tolist()]
        assert form.encode(values).tolist() == expected
        assert form.encode(np.asfortranarray(values)).tolist() == expected


def test_an_unsigned_number_beyond_the_codes_is_no_class():
    """As int8 codes 254 would be -2 and 255 an abstention."""
    for form in (SNORKEL, NUMBERS, declare_votes(n_classes=300)):
        assert form.encode(np.array([1, 2**64 - 1, 2**64 - 2], np.uint64)).tolist()[1:] == [BAD, BAD]
    assert SNORKEL.encode(np.array([0, 254, 255], np.uint8)).tolist() == [0, BAD, BAD]


def test_a_dictionary_whose_indices_are_all_used():
    """The entry of an empty cell comes after the last one, where int8 has no number left."""
    form = declare_votes(n_classes=128)
    indices = pa.array([0, 127, None, 5], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(range(128)))
    assert form.encode_column(column).codes.tolist() == [0, 127, -1, 5]


def test_the_least_number_of_labelers_belongs_to_the_roster():
    with pytest.raises(LabelerError, match="at least 3 labelers are needed .* not 2"):
        Roster().for_width(2)
    pair = Roster(least=1).for_width(2)
    assert (pair.names, pair.least) == (("labeler_0", "labeler_1"), 1)
    assert Roster.declared(["a"], least=1).joined_by(["a"]).least == 1
    assert Roster(least=2).joined_by(["a", "b"]).joined_by(["c"]).least == 2
    with pytest.raises(LabelerError, match="at least 2 labelers"):
        Roster.declared(["a"], least=2)

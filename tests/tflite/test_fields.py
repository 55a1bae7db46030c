"""Forms of the same file: fields that are absent, in either of two places, in lists that are longer than known."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.frontend.tflite.reader import read_tflite
from tests.conftest import require_tflite
from tests.tflite.cases import make_case
from tests.tflite.fields import BROKEN, BUILTIN, DEPRECATED, DIFFERENT, EQUAL, Table, tables, tried
from tests.tflite.runtime import Runtime

require_tflite()


def _codes(data: bytes) -> list[str]:
    return [op.code for graph in read_tflite(data, "net").subgraphs for op in graph.operators]


def _operator_code(data: bytes) -> Table:
    return next(t for t in tables(data) if t.kind == "OperatorCode")


@pytest.mark.parametrize("code", ["CONV_2D", "SUB", "GATHER_ND"])
def test_an_operator_whose_code_stands_in_the_new_field_alone_is_no_add(code: str) -> None:
    data = bytearray(make_case(code, 0).model)
    _operator_code(data).clear(data, DEPRECATED)
    assert _codes(bytes(data)) == [code]


@pytest.mark.parametrize("code", ["CONV_2D", "SUB"])
def test_an_operator_whose_code_stands_in_the_old_field_alone_is_read(code: str) -> None:
    data = bytearray(make_case(code, 0).model)
    _operator_code(data).clear(data, BUILTIN)
    assert _codes(bytes(data)) == [code]


@pytest.mark.parametrize(("old", "new"), [(41, 3), (3, 41), (-5, 41)])
def test_of_two_operator_codes_the_larger_counts(old: int, new: int) -> None:
    data = bytearray(make_case("SUB", 0).model)
    table = _operator_code(data)
    struct.pack_into("<b", data, table.place(data, DEPRECATED), old)
    struct.pack_into("<i", data, table.place(data, BUILTIN), new)
    assert _codes(bytes(data)) == ["SUB"]


def test_lists_of_places_that_are_longer_than_the_schema_change_nothing() -> None:
    data = make_case("CONV_2D", 3).model
    wanted = import_model(data, name="net")
    for table in tables(data):
        found = import_model(table.moved(data, 3), name="net")
        assert [n.op for n in found.nodes] == [n.op for n in wanted.nodes]
        assert all(np.array_equal(found.consts[name], array) for name, array in wanted.consts.items())


def test_files_with_changed_fields_answer_as_the_runtime_or_end_in_a_message() -> None:
    with Runtime() as runtime:
        found = [tried(seed, runtime) for seed in range(200)]
    assert [o for o in found if o.kind in (DIFFERENT, BROKEN)] == []
    assert sum(o.kind == EQUAL for o in found) > 100


def test_scales_without_zero_points_are_told() -> None:
    data = bytearray(make_case("ADD", 0).model)
    for table in tables(bytes(data)):
        if table.kind == "Quantization":
            table.clear(data, 3)
    with pytest.raises(ModelError, match=r"1 scales and 0 zero points|have no scale"):
        import_model(bytes(data))

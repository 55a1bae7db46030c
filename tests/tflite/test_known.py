"""The list of TensorFlow Lite's operators: what is listed is read, and its kinds are among those that are compared."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from glowc.frontend.tflite.known import KNOWN
from glowc.frontend.tflite.operators import HANDLERS
from tests.conftest import require_tflite
from tests.tflite.cases import MAKERS, make_case
from tests.tflite.signal_cases import MAKERS as SIGNAL
from tests.tflite.test_beyond import CASES as BEYOND

require_tflite()
# Of variables and control flow every kind is moved as it is; TILE is none of TFLM's.
_NOT_DRAWN = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE", "IF", "READ_VARIABLE", "TILE", "VAR_HANDLE", "WHILE", "SHAPE"})
_FLOAT_IN_TFLM = frozenset({"EXP", "LOG"})  # int8 as in TensorFlow Lite
_SEEDS = 60


def test_every_operator_that_is_read_is_listed() -> None:
    assert set(HANDLERS) == set(KNOWN)


def test_the_command_lists_versions_and_types() -> None:
    done = CliRunner().invoke(app, ["ops", "--format", "tflite", "--json"])
    rows = {row["name"]: row for row in json.loads(done.output)["operators"]}
    assert rows["ADD"]["types"] == ["float32", "int8", "int16", "int32"]
    assert rows["CONV_2D"]["version"] == 8
    assert "int4" in CliRunner().invoke(app, ["ops", "--format", "tflite"]).output


def test_another_format_is_refused() -> None:
    assert CliRunner().invoke(app, ["ops", "--format", "caffe"]).exit_code != 0


@pytest.mark.parametrize("code", sorted(set(KNOWN) & set(MAKERS) - _NOT_DRAWN))
def test_listed_kinds_are_drawn(code: str) -> None:
    from glowc.frontend.tflite.reader import read_tflite

    drawn = set()
    for seed in range(_SEEDS):
        graph = read_tflite(make_case(code, seed).model, code).subgraphs[0]
        drawn |= {t.kind for t in graph.tensors}
    missing = set(KNOWN[code].types) - drawn - {"uint8"} - ({"int8"} if code in _FLOAT_IN_TFLM else set())
    assert not missing, f"{code}: {re.sub('[{}]', '', str(missing))}"


def test_every_operator_is_compared_with_the_runtime() -> None:
    beyond = {code for code, *_ in BEYOND} | {
        "Convolution2DTransposeBias", "RANGE", "RANK", "STABLEHLO_COMPOSITE", "TOPK_V2", "CONV_3D", "COMPLEX_ABS",
        "DENSIFY", "IMAG", "MaxPoolingWithArgmax2D", "MaxUnpooling2D", "REAL", "RFFT2D",
    }  # fmt: skip
    assert set(KNOWN) - set(MAKERS) - set(SIGNAL) - beyond <= {
        "ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "RELU_N1_TO_1", "VAR_HANDLE",
    }  # fmt: skip

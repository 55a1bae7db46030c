"""Models of one operator and whole ones against the TFLM runtime: integers equal byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.tflite.cases import make_case
from tests.tflite.compare import difference, lowered
from tests.tflite.runtime import Runtime

MODELS = Path(__file__).parents[3] / "shared" / "tflite"
CODES = ("TRANSPOSE_CONV", "SVDF")
CASES = 20


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    pytest.importorskip("tflite_micro", reason="the TFLM runtime is not installed")
    with Runtime() as found:
        yield found


@pytest.mark.parametrize("code", CODES)
def test_seeded_models_of_one_operator_answer_as_the_runtime(code: str, runtime: Runtime) -> None:
    for seed in range(CASES):
        case = make_case(code, seed)
        found = difference(lowered(case.model, case.calls), runtime.run(case.model, case.calls), case.rtol)
        assert not found, f"seed {seed}, {case.label}: {found}"


@pytest.mark.parametrize("name", ["seanet_transpose_conv0", "seanet_transpose_conv4", "tflm_keyword_svdf_int8"])
def test_models_answer_as_the_runtime(name: str) -> None:
    folder = MODELS / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent")
    inputs, golden = np.load(folder / "inputs.npz"), np.load(folder / "golden.npz")
    roles = sorted(key for key in golden.files if "litert" not in key)
    calls = list(zip(*(inputs[key] for key in sorted(inputs.files)), strict=True))
    want = list(zip(*(golden[key] for key in roles), strict=True))
    assert not difference(lowered((folder / "model.tflite").read_bytes(), calls), want, 0)

"""Random float networks and data without a range to speak of through the quantiser; `make fuzz-quantize` tries more."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from glowc.quant.calibrate import Calibration
from glowc.quant.profile import BINS, stats_of
from glowc.quant.quantizer import QuantizeOptions, quantize_model
from glowc.quant.scheme import Schema
from tests.conftest import require_module
from tests.fuzz.check import UNEXPECTED
from tests.fuzz.check_quantise import INACCURATE, check_quantised_c, examine_quantised
from tests.fuzz.dice import Dice
from tests.fuzz.floats import BROKEN, DATA, draw_case
from tests.unit.onnx_builders import model, node

SEEDS = 24
F32 = np.float32


def test_random_networks_mean_the_same_to_onnxruntime_and_in_c(tmp_path: Path) -> None:
    require_module("onnxruntime")
    findings = {s: examine_quantised(draw_case(Dice(random.Random(s).randint))) for s in range(SEEDS)}
    findings |= check_quantised_c(findings, tmp_path)
    wrong = {s: f"{f.kind}: {f.text[-500:]}" for s, f in findings.items() if f.kind in UNEXPECTED | {INACCURATE}}
    assert wrong == {}
    assert sum(f.codes is not None for f in findings.values()) > SEEDS // 2


@pytest.mark.parametrize(
    ("data", "calibration"),
    [
        *((data, Calibration.AUTO) for data in sorted(DATA.keys() - BROKEN)),
        *((data, kind) for data in ("few steps", "subnormal", "huge") for kind in Calibration),
    ],
)
def test_data_of_every_kind_are_quantised(data: str, calibration: Calibration) -> None:
    """Values of fewer float steps than a histogram has bins ended in an internal error."""
    rng = np.random.default_rng(3)
    nodes = [node("Softmax", "x", "s", axis=-1), node("ReduceSum", "s a", "t"), node("MatMul", "t w", "u")]
    nodes += [node("MatMul", "x v", "p"), node("Add", "p u", "y")]
    consts = {
        "a": np.asarray([-1]),
        "w": rng.normal(size=(1, 4)).astype(F32),
        "v": rng.normal(size=(10, 4)).astype(F32),
    }
    proto = model(nodes, {"x": "f32[1,6,10]"}, {"y": "f32"}, consts)
    samples = [{"x": np.asarray(DATA[data](rng, (1, 6, 10)), F32)} for _ in range(3)]
    schema = Schema.ASYMMETRIC if calibration is Calibration.AUTO else Schema.SYMMETRIC_WITH_POWER2_SCALE
    assert quantize_model(proto, samples, QuantizeOptions(calibration=calibration, schema=schema)).layers == 2


@pytest.mark.parametrize("steps", [0, 1, 2, 100])
@pytest.mark.parametrize("low", [1e-45, 1e-30, 0.1, 1.0, -3e38])
def test_histogram_counts_every_value_of_few_steps(low: float, steps: int) -> None:
    values = np.asarray([low], F32)
    for _ in range(steps):
        values = np.append(values, np.nextafter(values[-1], F32(np.inf)))
    stats = stats_of(values)
    assert len(stats.histogram) == BINS
    assert stats.with_values(values, None).histogram.sum() == 2 * len(values)

"""How the cost model is fitted: scripts/fit_costs.py and what it counts with."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from glowc.board import load_board, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.kernels.features import WORK, features
from glowc.select.cost import Fit
from tests.conftest import ROOT
from tests.unit.test_costs import conv


def _script(name: str) -> ModuleType:
    """Return scripts/NAME.py as a module."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    """scripts/fit_costs.py as a module."""
    return _script("fit_costs")


def test_nnls_is_never_negative_and_optimal(fitting: ModuleType) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
        x = fitting.nnls(a, b)
        slope = a.T @ (a @ x - b)
        assert (x >= 0).all()
        assert (slope[x == 0] > -1e-6).all()
        assert np.abs(slope[x > 0]).max(initial=0) < 1e-6


def test_fit_finds_the_terms_that_made_the_numbers(fitting: ModuleType) -> None:
    samples = [(f := features(conv(size=n)), round(50 + 3 * f["macs"] + 20 * f["rows"])) for n in range(4, 16)]
    terms, error = fitting.fit([values for values, _ in samples], [n for _, n in samples])
    assert error < 0.005
    unseen = features(conv(size=24))
    predicted = Fit(terms, terms, error, 12).predict(unseen).cycles
    assert predicted == pytest.approx(50 + 3 * unseen["macs"] + 20 * unseen["rows"], rel=0.02)


def test_fit_counts_multiply_accumulates_and_takes_fewer_terms_than_samples(fitting: ModuleType) -> None:
    values = [features(conv(size=n)) for n in (4, 8, 12)]
    assert fitting.fit(values[:1], [100]) is None
    for count in (2, 3):
        terms, _ = fitting.fit(values[:count], [128.75 * v["inputs"] for v in values[:count]])
        assert 0 < len(terms) < count
        assert WORK & terms.keys()


def test_error_of_a_layer_left_out_is_that_of_fitting_without_it(fitting: ModuleType) -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(0.5, 1.5, (8, 2)) / 2
    _, errors = fitting.left_out(rows, np.ones(8))
    for n in range(8):
        rest = np.delete(rows, n, 0)
        x = np.linalg.lstsq(rest, np.ones(7), rcond=None)[0]
        assert errors[n] == pytest.approx(rows[n] @ x - 1)


def test_slow_chips_are_measured_with_few_large_layers(fitting: ModuleType) -> None:
    def most(cpu: str, kind: str) -> int:
        return max(x.macs for x in fitting.measured_on(load_cpu(cpu).features, fitting.SAMPLES) if x.kind == kind)

    assert most("cortex-m0plus", "conv") < most("cortex-m3", "conv") == most("cortex-m4", "conv")
    assert most("cortex-m0plus", "conv_f32") == most("cortex-m3", "conv_f32") < most("cortex-m4", "conv_f32")
    of_fpu = fitting.measured_on(load_cpu("cortex-m4").features, fitting.SAMPLES)
    assert not any(x.signed or x.sparse for x in of_fpu)  # functions of floats alone take longer for some numbers


def test_clones_and_parts_belong_to_their_function() -> None:
    counting = _script("fit_code")
    assert counting.plain(".text.glow_x.constprop.0.isra.0") == "glow_x"
    names = {"m_conv_s8__dsp", "m_conv_s8_2__dsp"}
    assert counting.owner_of("m_conv_s8_2__dsp_tile0", names) == "m_conv_s8_2__dsp"
    assert counting.owner_of("m_conv_s8__dsp", names) == "m_conv_s8__dsp"
    assert counting.owner_of("glow_x", names) is None
    names |= {"m_conv_s8__dsp_winograd"}
    assert counting.owner_of("m_conv_s8__dsp_winograd", names) == "m_conv_s8__dsp_winograd"


def test_layers_on_reference_kernels_are_listed_by_their_share_of_the_predicted_cycles() -> None:
    rows = (("small", "fc_s8__ref", 10), ("large", "conv_s8__ref", 300), ("fast", "conv_s8__dsp", 690))
    layers = [{"name": name, "kernel": kernel, "cycles_estimate": cycles} for name, kernel, cycles in rows]
    found = list(_script("ref_layers").ref_layers("m", layers, 0.01))
    assert [(x.layer["name"], x.share) for x in found] == [("large", 0.3)]


def test_kernels_are_added_to_a_file_that_keeps_its_own(fitting: ModuleType) -> None:
    modes = {"size": {"error": 0.2}}
    known = {"cpu": "c", "kernels": {"a": {}}}
    found = {"kernels": {"a": modes, "b": modes}}
    assert fitting.with_new(known, found) == {"cpu": "c", "kernels": {"a": {}, "b": modes}}
    assert fitting.with_new(known, found, ["a*"])["kernels"] == {"a": modes}


def test_ways_of_printing_that_are_kept_stay_as_the_file_has_them(fitting: ModuleType) -> None:
    def table(**samples: int) -> dict[str, object]:
        return {"kernels": {"a": {mode: {"error": 0.0, "samples": n} for mode, n in samples.items()}}}

    known, found = table(size=30, shared=40), table(shared=12, literal=6)
    whole = fitting.with_new(known, found, ["a"])["kernels"]["a"]
    kept = fitting.with_new(known, found, ["a"], ["size"])["kernels"]["a"]
    assert {mode: fit["samples"] for mode, fit in whole.items()} == {"shared": 12, "literal": 6}
    assert {mode: fit["samples"] for mode, fit in kept.items()} == {"size": 30, "shared": 12, "literal": 6}


def test_few_drawn_layers_weigh_against_many_chosen_ones(fitting: ModuleType) -> None:
    layers = [fitting.Taken({}, 0, 0, is_drawn=n < 4) for n in range(40)]
    squares = fitting.weights_of(layers) ** 2
    assert squares.mean() == pytest.approx(1)
    assert squares[:4].sum() / squares[4:].sum() == pytest.approx((4 / 36) ** 0.5)
    assert fitting.weights_of(layers[4:]) == pytest.approx(1)


def test_kernel_with_another_ending_costs_what_the_first_one_does_and_its_outputs(fitting: ModuleType) -> None:
    first = {"macs": 3.0, "rows": 7.0, "taps": 2.0, "inputs": 5.0}

    def cycles(values: Mapping[str, float]) -> float:
        return sum(c * values[name] for name, c in first.items()) + 4 * values["outputs"]

    samples, unseen = [features(conv(size=n)) for n in (4, 5, 7, 9)], features(conv(size=40))
    terms, _ = fitting.fit(samples, [cycles(values) for values in samples], like=first)
    assert Fit(terms, terms, 0, 4).predict(unseen).cycles == pytest.approx(cycles(unseen), rel=0.02)
    modes = {"size": {}, "literal": {"cycles": first}}
    assert fitting.fit_of([{}, modes], "shared") == {"cycles": first}
    assert fitting.fit_of([{}], "shared") is None


@pytest.mark.usefixtures("fitting")
def test_few_layers_replace_what_a_file_has_where_they_lower_its_error(fitting: ModuleType) -> None:
    target, counting = sys.modules["count_costs"].target_of("stm32l4r5"), sys.modules["count_costs"]
    measured, key = counting.Measured(), "conv_s8.ref..s8"
    for n in range(4, 14):
        values = features(conv(size=n))
        measured.add(
            key, "shared", fitting.Taken(values, 6 * values["macs"], (6 + 0.5 * (-1) ** (n // 2)) * values["macs"])
        )

    def kernels(cycles: float, *, quick: bool = True) -> dict[str, object]:
        known = {key: {"shared": {"insns": {"macs": 6.0}, "cycles": {"macs": cycles}, "samples": 9}}}
        found: dict[str, object] = fitting.table_of(target, measured, known, quick=quick)["kernels"]
        return found

    assert kernels(9.0).keys() == kernels(6.0, quick=False).keys() == {key}
    assert not kernels(6.0)


def test_only_layers_whose_kernel_is_wanted_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, models, sample = _script("count_costs"), [], sys.modules["cost_sample"].Sample
    layers = [sample("conv", (4, 4, 8), 8), sample("fc", (16,), 4), sample("conv", (6, 6, 4), 4)]
    monkeypatch.setattr(counting, "count", lambda compiled, *_: models.append(compiled))
    target = counting.target_of("mps2-an386/cortex-m4")
    found = counting.measure(target, layers, lambda key: key.startswith("conv_s8.ref."), True)
    assert len(found) == len(models) == 2  # by -O2, shared and printed for each shape
    for compiled in models:
        instrs = [i for i in compiled.program.instrs if i.macs]
        assert [(i.kernel, i.variant) for i in instrs] == [("conv_s8", "ref")] * 2


@pytest.mark.usefixtures("fitting")
def test_layers_of_tensorflow_lite_are_those_that_are_measured(tmp_path: Path) -> None:
    module, counts = sys.modules["cost_tflite"], sys.modules["count_costs"]
    samples = [
        next(s for s in module.TFLITE if s.kind == kind) for kind in dict.fromkeys(s.kind for s in module.TFLITE)
    ]
    compiled = compile_model(counts.written(samples, tmp_path), load_board("mps2-an386"), CompileOptions(plan="plain"))
    kernels = {i.kernel for i in compiled.program.instrs if not i.is_marker}
    assert kernels == {"svdf_s8q31", "lstm_s8q31", "rescale_q31", "quantize_away", "add_s16q31", "mul_s16q31"}

"""One float network through the quantiser: the file against onnxruntime, its C against that, its error in bounds."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx

from glowc.errors import GlowcError, InputError, InternalError
from glowc.frontend import import_model
from glowc.passes.pipeline import run_pipeline
from glowc.passes.quant.float_layers import float_layers
from glowc.quant.calibrate import Calibration
from glowc.quant.quantizer import Quantized, quantize_model
from glowc.quant.scheme import Schema
from tests.fuzz.check import (
    BUG,
    C_DIFFERS,
    DIFFERENT,
    EQUAL,
    EXPLAINED,
    FLAGS,
    MOST_RESIDUALS,
    NO_ANSWER,
    NOT_TAKEN,
    RESIDUALS,
    Finding,
    as_test,
    interpreted,
)  # fmt: skip
from tests.fuzz.floats import BROKEN, HARD, Arrays, FloatCase, float_model, samples_of
from tests.fuzz.oracle import onnxruntime_answers, steps_apart
from tests.onnx_backend.build import PASS, run_batch

INACCURATE = "inaccurate"
FLOATS = 1e-4  # relative difference of floats: sums in another order, functions of libm
EXACT = frozenset({"Identity", "Reshape", "Transpose", "Concat", "Slice", "Split", "MaxPool", "Relu", "Clip", "Pad"})
# What the quantiser may say of a sound network on sound data, in one sentence.
SENTENCES = ("nothing of this model can be quantized", "is infinite in", "is not a number in")
MOST_OF_SIXTEEN_BITS = 64.0  # steps, or 1e-5 of the largest float: onnxruntime computes in float between such codes
MOST_ERROR = 0.3  # root of the mean square error, of the largest value of an output
MORE_THAN_TOLD = 1.5  # times the sum of the errors that the quantiser tells: a step function has any, and it says so


def examine_quantised(case: FloatCase) -> Finding:
    """Quantise the network, and compare what is written with onnxruntime in numpy."""
    model = float_model(case.recipe)
    samples = samples_of(case, model)
    try:
        real = onnxruntime_answers(model, {name: np.stack([s[name] for s in samples]) for name in samples[0]})
    except Exception as error:  # it has several kinds of its own
        return Finding(NO_ANSWER, str(error).splitlines()[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            done = quantize_model(model, samples, case.options)
    except InternalError as error:
        return Finding(BUG, str(error))
    except GlowcError as error:
        known = isinstance(error, InputError) and any(text in str(error) for text in SENTENCES)
        return Finding(EXPLAINED if known or case.data in BROKEN else NOT_TAKEN, str(error).splitlines()[0])
    except Exception:
        return Finding(BUG, traceback.format_exc())
    if case.data in BROKEN:
        return Finding(EXPLAINED, "no broken value was drawn") if _sound(samples) else Finding(DIFFERENT, "was taken")
    return _compared(case, done, samples, real)


def _sound(samples: list[Arrays]) -> bool:
    return all(np.isfinite(array).all() for sample in samples for array in sample.values())


def _compared(case: FloatCase, done: Quantized, samples: list[Arrays], real: Arrays) -> Finding:
    made = done.model
    stacked = as_model_takes(made, {name: np.stack([s[name] for s in samples]) for name in samples[0]})
    try:
        want = onnxruntime_answers(made, stacked, unsigned=False)
    except Exception as error:  # it has several kinds of its own
        return Finding(NO_ANSWER, str(error).splitlines()[0])
    try:
        got = interpreted(made, stacked)
    except Exception:
        return Finding(BUG, traceback.format_exc())
    apart = {name: d for name, d in differences(got, want).items() if d.any()}
    if apart and not (_known_residual(case, made, stacked, apart) or _drops_clip(made, stacked, got)):
        worst = max(float(d.max()) for d in apart.values())
        ops = ", ".join(layer.op for layer in case.recipe.layers)
        return Finding(DIFFERENT, f"{len(apart)} outputs differ by up to {worst:.6g} steps: {ops}", made, stacked, got)
    missed, told = output_error(made, got, real), (done.error or 0.0) * len(got)  # a mean over outputs
    if missed > max(MOST_ERROR, MORE_THAN_TOLD * told) and case.data not in HARD and _is_usual(case):
        if _has_coarse_sums(made):
            return Finding(EXPLAINED, "a layer whose sums are in steps of more than its results", made, stacked, got)
        return Finding(INACCURATE, f"error {missed:.3f} of the largest value", made, stacked, got)
    return Finding(EXPLAINED if apart else EQUAL, "a residual" if apart else "", made, stacked, got)


def as_model_takes(made: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return real inputs as the quantised model's inputs: codes where it takes codes."""
    kinds = {v.name: onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in made.graph.input}
    scales = _scales(made)
    return {n: _codes(arrays[n], *scales[n]) if kinds[n].kind in "iu" else arrays[n] for n in kinds}


def _codes(values: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    limits = np.iinfo(zero.dtype.str)
    return np.asarray(np.clip(np.rint(values / scale) + zero, limits.min, limits.max).astype(zero.dtype))


def _scales(made: onnx.ModelProto) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return scale and zero point of every value that a (De)QuantizeLinear reads or writes as codes."""
    held = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    found = {}
    for node in made.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and held[node.input[1]].ndim == 0:
            name = node.output[0] if node.op_type == "QuantizeLinear" else node.input[0]
            found[name] = held[node.input[1]], held[node.input[2]]
    return found


def differences(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return how far outputs are apart: codes in steps, floats in 1e-5 of the largest."""
    codes = {n: a for n, a in got.items() if a.dtype.kind in "iu"}
    steps = steps_apart(codes, {n: want[n] for n in codes})
    for name, array in got.items():
        if array.dtype.kind == "f":
            size = max(float(np.abs(want[name]).max(initial=0)), 1e-30)
            apart = np.abs(array.astype(np.float64) - want[name]) / size / 1e-5
            steps[name] = np.where(apart > 1, apart, 0)
    return steps


def _known_residual(case: FloatCase, made: onnx.ModelProto, stacked: Arrays, apart: Arrays) -> bool:
    """Say whether the first codes that differ are in the table of residuals: one step, which later layers multiply."""
    if case.data == "huge" and any("Normalization" in layer.op for layer in case.recipe.layers):
        return True  # the squares of onnxruntime's variance leave float32
    wide = case.options.activations.bits == 16 or any("s16" in v.dtype for v in case.recipe.values)
    if wide and all(d.max() <= MOST_OF_SIXTEEN_BITS for d in apart.values()):
        return True
    writers = {name: node for node in made.graph.node for name in node.output}
    coded = [node for node in made.graph.node if node.op_type == "QuantizeLinear"]
    shown = _showing(made, [node.output[0] for node in coded], onnx.TensorProto.INT8)
    steps = differences(interpreted(shown, stacked), onnxruntime_answers(shown, stacked, unsigned=False))
    for node in coded:
        difference = steps.get(node.output[0])
        if difference is not None and difference.any():
            op = writers[node.input[0]].op_type
            few = (difference > 0).mean() <= max(MOST_RESIDUALS, 1 / difference.size)
            return op in RESIDUALS and difference.max() <= 1 and bool(few)
    return False


def _showing(made: onnx.ModelProto, names: Iterable[str], kind: int) -> onnx.ModelProto:
    """Return the model with more outputs."""
    shown = onnx.ModelProto()
    shown.CopyFrom(made)
    more = dict.fromkeys(names).keys() - {o.name for o in made.graph.output}
    shown.graph.output.extend(onnx.helper.make_tensor_value_info(name, kind, None) for name in more)
    return shown


def _drops_clip(made: onnx.ModelProto, stacked: Arrays, got: Arrays) -> bool:
    """Say whether onnxruntime agrees where the results of Clips are outputs.

    It drops a Clip in front of a QuantizeLinear that saturates there, and quantises values that have no 32-bit code.
    """
    clipped = [node.output[0] for node in made.graph.node if node.op_type == "Clip"]
    want = onnxruntime_answers(_showing(made, clipped, onnx.TensorProto.FLOAT), stacked, unsigned=False)
    return bool(clipped) and not any(d.any() for d in differences(got, {n: want[n] for n in got}).values())


def _has_coarse_sums(made: onnx.ModelProto) -> bool:
    """Say whether a layer's sums are in steps of more than its results: of its input's codes times its weights'."""
    held = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    readers = {name: node for node in made.graph.node for name in node.input}
    for node in made.graph.node:
        if node.op_type == "DequantizeLinear" and held.get(node.input[0], np.zeros(0)).dtype == np.int32:
            layer = readers[node.output[0]]
            after = readers.get(layer.output[0])
            while after is not None and after.op_type in ("Relu", "Clip", "Reshape"):
                after = readers.get(after.output[0])
            stored = after is not None and after.op_type == "QuantizeLinear"
            if after is not None and stored and held[node.input[1]].min() > held[after.input[1]].max():
                return True
    return False


def output_error(made: onnx.ModelProto, codes: Mapping[str, np.ndarray], real: Mapping[str, np.ndarray]) -> float:
    """Return the largest root of the mean square error of an output, of its largest value."""
    scales, worst = _scales(made), 0.0
    for (name, array), wanted in zip(codes.items(), real.values(), strict=True):
        values = array.astype(np.float64)
        if name in scales:
            scale, zero = scales[name]
            values = (values - float(zero)) * float(scale)
        size = max(float(np.abs(wanted).max(initial=0)), 1e-30)
        worst = max(worst, float(np.sqrt(np.mean(np.square((values - wanted) / size)))))
    return worst


def _is_usual(case: FloatCase) -> bool:
    options = case.options
    return options.calibration in (Calibration.AUTO, Calibration.MINMAX) and options.schema is Schema.ASYMMETRIC


def check_quantised_c(findings: Mapping[int, Finding], work: Path) -> dict[int, Finding]:
    """Compile the C of all networks, run it on the host, and return the findings where it differs from numpy."""
    made = {n: f for n, f in findings.items() if f.codes is not None}
    tests = [as_test(f"net{n}", f, rtol=FLOATS) for n, f in made.items()]
    wrong = {n: r for n, r in zip(made, run_batch(tests, work, FLAGS), strict=True) if r.outcome != PASS}
    near = [as_test(f"near{n}", made[n], atol=1.0, rtol=FLOATS) for n in wrong]
    close = {n for n, r in zip(wrong, run_batch(near, work / "near", FLAGS), strict=True) if r.outcome == PASS}
    return {
        n: Finding(EXPLAINED, "C: one step") if n in close and _computes_in_float(made[n])
        else Finding(C_DIFFERS, f"{r.outcome}: {r.reason}")
        for n, r in wrong.items()
    }  # fmt: skip


def _computes_in_float(finding: Finding) -> bool:
    """Say whether the compiled network has layers in float: functions of libm, sums in another order."""
    assert finding.model is not None
    graph = run_pipeline(import_model(finding.model))
    return any(layer.op not in EXACT for layer in float_layers(graph)) or any(
        t.dtype.bits == 16 and t.quantized for t in graph.types.values()
    )

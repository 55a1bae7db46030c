"""One network against onnxruntime: equal, or where and why not; then its C against the same codes."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from glowc.errors import GlowcError, InternalError
from glowc.frontend import import_model
from glowc.ops.interp import run_graph
from glowc.passes.pipeline import run_pipeline
from tests.fuzz.build import RANGE, model_of, needed_layers, samples_of
from tests.fuzz.oracle import multiplies_exactly, onnxruntime_answers, steps_apart
from tests.fuzz.recipe import Layer, Recipe, Value
from tests.onnx_backend.build import PASS, REFUSED, WRONG, run_batch
from tests.onnx_backend.cases import NodeTest

EQUAL, EXPLAINED, DIFFERENT, BUG, C_DIFFERS = "equal", "explained", "different", "bug", "C differs"
NO_ANSWER, NOT_TAKEN = "onnxruntime refuses", "glowc refuses"
UNEXPECTED = frozenset({DIFFERENT, BUG, C_DIFFERS, NOT_TAKEN})
# Rows of the table of residuals in docs/ARITHMETIC.md: operators that onnxruntime computes in float between the
# codes, in an order or with functions of its own. At most one step, in at most this share of a layer's elements.
RESIDUALS = frozenset({
    "ReduceMean", "ReduceSum", "Tanh", "Erf", "Gelu", "Selu", "ConvTranspose", "LayerNormalization", "Softmax",
})  # fmt: skip
FLAGS = ("-O0",)
FINE = 1e-5  # a step in which the error of onnxruntime's Sigmoid shows, 1.7e-7
HALFWAY = 0.02  # of a step: what float32 is off by in 16 bits
MOST_RESIDUALS, MOST_RESIDUALS_OF_SIXTEEN_BITS = 0.25, 0.05

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Finding:
    """What became of a network; `codes` are what its C must give, None where it has no C to test."""

    kind: str
    text: str = ""
    model: onnx.ModelProto | None = None
    samples: Arrays | None = None
    codes: Arrays | None = None


def examine(recipe: Recipe) -> Finding:
    """Compare the network in numpy, as glowc compiles it, with onnxruntime."""
    model = model_of(recipe)
    samples = samples_of(recipe, model)
    try:
        want = onnxruntime_answers(model, samples)
    except Exception as error:  # it has several kinds of its own
        return Finding(NO_ANSWER, str(error).splitlines()[0])
    try:
        got = interpreted(model, samples)
    except InternalError as error:
        return Finding(BUG, str(error))
    except GlowcError as error:
        return Finding(NOT_TAKEN, str(error))
    except Exception:
        return Finding(BUG, traceback.format_exc())
    if not steps_apart(got, want):
        return Finding(EQUAL, "", model, samples, got)
    kind, text = _explain(recipe)
    return Finding(kind, text, model, samples, got)


def interpreted(model: onnx.ModelProto, samples: Arrays) -> dict[str, np.ndarray]:
    """Return the outputs of the graph after the passes, computed in numpy."""
    graph = run_pipeline(import_model(model))
    count = len(next(iter(samples.values())))
    with np.errstate(all="ignore"):
        rows = [run_graph(graph, {name: array[n] for name, array in samples.items()}) for n in range(count)]
    return {name: np.stack([row[name] for row in rows]) for name in graph.outputs}


def _explain(recipe: Recipe) -> tuple[str, str]:
    """Find the first layer whose codes differ, each with only what it needs; say whether that is a known residual."""
    for layer, outputs in _numbered(recipe):
        for number in outputs:
            found = _difference(recipe, layer, number)
            if found is not None:
                return found
    return DIFFERENT, "only with all layers together"


def _difference(recipe: Recipe, layer: Layer, number: int) -> tuple[str, str] | None:
    model = model_of(recipe, [number])
    samples = samples_of(recipe, model)
    try:
        apart = steps_apart(interpreted(model, samples), onnxruntime_answers(model, samples))
    except Exception as error:
        return DIFFERENT, f"{layer.op} alone: {error}"
    if not apart:
        return None
    (steps,) = apart.values()
    share = float((steps > 0).mean())
    text = f"{layer.op} ({layer.form}): {share:.2%} of the codes differ, by at most {steps.max()}"
    if _saturates(recipe, layer):
        return EXPLAINED, f"{text}: onnxruntime's sums saturate on this processor"
    if layer.op == "Transpose" and _equal_where_all_are_outputs(recipe, number, samples):
        return EXPLAINED, f"{text}: onnxruntime moved a Transpose and merged the pairs around it"
    wide = _is_wide(recipe, layer, number)
    approximated = layer.op in RESIDUALS or (layer.op == "Sigmoid" and recipe.values[number].scale < FINE)
    most = MOST_RESIDUALS if approximated else MOST_RESIDUALS_OF_SIXTEEN_BITS if wide else 0.0
    in_float = wide or layer.op in RESIDUALS or _cuts_off(layer, recipe.values[number])
    if in_float and steps.max() <= 1 and _at_ties(recipe, number, samples, steps > 0):
        return EXPLAINED, f"{text}: values halfway between codes"
    if wide and steps.max() <= 1 + _lost_by_cancelling(recipe, layer, number, samples):
        return EXPLAINED, f"{text}: lines of which float32 loses the differences"
    known = steps.max() <= 1 and np.count_nonzero(steps) <= max(most * steps.size, most > 0)
    return (EXPLAINED if known else DIFFERENT), text


def _at_ties(recipe: Recipe, number: int, samples: Arrays, differ: np.ndarray) -> bool:
    """Say whether all values that differ lie halfway between two codes, but for what float32 is off by."""
    model = model_of(recipe, (number,))
    before = [node.input[0] for node in model.graph.node if list(node.output) == [f"v{number}"]
              and node.op_type == "QuantizeLinear"]  # fmt: skip
    model.graph.output.extend(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in before)
    real = onnxruntime_answers(model, samples)
    scale = np.float64(recipe.values[number].scale)
    return all(bool((np.abs(real[n] / scale % 1 - 0.5)[differ] < HALFWAY).all()) for n in before) and bool(before)


def _cuts_off(layer: Layer, out: Value) -> bool:
    """Say whether a Relu or Clip keeps codes from being used: onnxruntime leaves it, and computes in float up to it."""
    low, high = RANGE[out.dtype]
    bounds = None if layer.act is None else [np.rint(b / out.scale) + out.zero_point for b in (layer.act or (0.0,))]
    return bounds is not None and (bounds[0] > low or (len(bounds) > 1 and bounds[1] < high))


def _lost_by_cancelling(recipe: Recipe, layer: Layer, number: int, samples: Arrays) -> float:
    """Return the steps that x - mean(x) in float32 may be off by behind a LayerNormalization of 16 bits."""
    if layer.op != "LayerNormalization":
        return 0.0
    i = layer.inputs[0]
    codes, x = interpreted(model_of(recipe, (i,)), samples)[f"v{i}"], recipe.values[i]
    lines = (codes.astype(np.float64) - x.zero_point) * x.scale
    lost = np.abs(lines).max(-1) * 2.0**-23 / np.sqrt(lines.var(-1) + layer.attrs["epsilon"])
    return float(lost.max() * np.abs(layer.attrs["_f0"]).max() / recipe.values[number].scale)


def _saturates(recipe: Recipe, layer: Layer) -> bool:
    kinds = [recipe.values[i].dtype for i in layer.inputs] + [const.value.dtype for const in layer.consts]
    return layer.op == "MatMul" and kinds[:2] == ["u8", "s8"] and not multiplies_exactly()


def _equal_where_all_are_outputs(recipe: Recipe, number: int, samples: Arrays) -> bool:
    """Say whether onnxruntime gives the same codes where it may not leave out any tensor's."""
    needed = needed_layers(recipe, [number])
    shown = model_of(recipe, [i for n, (_, outputs) in enumerate(_numbered(recipe)) if n in needed for i in outputs])
    want, got = onnxruntime_answers(shown, samples), interpreted(shown, samples)
    return np.array_equal(want[f"v{number}"], got[f"v{number}"])


def check_c(recipes: Mapping[int, Recipe], findings: Mapping[int, Finding], work: Path) -> dict[int, Finding]:
    """Compile the C of all networks as one program, run it, and return the findings where it differs, by number."""
    tests = {n: as_test(f"net{n}", f) for n, f in findings.items() if f.codes is not None}
    found = {}
    for n, result in zip(tests, run_batch(list(tests.values()), work, FLAGS), strict=True):
        if result.outcome == WRONG:
            found[n] = _explain_c(recipes[n], work / f"layers{n}") or Finding(C_DIFFERS, result.reason)
        elif result.outcome != PASS:
            kind = NOT_TAKEN if result.outcome == REFUSED else C_DIFFERS
            found[n] = Finding(kind, f"{result.outcome}: {result.reason}")
    return found


def _explain_c(recipe: Recipe, work: Path) -> Finding | None:
    """Say so when the first layer whose C differs computes 16-bit codes in float: libm or another order of a sum."""
    layers = [(number, layer) for layer, numbers in _numbered(recipe) for number in numbers]
    made = [_alone(recipe, number) for number, _ in layers]
    results = run_batch([as_test(f"layer{n}", f) for n, f in enumerate(made)], work, FLAGS)
    first = next((n for n, result in enumerate(results) if result.outcome != PASS), None)
    if first is None or not _is_wide(recipe, layers[first][1], layers[first][0]):
        return None
    close = run_batch([as_test("close", made[first], atol=1.0)], work / "close", FLAGS)
    return Finding(EXPLAINED, f"{layers[first][1].op} in C: one step") if close[0].outcome == PASS else None


def _alone(recipe: Recipe, number: int) -> Finding:
    model = model_of(recipe, [number])
    samples = samples_of(recipe, model)
    return Finding(EQUAL, "", model, samples, interpreted(model, samples))


def _is_wide(recipe: Recipe, layer: Layer, number: int) -> bool:
    return any(recipe.values[i].dtype == "s16" for i in (*layer.inputs, number))


def _numbered(recipe: Recipe) -> Iterator[tuple[Layer, list[int]]]:
    """Yield every layer with the numbers of its outputs, but for those that are unused."""
    number = len(recipe.inputs)
    for layer in recipe.layers:
        yield layer, [number + k for k in range(len(layer.outputs)) if k not in layer.unused]
        number += len(layer.outputs)


def as_test(name: str, finding: Finding, atol: float = 0.0, rtol: float = 0.0) -> NodeTest:
    """Return a network and the codes that its C must give."""
    model, samples, codes = finding.model, finding.samples, finding.codes
    assert model is not None and samples is not None and codes is not None  # noqa: PT018
    ins, outs = ([v.name for v in part] for part in (model.graph.input, model.graph.output))
    count = len(next(iter(codes.values())))
    data: Any = tuple((_row(samples, ins, n), _row(codes, outs, n)) for n in range(count))
    return NodeTest(name, "network", "fuzz", model, data, rtol, atol)


def _row(arrays: Arrays, names: Sequence[str], n: int) -> list[np.ndarray]:
    return [arrays[name][n] for name in names]

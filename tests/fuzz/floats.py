"""A quantised network without its codes: the float network that a user quantises, and data of every kind for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper, shape_inference

from glowc.graph.numerics import dequantize
from glowc.graph.types import QuantParams
from glowc.quant.calibrate import Calibration
from glowc.quant.quantizer import QuantizeOptions
from glowc.quant.scheme import Activations, Schema
from tests.fuzz.build import model_of
from tests.fuzz.dice import Dice
from tests.fuzz.recipe import Layer, Recipe
from tests.fuzz.strategy import draw_recipe

MOST_SAMPLES = 4
Arrays = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
DATA: Mapping[str, Draw] = {
    "normal": lambda r, s: r.normal(size=s),
    "uniform": lambda r, s: r.uniform(0, 1, s),
    "bytes": lambda r, s: r.integers(0, 256, s),
    "zeros": lambda r, s: np.zeros(s),
    "constant": lambda r, s: np.full(s, r.normal() * 3),
    "few steps": lambda r, s: np.float32(r.normal()) * (1 + r.integers(0, 4, s) * 2.0**-23),
    "two values": lambda r, s: r.choice([-0.75, 0.3], s),
    "one outlier": lambda r, s: np.where(np.arange(np.prod(s)).reshape(s) == 0, 1000.0, r.normal(size=s)),
    "huge": lambda r, s: r.normal(size=s) * 1e30,
    "tiny": lambda r, s: r.normal(size=s) * 1e-30,
    "subnormal": lambda r, s: r.integers(-5, 6, s) * 1e-44,
    "far from 0": lambda r, s: 1e6 + r.integers(0, 3, s),
    "negative": lambda r, s: -np.abs(r.normal(size=s)) - 0.5,
    "infinite": lambda r, s: np.where(r.random(s) < 0.1, np.inf, r.normal(size=s)),
    "no number": lambda r, s: np.where(r.random(s) < 0.1, np.nan, r.normal(size=s)),
}
BROKEN = frozenset({"infinite", "no number"})
HARD = frozenset({"huge", "tiny", "subnormal", "far from 0", "one outlier"})


@dataclass(frozen=True)
class FloatCase:
    """A network, its kind of data with a seed, and how it is quantised."""

    recipe: Recipe
    data: str
    seed: int
    samples: int
    options: QuantizeOptions


def draw_case(dice: Dice) -> FloatCase:
    """Return a random network with data and options."""
    recipe = draw_recipe(dice)
    while not all(map(_has_float_form, recipe.layers)):
        recipe = draw_recipe(dice)
    layers = tuple(replace(layer, form="qdq") for layer in recipe.layers)
    usual = not dice.chance(2)
    options = QuantizeOptions() if usual else QuantizeOptions(
        schema=dice.pick(list(Schema)), calibration=dice.pick(list(Calibration)), float_edge=dice.chance(3),
        equalise=not dice.chance(4), rounding=not dice.chance(4), bias_correction=not dice.chance(4),
        activations=Activations.INT16 if dice.chance(6) else Activations.INT8,
    )  # fmt: skip
    kind = dice.pick(list(DATA)) if dice.chance(2) else "normal"
    recipe = replace(recipe, layers=layers, float_inputs=True, exposed=())
    return FloatCase(recipe, kind, dice.seed(), dice.whole(1, MOST_SAMPLES), options)


def _has_float_form(layer: Layer) -> bool:
    """Say whether a layer's attributes are those of ONNX's operator, not only of onnxruntime's on codes."""
    return all(key.startswith("_") or key in onnx.defs.get_schema(layer.op).attributes for key in layer.attrs)


def float_model(recipe: Recipe) -> onnx.ModelProto:
    """Return the network in float32: activations lose their codes, constants become what their codes stand for."""
    model = model_of(recipe)
    held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    renamed: dict[str, str] = {}
    nodes = []
    for node in model.graph.node:
        inputs = [renamed.get(name, name) for name in node.input]
        if node.op_type == "DequantizeLinear" and node.input[0] in held:
            held[node.output[0]] = _real(node, held)
        elif node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            renamed[node.output[0]] = inputs[0]
        else:
            kept = onnx.NodeProto()
            kept.CopyFrom(node)
            kept.input[:] = inputs
            nodes.append(kept)
    read = {name for node in nodes for name in node.input}
    outputs = list(dict.fromkeys(renamed.get(o.name, o.name) for o in model.graph.output))
    graph = onnx.helper.make_graph(
        [*nodes, *(onnx.helper.make_node("Identity", [o], [f"{o}_out"]) for o in outputs)], "net", model.graph.input,
        [onnx.helper.make_tensor_value_info(f"{o}_out", TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(a, name) for name, a in held.items() if name in read],
    )  # fmt: skip
    return shape_inference.infer_shapes(
        onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    )


def _real(node: onnx.NodeProto, held: Mapping[str, np.ndarray]) -> np.ndarray:
    codes, scale, zero = (held[name] for name in node.input[:3])
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    per_axis = scale.ndim > 0
    quant = QuantParams(tuple(map(float, scale.reshape(-1))), tuple(map(int, zero.reshape(-1))),
                        (1 if axis is None else axis) if per_axis else None)  # fmt: skip
    return dequantize(codes, quant)


def samples_of(case: FloatCase, model: onnx.ModelProto) -> list[Arrays]:
    """Return the samples of a case."""
    rng = np.random.default_rng(case.seed)
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in model.graph.input}
    with np.errstate(all="ignore"):
        return [
            {name: np.asarray(DATA[case.data](rng, shape), np.float32) for name, shape in shapes.items()}
            for _ in range(case.samples)
        ]

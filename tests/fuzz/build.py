"""A recipe -> an ONNX model and its input samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.recipe import KINDS, Const, Exposed, Layer, Recipe, Value

MICROSOFT = "com.microsoft"
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
SAMPLES = 4
_ELEMENT = {"s8": TensorProto.INT8, "u8": TensorProto.UINT8, "s16": TensorProto.INT16, "f32": TensorProto.FLOAT}
_IN_MICROSOFT = frozenset({
    "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool",
    "QLinearConcat", "QLinearSoftmax", "QGemm",
})  # fmt: skip
RANGE = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767), "s32": (-(2**31), 2**31 - 1)}


def model_of(recipe: Recipe, outputs: Sequence[int] | None = None) -> onnx.ModelProto:
    """Return the model; `outputs` are the numbers of its output tensors, with only the layers that they need."""
    wanted = tuple(recipe.outputs if outputs is None else outputs)
    exposed = (
        () if outputs is not None else tuple(e for e in recipe.exposed if e.form != "name" or e.number not in wanted)
    )
    shown = (*wanted, *(e.number for e in exposed))
    needed = needed_layers(recipe, shown)
    read = {*shown, *(i for n in needed for i in recipe.layers[n].inputs)}
    used = [i for i in range(len(recipe.inputs)) if i in read]
    builder = _Builder(recipe, needed, used)
    values = recipe.values
    inputs = []
    for i in used:
        value = recipe.inputs[i]
        name = f"x{i}" if recipe.float_inputs else builder.code(i)
        kind = "f32" if recipe.float_inputs else value.dtype
        inputs.append(helper.make_tensor_value_info(name, _ELEMENT[kind], value.shape))
    results = [
        helper.make_tensor_value_info(builder.code(i), _ELEMENT[values[i].dtype], values[i].shape) for i in wanted
    ]
    more = [(e.first, builder.expose(k, e)) for k, e in enumerate(exposed)]
    results = [*(v for first, v in more if first), *results, *(v for first, v in more if not first)]
    graph = helper.make_graph(builder.nodes, "net", inputs, results, builder.tensors)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10)


def needed_layers(recipe: Recipe, outputs: Sequence[int]) -> list[int]:
    """Return the numbers of the layers that the given tensors depend on, in order."""
    owner: dict[int, int] = {}
    number = len(recipe.inputs)
    for n, layer in enumerate(recipe.layers):
        owner.update((number + k, n) for k in range(len(layer.outputs)))
        number += len(layer.outputs)
    needed: set[int] = set()
    ahead = [i for i in outputs if i in owner]
    while ahead:
        n = owner[ahead.pop()]
        if n not in needed:
            needed.add(n)
            ahead += [i for i in recipe.layers[n].inputs if i in owner]
    return sorted(needed)


def samples_of(recipe: Recipe, model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return SAMPLES inputs by name: random codes, both ends of the range, and values around a tie."""
    rng = np.random.default_rng(recipe.seed)
    given = {v.name for v in model.graph.input}
    result = {}
    for i, value in enumerate(recipe.inputs):
        low, high = RANGE[value.dtype]
        shape = (SAMPLES, *value.shape)
        codes = rng.integers(low, high, shape, endpoint=True)
        codes[1] = rng.choice([low, high], value.shape)
        name = f"x{i}" if recipe.float_inputs else f"v{i}"
        if recipe.float_inputs:
            real = np.float32(value.scale) * (codes - value.zero_point + rng.choice([0, 0.5, 0.25], shape))
            result[name] = real.astype(np.float32)
        else:
            result[name] = codes.astype(KINDS[value.dtype])
    return {name: array for name, array in result.items() if name in given}


def numbers(const: Const) -> np.ndarray:
    """Return the integers of a constant."""
    rng, value = np.random.default_rng(const.seed), const.value
    low, high = RANGE[value.dtype]
    if value.dtype == "s32":
        bits = {"random": 12, "large": 24, "extreme": 16, "sparse": 8, "small": 4}[const.fill]
        return rng.integers(-(2**bits), 2**bits, value.shape).astype(np.int32)
    if const.fill == "extreme":
        codes = rng.choice([low, high], value.shape)
    elif const.fill == "sparse":
        codes = np.where(rng.random(value.shape) < 0.8, value.zero_point, rng.integers(low, high + 1, value.shape))
    elif const.fill == "small":
        codes = np.clip(value.zero_point + rng.integers(-3, 4, value.shape), low, high)
    elif const.fill == "large":
        codes = np.where(rng.random(value.shape) < 0.3, low, rng.integers(low, high + 1, value.shape))
    else:
        codes = rng.integers(low, high, value.shape, endpoint=True)
    return np.asarray(codes).astype(KINDS[value.dtype])


class _Builder:
    def __init__(self, recipe: Recipe, needed: list[int], used: list[int]) -> None:
        self.recipe = recipe
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._made: set[str] = set()
        self._real: dict[int, str] = {}
        if recipe.float_inputs:
            for i in used:
                self.node("QuantizeLinear", [f"x{i}", *self.quant(recipe.inputs[i])], [self.code(i)])
        number = len(recipe.inputs)
        for n, layer in enumerate(recipe.layers):
            if n in needed:
                self.layer(n, layer, number)
            number += len(layer.outputs)

    def code(self, i: int) -> str:
        """Name of the codes of a tensor."""
        return f"v{i}"

    def expose(self, k: int, exposed: Exposed) -> onnx.ValueInfoProto:
        """Make a tensor an output of the network once more."""
        value, name, shape = self.recipe.values[exposed.number], f"e{k}", list(self.recipe.values[exposed.number].shape)
        if exposed.form == "name":
            name = self.code(exposed.number)
        elif exposed.form == "constant":
            self.tensor(name, numbers(Const(value, self.recipe.seed)))
        elif exposed.form == "identity":
            self.node("Identity", [self.code(exposed.number)], [name])
        else:
            shape = [*shape, 1]
            self.node("Reshape", [self.code(exposed.number), self.tensor(f"{name}_s", np.asarray(shape))], [name])
        return helper.make_tensor_value_info(name, _ELEMENT[value.dtype], shape)

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attrs: object) -> None:
        domain = MICROSOFT if op in _IN_MICROSOFT else ""
        name = f"{op}_{outputs[0]}"
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attrs))

    def tensor(self, name: str, array: np.ndarray) -> str:
        if name not in self._made:
            self._made.add(name)
            self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def scale(self, scale: float) -> str:
        return self.tensor(f"s{np.float32(scale).view(np.uint32):08x}", np.asarray(scale, np.float32))

    def quant(self, value: Value) -> tuple[str, str]:
        zero = self.tensor(f"z{value.dtype}_{value.zero_point}", np.asarray(value.zero_point, KINDS[value.dtype]))
        return self.scale(value.scale), zero

    def real(self, i: int) -> str:
        """Name of the real numbers of a tensor, after a DequantizeLinear."""
        if i in self._real and self.recipe.shared_dequantize:
            return self._real[i]
        name = f"r{i}" if i not in self._real else f"r{i}_{len(self.nodes)}"
        self.node("DequantizeLinear", [self.code(i), *self.quant(self.recipe.values[i])], [name])
        self._real[i] = name
        return name

    def const_codes(self, name: str, const: Const) -> tuple[str, str, str]:
        """Return the names of the codes, scales and zero points of a constant."""
        codes = self.tensor(f"{name}_q", numbers(const))
        if const.axis is None:
            return codes, *self.quant(const.value)
        scales = self.tensor(f"{name}_s", np.asarray(const.scales, np.float32))
        zeros = np.full(len(const.scales), const.value.zero_point, KINDS[const.value.dtype])
        return codes, scales, self.tensor(f"{name}_z", zeros)

    def const(self, name: str, const: Const) -> str:
        """Return the name of a constant's real numbers."""
        attrs = {} if const.axis is None else {"axis": const.axis}
        self.node("DequantizeLinear", self.const_codes(name, const), [f"{name}_r"], **attrs)
        return f"{name}_r"

    def layer(self, n: int, layer: Layer, number: int) -> None:
        outs = [self.code(number + k) for k in range(len(layer.outputs))]
        if layer.form == "qop":
            self._integer(n, layer, outs)
            return
        attrs = {k: v for k, v in layer.attrs.items() if not k.startswith("_")}
        reads = [self.real(i) for i in layer.inputs]
        reads += [self.const(f"c{n}_{k}", const) for k, const in enumerate(layer.consts)]
        if layer.attrs.get("_const_first"):
            reads.reverse()
        reads += list(self._plain(n, layer))
        if layer.op == "Clip" and layer.act is not None:  # the operator itself, not an activation after it
            reads += self._bounds(n, layer.act)
        made = [f"{out}_f" for out in outs]
        self.node(layer.op, reads, made, **attrs)
        for k, (out, value) in enumerate(zip(outs, layer.outputs, strict=True)):
            if k in layer.unused:
                continue
            name = made[k]
            if layer.act is not None and layer.op != "Clip":
                name = self._activate(n, layer.act, name)
            self.node("QuantizeLinear", [name, *self.quant(value)], [out])

    def _bounds(self, n: int, act: Sequence[float]) -> list[str]:
        return [self.tensor(f"a{n}_{k}", np.asarray(bound, np.float32)) for k, bound in enumerate(act)]

    def _activate(self, n: int, act: Sequence[float], name: str) -> str:
        if not act:
            self.node("Relu", [name], [f"{name}_act"])
        else:
            self.node("Clip", [name, *self._bounds(n, act)], [f"{name}_act"])
        return f"{name}_act"

    def _plain(self, n: int, layer: Layer) -> Iterator[str]:
        """Yield the names of inputs that hold plain integers or floats: shapes, axes, indices."""
        for key, value in layer.attrs.items():
            if key.startswith("_i"):
                yield self.tensor(f"p{n}{key}", np.asarray(value, np.int64))
            elif key.startswith("_f"):
                yield self.tensor(f"p{n}{key}", np.asarray(value, np.float32))
            elif key.startswith("_none"):
                yield ""

    def _integer(self, n: int, layer: Layer, outs: Sequence[str]) -> None:
        """The QLinear forms."""
        values = self.recipe.values
        reads = [(self.code(i), *self.quant(values[i])) for i in layer.inputs]
        out_quant = self.quant(layer.outputs[0])
        consts = [self.const_codes(f"c{n}_{k}", const) for k, const in enumerate(layer.consts)]
        attrs = {k: v for k, v in layer.attrs.items() if not k.startswith("_")}
        op = layer.op
        if op == "Concat":
            flat = [name for read in reads for name in read]
            self.node("QLinearConcat", [*out_quant, *flat], outs, **attrs)
        elif op == "Conv":
            bias = [consts[1][0]] if len(consts) > 1 else []
            self.node("QLinearConv", [*reads[0], *consts[0], *out_quant, *bias], outs, **attrs)
        elif op == "Gemm":
            bias = consts[1][0] if len(consts) > 1 else ""
            self.node("QGemm", [*reads[0], *consts[0], bias, *out_quant], outs, **attrs)
        else:
            pair = [*reads, *consts[:1]]
            if layer.attrs.get("_const_first"):
                pair.reverse()
            self.node(f"QLinear{op}", [*(name for part in pair for name in part), *out_quant], outs, **attrs)

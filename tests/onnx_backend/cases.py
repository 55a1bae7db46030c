"""The node tests that the onnx package carries: models, arrays, the group of types each belongs to.

Many of them pass as graph inputs what exporters store as constants: axes, shapes, paddings, scales. glowc makes code
for static shapes, so such a model is tried as it is first (level 0), then with its *parameter* inputs made
initialisers (level 1, table PARAMETERS), then with weights made initialisers too (level 2, table WEIGHTS).
Data inputs are never fixed. The levels are counted apart.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

LEVELS = ("as it is", "parameters as constants", "weights as constants")

# Inputs that say what to compute rather than what to compute it on; -1: all.
PARAMETERS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "Reshape", "Expand", "Tile", "Split", "Squeeze",
         "Unsqueeze", "TopK", "Upsample", "CenterCropPad", "CumSum", "CumProd", "AffineGrid", "Trilu",
         "OneHot", "QuantizeLinear", "DequantizeLinear", "Col2Im"), (1,)),
    "Slice": (1, 2, 3, 4), "Pad": (1, 2, 3), "Resize": (1, 2, 3), "ConstantOfShape": (0,), "Range": (-1,),
    "Clip": (1, 2), "Col2Im": (1, 2), "DFT": (1, 2), "STFT": (1, 3), "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2), "Dropout": (1, 2), "HannWindow": (0,), "HammingWindow": (0,),
    "BlackmanWindow": (0,), "MelWeightMatrix": (-1,), "MaxUnpool": (2,), "Bernoulli": (),
    "QLinearConv": (1, 2, 4, 5, 6, 7), "QLinearMatMul": (1, 2, 4, 5, 6, 7), "ConvInteger": (2, 3),
    "MatMulInteger": (2, 3), "SequenceAt": (1,), "SequenceInsert": (2,), "SplitToSequence": (1,),
    "LSTM": (4,), "GRU": (4,), "RNN": (4,),
    "If": (0,), "Loop": (0, 1), "Compress": (1,),
}  # fmt: skip
WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "Conv": (1, 2), "ConvTranspose": (1, 2), "QLinearConv": (3, 8), "ConvInteger": (1,), "QLinearMatMul": (3,),
    "MatMulInteger": (1,), "DeformConv": (1, 3), "BatchNormalization": (1, 2, 3, 4), "Gemm": (1, 2),
    "LSTM": (1, 2, 3, 7), "GRU": (1, 2, 3), "RNN": (1, 2, 3), "PRelu": (1,),
}  # fmt: skip

# Expected values that are rounding noise of the FFT they were made with, where the exact result is 0.
NOISY = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}

# Tests whose expected arrays divide by scale * length - 1, as ONNX's reference evaluator does, where ONNX's own words
# ("the length of the resized tensor"), onnxruntime and PyTorch divide by the whole length less one.
OTHER_ANSWERS: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "test_resize_downsample_scales_linear_align_corners": ((1, 4),),
    "test_resize_downsample_scales_cubic_align_corners": ((1, 2.5, 4), (7, 8.5, 10), (13, 14.5, 16)),
}

# Tests whose expected arrays round to float16 or bfloat16 after every step, and differ from the exact result by more
# than their own tolerance. glowc computes in float32; so does ONNX's reference evaluator for these, rounded at the end.
STEPWISE = frozenset({
    "test_attention_4d_causal_fp16_expanded",
    *(f"test_attention_{form}_bf16{end}" for end in ("", "_expanded") for form in (
        "4d_causal", "4d_padded_kv", "4d_causal_padded_kv", "4d_attn_mask_causal", "3d_causal")),
})  # fmt: skip

_T = onnx.TensorProto
_ORDINARY = {
    _T.FLOAT, _T.DOUBLE, _T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64, _T.BOOL,
}  # fmt: skip
_NARROW = {getattr(_T, name) for name in ("INT4", "UINT4", "INT2", "UINT2") if hasattr(_T, name)}
# In float32 in the generated C; a result is rounded as the file says before it is compared.
_HALF = {_T.FLOAT16, _T.BFLOAT16}
# Kept as codes, one per byte.
_CODED = {
    number for name, number in _T.DataType.items() if name.startswith(("FLOAT8", "FLOAT4"))
}  # fmt: skip
QUANTIZED_OPS = frozenset({
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
    "MatMulInteger",
})  # fmt: skip
Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class NodeTest:
    """One test: its model, and pairs of (inputs, outputs) in the order of the model's inputs and outputs."""

    name: str
    op: str
    group: str
    model: Any
    data: tuple[tuple[Arrays, Arrays], ...]
    rtol: float
    atol: float

    def bound(self, level: int) -> NodeTest | None:
        """Return the test with inputs of this level fixed, None when that is the level below."""
        names = self._fixed(level)
        if names == self._fixed(level - 1):
            return None
        order = [v.name for v in self.model.graph.input]
        keep = [i for i, name in enumerate(order) if name not in names]
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        inputs = [self.model.graph.input[i] for i in keep]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        for name, array in zip(order, self.data[0][0], strict=False):
            if name in names:
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        data = tuple((tuple(a[i] for i in keep if i < len(a)), b) for a, b in self.data)
        return NodeTest(self.name, self.op, self.group, model, data, self.rtol, self.atol)

    def _fixed(self, level: int) -> frozenset[str]:
        graph = self.model.graph
        if level <= 0 or len(self.data) != 1:
            return frozenset()
        tables = (PARAMETERS, WEIGHTS)[:level]
        given = {v.name for v in graph.input}
        names: set[str] = set()
        operators = {node.op_type for node in graph.node}
        for node in graph.node:
            for table in tables:
                wanted = table.get(node.op_type, ())
                names.update(n for i, n in enumerate(node.input) if (i in wanted or -1 in wanted) and n in given)
        if self.name.endswith(("_expanded", "_expanded_ver18", "_ver18_expanded")) or self.op not in operators:
            names |= _like_the_operator(self, tables) & given
        return frozenset(names)


def _like_the_operator(test: NodeTest, tables: Sequence[Mapping[str, tuple[int, ...]]]) -> frozenset[str]:
    """Return the parameter inputs of a test whose model is the operator's expanded body."""
    order = [v.name for v in test.model.graph.input]
    wanted = {i for table in tables for i in table.get(test.op, ())}
    return frozenset(n for i, n in enumerate(order) if i in wanted or -1 in wanted)


def _group(model: onnx.ModelProto, op: str) -> str:
    """ordinary, quantised, or the reason why the types are out of reach."""
    kinds: set[int] = set()
    for value in (*model.graph.input, *model.graph.output):
        what = value.type.WhichOneof("value")
        if what != "tensor_type":
            return "sequences" if what in ("sequence_type", "optional_type") else "maps"
        kinds.add(value.type.tensor_type.elem_type)
    if _T.STRING in kinds:
        return "strings"
    if kinds - _ORDINARY - _NARROW - _HALF - _CODED:
        return "exotic types"
    if any(node.domain not in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview") for node in model.graph.node):
        return "other domains"
    if kinds & (_HALF | _CODED):
        return "small-floats"
    return "quantised" if kinds & _NARROW or op in QUANTIZED_OPS else "ordinary"


@cache
def all_tests() -> tuple[NodeTest, ...]:
    """Return every node test in the order of the package; its data are made by running its Python code."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    operators = {t.name: t.model.graph.node[0].op_type for t in found if t.model is not None and t.model.graph.node}
    return tuple(_make(t, operators) for t in found)


def _make(t: object, operators: Mapping[str, str]) -> NodeTest:
    name, model = str(t.name), t.model  # type: ignore[attr-defined]
    plain = re.sub(r"_(expanded|ver18|ver\d+)(?=_|$)", "", name)
    op = operators.get(plain, operators.get(name, "")) if "_expanded" in name else operators.get(name, "")
    data = tuple((_arrays(i), _arrays(o)) for i, o in (t.data_sets or ()))  # type: ignore[attr-defined]
    if name in OTHER_ANSWERS:
        data = tuple((i, (np.asarray([[OTHER_ANSWERS[name]]], np.float32),)) for i, _ in data)
    if name in STEPWISE:
        data = tuple((i, _in_float32(model, i, o)) for i, o in data)
    group = _group(model, op)
    if group == "sequences":
        model, data = _opened(model, data)
    rtol, atol = float(t.rtol), max(float(t.atol), NOISY.get(name, 0.0))  # type: ignore[attr-defined]
    return NodeTest(name, op, group, model, data, rtol, atol)


def _opened(model: onnx.ModelProto, data: Sequence[tuple[Any, Any]]) -> tuple[onnx.ModelProto, tuple[Any, ...]]:
    """Return a test with the elements of sequences and optionals as inputs and outputs of their own."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    del opened.graph.input[:]
    makers = []
    for value, given in zip(model.graph.input, data[0][0], strict=True):
        if value.type.WhichOneof("value") == "tensor_type":  # may have a length that the sequence gives
            kind = value.type.tensor_type.elem_type
            opened.graph.input.append(onnx.helper.make_tensor_value_info(value.name, kind, given.shape))
            continue
        items = given if isinstance(given, list) else [] if given is None else [given]
        names = [f"{value.name}.{i}" for i in range(len(items))]
        kinds = [onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for a in items]
        opened.graph.input.extend(map(onnx.helper.make_tensor_value_info, names, kinds, (a.shape for a in items)))
        op = "SequenceConstruct" if isinstance(given, list) else "Optional"
        makers.append(onnx.helper.make_node(op, names, [value.name]))
    nodes = [*makers, *model.graph.node]
    del opened.graph.node[:]
    opened.graph.node.extend(nodes)
    return opened, tuple((_flat(i), _flat(o)) for i, o in data)


def _flat(values: Sequence[Any]) -> Arrays:
    lists = (v if isinstance(v, list) else [] if v is None else [v] for v in values)
    return tuple(a for items in lists for a in items)


def _in_float32(model: onnx.ModelProto, inputs: Arrays, outputs: Arrays) -> Arrays:
    """Return what ONNX's reference evaluator gives for float32 in place of halves, rounded to what `outputs` are."""
    from onnx.reference import ReferenceEvaluator

    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type in _HALF:
            value.type.tensor_type.elem_type = _T.FLOAT
    nodes = list(wide.graph.node)
    del wide.graph.node[:]
    for node in nodes:
        wide.graph.node.append(node)
        to = next((a.i for a in node.attribute if node.op_type == "Cast" and a.name == "to"), 0)
        if to in _HALF:  # rounds, and goes on in float32
            out, wide.graph.node[-1].output[0] = node.output[0], f"{node.output[0]}_half"
            wide.graph.node.append(onnx.helper.make_node("Cast", [f"{out}_half"], [out], to=_T.FLOAT))
    feeds = {v.name: plain_array(a) for v, a in zip(wide.graph.input, inputs, strict=True)}
    with np.errstate(invalid="ignore"):  # rows that a mask leaves empty
        results = ReferenceEvaluator(wide).run(None, feeds)
    return tuple(np.asarray(r).astype(o.dtype) for r, o in zip(results, outputs, strict=True))


def _arrays(values: Sequence[object]) -> Arrays:
    """Return the arrays of a data set; those of sequences and optionals stay as they are, nobody looks at them."""
    return tuple(numpy_helper.to_array(v) if isinstance(v, _T) else v for v in values)  # type: ignore[misc]


HALVES = ("float16", "bfloat16")


def is_coded(kind: np.dtype[Any]) -> bool:
    """Say whether an element kind is a float of 8 or 4 bits."""
    return kind.name.startswith(("float8", "float4"))


def plain_array(value: object) -> np.ndarray:
    """Return an array as the generated C takes it: 4- and 2-bit integers and codes of small floats one per byte."""
    array = np.asarray(value)
    if is_coded(array.dtype):
        return array.view(np.uint8)
    if array.dtype.name in HALVES:
        return array.astype(np.float32)
    if array.dtype.name in ("int4", "int2"):
        return array.astype(np.int8)
    return array.astype(np.uint8) if array.dtype.name in ("uint4", "uint2") else array


def batches(tests: Sequence[NodeTest], size: int) -> Iterator[tuple[NodeTest, ...]]:
    """Cut the tests into groups that are compiled together."""
    for start in range(0, len(tests), size):
        yield tuple(tests[start : start + size])

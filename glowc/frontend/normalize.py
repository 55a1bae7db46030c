"""The table of normal forms: ONNX operator -> the function that adds its nodes to the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glowc.frontend import normalize_conv as conv
from glowc.frontend import normalize_math as arith
from glowc.frontend import normalize_resize as resize
from glowc.frontend import normalize_shape as shape
from glowc.frontend import quant
from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode

Normalizer = Callable[[OnnxNode, Builder], None]

# The newest opset whose definitions these normal forms were written from.
NEWEST_OPSET = 28
REDUCTIONS = ("Max", "Mean", "Min", "Prod", "Sum", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


def _recurrent(node: OnnxNode, b: Builder) -> None:
    """LSTM, GRU and RNN: attribute `layout` becomes `batch_first`, as `layout` names axes in the graph.

    What the node leaves out stays left out, defaults are the operator's own.
    """
    attrs = {key: value for key, value in node.attrs.items() if key != "layout"}
    b.emit(node.op, node.inputs, {**attrs, "batch_first": node.int_("layout", 0)}, node.outputs)


NORMALIZERS: Mapping[str, Normalizer] = {
    "ArgMax": arith.arg_reduce, "ArgMin": arith.arg_reduce, "AveragePool": conv.average_pool,
    "BatchNormalization": arith.batch_normalization, "Clip": arith.clip,
    "Concat": shape.concat, "Conv": conv.conv, "ConvInteger": conv.conv, "ConvTranspose": conv.conv_transpose,
    "CumProd": shape.cumulate, "CumSum": shape.cumulate,
    "DequantizeLinear": quant.dequantize_linear, "Dropout": shape.identity, "Expand": shape.expand,
    "EyeLike": shape.eye_like, "OneHot": shape.one_hot, "Scatter": shape.scatter,
    "ScatterElements": shape.scatter, "ScatterND": shape.scatter, "Trilu": shape.trilu,
    "Flatten": shape.flatten, "GRU": _recurrent, "Gather": shape.along_axis,
    "GatherElements": shape.along_axis,
    "Gemm": arith.gemm, "GlobalAveragePool": conv.global_pool, "GlobalMaxPool": conv.global_pool,
    "Hardmax": arith.softmax, "Identity": shape.identity, "LSTM": _recurrent,
    "LogSoftmax": arith.softmax, "Max": arith.nary,
    "MaxPool": conv.max_pool, "LpPool": conv.lp_pool, "MaxUnpool": conv.max_unpool,
    "Mean": arith.nary, "Min": arith.nary, "Pad": shape.pad,
    "QuantizeLinear": quant.quantize_linear, "RNN": _recurrent, "Reshape": shape.reshape,
    "Resize": resize.resize,
    "Slice": shape.slice_, "Softmax": arith.softmax, "Split": shape.split, "Squeeze": shape.squeeze,
    "Sum": arith.nary, "Tile": shape.tile, "TopK": arith.top_k, "Transpose": shape.transpose,
    "Unsqueeze": shape.unsqueeze, "Upsample": resize.upsample,
    **{f"Reduce{kind}": arith.reduce for kind in REDUCTIONS},
}  # fmt: skip

# Operators of onnxruntime that mean the same as ONNX's of that name.
SAME_IN_MICROSOFT = frozenset({"QuantizeLinear", "DequantizeLinear", "Gelu"})


def find_normalizer(node: OnnxNode) -> Normalizer | None:
    """Return the normal form of a node's operator, None when it has no special one."""
    same = node.domain == "" or (node.domain == "com.microsoft" and node.op in SAME_IN_MICROSOFT)
    return NORMALIZERS.get(node.op) if same else None

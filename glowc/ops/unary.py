"""Elementwise operators of one input: Relu, Clip, Sigmoid, Tanh, HardSwish, Gelu, Exp, ... (table FUNCTIONS).

int8: a table of 256 codes made at compile time: the function in float64, rounded to float32, then quantised; exact
by construction. HardSigmoid, HardSwish and Softsign: each operation in float32, as onnxruntime does, as their ties are
many (evidence: 150 random pairs of scales, all 38,400 codes equal; in float64 7 and 10 differ; Softsign 396 pairs).
int16: dequantised, computed in float32 and quantised again; Tanh and Sigmoid of codes around 0 give the same codes in
integers where they can (glowc/graph/tanh_codes.py).
Float: one C expression per function in the element type, with libm where the mathematics needs it; numpy, glibc,
newlib and onnxruntime differ in the last places of libm's functions, hence a relative and absolute tolerance
of 1e-5 (1e-6 of the largest intermediate). Rounding of Round: half to even. Functions of integers: Relu, Clip,
Abs, Neg, Sign. Shapes: any. The output may be the input.
Source: ONNX operators of the versions in OPS; QuickGelu: com.microsoft.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Attr, Float, Str
from glowc.graph.graph import Node
from glowc.graph.numerics import F32
from glowc.graph.types import DType, TensorType
from glowc.ops.base import LowerCtx, MaybeTypes, OpDef, OpError, Types
from glowc.ops.derived import derived
from glowc.ops.params import Elements
from glowc.ops.quantize import LinearParams, emit_lut
from glowc.ops.strided import present
from glowc.ops.tanh_codes import emit_tanh
from glowc.ops.unary_table import FUNCTIONS, Unary
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Printed, PrintedNumber

_SINGLE = frozenset({"hard_sigmoid", "hard_swish", "softsign"})
INTEGERS = frozenset({"relu", "clip", "abs", "neg", "sign", "not", "bit_not"})


@dataclass(frozen=True, slots=True)
class UnaryParams(Elements):
    """Of `unary`: the entry of FUNCTIONS, its C expression over x, and how many of the parameters a and b it uses."""

    op: str
    expr: str
    uses: Printed
    a: PrintedNumber
    b: PrintedNumber


def parameters(node: Node, f: Unary) -> tuple[float, float]:
    """Return the function's two parameters from the node's attributes."""
    values = [float(F32(node.float_(key))) for key, _ in f.params]
    a, b = (*values, 0.0, 0.0)[:2]
    return a, b


def function_of(node: Node, onnx_name: str) -> str:
    """Return the name in FUNCTIONS; Gelu has two."""
    name = _ONNX[onnx_name][0]
    if name == "gelu" and node.str_("approximate") == "tanh":
        return "gelu_tanh"
    return name


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """Same type as the input."""
    (x,) = present(in_types[:1])
    if len([t for t in in_types if t is not None]) > 1:
        raise OpError(f"bounds of {node.op} that are computed at run time")
    if (node.op == "Not") != (x.dtype == DType.BOOL):
        raise OpError(f"{node.op} of {x}")
    return (TensorType(x.shape, x.dtype, None, x.layout),)


def real_function(name: str, a: float, b: float) -> Callable[[float], float]:
    """Return the function on Python floats."""
    evaluate, kind = FUNCTIONS[name].function, F32 if name in _SINGLE else np.float64

    def one(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(evaluate(kind(x), kind(a), kind(b)))

    return one


def plain(x: np.ndarray, name: str, a: float, b: float) -> np.ndarray:
    """Return the function of floats, or of integers where that is exact."""
    if (x.dtype.kind != "f" and name not in INTEGERS) or (name == "not") != (x.dtype.kind == "b"):
        raise OpError(f"{name} of integers that are not quantized ({x.dtype})")
    with np.errstate(all="ignore"):
        if x.dtype.kind != "f":
            return np.asarray(FUNCTIONS[name].function(x, *_int_bounds(a, b, x.dtype))).astype(x.dtype)
        return np.asarray(FUNCTIONS[name].function(x, x.dtype.type(a), x.dtype.type(b))).astype(x.dtype)


def _int_bounds(a: float, b: float, dtype: np.dtype[np.generic]) -> tuple[int, int]:
    kind = DType(f"{'u' if dtype.kind == 'u' else 's'}{8 * dtype.itemsize}")
    low = kind.qmin if a < kind.qmin else math.ceil(a)
    return low, kind.qmax if b > kind.qmax else math.floor(b)


def lower(onnx_name: str) -> Callable[[Node, LowerCtx], None]:
    """Return the lowering: table for int8, for int16 `tanh_s16` or dequantise - compute - quantise, else `unary`."""

    def emit(node: Node, ctx: LowerCtx) -> None:
        x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
        name = function_of(node, onnx_name)
        a, b = parameters(node, FUNCTIONS[name])
        if x.type.quant is None or y.type.quant is None:
            ctx.emit("unary", {"in": x, "out": y}, words(x.type.elements, name, x.type.dtype, a, b))
        elif x.type.dtype == DType.S8 and y.type.dtype == DType.S8:
            emit_lut(ctx, x, y, real_function(name, a, b), node.name)
        elif not emit_tanh(ctx, x, y, name, node.name):
            real = TensorType(x.type.shape, DType.F32)
            given, done = ctx.temp(real, f"{node.name}_in"), ctx.temp(real, f"{node.name}_out")
            n = x.type.elements
            (in_scale, in_zp), (scale, zp) = x.type.quant.scalar, y.type.quant.scalar
            ctx.emit("dequantize", {"in": x, "out": given}, LinearParams(n, in_zp, float(in_scale)))
            ctx.emit("unary", {"in": given, "out": done}, words(n, name, DType.F32, a, b))
            ctx.emit("quantize", {"in": done, "out": y}, LinearParams(n, zp, float(scale)))

    return emit


def words(n: int, name: str, dtype: DType, a: float, b: float) -> UnaryParams:
    """Return what `unary` takes for n elements: the expression for the element kind, and the parameters it uses."""
    f = FUNCTIONS[name]
    if (not dtype.is_float and name not in INTEGERS) or (name == "not") != (dtype == DType.BOOL):
        raise OpError(f"{name} of {dtype.value} that is not quantized")
    text = f.c if dtype.is_float else f.c_int
    if not dtype.is_signed:
        text = text.replace("x < 0", "0")
    suffix = "f(" if dtype == DType.F32 else "("
    text = text.replace("F(", suffix).replace("(T)", f"({dtype.ctype})").replace("(U)", f"(uint{dtype.bits}_t)")
    text = re.sub(r"K\(([0-9.]+)\)", r"\1f" if dtype == DType.F32 else r"\1", text)
    bounds = (a, b) if dtype.is_float or name != "clip" else _int_bounds(a, b, dtype.numpy)
    return UnaryParams(n, name, text, min(len(f.params), 2), *bounds)


def _interpret(arrays: Arrays, p: UnaryParams) -> None:
    x = arrays["in"].reshape(-1)
    arrays["out"].reshape(-1)[:] = plain(x, p.op, float(p.a), float(p.b))


KERNELS = (
    KernelDef("unary", ("in in", "out out"), UnaryParams, _interpret, in_place=("in",), needs_math=True, length="n",
              doc="elementwise function"),
)  # fmt: skip

# ONNX operator -> entry of FUNCTIONS, newest known version, attributes besides the function's parameters
_ONNX: Mapping[str, tuple[str, int, Mapping[str, Attr]]] = {
    "Relu": ("relu", 14, {}), "Clip": ("clip", 13, {}), "Sigmoid": ("sigmoid", 13, {}), "Tanh": ("tanh", 13, {}),
    "HardSwish": ("hard_swish", 22, {}), "HardSigmoid": ("hard_sigmoid", 22, {}),
    "LeakyRelu": ("leaky_relu", 16, {}), "Elu": ("elu", 22, {}), "Selu": ("selu", 22, {}),
    "Celu": ("celu", 28, {}), "ThresholdedRelu": ("thresholded_relu", 22, {}), "Softplus": ("softplus", 22, {}),
    "Softsign": ("softsign", 22, {}), "Mish": ("mish", 22, {}),
    "Gelu": ("gelu", 20, {"approximate": Str("none", words=("none", "tanh"))}),
    "QuickGelu": ("quick_gelu", 1, {}), "Swish": ("swish", 24, {}), "Erf": ("erf", 13, {}),
    "Exp": ("exp", 13, {}), "Log": ("log", 13, {}), "Sqrt": ("sqrt", 13, {}), "Reciprocal": ("reciprocal", 13, {}),
    "Abs": ("abs", 13, {}), "Neg": ("neg", 13, {}), "Floor": ("floor", 13, {}), "Ceil": ("ceil", 13, {}),
    "Round": ("round", 22, {}), "Sign": ("sign", 13, {}), "Sin": ("sin", 22, {}), "Cos": ("cos", 22, {}),
    "Tan": ("tan", 22, {}), "Asin": ("asin", 22, {}), "Acos": ("acos", 22, {}), "Atan": ("atan", 22, {}),
    "Sinh": ("sinh", 22, {}), "Cosh": ("cosh", 22, {}), "Asinh": ("asinh", 22, {}), "Acosh": ("acosh", 22, {}),
    "Atanh": ("atanh", 22, {}), "Not": ("not", 1, {}),
    "BitwiseNot": ("bit_not", 18, {}), "Shrink": ("shrink", 9, {}), "RoundHalf": ("round_half", 0, {}),
    "RoundBfloat16": ("round_bfloat16", 0, {}),
}  # fmt: skip
_ROUND = ("RoundHalf", "RoundBfloat16")
_DOMAINS = {"QuickGelu": "com.microsoft", **dict.fromkeys(_ROUND, "glowc")}

OPS = tuple(
    OpDef(
        op, infer, derived, lower(op), max_version=version, int8=op not in ("Not", "BitwiseNot", *_ROUND),
        attrs={**{key: Float(value) for key, value in FUNCTIONS[name].params}, **more},
        domain=_DOMAINS.get(op, ""), doc=FUNCTIONS[name].doc,
    )
    for op, (name, version, more) in _ONNX.items()
)  # fmt: skip

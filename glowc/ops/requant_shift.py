"""RequantShift of integer models carried in float tensors: clip(floor((x * mul + add) / div + 0.5)).

x, mul and add are integers, div is a positive integer, mul and add are one number or one per channel (axis 1).
The bounds come from n_levels_out and signed: [-n / 2, n / 2 - 1] or [0, n - 1]. On float tensors the formula is
evaluated in float64, where integers below 2^53 are exact. The pass `integers-in-float` turns it into integers:
codes of scale 1, and Conv, FullyConnected and Add that end in it (attributes `shift_*`):
y = clamp((acc * mul[c] + offset[c]) >> shift) + zp, offset[c] = bias[c] * mul[c] + add[c] + div / 2, in int64,
rounded down; exactly the float formula. Source: Deeploy and DORY; tested against the outputs they ship.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.attrs import Attr, AttrValue, Float, Int, IntList, Str
from glowc.graph.graph import Node
from glowc.graph.types import DTYPES, DType, QuantParams, TensorType
from glowc.ops.base import CLAMP, LowerCtx, MaybeTypes, OpDef, OpError, Ref, Types, clamp_of
from glowc.ops.derived import derived
from glowc.ops.params import Channels, Elements, OutCodes
from glowc.ops.strided import present
from glowc.program.kernel import Arrays, KernelDef
from glowc.program.params import Params

SHIFT_ATTRS: Mapping[str, Attr] = {
    "shift_mul": IntList(optional=True), "shift_add": IntList(optional=True), "shift_div": Int(optional=True),
    "shift_min": Int(optional=True), "shift_max": Int(optional=True), "shift_dtype": Str("", words=DTYPES),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shift:
    """An integer requantisation: multipliers and addends (one, or one per channel), divisor, bounds."""

    mul: tuple[int, ...]
    add: tuple[int, ...]
    div: int
    low: int
    high: int

    def attrs(self, dtype: DType) -> dict[str, AttrValue]:
        """Return it as attributes of the operator that ends in it, with the codes' element kind."""
        return {
            "shift_mul": self.mul, "shift_add": self.add, "shift_div": self.div, "shift_min": self.low,
            "shift_max": self.high, "shift_dtype": dtype.value,
        }  # fmt: skip

    def apply(self, acc: np.ndarray, axis: int) -> np.ndarray:
        """Return clamp(floor((acc * mul + add) / div + 1/2)) of integers, channels along `axis`."""
        shape = [1] * acc.ndim
        mul, add = (
            np.asarray(v, np.int64).reshape([len(v) if i == axis % acc.ndim else 1 for i in range(acc.ndim)])
            if len(v) > 1
            else np.asarray(v[0], np.int64).reshape(shape)
            for v in (self.mul, self.add)
        )
        doubled = 2 * (acc.astype(np.int64) * mul + add) + self.div
        return np.asarray(np.clip(doubled // (2 * self.div), self.low, self.high))

    def constants(self, bias: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return mul (int32) and offset (int64) of an accumulator that starts at 0."""
        count = max(len(self.mul), len(self.add), 1 if bias is None else bias.size)
        mul = np.broadcast_to(np.asarray(self.mul, np.int64), (count,))
        start = np.zeros(count, np.int64) if bias is None else bias.astype(np.int64).reshape(-1)
        offset = start * mul + np.asarray(self.add, np.int64) + self.div // 2
        if np.any(np.abs(mul) > DType.S32.qmax):
            raise OpError("a multiplier does not fit int32")
        return np.ascontiguousarray(mul.astype(np.int32)), np.ascontiguousarray(offset)

    @property
    def bits(self) -> int:
        """The shift that divides; OpError when the divisor is no power of two."""
        if self.div & (self.div - 1):
            raise OpError(f"divisor {self.div} is no power of two")
        return self.div.bit_length() - 1


def shift_of(node: Node) -> Shift | None:
    """Return the requantisation that `node` ends in, None for an ordinary operator."""
    if "shift_div" not in node.attrs:
        return None
    low, high = clamp_of(node)
    return Shift(
        node.ints("shift_mul"), node.ints("shift_add"), node.int_("shift_div"),
        max(node.int_("shift_min"), math.ceil(max(low, -(2.0**31)))),
        min(node.int_("shift_max"), math.floor(min(high, 2.0**31))),
    )  # fmt: skip


def shift_dtype(node: Node, x: TensorType) -> DType:
    """Return the element kind of what a node computes: that of x, unless it ends in a requantisation to another."""
    return DType(node.str_("shift_dtype")) if "shift_dtype" in node.attrs else x.dtype


def shifted_codes(shift: Shift, acc: np.ndarray, out: TensorType, axis: int) -> np.ndarray:
    """Return the output codes of exact accumulators."""
    assert out.quant is not None
    return (shift.apply(np.rint(acc), axis) + out.quant.zero_point[0]).astype(out.dtype.numpy)


@dataclass(frozen=True, slots=True)
class ShiftEnd(OutCodes):
    """How a kernel ends in a shift: clamp((x * mul + offset) >> shift) + out_zp; the bounds hold the zero point."""

    shift: int


@dataclass(frozen=True, slots=True)
class ShiftCodes(Params):
    """The zero points of weights and input of a layer that ends in a shift."""

    w_zp: int
    in_zp: int
    end: ShiftEnd


@dataclass(frozen=True, slots=True)
class RequantShiftParams(Channels):
    """Of `requant_shift`."""

    in_zp: int
    end: ShiftEnd


@dataclass(frozen=True, slots=True)
class RequantShiftFloat(Channels):
    """Of `requant_shift_f32` and `requant_shift_f64`; the bounds are those before the zero point."""

    out_min: int
    out_max: int
    out_zp: int
    div: float


def shift_end(shift: Shift, y: QuantParams) -> ShiftEnd:
    """Return the end of a kernel whose results are quantised as y."""
    zp = y.zero_point[0]
    return ShiftEnd(zp, shift.low + zp, shift.high + zp, shift.bits)


def shift_operands(ctx: LowerCtx, node: Node, shift: Shift, bias: np.ndarray | None) -> dict[str, Ref]:
    """Return the constants `mul` and `offset`."""
    mul, offset = shift.constants(bias)
    return {"mul": ctx.const(mul, f"{node.name}_mul"), "offset": ctx.const(offset, f"{node.name}_offset")}


def kernel_codes(acc: np.ndarray, arrays: Arrays, end: ShiftEnd) -> np.ndarray:
    """Return what a kernel writes for accumulators [..., channels]."""
    scaled = np.rint(acc).astype(np.int64) * arrays["mul"].astype(np.int64) + arrays["offset"]
    return np.asarray(np.clip((scaled >> end.shift) + end.out_zp, end.out_min, end.out_max))


def infer(node: Node, in_types: MaybeTypes) -> Types:
    """The type of x; codes of kind `dtype` when that attribute is set."""
    x, mul, add = present(in_types[:3])
    channels = x.shape[1] if x.rank > 1 else 1
    for t in (mul, add):
        if t.elements not in (1, channels) or (t.elements > 1 and t.shape[0] != channels and t.shape[-1] != channels):
            raise OpError(f"multiplier or addend {t} for {x}")
    if node.float_("div") <= 0 or node.float_("n_levels_out") < 2:
        raise OpError(f"div {node.float_('div')} and n_levels_out {node.float_('n_levels_out')} must be positive")
    dtype = node.str_("dtype") or x.dtype.value
    return (TensorType(x.shape, DType(dtype), None, x.layout),)


def bounds_of(node: Node) -> tuple[int, int]:
    """Return the range of the result."""
    levels = int(node.float_("n_levels_out"))
    return (-(levels // 2), (levels + 1) // 2 - 1) if node.float_("signed") else (0, levels - 1)


def make_shift(node: Node, mul: np.ndarray, add: np.ndarray) -> Shift | None:
    """Return the integer form of a RequantShift with these constants; None when they are no integers."""
    div = node.float_("div")
    if not (_whole(mul) and _whole(add) and div == int(div) and div > 0):
        return None
    low, high = bounds_of(node)
    factors, terms = (tuple(int(v) for v in array.reshape(-1)) for array in (mul, add))
    return Shift(factors, terms, int(div), low, high)


def _whole(array: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(array)) and np.all(array == np.rint(array)))


def float_formula(x: np.ndarray, mul: np.ndarray, add: np.ndarray, div: float, low: int, high: int) -> np.ndarray:
    """Return clip(floor((x * mul + add) / div + 0.5)) in float64; NaN gives the lower bound."""
    scaled = (x.astype(np.float64) * mul.astype(np.float64) + add.astype(np.float64)) / div
    y = np.floor(scaled + 0.5)
    return np.where(y >= low, np.where(y > high, high, y), low)


def lower(node: Node, ctx: LowerCtx) -> None:
    """One `requant_shift` on codes, or `requant_shift_f32`."""
    x, y = ctx.read(node.inputs[0]), ctx.write(node.outputs[0])
    mul, add = (ctx.const_value(name) for name in node.inputs[1:3])
    if mul is None or add is None:
        raise OpError("multiplier and addend must be constants")
    channels = max(mul.size, add.size)
    outer = x.type.shape[0] if channels > 1 else 1
    dims = outer, channels, x.type.elements // (outer * channels)
    low, high = bounds_of(node)
    zp = y.type.quant.zero_point[0] if y.type.quant is not None else 0
    if x.type.dtype.is_float:
        wide = {
            key: ctx.const(np.broadcast_to(a.astype(np.float64).reshape(-1), (channels,)), f"{node.name}_{key}")
            for key, a in (("mul", mul), ("add", add))
        }
        params = RequantShiftFloat(*dims, low, high, zp, node.float_("div"))
        ctx.emit(f"requant_shift_{x.type.dtype.value}", {"in": x, **wide, "out": y}, params)
        return
    shift = make_shift(node, mul, add)
    if shift is None or y.type.quant is None:
        raise OpError("multiplier, addend and divisor must be integers")
    source = x.type.quant or QuantParams((1.0,), (0,))
    codes = RequantShiftParams(*dims, source.zero_point[0], shift_end(shift, y.type.quant))
    ctx.emit("requant_shift", {"in": x, **shift_operands(ctx, node, shift, None), "out": y}, codes)


def infer_codes(node: Node, in_types: MaybeTypes) -> Types:
    """Codes of kind `shift_dtype`."""
    (x,) = present(in_types[:1])
    if x.quant is None or shift_of(node) is None:
        raise OpError(f"needs codes and a shift, seen {x}")
    return (TensorType(x.shape, DType(node.str_("shift_dtype")), None, x.layout),)


def lower_codes(node: Node, ctx: LowerCtx) -> None:
    """A table for int8, else `requant_shift`."""
    x, y, shift = ctx.read(node.inputs[0]), ctx.write(node.outputs[0]), shift_of(node)
    assert shift is not None
    if x.type.quant is None or y.type.quant is None:
        raise OpError("needs codes")
    n = x.type.elements
    if x.type.dtype == DType.S8 and y.type.dtype == DType.S8:
        codes = np.arange(-128, 128) - x.type.quant.zero_point[0]
        table = ctx.const(shifted_codes(shift, codes, y.type, -1), f"{node.name}_lut")
        ctx.emit("lut_s8", {"in": x, "lut": table, "out": y}, Elements(n))
        return
    params = RequantShiftParams(1, 1, n, x.type.quant.zero_point[0], shift_end(shift, y.type.quant))
    ctx.emit("requant_shift", {"in": x, **shift_operands(ctx, node, shift, None), "out": y}, params)


def _interpret(a: Arrays, p: RequantShiftParams) -> None:
    x = p.view(a["in"]).astype(np.int64) - p.in_zp
    a["out"].reshape(x.shape)[:] = kernel_codes(x.transpose(0, 2, 1), a, p.end).transpose(0, 2, 1)


def _interpret_float(a: Arrays, p: RequantShiftFloat) -> None:
    x = p.view(a["in"])
    mul, add = (a[key].reshape(1, -1, 1) for key in ("mul", "add"))
    y = float_formula(x, mul, add, p.div, p.out_min, p.out_max)
    a["out"].reshape(x.shape)[:] = y + p.out_zp


KERNELS = (
    KernelDef("requant_shift", ("in in", "in mul:s32", "in offset:s64", "out out"), RequantShiftParams, _interpret,
              kind="s8|u8|s16|u16|s32", doc="clamp((x * mul + offset) >> shift) of integers"),
    *(
        KernelDef(f"requant_shift_{t.value}", ("in in", "in mul:f64", "in add:f64", f"out out:{t.value}|s8|s16"),
                  RequantShiftFloat, _interpret_float,
                  template="requant_shift_f32", needs_math=True, kind=t.value,
                  doc="RequantShift of integers in floats")
        for t in (DType.F32, DType.F64)
    ),
)  # fmt: skip

OPS = (
    OpDef("RequantShift", infer, derived, lower, max_version=1,
          attrs={"div": Float(1.0), "n_levels_out": Float(256.0), "signed": Float(1.0), "dtype": Str("", words=DTYPES)},
          doc="clip(floor((x * mul + add) / div + 0.5)) of integers in floats"),
    OpDef("ShiftCodes", infer_codes, derived, lower_codes, attrs={**SHIFT_ATTRS, **CLAMP},
          doc="RequantShift of codes with one multiplier"),
)  # fmt: skip

"""Operators that move elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.tflite.cases.draw import (
    Case,
    Maker,
    Rng,
    data_of,
    finish,
    flag,
    int32,
    moved,
    pick,
    shape_of,
)
from tests.tflite.writer import Tensor


def reshape(rng: Rng) -> Case:
    """RESHAPE."""
    build, kind, q = moved(rng, ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"))
    shape = shape_of(rng)
    to = (int(np.prod(shape)),) if flag(rng) else (1, *reversed(shape))
    build.op("RESHAPE", [build.input(shape, kind, q), build.const(int32(to))], Tensor(to, kind, q), newShape=list(to))
    return finish(build, rng, f"RESHAPE {to}")


def squeeze(rng: Rng) -> Case:
    """SQUEEZE."""
    build, kind, q = moved(rng, ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"))
    shape = shape_of(rng, 2)
    x = build.input((shape[0], 1, shape[1]), kind, q)
    build.op("SQUEEZE", [x], Tensor(shape, kind, q), squeezeDims=[1])
    return finish(build, rng, "SQUEEZE")


def expand_dims(rng: Rng) -> Case:
    """EXPAND_DIMS."""
    build, kind, q = moved(rng, ("float32", "int8", "int16"))
    shape = shape_of(rng, 3)
    axis = int(rng.integers(0, 4))
    to = (*shape[:axis], 1, *shape[axis:])
    build.op("EXPAND_DIMS", [build.input(shape, kind, q), build.const(int32([axis]))], Tensor(to, kind, q))
    return finish(build, rng, f"EXPAND_DIMS {axis}")


def concatenation(rng: Rng) -> Case:
    """CONCATENATION; operands are quantised alike."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32", "int64", "bool"))
    shape = shape_of(rng)
    axis = int(rng.integers(0, len(shape)))
    lengths = [int(v) for v in rng.integers(1, 5, int(rng.integers(2, 5)))]
    parts = [build.input((*shape[:axis], n, *shape[axis + 1 :]), kind, q) for n in lengths]
    out = Tensor((*shape[:axis], sum(lengths), *shape[axis + 1 :]), kind, q)
    build.op("CONCATENATION", parts, out, axis=axis)
    return finish(build, rng, f"CONCATENATION axis {axis}")


def pack(rng: Rng) -> Case:
    """PACK."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32", "int64"))
    shape, count = shape_of(rng, 3), int(rng.integers(1, 4))
    axis = int(rng.integers(0, 4))
    out = Tensor((*shape[:axis], count, *shape[axis:]), kind, q)
    build.op("PACK", [build.input(shape, kind, q) for _ in range(count)], out, axis=axis, valuesCount=count)
    return finish(build, rng, f"PACK axis {axis}")


def unpack(rng: Rng) -> Case:
    """UNPACK."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32"))
    shape = shape_of(rng, 3, 4)
    axis = int(rng.integers(0, 3))
    out = tuple(d for i, d in enumerate(shape) if i != axis)
    outs = [Tensor(out, kind, q)] * shape[axis]
    build.op("UNPACK", [build.input(shape, kind, q)], outs, axis=axis, num=shape[axis])
    return finish(build, rng, f"UNPACK axis {axis}")


def split(rng: Rng) -> Case:
    """SPLIT into equal parts."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32"))
    shape, count = list(shape_of(rng, 3)), int(rng.integers(1, 4))
    axis = int(rng.integers(0, 3))
    part = tuple(shape)
    shape[axis] *= count
    inputs = [build.const(int32([axis])), build.input(tuple(shape), kind, q)]
    build.op("SPLIT", inputs, [Tensor(part, kind, q)] * count, numSplits=count)
    return finish(build, rng, f"SPLIT axis {axis}")


def split_v(rng: Rng) -> Case:
    """SPLIT_V."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32"))
    shape = list(shape_of(rng, 3))
    lengths = [int(v) for v in rng.integers(1, 4, int(rng.integers(1, 4)))]
    axis = int(rng.integers(0, 3))
    outs = [Tensor((*shape[:axis], n, *shape[axis + 1 :]), kind, q) for n in lengths]
    shape[axis] = sum(lengths)
    inputs = [build.input(tuple(shape), kind, q), build.const(int32(lengths)), build.const(int32([axis]))]
    build.op("SPLIT_V", inputs, outs, numSplits=len(lengths))
    return finish(build, rng, f"SPLIT_V axis {axis} {lengths}")


def slice_(rng: Rng) -> Case:
    """SLICE."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32", "bool"))
    shape = shape_of(rng)
    begin = [int(rng.integers(0, d)) for d in shape]
    size = [int(rng.integers(1, d - b + 1)) for d, b in zip(shape, begin, strict=True)]
    drawn = [-1 if b + s == d and flag(rng) else s for d, b, s in zip(shape, begin, size, strict=True)]
    inputs = [build.input(shape, kind, q), build.const(int32(begin)), build.const(int32(drawn))]
    build.op("SLICE", inputs, Tensor(tuple(size), kind, q))
    return finish(build, rng, f"SLICE {begin} {drawn}")


def strided_slice(rng: Rng) -> Case:
    """STRIDED_SLICE with masks of begin, end and axes that vanish."""
    build, kind, q = moved(rng, ("float32", "int8", "int16", "int32", "bool"))
    shape = shape_of(rng)
    begin, end, step, out = [], [], [], []
    begin_mask = end_mask = shrink = 0
    for axis, d in enumerate(shape):
        first = int(rng.integers(0, d))
        if len(out) + len(shape) - axis > 1 and rng.integers(5) == 0:
            shrink |= 1 << axis
            begin.append(first), end.append(first + 1), step.append(1)
            continue
        stride = int(pick(rng, 1, 1, 2, -1))
        last = int(rng.integers(first + 1, d + 1)) if stride > 0 else int(rng.integers(-1, first))
        masked = (stride > 0 and last == d and flag(rng)) or last < 0
        end_mask |= int(masked) << axis
        if stride > 0 and first == 0 and flag(rng):
            begin_mask |= 1 << axis
        (
            begin.append(first - d if flag(rng) else first),
            end.append(0 if masked and flag(rng) else last),
            step.append(stride),
        )
        out.append(len(range(first, last, stride)))
    inputs = [build.input(shape, kind, q), *(build.const(int32(v)) for v in (begin, end, step))]
    options = {"beginMask": begin_mask, "endMask": end_mask, "shrinkAxisMask": shrink}
    build.op("STRIDED_SLICE", inputs, Tensor(tuple(out), kind, q), **options)
    return finish(build, rng, f"STRIDED_SLICE {begin} {end} {step} {options}")


def transpose(rng: Rng) -> Case:
    """TRANSPOSE."""
    build, kind, q = moved(rng, ("float32", "int8", "int16"))
    shape = shape_of(rng)
    perm = [int(a) for a in rng.permutation(len(shape))]
    inputs = [build.input(shape, kind, q), build.const(int32(perm))]
    build.op("TRANSPOSE", inputs, Tensor(tuple(shape[a] for a in perm), kind, q))
    return finish(build, rng, f"TRANSPOSE {perm}")


def pad(code: str) -> Callable[[Rng], Case]:
    """Return the maker of PAD or PADV2."""

    def make(rng: Rng) -> Case:
        build, kind, q = moved(rng, ("float32", "int8", "int16", "int32") if code == "PAD" else ("float32", "int8"))
        shape = shape_of(rng, 4)
        amounts = rng.integers(0, 3, (4, 2)).astype(np.int32)
        out = Tensor(tuple(int(d + a.sum()) for d, a in zip(shape, amounts, strict=True)), kind, q)
        inputs = [build.input(shape, kind, q), build.const(amounts)]
        if code == "PADV2":
            inputs.append(build.const(data_of(rng, (1,), kind), q))
        build.op(code, inputs, out)
        return finish(build, rng, f"{code} {amounts.tolist()}")

    return make


def mirror_pad(rng: Rng) -> Case:
    """MIRROR_PAD, REFLECT and SYMMETRIC."""
    build, kind, q = moved(rng, ("float32", "int8"))
    shape = tuple(int(d) for d in rng.integers(3, 6, 3))
    mode = int(rng.integers(2))
    amounts = rng.integers(0, 3, (3, 2)).astype(np.int32)
    out = Tensor(tuple(int(d + a.sum()) for d, a in zip(shape, amounts, strict=True)), kind, q)
    build.op("MIRROR_PAD", [build.input(shape, kind, q), build.const(amounts)], out, mode=mode)
    return finish(build, rng, f"MIRROR_PAD mode {mode} {amounts.tolist()}")


def gather(rng: Rng) -> Case:
    """GATHER along an axis."""
    build, kind, q = moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3)
    axis = int(rng.integers(0, 3))
    index = rng.integers(0, shape[axis], int(rng.integers(1, 5))).astype(np.int32)
    inputs = [build.input(shape, kind, q), build.const(index)]
    build.op("GATHER", inputs, Tensor((*shape[:axis], index.size, *shape[axis + 1 :]), kind, q), axis=axis)
    return finish(build, rng, f"GATHER axis {axis} {index.tolist()}")


def gather_nd(rng: Rng) -> Case:
    """GATHER_ND."""
    build, kind, q = moved(rng, ("float32", "int8"))
    shape = shape_of(rng, 3)
    depth = int(rng.integers(1, 4))
    index = np.stack([rng.integers(0, shape[i], 3) for i in range(depth)], axis=-1).astype(np.int32)
    inputs = [build.input(shape, kind, q), build.const(index)]
    build.op("GATHER_ND", inputs, Tensor((3, *shape[depth:]), kind, q))
    return finish(build, rng, f"GATHER_ND depth {depth}")


def depth_to_space(rng: Rng) -> Case:
    """DEPTH_TO_SPACE."""
    build, kind, q = moved(rng, ("float32", "int8"))
    (n, h, w, c), block = shape_of(rng, 4, 4), int(rng.integers(1, 4))
    x = build.input((n, h, w, c * block * block), kind, q)
    build.op("DEPTH_TO_SPACE", [x], Tensor((n, h * block, w * block, c), kind, q), blockSize=block)
    return finish(build, rng, f"DEPTH_TO_SPACE {block}")


def space_to_depth(rng: Rng) -> Case:
    """SPACE_TO_DEPTH."""
    build, kind, q = moved(rng, ("float32", "int8"))
    (n, h, w, c), block = shape_of(rng, 4, 4), int(rng.integers(1, 4))
    x = build.input((n, h * block, w * block, c), kind, q)
    build.op("SPACE_TO_DEPTH", [x], Tensor((n, h, w, c * block * block), kind, q), blockSize=block)
    return finish(build, rng, f"SPACE_TO_DEPTH {block}")


def space_to_batch(rng: Rng) -> Case:
    """SPACE_TO_BATCH_ND without padding: the runtime leaves it to chance which bytes it pads with."""
    build, kind, q = moved(rng, ("float32", "int8"))
    n, h, w, c = shape_of(rng, 4, 4)
    b_h, b_w = (int(v) for v in rng.integers(1, 4, 2))
    inputs = [build.input((n, h * b_h, w * b_w, c), kind, q), build.const(int32(b_h, b_w)),
              build.const(np.zeros((2, 2), np.int32))]  # fmt: skip
    build.op("SPACE_TO_BATCH_ND", inputs, Tensor((n * b_h * b_w, h, w, c), kind, q))
    return finish(build, rng, f"SPACE_TO_BATCH_ND {b_h},{b_w}")


def batch_to_space(rng: Rng) -> Case:
    """BATCH_TO_SPACE_ND."""
    build, kind, q = moved(rng, ("float32", "int8"))
    n, h, w, c = shape_of(rng, 4, 4)
    b_h, b_w = (int(v) for v in rng.integers(1, 4, 2))
    crops = np.asarray([[rng.integers(0, b_h), 0], [0, rng.integers(0, b_w)]], np.int32)
    out = (n, h * b_h - int(crops[0].sum()), w * b_w - int(crops[1].sum()), c)
    inputs = [build.input((n * b_h * b_w, h, w, c), kind, q), build.const(int32(b_h, b_w)), build.const(crops)]
    build.op("BATCH_TO_SPACE_ND", inputs, Tensor(out, kind, q))
    return finish(build, rng, f"BATCH_TO_SPACE_ND {b_h},{b_w} {crops.tolist()}")


def reverse(rng: Rng) -> Case:
    """REVERSE_V2 along one axis."""
    build, kind, q = moved(rng, ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"))
    shape = shape_of(rng)
    axis = int(rng.integers(0, len(shape)))
    build.op("REVERSE_V2", [build.input(shape, kind, q), build.const(int32([axis]))], Tensor(shape, kind, q))
    return finish(build, rng, f"REVERSE_V2 {axis}")


MAKERS: Mapping[str, Maker] = {
    "RESHAPE": reshape, "SQUEEZE": squeeze, "EXPAND_DIMS": expand_dims, "CONCATENATION": concatenation,
    "PACK": pack, "UNPACK": unpack, "SPLIT": split, "SPLIT_V": split_v, "SLICE": slice_,
    "STRIDED_SLICE": strided_slice, "TRANSPOSE": transpose, "PAD": pad("PAD"), "PADV2": pad("PADV2"),
    "MIRROR_PAD": mirror_pad, "GATHER": gather, "GATHER_ND": gather_nd, "DEPTH_TO_SPACE": depth_to_space,
    "SPACE_TO_DEPTH": space_to_depth, "SPACE_TO_BATCH_ND": space_to_batch, "BATCH_TO_SPACE_ND": batch_to_space,
    "REVERSE_V2": reverse,
}  # fmt: skip

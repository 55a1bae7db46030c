"""Draws layers that move codes, cut tensors and join them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tests.fuzz.dice import MOST_ELEMENTS, Dice, Net, scale_for, value_like
from tests.fuzz.recipe import Layer, Value


def moved(net: Net, i: int, op: str, shape: Sequence[int], attrs: dict[str, Any]) -> bool:
    """Add an operator that only moves codes; now and then its result has another quantisation."""
    x = net.values[i]
    y = Value(tuple(shape), x.dtype, x.scale, x.zero_point)
    if net.dice.chance(6):
        y = value_like(net.dice, shape, x.dtype, net.spans[i])
    net.add(Layer(op, (i,), (y,), "qdq", attrs), net.spans[i])
    return True


def draw_move(net: Net, i: int) -> bool:
    """Reshape, Transpose, Slice, Pad, Gather, Tile, Flatten, Resize, DepthToSpace, Squeeze and Unsqueeze."""
    dice, x = net.dice, net.values[i]
    shape, rank = x.shape, len(x.shape)
    op = dice.pick(
        ["Transpose", "Reshape", "Slice", "Pad", "Gather", "Flatten", "Resize", "Unsqueeze", "DepthToSpace", "Tile"]
    )
    if op == "Transpose":
        perm = list(range(rank))
        for k in range(rank - 1):
            j = dice.whole(k, rank - 1)
            perm[k], perm[j] = perm[j], perm[k]
        return moved(net, i, op, [shape[p] for p in perm], {"perm": perm})
    if op == "Reshape":
        dims = [1, *_split(dice, math.prod(shape))]
        return moved(net, i, op, dims, {"_i0": dims})
    if op == "Slice":
        axis = dice.whole(0, rank - 1)
        first = dice.whole(0, shape[axis] - 1)
        last, step = dice.whole(first + 1, shape[axis]), dice.pick([1, 1, 2])
        dims = [*shape]
        dims[axis] = len(range(first, last, step))
        return moved(net, i, op, dims, {"_i0": [first], "_i1": [last], "_i2": [axis], "_i3": [step]})
    if op == "Pad":
        mode = dice.pick(["constant", "reflect", "edge"])
        begin, end = ([min(dice.whole(0, 2), d - 1) for d in shape] for _ in range(2))
        if mode == "reflect" and rank > 1:
            begin[:2], end[:2] = [0, 0], [0, 0]
        dims = [a + d + b for a, d, b in zip(begin, shape, end, strict=True)]
        return math.prod(dims) <= MOST_ELEMENTS and moved(net, i, op, dims, {"mode": mode, "_i0": begin + end})
    if op == "Gather":
        axis = dice.whole(0, rank - 1)
        index = [dice.whole(0, shape[axis] - 1) for _ in range(dice.whole(1, 4))]
        dims = [*shape]
        dims[axis] = len(index)
        return moved(net, i, op, dims, {"axis": axis, "_i0": index})
    if op == "Flatten":
        return moved(net, i, op, [shape[0], math.prod(shape[1:])], {"axis": 1})
    if op == "Unsqueeze":
        axis = dice.whole(0, rank)
        return rank < 4 and moved(net, i, op, [*shape[:axis], 1, *shape[axis:]], {"_i0": [axis]})
    if op == "Tile":
        times = [dice.pick([1, 1, 2]) for _ in shape]
        dims = [d * t for d, t in zip(shape, times, strict=True)]
        return math.prod(dims) <= MOST_ELEMENTS and moved(net, i, op, dims, {"_i0": times})
    if rank != 4:
        return False
    if op == "DepthToSpace":
        dims = [shape[0], shape[1] // 4, 2 * shape[2], 2 * shape[3]]
        return shape[1] % 4 == 0 and moved(net, i, op, dims, {"blocksize": 2, "mode": dice.pick(["DCR", "CRD"])})
    return draw_resize(net, i)


def draw_width(net: Net, i: int) -> bool:
    """Codes of 8 bits become codes of 16, or the other way round."""
    dice, x = net.dice, net.values[i]
    dtype = dice.pick(["s8", "u8"]) if x.dtype == "s16" else "s16"
    y = Value(x.shape, dtype, *scale_for(dice, dtype, net.spans[i]))
    net.add(Layer("Identity", (i,), (y,)), net.spans[i])
    return True


def draw_resize(net: Net, i: int) -> bool:
    """Nearest or linear Resize by whole factors."""
    dice, x = net.dice, net.values[i]
    factor = [1.0, 1.0, dice.pick([2.0, 1.0, 3.0]), dice.pick([2.0, 1.0])]
    dims = [int(d * f) for d, f in zip(x.shape, factor, strict=True)]
    if math.prod(dims) > MOST_ELEMENTS:
        return False
    mode = dice.pick(["nearest", "linear"])
    attrs: dict[str, Any] = {"mode": mode, "_none": 1, "_f0": factor}
    attrs["coordinate_transformation_mode"] = dice.pick(["half_pixel", "asymmetric", "align_corners"])
    if mode == "nearest":
        attrs["nearest_mode"] = dice.pick(["floor", "round_prefer_floor"])
    y = (
        value_like(dice, dims, x.dtype, net.spans[i])
        if mode == "linear"
        else Value(tuple(dims), x.dtype, x.scale, x.zero_point)
    )
    net.add(Layer("Resize", (i,), (y,), "qdq", attrs), net.spans[i])
    return True


def _split(dice: Dice, count: int) -> list[int]:
    """Return `count` as a product of one to three numbers."""
    dims = [count]
    for _ in range(dice.whole(0, 2)):
        factors = [f for f in (2, 3, 4, 5, 7, 8) if dims[-1] % f == 0 and dims[-1] > f]
        if factors:
            factor = dice.pick(factors)
            dims[-1:] = [factor, dims[-1] // factor]
    return dims


def draw_split(net: Net, i: int) -> bool:
    """Split in two or three, of which one may be unused."""
    dice, x = net.dice, net.values[i]
    axis = dice.whole(0, len(x.shape) - 1)
    if x.shape[axis] < 2:
        return False
    cut = dice.whole(1, x.shape[axis] - 1)
    parts = [cut, x.shape[axis] - cut]
    outs = tuple(Value((*x.shape[:axis], p, *x.shape[axis + 1 :]), x.dtype, x.scale, x.zero_point) for p in parts)
    unused = (dice.whole(0, 1),) if dice.chance(4) else ()
    net.unused |= {len(net.values) + k for k in unused}
    net.add(Layer("Split", (i,), outs, "qdq", {"axis": axis, "_i0": parts}, unused=unused), net.spans[i])
    return True


def draw_concat(net: Net, i: int) -> bool:
    """Concat of tensors that agree in all other axes; a tensor may stand there twice."""
    dice, values = net.dice, net.values
    x = values[i]
    axis = dice.whole(0, len(x.shape) - 1)

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and len(v.shape) == len(x.shape) and all(
            a == b for k, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if k != axis
        )  # fmt: skip

    others = [j for j, v in enumerate(values) if fits(v) and j not in net.unused]
    chosen = [i, *(dice.pick(others) for _ in range(dice.whole(1, 2)))]
    total = sum(values[j].shape[axis] for j in chosen)
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    if math.prod(shape) > MOST_ELEMENTS:
        return False
    form = "qop" if dice.chance(3) else "qdq"
    span = min(net.spans[j][0] for j in chosen), max(net.spans[j][1] for j in chosen)
    y = Value(shape, x.dtype, *scale_for(dice, x.dtype, span))
    net.add(Layer("Concat", tuple(chosen), (y,), form, {"axis": axis}), span)
    return True

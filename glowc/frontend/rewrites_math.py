"""Operators that are a few simpler ones: normalisations, Einsum, DFT, Col2Im, RotaryEmbedding, CastLike.

Sources: ONNX LpNormalization-22, InstanceNormalization-22, LRN-13, Einsum-28, DFT-20 (and -17), Col2Im-18.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glowc.frontend.builder import Builder
from glowc.frontend.chain import Chain, Rewrites
from glowc.frontend.fold import onnx_element_type
from glowc.frontend.normalize_shape import axis_of
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError


def lp_normalization(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """x / norm along an axis, 0 where the norm is 0."""
    parts, x = Chain(node, b), node.inputs[0]
    p, axis = node.int_("p", 2), axis_of(node.int_("axis", -1), b.type(x).rank)
    if p not in (1, 2):
        raise NodeError(f"p = {p}: neither 1 nor 2")
    norm = parts.add(f"ReduceL{p}", x, axes=(axis,), keepdims=1)
    zero = parts.const(np.zeros((), b.type(x).dtype.numpy))
    parts.add("Where", parts.add("Equal", norm, zero), zero, parts.add("Div", x, norm), out=parts.out)
    return parts.nodes


def instance_normalization(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, statistics over the spatial axes of each channel."""
    parts, x = Chain(node, b), node.inputs[0]
    t = b.type(x)
    axes, shape = tuple(range(2, t.rank)), parts.ints(-1, *[1] * (t.rank - 2))
    centred = parts.add("Sub", x, parts.add("ReduceMean", x, axes=axes, keepdims=1))
    variance = parts.add("ReduceMean", parts.add("Mul", centred, centred), axes=axes, keepdims=1)
    epsilon = parts.const(np.asarray(node.float_("epsilon", 1e-5), t.dtype.numpy))
    unit = parts.add("Div", centred, parts.add("Sqrt", parts.add("Add", variance, epsilon)))
    scale, bias = (parts.add("Reshape", name, shape) for name in node.inputs[1:3])
    parts.add("Add", parts.add("Mul", unit, scale), bias, out=parts.out)
    return parts.nodes


def lrn(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """x / (bias + alpha / size * sum of squares over `size` channels around)^beta."""
    parts, x = Chain(node, b), node.inputs[0]
    t, size = b.type(x), node.int_("size", 0)
    if t.rank < 2 or size < 1:
        raise NodeError(f"size {size} for {t}")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    pads = [0] * (2 * t.rank)
    pads[1], pads[t.rank + 1] = before, after
    square = parts.add("Pad", parts.add("Mul", x, x), parts.ints(*pads), mode="constant")
    total = ""
    for i in range(size):
        part = parts.add("Slice", square, parts.ints(i), parts.ints(i + t.shape[1]), parts.ints(1))
        total = parts.add("Add", total, part) if total else part
    kind = t.dtype.numpy
    scaled = parts.add("Mul", total, parts.const(np.asarray(node.float_("alpha", 1e-4) / size, kind)))
    base = parts.add("Add", scaled, parts.const(np.asarray(node.float_("bias", 1.0), kind)))
    power = parts.add("Pow", base, parts.const(np.asarray(node.float_("beta", 0.75), kind)))
    parts.add("Div", x, power, out=parts.out)
    return parts.nodes


def dft(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """DFT along an axis -> a product with a constant matrix of cosines and sines."""
    parts, x = Chain(node, b), node.inputs[0]
    t = b.type(x)
    axis = node.int_("axis", 1) if node.version < 20 else -2
    if node.version >= 20 and node.input(2):
        axis = int(b.need_value(node.inputs[2], "the axis").reshape(-1)[0])
    axis, complex_in = axis_of(axis, t.rank), t.shape[-1] == 2
    inverse, onesided = node.int_("inverse", 0), node.int_("onesided", 0)
    have = t.shape[axis]
    length = 2 * (have - 1) if inverse and onesided else have
    if node.input(1):
        length = int(b.need_value(node.inputs[1], "the length").reshape(-1)[0])
    if axis == t.rank - 1 or length < 1 or t.shape[-1] not in (1, 2) or (inverse and onesided and not complex_in):
        raise NodeError(f"axis {axis}, length {length} of {t}")
    matrix = dft_matrix(have, length, complex_in=complex_in, inverse=inverse == 1, onesided=onesided == 1)
    rest = [i for i in range(t.rank - 1) if i != axis]
    moved = parts.add("Transpose", x, perm=(*rest, axis, t.rank - 1))
    rows = parts.add("Reshape", moved, parts.ints(-1, have * t.shape[-1]))
    product = parts.add("MatMul", rows, parts.const(matrix.astype(t.dtype.numpy)))
    width = 1 if inverse and onesided else 2
    shape = (*(t.shape[i] for i in rest), matrix.shape[1] // width, width)
    back = np.argsort([*rest, axis, t.rank - 1])
    parts.add("Transpose", parts.add("Reshape", product, parts.ints(*shape)), perm=tuple(map(int, back)), out=parts.out)
    return parts.nodes


def dft_matrix(have: int, length: int, *, complex_in: bool, inverse: bool, onesided: bool) -> np.ndarray:
    """Return M with y = x M, x and y interleaved real and imaginary parts (a real signal: only the real ones)."""
    width = 2 if complex_in else 1
    columns = []
    for i in range(have * width):
        unit = np.zeros(have, np.complex128)
        unit[i // width] = 1j if complex_in and i % 2 else 1.0
        if inverse and onesided:
            columns.append(np.fft.irfft(unit, n=length))
            continue
        y = np.fft.ifft(unit, n=length) if inverse else np.fft.fft(unit, n=length)
        y = y[: length // 2 + 1] if onesided else y
        columns.append(np.stack([y.real, y.imag], -1).reshape(-1))
    return np.stack(columns)


def einsum(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Einsum of one or two operands -> Transpose, Reshape, MatMul, ReduceSum; a repeated index by GatherND."""
    parts = Chain(node, b)
    shapes = [b.type(name).shape for name in node.inputs]
    terms, result = equation(node.str_("equation", ""), [len(s) for s in shapes])
    if len(terms) > 2:
        raise NodeError(f"{len(terms)} operands (one or two are supported)")
    sizes: dict[str, int] = {}
    names, kept = [], []
    for number, (name, term, shape) in enumerate(zip(node.inputs, terms, shapes, strict=True)):
        for letter, d in zip(term, shape, strict=True):
            if sizes.setdefault(letter, d) != d:
                raise NodeError(f"index {letter} has lengths {sizes[letter]} and {d}")
        others = set(result).union(*terms[:number], *terms[number + 1 :])
        name, letters = _diagonal(parts, name, term, shape)
        gone = [i for i, letter in enumerate(letters) if letter not in others]
        if gone:
            name = parts.add("ReduceSum", name, parts.ints(*gone), keepdims=0)
        names.append(name)
        kept.append("".join(letter for i, letter in enumerate(letters) if i not in gone))
    if len(names) == 1:
        _ordered(parts, names[0], kept[0], result)
        return parts.nodes
    batch = [c for c in result if c in kept[0] and c in kept[1]]
    summed = [c for c in kept[0] if c in kept[1] and c not in result]
    left, right = ([c for c in k if c not in batch and c not in summed] for k in kept)
    groups = ((batch, left, summed), (batch, summed, right))
    ready = []
    for name, letters, order in zip(names, kept, groups, strict=True):
        moved = parts.add("Transpose", name, perm=tuple(letters.index(c) for c in itertools.chain(*order)))
        ready.append(parts.add("Reshape", moved, parts.ints(*(math.prod(sizes[c] for c in group) for group in order))))
    product = parts.add("MatMul", *ready)
    letters = "".join([*batch, *left, *right])
    wide = parts.add("Reshape", product, parts.ints(*(sizes[c] for c in letters)))
    _ordered(parts, wide, letters, result)
    return parts.nodes


def equation(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the index letters of every operand and of the result; an ellipsis becomes capital letters."""
    left, arrow, result = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise NodeError(f"equation {text!r} for {len(ranks)} operands")
    spare = [c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in text]
    hidden = [rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True) if "..." in t]
    most = max(hidden, default=0)
    dots = "".join(spare[:most])
    named = []
    for term, rank in zip(terms, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        named.append(term.replace("...", dots[len(dots) - count :] if "..." in term else ""))
        if len(named[-1]) != rank or (named[-1] and not named[-1].isalpha()):
            raise NodeError(f"equation {text!r}: {term!r} for rank {rank}")
    if not arrow:
        letters = "".join(terms).replace(".", "")
        result = ("..." if dots else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    result = result.replace("...", dots)
    if len(set(result)) != len(result) or not set(result) <= set("".join(named)):
        raise NodeError(f"equation {text!r}: result {result!r}")
    return named, result


def _diagonal(parts: Chain, name: str, term: str, shape: Sequence[int]) -> tuple[str, str]:
    """Return the operand with every index letter once."""
    unique = "".join(dict.fromkeys(term))
    if unique == term:
        return name, term
    order = sorted(range(len(term)), key=lambda i: (term.count(term[i]) > 1, term[i], i))
    letters = [term[i] for i in order]
    twice = sorted({c for c in term if term.count(c) > 1})
    if len(twice) != 1 or twice[0] == "":
        raise NodeError(f"{term!r}: more than one repeated index")
    size, times = shape[term.index(twice[0])], term.count(twice[0])
    moved = parts.add("Transpose", name, perm=tuple(order))
    rest = [shape[i] for i in order[: len(order) - times]]
    flat = parts.add("Reshape", moved, parts.ints(*rest, size**times))
    step = sum(size**k for k in range(times))
    places = parts.const(np.arange(size, dtype=np.int64) * step)
    return parts.add("Gather", flat, places, axis=len(rest)), "".join(dict.fromkeys(letters))


def _ordered(parts: Chain, name: str, letters: str, result: str) -> None:
    if letters == result:
        parts.add("Identity", name, out=parts.out)
        return
    parts.add("Transpose", name, perm=tuple(letters.index(c) for c in result), out=parts.out)


def col2im(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Col2Im: every column added to its places in the padded image, by a ScatterElements with constant indices."""
    parts, x = Chain(node, b), node.inputs[0]
    t = b.type(x)
    image = [int(v) for v in b.need_value(node.inputs[1], "the image shape")]
    block = [int(v) for v in b.need_value(node.inputs[2], "the block shape")]
    rank = len(image)
    pads, strides = node.ints("pads") or (0,) * (2 * rank), node.ints("strides") or (1,) * rank
    dilations = node.ints("dilations") or (1,) * rank
    padded = [n + pads[i] + pads[rank + i] for i, n in enumerate(image)]
    steps = [(padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    taps, places = math.prod(block), math.prod(steps)
    if t.rank != 3 or t.shape[1] % taps or t.shape[2] != places:
        raise NodeError(f"image {image}, block {block} for {t}")
    index = np.zeros((*block, *steps), np.int64)
    for i in range(rank):
        at = np.arange(block[i])[:, None] * dilations[i] + np.arange(steps[i])[None, :] * strides[i]
        wide = at.reshape([block[j] if j == i else steps[i] if j == rank + i else 1 for j in range(2 * rank)])
        index = index * padded[i] + wide
    planes, size = t.shape[0] * t.shape[1] // taps, math.prod(padded)
    zeros = parts.const(np.zeros((planes, size), t.dtype.numpy))
    where = parts.const(np.broadcast_to(index.reshape(1, -1), (planes, taps * places)).copy())
    updates = parts.add("Reshape", x, parts.ints(planes, taps * places))
    filled = parts.b.fresh(f"{parts.out}.image")
    scatter = node.new("ScatterElements", (zeros, where, updates), (filled,), axis=1, reduction="add")
    parts.nodes.append(replace(scatter, version=18))
    whole = parts.add("Reshape", filled, parts.ints(t.shape[0], t.shape[1] // taps, *padded))
    ends = [pads[i] + n for i, n in enumerate(image)]
    axes = parts.ints(*range(2, 2 + rank))
    parts.add("Slice", whole, parts.ints(*pads[:rank]), parts.ints(*ends), axes, out=parts.out)
    return parts.nodes


def rotary_embedding(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """RotaryEmbedding: pairs of the head's elements turned by the angles of the caches."""
    parts, x = Chain(node, b), node.inputs[0]
    t = b.type(x)
    heads = node.int_("num_heads", 0)
    if t.rank == 3 and heads > 0 and t.shape[2] % heads == 0:
        four = parts.add("Reshape", x, parts.ints(t.shape[0], t.shape[1], heads, t.shape[2] // heads))
        size = t.shape[2] // heads
    elif t.rank == 4:
        four, size = parts.add("Transpose", x, perm=(0, 2, 1, 3)), t.shape[3]
    else:
        raise NodeError(f"{t} with num_heads {heads}")
    turned, pairs = node.int_("rotary_embedding_dim", 0) or size, node.int_("interleaved", 0)
    if turned > size or turned % 2:
        raise NodeError(f"rotary_embedding_dim {turned} of {size}")
    caches = list(node.inputs[1:3])
    if node.input(3):
        caches = [parts.add("Gather", name, node.inputs[3], axis=0) for name in caches]
    cos, sin = (parts.add("Unsqueeze", name, parts.ints(2)) for name in caches)
    step, half = (2, 1) if pairs else (1, turned // 2)
    ends = (turned, turned) if pairs else (half, turned)
    one, two = (
        parts.add("Slice", four, parts.ints(i * half), parts.ints(end), parts.ints(3), parts.ints(step))
        for i, end in enumerate(ends)
    )
    real = parts.add("Sub", parts.add("Mul", cos, one), parts.add("Mul", sin, two))
    imag = parts.add("Add", parts.add("Mul", sin, one), parts.add("Mul", cos, two))
    if pairs:
        wide = [parts.add("Unsqueeze", name, parts.ints(4)) for name in (real, imag)]
        rest = (t.shape[0], t.shape[1] if t.rank == 3 else t.shape[2], -1, turned)
        done = parts.add("Reshape", parts.add("Concat", *wide, axis=4), parts.ints(*rest))
    else:
        done = parts.add("Concat", real, imag, axis=3)
    if turned < size:
        keep = parts.add("Slice", four, parts.ints(turned), parts.ints(size), parts.ints(3))
        done = parts.add("Concat", done, keep, axis=3)
    if t.rank == 3:
        parts.add("Reshape", done, parts.ints(*t.shape), out=parts.out)
    else:
        parts.add("Transpose", done, perm=(0, 2, 1, 3), out=parts.out)
    return parts.nodes


def cast_like(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """Cast to the element kind of the second input."""
    kind = onnx_element_type(b.type(node.inputs[1]).dtype)
    return [node.new("Cast", node.inputs[:1], node.outputs, **{**node.attrs, "to": kind})]


REWRITES: Rewrites = {
    ("", "CastLike"): cast_like,
    ("", "LpNormalization"): lp_normalization,
    ("", "InstanceNormalization"): instance_normalization,
    ("", "LRN"): lrn,
    ("", "Einsum"): einsum,
    ("", "Col2Im"): col2im,
    ("", "RotaryEmbedding"): rotary_embedding,
}

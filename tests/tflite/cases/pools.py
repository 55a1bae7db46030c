"""Windows, reductions and resizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.tflite.cases.draw import (
    Case,
    Maker,
    Rng,
    finish,
    flag,
    int32,
    pick,
    q_of,
    shape_of,
)
from tests.tflite.cases.layers import same_or_valid
from tests.tflite.writer import Build, Tensor


def pool(code: str, *kinds: str) -> Callable[[Rng], Case]:
    """Return the maker of a pooling."""

    def make(rng: Rng) -> Case:
        kind, build = str(pick(rng, *kinds)), Build()
        n, h, w, c = int(rng.integers(1, 3)), *(int(v) for v in rng.integers(3, 9, 2)), int(rng.integers(1, 6))
        k_h, k_w, s_h, s_w = (int(v) for v in (*rng.integers(1, 4, 2), *rng.integers(1, 4, 2)))
        padding, fused = int(rng.integers(2)), int(pick(rng, 0, 1, 3))
        if code == "L2_POOL_2D":
            fused = 0
        sizes = [same_or_valid(rng, h, k_h, s_h, 1, padding), same_or_valid(rng, w, k_w, s_w, 1, padding)]
        q = q_of(rng, kind)
        out = Tensor((n, *sizes, c), kind, q)
        build.op(
            code, [build.input((n, h, w, c), kind, q)], out, filterHeight=k_h, filterWidth=k_w, strideH=s_h,
            strideW=s_w, padding=padding, fusedActivationFunction=fused,
        )  # fmt: skip
        return finish(build, rng, f"{code} {k_h}x{k_w} stride {s_h},{s_w} padding {padding} act {fused}", rtol=1e-5)

    return make


def reducer(code: str, *kinds: str, same: bool = False) -> Callable[[Rng], Case]:
    """Return the maker of a reduction."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, *kinds)), Build(), shape_of(rng, 4)
        count = int(rng.integers(1, 4))
        axes = sorted(int(a) for a in rng.choice(4, count, replace=False))
        keep = flag(rng)
        left = tuple(1 if a in axes else d for a, d in enumerate(shape) if keep or a not in axes)
        q = q_of(rng, kind)
        out = q if same else q_of(rng, kind)
        if code == "SUM" and q is not None:
            out = q_of(rng, kind, -4, 2)
        drawn = [a - 4 if flag(rng) else a for a in axes]
        build.op(code, [build.input(shape, kind, q), build.const(int32(drawn))], Tensor(left, kind, out), keepDims=keep)
        return finish(build, rng, f"{code} axes {drawn} keep {keep}", rtol=1e-5)

    return make


def arg(code: str) -> Callable[[Rng], Case]:
    """Return the maker of ARG_MAX or ARG_MIN."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, "float32", "int8")), Build(), shape_of(rng)
        axis = int(rng.integers(-len(shape), len(shape)))
        left = tuple(d for i, d in enumerate(shape) if i != axis % len(shape))
        x = build.input(shape, kind, q_of(rng, kind))
        build.op(code, [x, build.const(int32([axis]))], Tensor(left, "int32"), outputType=2)
        return finish(build, rng, f"{code} axis {axis}")

    return make


def resize(code: str, *kinds: str) -> Callable[[Rng], Case]:
    """Return the maker of a resize of rows and columns."""

    def make(rng: Rng) -> Case:
        kind, build, shape = str(pick(rng, *kinds)), Build(), shape_of(rng, 4, 7)
        size = tuple(int(v) for v in rng.integers(1, 12, 2))
        mode = int(rng.integers(3))
        q = q_of(rng, kind)
        x = build.input(shape, kind, q)
        out = Tensor((shape[0], *size, shape[3]), kind, q)
        options = {"alignCorners": mode == 1, "halfPixelCenters": mode == 2}
        build.op(code, [x, build.const(int32(size))], out, **options)
        return finish(build, rng, f"{code} to {size} {options}", rtol=1e-5)

    return make


MAKERS: Mapping[str, Maker] = {
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D", "float32", "int8", "int16"),
    "MAX_POOL_2D": pool("MAX_POOL_2D", "float32", "int8", "int16"), "L2_POOL_2D": pool("L2_POOL_2D", "float32"),
    "MEAN": reducer("MEAN", "float32", "int8", "int16"), "SUM": reducer("SUM", "float32", "int8", "int16"),
    "REDUCE_MAX": reducer("REDUCE_MAX", "float32", "int8", same=True),
    "REDUCE_MIN": reducer("REDUCE_MIN", "float32", "int8", same=True), "ARG_MAX": arg("ARG_MAX"),
    "ARG_MIN": arg("ARG_MIN"), "RESIZE_BILINEAR": resize("RESIZE_BILINEAR", "float32", "int8"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR", "float32", "int8", "int16"),
}  # fmt: skip

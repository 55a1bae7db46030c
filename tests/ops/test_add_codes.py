"""The int8 sum: onnxruntime's bytes where scales make ties, the choice of the kernel, and the cases of add_s8f."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from glowc.graph.types import DType, quant
from glowc.kernels.shapes import axis_keys
from glowc.kernels.thumb.add import linear_form
from glowc.ops.binary_codes import forms_agree, fused_terms
from glowc.ops.interp import run_graph
from tests.kernels.case import Case, make_case
from tests.unit.onnx_builders import f32, model, node
from tests.unit.quirk_models import onnxruntime_outputs, optimised

SCALES = (0.05, 0.1, 0.3, 0.15, 0.025, 0.2, 0.6, 0.125, 0.07)


def kernel_cases() -> Iterator[Case]:
    """Scales with ties, both kinds of codes, a clamp, and a broadcast operand."""
    rng = np.random.default_rng(8)
    axes = dict.fromkeys(axis_keys("d"), 1) | dict.fromkeys((*axis_keys("a"), *axis_keys("b")), 0)
    codes = rng.integers(-128, 128, (2, 400)).astype(np.int8)
    for half, low in ((0, -128), (128, -128), (0, -3)):
        for step in (0, 1):
            scales = rng.choice(SCALES, 3)
            qs = [quant(s, z) for s, z in zip(scales, rng.integers(-128, 128, 3), strict=True)]
            ra, rb, fixed = fused_terms(qs[0], qs[1], qs[2], half)
            params = axes | {"d0": 400, "a0": 1, "b0": step, "rank": 1, "half": half, "out_min": low, "out_max": 127}
            params |= {"a_ratio": ra, "b_ratio": rb, "fixed": fixed}
            yield make_case("add_s8f", {"a": codes[0], "b": codes[1]}, params, out={"out": ((400,), DType.S8)})
    for n in (8, 13):
        params = axes | {"d0": 6, "d1": n, "a0": n, "a1": 1, "b0": 0, "b1": 1, "rank": 2, "half": 0, "out_min": -128}
        params |= {"out_max": 127, "a_ratio": 0.7732463, "b_ratio": 2.045217, "fixed": -37.205345}
        arrays = {"a": codes[0, : 6 * n], "b": codes[1, :n]}
        yield make_case("add_s8f", arrays, params, out={"out": ((6 * n,), DType.S8)})
    for n, b_row, (ratio, low) in itertools.product((8, 21), (0, 1), ((0.4, -128), (0.5, -60))):
        params = axes | {"d0": 5, "d1": n, "a0": n, "a1": 1, "b0": n * b_row, "b1": 1, "rank": 2, "sign": "+"}
        params |= {"a_zp": -4, "b_zp": 9, "out_zp": 3, "out_min": low, "out_max": 100}
        params |= {"a_scale": 0.021, "b_scale": 0.021 * ratio, "out_scale": 0.042}
        arrays = {"a": codes[0, : 5 * n], "b": codes[1, : n * (4 * b_row + 1)]}
        yield make_case("add_s8", arrays, params, out={"out": ((5 * n,), DType.S8)})
    for n in (1, 2, 3, 5, 7):
        params = axes | {"d0": n, "a0": 1, "b0": 1, "rank": 1, "half": 0, "out_min": -128, "out_max": 127}
        params |= {"a_ratio": 0.7732463, "b_ratio": 2.045217, "fixed": -37.205345}
        yield make_case("add_s8f", {"a": codes[0, :n], "b": codes[1, :n]}, params, out={"out": ((n,), DType.S8)})


@pytest.mark.parametrize("form", ["QLinearAdd", "QDQ", "Relu", "Clip"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_sums_with_ties_are_those_of_onnxruntime(dtype: type, form: str) -> None:
    """A Relu or Clip that cuts codes off keeps onnxruntime from adding codes: it adds floats."""
    rng = np.random.default_rng(9)
    info = np.iinfo(dtype)
    for _ in range(25):
        sa, sb, sy = (f32(s) for s in rng.choice(SCALES, 3))
        za, zb, zy = (dtype(z) for z in rng.integers(info.min, info.max + 1, 3))
        consts = {"sa": sa, "za": za, "sb": sb, "zb": zb, "sy": sy, "zy": zy, "lo": f32(-1), "hi": f32(50 * sy)}
        feeds = {name: rng.integers(info.min, info.max + 1, 2000).astype(dtype) for name in "ab"}
        nodes = [
            node("DequantizeLinear", "a sa za", "ar"),
            node("DequantizeLinear", "b sb zb", "br"),
            node("Add", "ar br", "s"),
            *([node(form, "s lo hi" if form == "Clip" else "s", "r")] if form in ("Relu", "Clip") else ()),
            node("QuantizeLinear", "r sy zy" if form in ("Relu", "Clip") else "s sy zy", "y"),
        ]
        if form == "QLinearAdd":
            nodes = [node("QLinearAdd", "a sa za b sb zb sy zy", "y", domain="com.microsoft")]
        kind = "s8" if dtype is np.int8 else "u8"
        text = f"{kind}[2000]"
        proto = model(nodes, {"a": text, "b": text}, {"y": kind}, consts, domains=["com.microsoft"])
        wanted = onnxruntime_outputs(proto, feeds)["y"]
        assert np.array_equal(run_graph(optimised(proto), feeds)["y"], wanted)


SHAPES = (
    "300,1 1", "1 300,1", "300,1 1,1", "1,1 300,1", "300,1 -", "- 300,1", "300 1", "1 300", "300 -", "20,1 20,15",
    "20,15 20,1", "20,15 1,15", "20,1 1,15", "1,15 20,1", "2,4,3,5 4,1,1", "4,1,1 2,4,3,5", "1 1", "1,1 1", "- -",
)  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
def test_sums_of_operands_that_repeat_are_those_of_onnxruntime(shapes: str) -> None:
    rng = np.random.default_rng(11)
    left, right = ([int(n) for n in t.split(",") if n != "-"] for t in shapes.split())
    small = max(left + right, default=1) == 1
    for _ in range(20 if small else 6):
        sy = f32(rng.uniform(0.001, 0.02))
        scales = [np.nextafter(sy * f32(rng.integers(1, 8) / 4), f32(d)) for d in rng.integers(0, 2, 2)]
        za, zb, zy = (np.int8(z) for z in rng.integers(-128, 128, 3))
        consts = {"sa": scales[0], "za": za, "sb": scales[1], "zb": zb, "sy": sy, "zy": zy}
        sum_node = node("QLinearAdd", "a sa za b sb zb sy zy", "y", domain="com.microsoft")
        texts = {k: f"s8[{','.join(map(str, s))}]" for k, s in (("a", left), ("b", right))}
        proto = model([sum_node], texts, {"y": "s8"}, consts, domains=["com.microsoft"])
        graph = optimised(proto)
        for _ in range(20 if small else 1):
            feeds = {"a": rng.integers(-128, 128, (1, *left)), "b": rng.integers(-128, 128, (1, *right))}
            feeds = {k: v.astype(np.int8).reshape(v.shape[1:]) for k, v in feeds.items()}
            assert np.array_equal(run_graph(graph, feeds)["y"], onnxruntime_outputs(proto, feeds)["y"])


def test_linear_form_needs_the_definition_only_where_ties_go_to_even() -> None:
    bounds = {"half": 0, "out_min": -128, "out_max": 127}
    plain = bounds | {"a_ratio": 0.7732463, "b_ratio": 2.045217, "fixed": -37.205345}
    tied = bounds | {"a_ratio": 0.5, "b_ratio": 0.5, "fixed": 3.0}
    forms = [linear_form("add_s8f", tuple(sorted(p.items()))) for p in (plain, tied)]
    assert [form is not None and form[-1] for form in forms] == [0, 1]


def test_forms_agree_only_without_ties() -> None:
    assert forms_agree(quant(0.0311, 5), quant(0.0412, -7), quant(0.0533, 1), 0, -128, 127)
    assert not forms_agree(quant(0.1, 23), quant(0.15, 74), quant(0.3, 89), 0, -128, 127)

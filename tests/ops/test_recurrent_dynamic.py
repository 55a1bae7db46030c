"""DynamicQuantizeLSTM: reference, lowered program and C against onnxruntime, errors, kernel cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glowc.board import load_board, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import ModelError
from glowc.frontend import import_model
from glowc.graph.graph import Node
from glowc.graph.types import DType, type_of
from glowc.kernels.verify import verify_program
from glowc.lower.lowering import lower_graph
from glowc.machine.execute import execute, load_bundle
from glowc.ops.interp import run_graph
from glowc.ops.recurrent import folded_bias
from glowc.ops.recurrent_dynamic import pack
from glowc.ops.recurrent_spec import cell_of, shape_of
from glowc.program.interp import run_program
from tests.conftest import require_module, require_tool
from tests.kernels.case import Case, make_case
from tests.kernels.params import cell_params

NAMES = ("x", "w", "r", "b", "lens", "h0", "c0", "p", "w_scale", "w_zero", "r_scale", "r_zero")
Inputs = dict[str, np.ndarray | None]
HIDDEN = 6


def draw(
    *, seq: int = 7, batch: int = 1, in_k: int = 5, dirs: int = 1, kind: str = "int8", per_row: bool = False,
    zero: int = 0, bias: bool = True, initial: bool = False, peephole: bool = False, seed: int = 0,
) -> Inputs:  # fmt: skip
    """Return random inputs; `zero` is added to the middle zero point of the weights."""
    rng = np.random.default_rng(seed)
    info, rows = np.iinfo(kind), 4 * HIDDEN
    scales = (dirs, rows) if per_row else (dirs,)
    middle = zero + (128 if kind == "uint8" else 0)

    def real(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "x": real(seq, batch, in_k), "w": rng.integers(info.min, info.max + 1, (dirs, in_k, rows)).astype(kind),
        "r": rng.integers(info.min, info.max + 1, (dirs, HIDDEN, rows)).astype(kind),
        "b": real(dirs, 2 * rows) if bias else None, "lens": None,
        "h0": real(dirs, batch, HIDDEN) if initial else None, "c0": real(dirs, batch, HIDDEN) if initial else None,
        "p": real(dirs, 3 * HIDDEN) if peephole else None,
        "w_scale": rng.uniform(0.002, 0.008, scales).astype(np.float32), "w_zero": np.full(scales, middle, kind),
        "r_scale": rng.uniform(0.002, 0.008, scales).astype(np.float32), "r_zero": np.full(scales, middle, kind),
    }  # fmt: skip


def model_of(inputs: Inputs, outputs: tuple[str, ...] = ("y", "y_h", "y_c"), **attrs: object) -> onnx.ModelProto:
    names = [n if inputs[n] is not None else "" for n in NAMES]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, outputs, name="layer", domain="com.microsoft", hidden_size=HIDDEN, **attrs
    )
    floats = onnx.TensorProto.FLOAT
    x = inputs["x"]
    assert x is not None
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", floats, x.shape)],
        [helper.make_tensor_value_info(o, floats, None) for o in outputs if o],
        [numpy_helper.from_array(a, n) for n, a in inputs.items() if a is not None and n != "x"],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(inputs: Inputs, **attrs: object) -> None:
    """Compare reference and program with onnxruntime on one thread."""
    ort = require_module("onnxruntime")
    model, x = model_of(inputs, **attrs), inputs["x"]  # type: ignore[arg-type]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums of two products in 16 bits
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    want = dict(zip(("y", "y_h", "y_c"), session.run(None, {"x": x}), strict=True))
    graph = import_model(model, name="net")
    program = lower_graph(graph, load_cpu("cortex-m4"))
    verify_program(program)
    for what, got in (("reference", run_graph(graph, {"x": x})), ("program", run_program(program, {"x": x}))):
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-6, atol=1e-6, err_msg=f"{what} {name} {attrs}")


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_directions_weights_and_batches_equal_onnxruntime(kind: str, direction: str, per_row: bool, batch: int) -> None:
    dirs = 2 if direction == "bidirectional" else 1
    # onnxruntime takes no zero point per row but the middle one.
    for zero in (0,) if per_row else (0, 5):
        check(draw(batch=batch, dirs=dirs, kind=kind, per_row=per_row, zero=zero), direction=direction)


def test_states_peepholes_clip_and_coupled_gates_equal_onnxruntime() -> None:
    for attrs in ({}, {"clip": 0.4}, {"input_forget": 1}, {"input_forget": 1, "clip": 0.3}):
        for peephole in (False, True):
            check(draw(initial=True, peephole=peephole, bias=peephole), **attrs)


def test_only_the_steps_that_count_are_quantised() -> None:
    for steps in (0, 1, 4, 7):
        inputs = draw(initial=True)
        x = inputs["x"]
        assert x is not None
        x[steps:] *= 100
        inputs["lens"] = np.asarray([steps], np.int32)
        if steps:
            check(inputs)
            check(inputs, direction="reverse")


def test_long_sequences_and_all_zeros_equal_onnxruntime() -> None:
    check(draw(seq=300, in_k=16))
    inputs = draw()
    inputs["x"] = np.zeros_like(inputs["x"])
    check(inputs)


def test_c_equals_the_reference_and_keeps_its_state(tmp_path: Path) -> None:
    board = load_board("host")
    require_tool(board.cpu.cc)
    inputs = draw(seq=3, initial=True)
    onnx.save(model_of(inputs), tmp_path / "net.onnx")
    samples = np.random.default_rng(3).standard_normal((4, 3, 1, 5)).astype(np.float32)
    for stateful in (False, True):
        done = compile_model(tmp_path / "net.onnx", board, CompileOptions(stateful=stateful))
        write_bundle(done, tmp_path / "net")
        got = execute(load_bundle(tmp_path / "net"), board, {"x": samples}).outputs
        graph, now = done.imported, dict(inputs)
        for i, x in enumerate(samples):
            want = run_graph(graph, {"x": x})
            for name in ("y", "y_h", "y_c"):
                np.testing.assert_allclose(got[name][i], want[name], rtol=1e-6, atol=1e-6)
            if stateful:
                now |= {"h0": want["y_h"], "c0": want["y_c"]}
                graph = import_model(model_of(now), name="net")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros((1, 5, 24), np.int16)}, "W is s16"),
        ({"w": np.zeros((1, 24, 5), np.int8)}, "W is s8"),
        ({"r_scale": np.ones(3, np.float32)}, "scale or zero point"),
        ({"lens": np.asarray([1, 2], np.int32)}, "sequence_lens"),
    ],
)
def test_types_that_do_not_fit_are_errors(change: Inputs, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        import_model(model_of({**draw(batch=2), **change}), name="net")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"r_scale": np.asarray([np.nan], np.float32)}, "a scale of the weights"),
        ({"w_zero": np.arange(24, dtype=np.int8)[None]}, "zero points that differ"),
    ],
)
def test_scales_and_zero_points_that_cannot_be_used_are_errors(change: Inputs, message: str) -> None:
    graph = import_model(model_of({**draw(per_row=True), **change}), name="net")
    with pytest.raises(ModelError) as error:
        lower_graph(graph, load_cpu("cortex-m4"))
    assert message in str(error.value)


def kernel_cases() -> Iterator[Case]:
    """Cover types, directions, switches and lengths."""
    yield kernel_case(draw(seq=3, zero=3))
    yield kernel_case(draw(seq=3, kind="uint8", per_row=True, batch=2), direction="reverse", clip=0.5)
    yield kernel_case(draw(seq=3, dirs=2, batch=2, initial=True, peephole=True), direction="bidirectional")
    yield kernel_case(draw(seq=2, peephole=True), input_forget=1)
    yield kernel_case(draw(seq=2), has_y=False)
    for steps in (0, 2, 9):
        inputs = draw(seq=3, dirs=2)
        inputs["lens"] = np.asarray([steps], np.int32)
        yield kernel_case(inputs, direction="bidirectional")


def kernel_case(inputs: Inputs, *, has_y: bool = True, **attrs: object) -> Case:
    node = Node("n", "DynamicQuantizeLSTM", (), (), {"hidden_size": HIDDEN, **attrs})  # type: ignore[dict-item]
    x, lens, peephole = inputs["x"], inputs["lens"], inputs["p"]
    assert x is not None
    shape = shape_of(node, tuple(None if inputs[n] is None else type_of(inputs[n]) for n in NAMES))  # type: ignore[arg-type]
    cell = cell_of(node)
    packed = pack(shape, [inputs[n] for n in ("w", "r", "w_scale", "w_zero", "r_scale", "r_zero")])
    rng = np.random.default_rng(1)
    arrays = {
        "in": x, **{role: getattr(packed, role) for role in ("w", "r", "w_scale", "r_scale", "zero_points")},
        "bias": folded_bias(cell, shape, inputs["b"], x.dtype), "lens": np.zeros(1, np.int32) if lens is None else lens,
        "peephole": np.zeros(1, x.dtype) if peephole is None else peephole,
        **{role: rng.uniform(-1, 1, shape.state).astype(x.dtype) for role in ("h", "c")},
    }  # fmt: skip
    params = cell_params(
        cell, shape, DType.F32, has_lens=lens is not None, has_y=has_y, clears=True, has_peephole=peephole is not None
    )
    return make_case(
        "lstm_dynamic", arrays, params,
        out={"y": (shape.y if has_y else (1,), DType.F32), "scratch": ((shape.in_k + shape.hidden,), DType.S16)},
        rtol=1e-5, atol=1e-5, why="libm's functions differ between C libraries by units in the last place",
    )  # fmt: skip

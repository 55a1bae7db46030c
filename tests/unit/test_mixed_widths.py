"""QDQ files with codes of 8 and of 16 bits: pairs between them become one Requantize, the bytes are onnxruntime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, QuantParams
from glowc.kernels.common.widths import WidthPlan, width_plan
from glowc.passes.quant.fold_codes import FoldRequantize
from tests.conftest import require_module
from tests.unit.mixed_nets import Kind, conversions, mixed_net
from tests.unit.passes_text import check


def compiled(model: onnx.ModelProto, folder: Path, board: str = "host") -> Compiled:
    file = folder / "net.onnx"
    file.write_bytes(model.SerializeToString())
    return compile_model(file, load_board(board), CompileOptions())


def onnxruntime_result(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    onnxruntime = require_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def glowc_result(done: Compiled, x: np.ndarray) -> np.ndarray:
    from glowc.program.interp import run_program

    return np.asarray(next(iter(run_program(done.program, {"x": x}).values())))


CHAINS = (
    ([np.int8, np.int16], [3, 0]), ([np.int16, np.int8], [0, -20]), ([np.int16, np.int8], [700, -128]),
    ([np.int8, np.int16, np.int8], [-7, 12, 90]), ([np.uint8, np.int16], [100, 5]), ([np.int16, np.uint8], [-3, 255]),
    ([np.int8, np.int16, np.int16, np.int8], [1, 0, 9, 2]),
)  # fmt: skip


@pytest.mark.parametrize(("kinds", "zeros"), CHAINS)
def test_codes_of_another_width_are_onnxruntimes(kinds: list[Kind], zeros: list[int], tmp_path: Path) -> None:
    model = conversions(kinds, zeros)
    x = np.random.default_rng(1).normal(0, 1, 1000).astype(np.float32)
    done = compiled(model, tmp_path)
    np.testing.assert_array_equal(glowc_result(done, x), onnxruntime_result(model, x))
    assert sum(node.op in ("QuantizeLinear", "DequantizeLinear") for node in done.graph.nodes) == 1


@pytest.mark.parametrize("wide_zero", [0, 500])
def test_layers_of_both_widths_are_on_integers_and_as_onnxruntime_within_a_step(wide_zero: int, tmp_path: Path) -> None:
    """onnxruntime computes a layer of int16 codes in float: sums may round to the next code."""
    model = mixed_net(wide_zero)
    x = np.random.default_rng(2).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)
    done = compiled(model, tmp_path)
    inner = [name for node in done.graph.nodes for name in node.outputs if done.graph.types[name].dtype.is_float]
    assert not inner
    assert [done.graph.types[n.outputs[0]].dtype.value for n in done.graph.nodes if n.op == "Requantize"] == [
        "s16",
        "s8",
    ]
    steps = np.abs(glowc_result(done, x).astype(int) - onnxruntime_result(model, x))
    assert steps.max() <= 1


def test_pair_of_another_width_becomes_requantize() -> None:
    check(
        FoldRequantize(),
        """
        input %x : s8[2] q(0.5, 3)
        %f : f32[2] = DequantizeLinear(%x)
        %wide : s16[2] q(0.003, 7) = QuantizeLinear(%f) {dtype="s16"}
        %g : f32[2] = DequantizeLinear(%wide)
        %y : u8[2] q(0.7, 9) = QuantizeLinear(%g) {dtype="u8"}
        output %y
        """,
        """
        input %x : s8[2] q(0.5, 3)
        %wide : s16[2] q(0.003, 7) = Requantize(%x) {dtype="s16"}
        %y : u8[2] q(0.7, 9) = Requantize(%wide) {dtype="u8"}
        output %y
        """,
    )


@pytest.mark.parametrize(("cpu", "variant"), [("mps2-an386", "dsp_widths"), ("mps3-an547", "mve_widths"),
                                              ("linux-aarch64", "a64_widths")])  # fmt: skip
def test_every_processor_has_a_kernel_for_both_ways(cpu: str, variant: str, tmp_path: Path) -> None:
    done = compiled(mixed_net(), tmp_path, cpu)
    chosen = [instr.variant for instr in done.program.instrs if instr.kernel == "requantize"]
    assert chosen == [variant, variant]


def test_ties_that_no_factor_rounds_to_even_have_no_form_in_integers() -> None:
    half_steps = QuantParams((1 / 256,), (0,)), QuantParams((1.0,), (0,))
    assert width_plan(*half_steps, DType.S16, DType.S8) is None
    assert width_plan(*half_steps[::-1], DType.S8, DType.S16) is not None


def codes_of_form(plan: WidthPlan, x: np.ndarray, kind: DType) -> np.ndarray:
    sums = (x.astype(np.int64) * plan.factor >> 16) + plan.add
    assert np.abs(sums).max() < 2**31
    return np.clip(sums >> plan.shift, kind.qmin, kind.qmax)


@pytest.mark.parametrize("kinds", [(DType.S8, DType.S16), (DType.S16, DType.S8)])
def test_form_in_integers_gives_every_code(kinds: tuple[DType, DType]) -> None:
    """Scales as calibrated ones are, and far others; zero points at both ends."""
    rng, found, (before, after) = np.random.default_rng(5), 0, kinds
    x = np.arange(before.qmin, before.qmax + 1).astype(before.numpy)
    for _ in range(200):
        size = rng.uniform(0.3, 3) * (1 / 256 if before is DType.S16 else 256) * rng.choice([1.0, 1.0, 1e-3, 1e3])
        scale = float(np.float32(rng.uniform(1e-3, 1.0)))
        source = QuantParams((scale,), (int(rng.choice([before.qmin, 0, 7, before.qmax])),))
        target = QuantParams((float(np.float32(scale / size)),), (int(rng.choice([after.qmin, 0, 7, after.qmax])),))
        plan = width_plan(source, target, before, after)
        if plan is not None:
            found += 1
            wanted = quantize(dequantize(x, source), target, after)
            np.testing.assert_array_equal(codes_of_form(plan, x, after), wanted)
    assert found > 100

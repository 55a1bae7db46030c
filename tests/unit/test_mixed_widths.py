"""QDQ files with codes of 8 and of 16 bits: pairs between them become one Requantize, the bytes are onnxruntime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.graph.types import DType, QuantParams
from glowc.kernels.common.widths import width_plan
from glowc.passes.quant.fold_requantize import FoldRequantize
from tests.conftest import require_module
from tests.unit.passes_text import check

Kind = type[np.int8] | type[np.int16] | type[np.uint8]


class Net:
    """A QDQ file as it grows."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.consts: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def const(self, name: str, array: np.ndarray) -> str:
        self.consts.append(numpy_helper.from_array(array, name))
        return name

    def pair(self, value: str, kind: Kind, scale: float, zero: int, *, to: str = "") -> str:
        """Quantise and dequantise a value; the codes are called `to`."""
        codes = to or f"{value}_{kind.__name__}"
        params = [self.const(f"{codes}_s", np.float32(scale)), self.const(f"{codes}_z", np.asarray(zero, kind))]
        self.nodes.append(helper.make_node("QuantizeLinear", [value, *params], [codes]))
        self.nodes.append(helper.make_node("DequantizeLinear", [codes, *params], [f"{codes}_f"]))
        return f"{codes}_f"

    def conv(self, value: str, name: str, channels: tuple[int, int]) -> str:
        weights = self.rng.integers(-127, 128, (*channels, 3, 3)).astype(np.int8)
        params = [self.const(f"{name}_ws", np.float32(0.01)), self.const(f"{name}_wz", np.int8(0))]
        self.nodes.append(
            helper.make_node("DequantizeLinear", [self.const(f"{name}_w", weights), *params], [f"{name}_wf"])
        )
        self.nodes.append(helper.make_node("Conv", [value, f"{name}_wf"], [name], name=name, pads=[1, 1, 1, 1]))
        return name

    def model(self, shape: list[int], output: str, out_shape: list[int], kind: Kind) -> onnx.ModelProto:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        graph = helper.make_graph(
            self.nodes, "mixed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, element, out_shape)], self.consts,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def mixed_net(wide_zero: int = 0) -> onnx.ModelProto:
    """Convolutions of int8, int16 and int8, int16 codes of a zero point between them; the last result is an output."""
    net = Net()
    value = net.conv(net.pair("x", np.int8, 0.02, 3), "first", (8, 3))
    value = net.pair(net.pair(value, np.int8, 0.06, -5), np.int16, 3.3e-4, wide_zero)
    value = net.conv(value, "wide", (8, 8))
    value = net.pair(net.pair(value, np.int16, 9e-4, wide_zero), np.int8, 0.2103, 11)
    net.pair(net.conv(value, "last", (4, 8)), np.int8, 0.9, 0, to="y")
    return net.model([1, 3, 8, 8], "y", [1, 4, 8, 8], np.int8)


def conversions(kinds: list[Kind], zeros: list[int]) -> onnx.ModelProto:
    """Pairs of codes of 8 and 16 bits behind each other."""
    net = Net()
    value = "x"
    for number, (kind, zero) in enumerate(zip(kinds, zeros, strict=True)):
        scale = 0.013 * (1 + 0.3 * number) / (256 if kind is np.int16 else 1)
        value = net.pair(value, kind, scale, zero, to="y" if number == len(kinds) - 1 else f"c{number}")
    return net.model([4000], "y", [4000], kinds[-1])


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
    x = np.random.default_rng(1).normal(0, 1, 4000).astype(np.float32)
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

"""How many zeros calls read: moments that go through a program against numbers that are drawn and computed."""

from __future__ import annotations

import math

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.kernels.features import features, nonzeros
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, ParamValue, Program
from glowc.select.estimate import Estimate
from glowc.select.zeros import nonzero_shares
from tests.unit.test_costs import conv

GUESSES = ((0.5, 0.06), (0.0, 1.0), (128.0, 4000.0))
RNG = np.random.default_rng(5)


def floats(*shape: int) -> TensorType:
    return TensorType(shape, DType.F32)


def call(kernel: str, ends: tuple[Operand, ...], **params: ParamValue) -> Instr:
    return Instr(kernel, "ref", ends, params)


def read(role: str, buffer: str, kind: TensorType) -> Operand:
    return Operand(role, buffer, Access.IN, kind)


def written(buffer: str, kind: TensorType) -> Operand:
    return Operand("out", buffer, Access.OUT, kind)


def program(instrs: tuple[Instr, ...], consts: dict[str, np.ndarray]) -> Program:
    names = {o.buffer: o.type.size_bytes for i in instrs for o in i.operands}
    kinds = {name: BufferKind.CONST if name in consts else BufferKind.ACTIVATION for name in names}
    return Program("p", (), (), {n: Buffer(n, kinds[n], size) for n, size in names.items()}, consts, instrs)


def drawn(mean: float, variance: float, *shape: int) -> np.ndarray:
    return RNG.normal(mean, math.sqrt(variance), shape)


def test_two_dense_layers_read_as_many_zeros_as_drawn_numbers_give() -> None:
    w1, b1 = RNG.normal(0, 0.3, (40, 30)).astype(np.float32), RNG.normal(-0.5, 1, 40).astype(np.float32)
    w2, b2 = RNG.normal(0, 0.3, (50, 40)).astype(np.float32), RNG.normal(-3, 1, 50).astype(np.float32)
    first = (read("in", "x", floats(1, 30)), read("weights", "w1", floats(40, 30)), read("bias", "b1", floats(40)))
    then = (read("in", "y", floats(1, 40)), read("weights", "w2", floats(50, 40)), read("bias", "b2", floats(50)))
    last = (read("in", "z", floats(1, 50)), written("u", floats(1, 50)))
    instrs = (
        call("fc_f32", (*first, written("y", floats(1, 40))), act_min=0.0),
        call("fc_f32", (*then, written("z", floats(1, 50))), act_min=0.0),
        call("softmax_f32", last),
    )
    shares = nonzero_shares(program(instrs, {"w1": w1, "b1": b1, "w2": w2, "b2": b2}))
    real = np.zeros(2)
    for mean, variance in GUESSES:
        y = np.maximum(drawn(mean, variance, 2000, 30) @ w1.T + b1, 0)
        z = np.maximum(y @ w2.T + b2, 0)
        real += np.array([(y > 0).mean(), (z > 0).mean()]) / len(GUESSES)
    assert shares[0] == 1
    assert np.allclose(shares[1:], real, atol=0.03)


def test_convolutions_windows_and_sums_pass_on_what_is_zero() -> None:
    image, wide = floats(1, 4, 4, 8), floats(1, 4, 4, 16)
    dead = np.full(8, -1e9, np.float32)
    consts = {
        "w": np.ones((3, 3, 8), np.float32), "dead": dead, "w16": np.zeros((16, 1, 1, 8), np.int8),
        "s16": np.full(1, 0.1, np.float32), "half": np.repeat(np.array([1, -1], np.float32), 8),
    }  # fmt: skip
    windows = (read("in", "x", image), read("weights", "w", floats(3, 3, 8)), read("bias", "dead", floats(8)))
    ends = (read("in", "p", image), read("weights", "w16", TensorType((16, 1, 1, 8), DType.S8)))
    more = (read("scale", "s16", floats(1)), read("bias", "half", floats(16)), written("c", wide))
    instrs = (
        call("dwconv_f32", (*windows, written("d", image)), act_min=0.0),
        call("max_pool_f32", (read("in", "d", image), written("p", image))),
        call("conv_f32w8", (*ends, *more), act_min=0.0),
        call("binary", (read("a", "c", wide), read("b", "c", wide), written("s", wide)), op="add"),
        call("unary", (read("in", "s", wide), written("r", wide)), op="relu"),
        call("unary", (read("in", "r", wide), written("t", wide)), op="tanh"),
    )
    shares = nonzero_shares(program(instrs, consts))
    assert np.allclose(shares, [1, 0, 0, 0.5, 0.5, 0.5], atol=1e-3)


def test_what_is_not_known_reads_no_zeros() -> None:
    image = floats(1, 4, 4, 6)
    odd = (read("in", "x", image), read("weights", "w", floats(3, 5)), written("y", image))
    instrs = (
        call("fc_f32", odd),
        call("binary", (read("a", "y", image), read("b", "q", floats(1)), written("z", image)), op="add"),
        call("unary", (read("in", "z", image), written("u", floats())), op="exp"),
        call("copy_b1", (read("in", "u", TensorType((4,), DType.S8)), written("v", TensorType((4,), DType.S8)))),
    )
    assert nonzero_shares(program(instrs, {"w": np.ones((3, 5), np.float32)})) == [1, 1, 1, 1]


def test_a_term_of_inputs_that_are_not_zero_counts_by_their_share() -> None:
    instr = conv(size=8)
    inside = features(instr)["inside"]
    found = Estimate({"call": 1.0}, {"nonzeros": 2.0}, 0.0, 9)
    assert nonzeros({"macs": 10.0}, 0.5) == 5
    assert found.predict(instr).cycles == round(2 * inside)
    assert found.predict(instr, nonzero=0.25).cycles == round(0.5 * inside)


def test_packed_weights_with_scales_of_blocks_are_not_read_as_numbers() -> None:
    """Estimates for CPUs without FPU ended in an error of shapes."""
    packed = TensorType((3, 32), DType.U8)
    first = (read("in", "x", floats(1, 64)), read("weights", "w", packed), read("scale", "s", floats(3, 2)))
    block = call("fc_f32_blocks", (*first, written("y", floats(1, 3))))
    after = call("softmax_f32", (read("in", "y", floats(1, 3)), written("z", floats(1, 3))))
    consts = {"w": np.zeros((3, 32), np.uint8), "s": np.ones((3, 2), np.float32)}
    assert nonzero_shares(program((block, after), consts)) == [1.0, 1.0]

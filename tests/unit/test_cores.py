"""Layers that cores share: which, and how they are divided."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.graph.scope import scope
from glowc.place.slices import shared
from glowc.program.ir import Buffer, BufferKind
from glowc.program.lifetimes import strip_markers
from tests.unit.conv_chain import conv_chain
from tests.unit.onnx_builders import f32, model, node
from tests.unit.time_nets import TimeNet


@pytest.mark.parametrize(("offset", "shares"), [(4, 1), (16, 2)])
def test_a_copy_that_moves_its_input_on_stays_on_one_core(offset: int, shares: int, tmp_path: Path) -> None:
    """Cores that move its halves at once would overwrite what the other one has not read."""
    net = TimeNet(64, channels=6).conv(10, 3, pads=(2, 0)).conv(3, 1, relu=False)
    onnx.save(net.done(), tmp_path / "net.onnx")
    made = compile_model(tmp_path / "net.onnx", load_board("host"), CompileOptions(input_stream="time", hop=4))
    with scope(made.known):
        program = strip_markers(made.planned.program)
        copy = next(i for i in program.instrs if i.kernel == "copy_b1")
        source, out = (copy.operand(role).buffer for role in ("in", "out"))
        buffers = {**program.buffers, "whole": Buffer("whole", BufferKind.ACTIVATION, 64, 16)}
        for name, at in ((source, 0), (out, offset)):
            buffers[name] = replace(buffers[name], alias_of="whole", alias_offset_bytes=at)
        found = shared(replace(program, buffers=buffers), 2, [1e6] * len(program.instrs), 0.0)
    assert next(i for i in found.instrs if i.kernel == "copy_b1").shares == shares


@pytest.mark.parametrize("step", [None, "1000"])
def test_parts_of_lines_per_channel_begin_at_the_first_channel(step: str | None, tmp_path: Path) -> None:
    consts = {"s": f32(0.02), "z": np.int8(3), "k": np.linspace(-2, 2, 32, dtype=np.float32).reshape(32, 1, 1)}
    nodes = [node("DequantizeLinear", "x s z", "r"), node("PRelu", "r k", "p"), node("QuantizeLinear", "p s z", "y")]
    (tmp_path / "net.onnx").write_bytes(
        model(nodes, {"x": "s8[1,32,18,17]"}, {"y": "s8"}, consts).SerializeToString()
    )  # fmt: skip
    options = CompileOptions(cores=4, slice=step, io_layout="nhwc")
    made = compile_model(tmp_path / "net.onnx", load_board("mps2-an385"), options)
    (lines,) = (i for i in made.planned.program.instrs if i.kernel == "lines_s8")
    assert lines.int_("n") < 32 * 18 * 17
    assert lines.int_("n") % 32 == 0


@pytest.mark.parametrize("cores", [2, 3, 8])
def test_stages_compute_every_row_once(cores: int, tmp_path: Path) -> None:
    path = conv_chain(tmp_path / "net.onnx", (27, 22), (8, 12, 16, 16, 8))
    made = compile_model(path, load_board("mps2-an386"), CompileOptions(cores=cores))
    slices, plain = made.program.slices, [i for i in made.program.instrs if not i.is_marker]
    assert slices is not None
    for index, instr in enumerate(plain):
        (stage,) = (s for s in slices.stages if s[0].index == index)
        assert instr.shares == cores >= len(stage) > 1
        assert stage[0].begin == 0
        assert all(one.end == other.begin for one, other in pairwise(stage))
        assert stage[-1].end == slices.ends.get(index, 27)
        longest = max(part.end - part.begin for part in stage)
        assert longest <= -(-stage[-1].end // cores)
        scratch = [o for o in instr.operands if o.role == "scratch"]
        assert all(made.program.buffers[o.buffer].size_bytes >= cores * o.type.size_bytes for o in scratch)


def test_one_core_is_as_ever(tmp_path: Path) -> None:
    path = conv_chain(tmp_path / "net.onnx", (27, 22), (8, 12, 8))
    made = compile_model(path, load_board("mps2-an386"), CompileOptions(cores=1))
    assert made.program.slices is None
    assert made.report["cores"] is None
    assert not any(name.startswith("glow_cores") for name in made.bundle.files)

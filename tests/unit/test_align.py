"""`--align`: inputs, outputs and the arena begin at cache lines and share none with others; on Cortex-M7 as such."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs
from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused, save
from tests.unit.onnx_builders import model, node


def _macros(name: str, suffix: str) -> dict[str, int]:
    text = Path(f"out/{name}.h").read_text()
    return {k: int(v) for k, v in re.findall(rf"#define (\w+_{suffix}) (\d+)u", text)}


@pytest.mark.parametrize(
    ("argv", "line"), [(("--align", "64"), 64), (("-b", "mps2-an500"), 32), (("-b", "teensy41"), 32)]
)
def test_edges_and_the_arena_begin_at_lines(glowc: Glowc, argv: tuple[str, ...], line: int) -> None:
    net = model([node("Relu", "a", "y"), node("Neg", "b", "z")], {"a": "f32[1,3]", "b": "f32[1,5]"},
                {"y": "f32[1,3]", "z": "f32[1,5]"})  # fmt: skip
    assert glowc("compile", save(net), "-o", "out", *argv).status == 0
    offsets = _macros("net", "OFFSET_BYTES")
    assert len(offsets) == 4
    assert all(at % line == 0 for at in offsets.values()), offsets
    assert _macros("net", "ARENA_ALIGN") == {"NET_ARENA_ALIGN": line}
    assert f"net_arena[(NET_ARENA_BYTES + {line - 1}u) / {line}u * {line}u]" in Path("out/net.c").read_text()


def test_without_it_nothing_changes_on_cores_without_cache(glowc: Glowc) -> None:
    assert glowc("compile", DIGITS, "-o", "out", "-b", "mps2-an386").status == 0
    assert "digits_arena[DIGITS_ARENA_BYTES]" in Path("out/digits.c").read_text()
    assert _macros("digits", "ARENA_ALIGN") == {"DIGITS_ARENA_ALIGN": 4}


@pytest.mark.parametrize("value", ["0", "3", "48", "8192", "x"])
def test_other_numbers_are_refused(glowc: Glowc, value: str) -> None:
    result = glowc("compile", DIGITS, "-o", "out", "--align", value)
    assert result.status == 1
    assert "align" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "more", [{}, {"io_buffers": "caller"}, {"plan": "stream"}, {"regions": (("a", 4096), ("b", 4096))}]
)
def test_results_are_the_same(more: dict[str, object], tmp_path: Path) -> None:
    require_tool("gcc")
    board, outputs = load_board("host"), []
    for align in (None, 128):
        options = CompileOptions(name="net", align=align, **more)  # type: ignore[arg-type]
        write_bundle(compile_model(DIGITS, board, options), tmp_path / str(align))
        info = load_bundle(tmp_path / str(align))
        outputs.append(execute(info, board, random_inputs(info, 3)).outputs)
    for name in outputs[0]:
        np.testing.assert_array_equal(outputs[0][name], outputs[1][name])


def test_output_inside_of_another_tensor_is_told(glowc: Glowc) -> None:
    """Two halves of a value are views of it; where one cannot begin at a line, the way out is said."""
    save(model([node("Relu", "x", "r"), node("Split", "r", "a b", num_outputs=2, axis=1)], {"x": "f32[1,6]"},
               {"a": "f32[1,3]", "b": "f32[1,3]"}))  # fmt: skip
    argv = ("compile", "net.onnx", "-o", "out", "--align", "32")
    if glowc(*argv).status != 0:
        refused(glowc, *argv, says=["--align 32: b is a part"], hint="--io-buffers caller")
        assert glowc(*argv, "--io-buffers", "caller").status == 0
    else:
        assert all(at % 32 == 0 for at in _macros("net", "OFFSET_BYTES").values())

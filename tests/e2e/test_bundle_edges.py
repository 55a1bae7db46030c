"""Bundles with another edge than the exported one, and with names as users choose them and exporters write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.machine.execute import load_bundle
from glowc.ops.interp import run_graph
from tests.e2e.models import DIGITS, assert_same_bytes, exported_outputs, model_path, sample
from tests.e2e.test_bundle import literal, objects, run_native, written
from tests.unit.onnx_builders import f32, model, node

EDGES = (
    ("exported", "model"), ("nhwc", "model"), ("exported", "int8"), ("nhwc", "int8"), ("exported", "float"),
    ("nhwc", "float"),
)  # fmt: skip


def edge_case() -> tuple[object, dict[str, np.ndarray]]:
    """A float image in, float scores out, quantised inside; two channels, so that layouts differ."""
    rng = np.random.default_rng(3)
    consts = {
        "sx": f32(0.02), "zx": np.int8(3), "sy": f32(0.11), "zy": np.int8(-9), "sw": f32(0.01), "zw": np.int8(0),
        "w": rng.integers(-90, 91, (3, 2, 3, 3)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", "x sx zx", "xq"), node("DequantizeLinear", "xq sx zx", "xr"),
        node("DequantizeLinear", "w sw zw", "wr"), node("Conv", "xr wr", "c", kernel_shape=[3, 3]),
        node("QuantizeLinear", "c sy zy", "yq"), node("DequantizeLinear", "yq sy zy", "y"),
    ]  # fmt: skip
    inputs = {"x": rng.standard_normal((4, 1, 2, 5, 6)).astype(np.float32)}
    return model(nodes, {"x": "f32[1,2,5,6]"}, {"y": "f32"}, consts), inputs


@pytest.mark.parametrize(("layout", "kind"), EDGES)
def test_other_edges_give_the_same_outputs(layout: str, kind: str, tmp_path: Path) -> None:
    proto, inputs = edge_case()
    path = tmp_path / "edge.onnx"
    path.write_bytes(proto.SerializeToString())  # type: ignore[attr-defined]
    result = compile_model(path, load_board("host"), CompileOptions(io_layout=layout, io_type=kind))
    info = load_bundle(written(result, tmp_path / "out"))
    port = info.inputs[0]
    assert port.shape == ((1, 5, 6, 2) if layout == "nhwc" else (1, 2, 5, 6))
    assert port.dtype.value == ("s8" if kind == "int8" else "f32")
    outputs = exported_outputs(info, "host", None, inputs)
    expected = [run_graph(result.imported, {"x": x})["y"] for x in inputs["x"]]
    assert_same_bytes(outputs, {"y": np.stack(expected)})
    copies = [i.name for i in result.program.instrs if i.kernel.startswith("copy")]
    assert len(copies) <= (0 if layout == "nhwc" else 1), "a transposed copy at the edge"


@pytest.mark.parametrize(
    ("layout", "kind", "buffers"),
    [
        ("nhwc", "model", "arena"), ("exported", "float", "arena"), ("nhwc", "float", "arena"),
        ("exported", "model", "caller"), ("nhwc", "float", "caller"),
    ],
)  # fmt: skip
def test_an_input_and_a_constant_as_outputs_have_the_edge_once(
    layout: str, kind: str, buffers: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    nodes = [node("DequantizeLinear", "x s z", "xr"), node("Neg", "xr", "n"), node("QuantizeLinear", "n s z", "y")]
    consts = {"s": f32(0.02), "z": np.int8(3), "k": rng.integers(-9, 9, (1, 3, 2, 4)).astype(np.int8)}
    proto = model(nodes, {"x": "s8[1,2,4,4]"}, {"x": "s8", "k": "s8", "y": "s8"}, consts)
    (tmp_path / "edge.onnx").write_bytes(proto.SerializeToString())
    options = CompileOptions(io_layout=layout, io_type=kind, io_buffers=buffers)
    info = load_bundle(written(compile_model(tmp_path / "edge.onnx", load_board("host"), options), tmp_path / "out"))
    x = rng.integers(-128, 127, (2, 1, 2, 4, 4)).astype(np.int8)
    want = {"x": x, "k": np.stack([consts["k"]] * 2), "y": np.clip(6 - x.astype(np.int16), -128, 127).astype(np.int8)}
    assert_same_bytes(exported_outputs(info, "host", None, {"x": x}), want)


@pytest.mark.parametrize(("layout", "kind"), [("nhwc", "model"), ("exported", "float"), ("nhwc", "float")])
def test_digits_with_another_edge_gives_the_same_outputs(layout: str, kind: str, tmp_path: Path) -> None:
    case = sample(DIGITS)
    options = CompileOptions(io_layout=layout, io_type=kind)
    info = load_bundle(written(compile_model(case.path, load_board("host"), options), tmp_path))
    assert_same_bytes(exported_outputs(info, "host", None, case.inputs), case.golden)


def test_names_that_the_user_chooses(tmp_path: Path) -> None:
    options = CompileOptions(name="Reader", entry_name="read_digit")
    folder = written(compile_model(model_path(DIGITS), load_board("host"), options), tmp_path)
    assert {"Reader.c", "Reader.h", "Reader_weights.c", "Reader_weights.h", "Reader.mk"} <= {
        p.name for p in folder.iterdir()
    }
    case = sample(DIGITS)
    vectors = literal("image", case.inputs["image"][0]) + literal("logits", case.golden["logits"][0])
    (folder / "main.c").write_text(
        '#include <string.h>\n#include "Reader.h"\n' + vectors + "int main(void) {\n"
        "  int8_t out[READER_OUTPUT_ELEMENTS];\n"
        "  const int right = read_digit(image, out) == GLOW_OK && memcmp(out, logits, sizeof out) == 0;\n"
        "  return right && reader_run() == GLOW_OK ? 0 : 1;\n}\n"
    )
    run_native(sorted(folder.glob("*.c")), folder)


@pytest.mark.parametrize("entry", ["1st", "int", "digits_run", "glow_x", "digits_input", "memcpy", "a b"])
def test_entry_name_that_cannot_be_is_refused(entry: str) -> None:
    from glowc.errors import InputError

    with pytest.raises(InputError) as caught:
        compile_model(model_path(DIGITS), load_board("host"), CompileOptions(entry_name=entry))
    assert "--entry-name digits_classify" in str(caught.value)


ODD_INPUTS = ("a/b:0;1", "a b 0 1", "int", "größe", "/*", "A/B:0;1", "arena", "a_b_0_1_OFFSET", '"\\', "*/x??/")


def odd_model() -> object:
    """Every input is scaled by its own constant and added; names are as wild as exporters write them."""
    nodes, total, consts = [], "", {}
    for index, name in enumerate(ODD_INPUTS):
        weight = ("run", "infer", "w/0", "w:0", "static", "args_0", "input", "é", "check", "*/")[index]
        consts[weight] = np.arange(3, dtype=np.float32) + index
        label = f'лой {index} */ ??/ \\ "{"x" * index}\n\x01'
        product = f"p/{index}:0"
        nodes.append(node_of("Mul", [name, weight], product, label))
        if index:
            nodes.append(node_of("Add", [total, product], f"float {index}", "a/b:0;1"))
        total = f"float {index}" if index else product
    nodes.append(node_of("Neg", [total], "return", ""))
    nodes.append(node_of("Abs", [total], "Return", ""))
    inputs = dict.fromkeys(ODD_INPUTS, "f32[1,3]")
    return model(nodes, inputs, {"return": "f32", "Return": "f32"}, consts)


def node_of(op: str, inputs: list[str], output: str, name: str) -> object:
    import onnx

    return onnx.helper.make_node(op, inputs, [output], name=name)


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_odd_names_compile_and_run(cc: str, tmp_path: Path) -> None:
    path = tmp_path / "9 my-модель (v2).onnx"
    path.write_bytes(odd_model().SerializeToString())  # type: ignore[attr-defined]
    result = compile_model(path, load_board("host"), CompileOptions(opt="size"))
    info = load_bundle(written(result, tmp_path / "out"))
    objects(info.folder, info.name, cc, ("-O1", "-Wpedantic"))
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-8, 9, (2, 1, 3)).astype(np.float32) for name in ODD_INPUTS}
    outputs = exported_outputs(info, "host", None, inputs)
    expected = [run_graph(result.imported, {n: a[i] for n, a in inputs.items()}) for i in range(2)]
    assert_same_bytes(outputs, {name: np.stack([e[name] for e in expected]) for name in ("return", "Return")})


def test_model_without_a_layer_compiles_without_warnings(tmp_path: Path) -> None:
    path = tmp_path / "same.onnx"
    path.write_bytes(model([], {"x": "f32[1,4]"}, {"x": "f32[1,4]"}).SerializeToString())
    info = load_bundle(written(compile_model(path, load_board("host")), tmp_path / "out"))
    objects(info.folder, info.name, "gcc", ("-O1", "-Wtype-limits"))
    x = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    assert_same_bytes(exported_outputs(info, "host", None, {"x": x}), {"x": x})

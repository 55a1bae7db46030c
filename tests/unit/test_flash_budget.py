"""glowc quantize with weights of 4 and 2 bits: what it writes, and the best choice of layers for a limit of flash."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import Glowc

DIGITS = ROOT / "examples/digits"
CALIBRATED_ON = 120  # of the test images; the others are judged


def float_digits() -> onnx.ModelProto:
    """Return examples/digits in float: its weights as its codes stand for them, and nothing rounded between layers."""
    model = onnx.load(DIGITS / "digits.onnx")
    consts = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes, renamed, values = [], {}, {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in consts:
            codes, scale, zero = (consts[name].astype(np.float64) for name in node.input)
            shape = [-1] + [1] * (codes.ndim - 1) if scale.size > 1 else []
            values[node.output[0]] = ((codes - zero.reshape(shape)) * scale.reshape(shape)).astype(np.float32)
        elif node.op_type == "DequantizeLinear":
            renamed[node.output[0]] = renamed.get(node.input[0], node.input[0])
        else:
            inputs = [renamed.get(name, name) for name in node.input]
            op = {"QuantizeLinear": "Relu" if "relu" in node.name else "Identity"}.get(node.op_type, node.op_type)
            new = helper.make_node(
                op,
                inputs[:1] if op in ("Relu", "Identity") else inputs,
                node.output,
                node.name.removesuffix("_QuantizeLinear"),
            )
            new.attribute.extend(node.attribute if op == node.op_type else ())
            nodes.append(new)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
             for name, shape in (("image", (1, 1, 8, 8)), ("logits", (1, 10)))]  # fmt: skip
    tensors = [numpy_helper.from_array(array, name) for name, array in values.items()]
    graph = helper.make_graph(nodes, "digits", ports[:1], ports[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@cache
def digits_data() -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / "digits_test.npz") as data:
        return data["image"].astype(np.float32) / 16, data["label"]


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    images, labels = digits_data()
    onnx.save(float_digits(), tmp_path / "float.onnx")
    np.savez(tmp_path / "in.npz", image=images[:CALIBRATED_ON])
    np.savez(tmp_path / "few.npz", image=images[:8])
    np.savez(tmp_path / "codes.npz", image=(images[:16] * 255 - 128).astype(np.int8))
    np.savez(tmp_path / "test.npz", image=images[CALIBRATED_ON:])
    np.save(tmp_path / "labels.npy", labels[CALIBRATED_ON:])
    return tmp_path


def top1(glowc: Glowc, files: Path, name: str) -> tuple[float, float]:
    """Return the points of the float model and of the C of a quantised one, on images that nothing was fitted to."""
    done = glowc("eval", files / name, "--float", files / "float.onnx", "--data", files / "test.npz",
                 "--labels", files / "labels.npy", "--json")  # fmt: skip
    assert done.status == 0, done.err
    scores = {score["machine"]: score for score in json.loads(done.out)["scores"]}
    found = [next(s["top1"] for machine, s in scores.items() if word in machine) for word in ("float", "C on the host")]
    return 100 * found[0], 100 * found[1]


def test_digits_in_half_of_the_flash_lose_at_most_a_point(glowc: Glowc, files: Path) -> None:
    require_module("onnxruntime")
    require_tool("gcc")
    given = ("quantize", files / "float.onnx", "--data", files / "in.npz", "--json")
    whole = glowc(*given, "-o", files / "q8.onnx", "--flash-limit", "2M")
    assert whole.status == 0, whole.err
    int8_bytes = json.loads(whole.out)["chosen"]["constants_bytes"]
    half = glowc(*given, "-o", files / "half.onnx", "--flash-limit", str(int8_bytes // 2))
    assert half.status == 0, half.err
    assert json.loads(half.out)["chosen"]["constants_bytes"] <= int8_bytes // 2
    exact, found = top1(glowc, files, "half.onnx")
    assert exact - found <= 1.0
    exact, found = top1(glowc, files, "q8.onnx")
    assert exact - found <= 0.3


def test_weights_of_four_bits_are_int4_initialisers_and_give_onnxruntimes_bytes(glowc: Glowc, files: Path) -> None:
    require_module("onnxruntime")
    done = glowc("quantize", files / "float.onnx", "--data", files / "in.npz", "-o", "q.onnx", "--weights", "int4",
                 "--weights-of", "wide=int8", "--weights-of", "pointwise=int4")  # fmt: skip
    assert done.status == 0, done.err
    assert "2 layers with weights of 4 bits" in done.out
    model = onnx.load(files / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    kinds = {i.name: i.data_type for i in model.graph.initializer if i.name.endswith("_codes")}
    narrow = {name for name, kind in kinds.items() if kind == TensorProto.INT4}
    assert {name.partition("_")[0] for name in narrow} == {"residual", "pointwise"}
    done = glowc("validate", "q.onnx", "--board", "host", "--input", files / "codes.npz", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["outputs"][0]["equal_share"] == 1.0


def test_pareto_lists_choices_from_all_bytes_to_the_fewest(glowc: Glowc, files: Path) -> None:
    done = glowc(
        "quantize", files / "float.onnx", "--data", files / "few.npz", "-o", "q.onnx", "--pareto", "--no-rounding"
    )
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    table = [line for line in lines if re.match(r"[* ] +[\d,]+ +[\d,]+ +[\d,]+ +[\d.]+ %", line)]
    sizes = [int(line[1:].split()[0].replace(",", "")) for line in table]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) >= 3
    assert [line[0] for line in table].count("*") == 1
    assert sum("o" in line.partition("|")[2] for line in lines) >= 2
    picture = ElementTree.parse(files / "q_pareto.svg").getroot()
    assert len(picture.findall("{*}circle")) >= len(table)


def test_activations_are_the_finest_that_the_limits_allow(glowc: Glowc, files: Path) -> None:
    given = ("quantize", files / "float.onnx", "--data", files / "few.npz", "--no-rounding", "--no-equalise", "--json",
             "--activations", "auto")  # fmt: skip
    roomy = glowc(*given, "-o", "q16.onnx", "--ram-limit", "64K", "--max-insns", "10000000")
    assert roomy.status == 0, roomy.err
    sizes = {p["activations"]: p for p in json.loads(roomy.out)["points"]}
    assert json.loads(roomy.out)["chosen"] == sizes["int16"]
    assert sizes["int16"]["error"] < sizes["int8"]["error"]
    for option, field in (("--ram-limit", "arena_bytes"), ("--max-insns", "insns_estimate")):
        for kind in ("int16", "int8"):
            found = glowc(*given, "-o", "q.onnx", option, str(sizes[kind][field]))
            assert json.loads(found.out)["chosen"]["activations"] == kind


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--flash-limit", "10"), "bytes of constants, at most 10"),
        (("--ram-limit", "100"), "bytes of arena, at most 100"),
        (("--max-insns", "1000"), "instructions, at most 1,000"),
        (("--activations", "auto"), "--activations auto takes what limits allow"),
        (("--flash-limit", "many"), "'many' is no size in bytes"),
        (("--flash-limit", "0"), "'0' is no size in bytes"),
        (("--weights", "int3"), "--weights int3: no type of weights 'int3'"),
        (("--weights-of", "wide"), "--weights-of wide: no NODE=TYPE"),
        (("--weights-of", "wode=int4"), "no quantised layer with weights is called 'wode'"),
        (
            ("--target-accuracy", "1", "--pareto"),
            "--target-accuracy keeps layers float, limits make them smaller",
        ),
        (("--flash-limit", "32K", "--board", "mps2"), "mps2"),
        (("--flash-limit", "32K", "--weights", "int4"), "--weights int4: limits and --pareto choose"),
    ],
)
def test_wrong_wishes_are_errors_and_nothing_is_written(
    glowc: Glowc, files: Path, options: tuple[str, ...], words: str
) -> None:
    done = glowc(
        "quantize", files / "float.onnx", "--data", files / "few.npz", "-o", "q.onnx", "--no-rounding", *options
    )
    assert done.status == 1
    assert words in done.err
    assert not (files / "q.onnx").exists()

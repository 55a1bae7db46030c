"""`--activations-of`: single layers on int16, what the file has where both widths meet, which layers gain most."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import InputError
from glowc.quant import Activations, QuantizeOptions, Schema, quantize_model
from glowc.quant.emit import edge_params
from glowc.quant.engine import Engine, prepare_interpreter, prepare_onnxruntime
from glowc.quant.finer import as_wishes, finest, unions
from glowc.quant.load import load_float
from glowc.quant.precision import Precision
from glowc.quant.profile import Profiler
from glowc.quant.quantizer import Gathered, Quantized
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of
from glowc.quant.wider import within
from tests.conftest import require_module
from tests.unit.cli_calls import Glowc, refused
from tests.unit.quantize_nets import Arrays, branch_net, conv_net, images, model


def quantised(net: onnx.ModelProto, *wide: str, samples: Iterable[Arrays] = (), **options: bool) -> Quantized:
    """A model with some layers on int16."""
    wishes = Precision(activations_of=as_wishes(wide))
    return quantize_model(net, [*samples] or images(), QuantizeOptions(precision=wishes, **options))


def widths(done: Quantized) -> dict[str, int]:
    """The bits of the codes of all QuantizeLinear, by their names."""
    kinds = {i.name: i.data_type for i in done.model.graph.initializer}
    nodes = [n for n in done.model.graph.node if n.op_type == "QuantizeLinear"]
    return {n.output[0]: 8 if kinds[n.input[2]] == onnx.TensorProto.INT8 else 16 for n in nodes}


def compiled(done: Quantized, folder: Path, board: str = "host") -> Compiled:
    file = folder / "net.onnx"
    file.write_bytes(done.model.SerializeToString())
    return compile_model(file, load_board(board), CompileOptions())


def test_layers_behind_each_other_have_int16_between_them_and_int8_around() -> None:
    done = quantised(conv_net(), "depthwise", "pointwise")
    onnx.checker.check_model(done.model, full_check=True)
    assert done.model.opset_import[0].version == 21
    assert done.wide == ("depthwise", "pointwise")
    wide = {name for name, bits in widths(done).items() if bits == 16}
    assert wide == {"r1_int16_quantized", "r2_quantized", "c3_quantized"}
    assert widths(done).keys() >= {"r1_quantized", "c3_int8_quantized", "sum_quantized"}
    assert not done.notes


def test_outputs_have_the_width_of_the_layer_that_makes_them_inputs_of_one_that_reads_them() -> None:
    edges = edge_params(quantised(conv_net(), "first", "softmax").model)
    assert {name: (p.bits, p.zero_point) for name, p in edges.items()} == {"x": (16, 0), "y": (16, 0)}
    assert {p.bits for p in edge_params(quantised(conv_net(), "Add").model).values()} == {8}


def test_clamps_and_what_lies_between_int16_layers_follow_them() -> None:
    """mean and flatten lie between concat and matmul."""
    done = quantised(conv_net(), "concat", "maxpool", "bias")
    assert done.wide == ("concat", "maxpool", "mean", "flatten", "matmul")
    assert {n: b for n, b in widths(done).items() if b == 16}.keys() >= {"p2_quantized", "logits_quantized"}
    for named in ("depthwise", "clip"):
        done = quantised(conv_net(), named)
        assert done.wide == ("depthwise",)
        assert widths(done)["r2_quantized"] == 16
        assert not [name for name in widths(done) if name.startswith("c2")]


def test_every_layer_by_name_errs_as_little_as_int16_for_all() -> None:
    require_module("onnxruntime")
    inputs = load_float(conv_net()).inputs
    exact = outputs_of(conv_net(), inputs, images())
    every = ("Conv", "Add", "Concat", "MaxPool", "GlobalAveragePool", "Flatten", "Gemm", "Softmax")
    all_named = quantised(conv_net(), *every).model
    whole = quantize_model(conv_net(), images(), QuantizeOptions(activations=Activations.INT16)).model
    errors = [relative_error(outputs_of(m, inputs, images()), exact) for m in (all_named, whole)]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)


def test_int8_for_single_layers_of_an_int16_model() -> None:
    options = QuantizeOptions(
        activations=Activations.INT16, precision=Precision(activations_of={"pointwise": Activations.INT8})
    )
    done = quantize_model(conv_net(), images(), options)
    assert "pointwise" not in done.wide
    assert {"depthwise", "add"} <= {*done.wide}
    assert 8 in widths(done).values()


def test_every_layer_is_on_integers_and_as_onnxruntime_within_a_step(tmp_path: Path) -> None:
    """onnxruntime computes layers of int16 in float: a code of theirs, or of what they become, may be the next one."""
    require_module("onnxruntime")
    done = quantised(conv_net(), "depthwise", "pointwise", "add", "softmax")
    graph = compiled(done, tmp_path).graph
    assert not [name for node in graph.nodes for name in node.outputs if graph.types[name].dtype.is_float]
    known = edge_params(done.model)["x"]
    for sample in images():
        codes = {"x": known.codes(sample["x"])}
        got, want = (run(done.model)(codes)[0].astype(np.int64) for run in (prepare_interpreter, prepare_onnxruntime))
        assert np.abs(got - want).max() <= 1


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "rpi-pico"])
def test_conversions_of_own_files_need_no_float(board: str, tmp_path: Path) -> None:
    program = compiled(quantised(conv_net(), "depthwise", "pointwise"), tmp_path, board).program
    assert [i.variant.endswith("_widths") for i in program.instrs if i.kernel == "requantize"] == [True, True]


def test_scales_that_are_powers_of_two_stay_such() -> None:
    options = QuantizeOptions(
        schema=Schema.SYMMETRIC_WITH_POWER2_SCALE, precision=Precision(activations_of=as_wishes(["Conv"]))
    )
    done = quantize_model(conv_net(), images(), options)
    scales = [i for i in done.model.graph.initializer if i.name.endswith("quantized_scale")]
    assert all(np.log2(onnx.numpy_helper.to_array(s)).is_integer() for s in scales)


def test_a_shortcut_read_in_both_widths_is_converted_once() -> None:
    samples = [{"x": s["x"]} for s in images()]
    done = quantised(branch_net(), "long1", "short", samples=samples)
    assert [n for n in widths(done) if n.startswith("x")] == []  # the input is int16, all that read it are
    done = quantised(branch_net(), "short", "sum", samples=samples)
    assert [n for n in widths(done) if n.startswith("x_int8")] == ["x_int8_quantized"]
    assert widths(done)["d_quantized"] == widths(done)["y"] == 16


def test_a_layer_without_int16_beside_it_is_told() -> None:
    assert [n for n in quantised(conv_net(), "pointwise").notes if "is of no use" in n]
    assert not [n for n in quantised(conv_net(), "first").notes if "is of no use" in n]


def recurrent_net() -> onnx.ModelProto:
    """A GRU and a Gemm."""
    rng = np.random.default_rng(0)
    consts = {"w": rng.normal(size=(1, 12, 3)).astype(np.float32), "r": rng.normal(size=(1, 12, 4)).astype(np.float32),
              "k": rng.normal(size=(4, 2)).astype(np.float32), "axes": np.array([0, 1], np.int64)}  # fmt: skip
    nodes = [
        helper.make_node("GRU", ["x", "w", "r"], ["", "h"], name="gru", hidden_size=4),
        helper.make_node("Squeeze", ["h", "axes"], ["flat"], name="squeeze"),
        helper.make_node("Unsqueeze", ["flat", "zero"], ["row"], name="row"),
        helper.make_node("MatMul", ["row", "k"], ["y"], name="dense"),
    ]
    consts["zero"] = np.array([0], np.int64)
    return model(nodes, consts, {"x": [5, 1, 3]}, {"y": [1, 2]})


def test_recurrent_layers_stay_on_int8() -> None:
    samples = [{"x": np.random.default_rng(i).normal(size=(5, 1, 3)).astype(np.float32)} for i in range(8)]
    done = quantised(recurrent_net(), "gru", "dense", samples=samples)
    assert 'GRU "gru" has no int16 form: it stays on int8' in done.notes
    assert done.wide == ("dense",)
    edges = edge_params(done.model)
    assert (edges["x"].bits, edges["y"].bits) == (8, 16)


def test_sets_of_layers_grow_by_what_they_gain() -> None:
    engine = Engine()
    net = load_float(conv_net())
    gathered = Gathered(Profiler(net, engine), [])
    for sample in images():
        gathered.add(sample)
    sets = unions(finest(net, engine, gathered.profiler.profile(), gathered.kept, QuantizeOptions()))
    assert all({*a} < {*b} for a, b in pairwise(sets))
    assert "y" in sets[0]  # the rounding of the output is nobody's but its own
    assert {"n1", "c2", "c3", "sum", "both"} <= {*sets[-1]}


def test_unknown_layers_are_an_error() -> None:
    with pytest.raises(InputError, match="no layer on codes is called 'pointwide'"):
        quantised(conv_net(), "pointwide")


@pytest.mark.parametrize(
    ("wish", "says"),
    [("pointwise", "--activations-of pointwise: no NODE=TYPE"), ("wise=int16", "no layer on codes is called 'wise'"),
     ("add=int4", "--activations-of add=int4: no type of activations 'int4'")],
)  # fmt: skip
def test_wrong_wishes_are_errors(glowc: Glowc, tmp_path: Path, wish: str, says: str) -> None:
    argv = saved(tmp_path)
    refused(glowc, "quantize", *argv, "--activations-of", wish, says=[says])
    assert not (tmp_path / "q.onnx").exists()


def test_inputs_and_outputs_of_another_type_than_asked_for_are_an_error(glowc: Glowc, tmp_path: Path) -> None:
    argv = (*saved(tmp_path), "--io-type", "int8", "--activations-of")
    says = ['--io-type int8: "y" is int16, as the layers at it are']
    refused(glowc, "quantize", *argv, "softmax=int16", says=says, hint="--activations-of NODE=int8")
    assert glowc("quantize", *argv, "add=int16").status == 0


def saved(folder: Path) -> tuple[str | Path, ...]:
    """The model and its samples as files, and the options that name them."""
    (folder / "net.onnx").write_bytes(conv_net().SerializeToString())
    np.savez(folder / "in.npz", x=np.stack([s["x"] for s in images()]))
    return folder / "net.onnx", "--data", folder / "in.npz", "-o", folder / "q.onnx"


def test_command_says_which_layers_are_on_int16(glowc: Glowc, tmp_path: Path) -> None:
    argv = saved(tmp_path)
    done = glowc("quantize", *argv, "--activations-of", "depthwise=int16", "--activations-of", "pointwise=int16")
    assert "  on int16: depthwise, pointwise" in done.out
    done = glowc("quantize", *argv, "--activations-of", "Conv=int16", "--activations-of", "first=int8", "--json")
    assert json.loads(done.out)["int16"] == ["depthwise", "pointwise"]


def test_single_layers_are_on_int16_where_limits_allow_no_more(glowc: Glowc, tmp_path: Path) -> None:
    argv = (*saved(tmp_path), "--activations", "auto", "--json")
    roomy = json.loads(glowc("quantize", *argv, "--max-insns", "10000000").out)["points"]
    insns = {p["activations"]: p["insns_estimate"] for p in roomy}
    between = (insns["int8"] * 2 + insns["int16"]) // 3
    found = json.loads(glowc("quantize", *argv, "--max-insns", str(between)).out)
    chosen = found["chosen"]
    assert chosen["int16"]
    assert chosen["insns_estimate"] <= between
    assert chosen["error"] < next(p["error"] for p in roomy if p["activations"] == "int8")
    table = glowc("quantize", *argv[:-1], "--max-insns", str(between)).out
    assert "activations int8, " in table


def test_what_does_not_fit_is_left_out_of_the_sets() -> None:
    order = [("a",), ("b", "c"), ("c", "d"), ("e",), ("f",)]
    sizes = {"a": 1, "b": 2, "c": 2, "d": 9, "e": 1, "f": 3}
    calls: list[tuple[str, ...]] = []

    def fits(layers: tuple[str, ...]) -> bool:
        calls.append(layers)
        return sum(sizes[n] for n in layers) <= 7

    assert within(order, fits) == [("a",), ("b", "c"), ("e",)]
    assert len(calls) <= 6
    assert within(order, lambda _: False) == []
    assert within(order, lambda _: True) == order

"""The quantiser on what exporters write besides layers: constant outputs, open sizes, half precision, groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import glowc
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.errors import InputError
from glowc.frontend import import_model
from glowc.machine.validate import validate_model
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.simulate import relative_error
from tests.unit.cli_calls import Glowc
from tests.unit.quantize_nets import F32, Arrays, conv_net, dense_net, images, model, rows
from tests.unit.test_quantize_model import codes_of, run

FLOAT_EDGE = QuantizeOptions(float_edge=True)


def noise(shape: tuple[int, ...], count: int = 8, name: str = "x") -> list[Arrays]:
    rng = np.random.default_rng(1)
    return [{name: rng.normal(size=shape).astype(np.float32)} for _ in range(count)]


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def outputs(net: onnx.ModelProto) -> dict[str, tuple[int, list[int]]]:
    return {o.name: (o.type.tensor_type.elem_type, [d.dim_value for d in o.type.tensor_type.shape.dim])
            for o in net.graph.output}  # fmt: skip


@pytest.mark.parametrize("read", [False, True], ids=["alone", "added to the input too"])
@pytest.mark.parametrize("options", [QuantizeOptions(), FLOAT_EDGE], ids=["int8", "float"])
def test_constant_that_is_an_output_stays_as_it_is(read: bool, options: QuantizeOptions) -> None:
    net = dense_net()
    net.graph.initializer.append(numpy_helper.from_array(np.arange(4, dtype=np.float32), "anchors"))
    net.graph.output.append(helper.make_tensor_value_info("anchors", F32, [4]))
    net.graph.node.insert(0, helper.make_node("Mul", ["anchors", "anchors"], ["squares"]))
    net.graph.output.append(helper.make_tensor_value_info("squares", F32, [4]))
    if read:
        net.graph.node.insert(1, helper.make_node("Add", ["x", "anchors"], ["moved"]))
        net.graph.node[2].input[0] = "moved"
    done = quantize_model(net, noise((1, 4)), options)
    onnx.checker.check_model(done.model, full_check=True)
    assert outputs(done.model)["anchors"] == outputs(done.model)["squares"] == (F32, [4])
    held = {i.name: numpy_helper.to_array(i).tolist() for i in done.model.graph.initializer}
    assert (held["anchors"], held["squares"]) == ([0, 1, 2, 3], [0, 1, 4, 9])
    assert done.error is not None
    assert done.error < 0.02


def test_input_that_is_an_output_gives_a_valid_model_with_float_edges() -> None:
    net = dense_net()
    net.graph.output.append(helper.make_tensor_value_info("x", F32, [1, 4]))
    for options in (QuantizeOptions(), FLOAT_EDGE):
        onnx.checker.check_model(quantize_model(net, noise((1, 4)), options).model, full_check=True)


def test_output_whose_size_the_model_leaves_open_has_its_size() -> None:
    net = dense_net()
    net.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    net.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "classes"
    done = quantize_model(net, noise((1, 4)))
    onnx.checker.check_model(done.model, full_check=True)
    assert outputs(done.model)["y"][1] == [1, 3]


@pytest.mark.parametrize("normalised", [False, True])
def test_transposed_convolution_in_groups(tmp_path: Path, normalised: bool) -> None:
    consts = {"w": weights(6, 2, 4), "b": weights(4), "v": np.abs(weights(4)) + 0.5, "w2": weights(3, 4, 1)}
    attrs = {"kernel_shape": [4], "strides": [2], "pads": [1, 1], "group": 2}
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["t"], name="up", **attrs),
        helper.make_node("BatchNormalization", ["t", "b", "b", "b", "v"], ["n"], name="norm"),
        helper.make_node("Conv", ["n" if normalised else "t", "w2"], ["y"], name="mix", kernel_shape=[1]),
    ]
    net = model(nodes if normalised else [nodes[0], nodes[2]], consts, {"x": [1, 6, 5]}, {"y": [1, 3, 10]})
    done = quantize_model(net, noise((1, 6, 5)))
    onnx.checker.check_model(done.model, full_check=True)
    assert relative_error(codes_of(done.model, noise((1, 6, 5))), run(net, noise((1, 6, 5)))) < 0.01
    assert operators(done.model) == ["Reshape", "ConvTranspose", "Conv", "Reshape"]
    _validate(tmp_path, done.model)


def _validate(folder: Path, net: onnx.ModelProto) -> None:
    (folder / "net.onnx").write_bytes(net.SerializeToString())
    codes = np.random.default_rng(0).integers(-128, 128, (1, 6, 5)).astype(np.int8)
    np.savez(folder / "in.npz", x=codes)
    found = validate_model(folder / "net.onnx", load_board("host"), CompileOptions(), folder / "in.npz")
    assert [output["equal_share"] for output in found["outputs"]] == [1.0]


def half_net(kind: int) -> onnx.ModelProto:
    """Two layers in another float type, between Casts from and to float32."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    make = helper.make_node
    nodes = [
        make("Cast", ["x"], ["h"], to=kind),
        make("Gemm", ["h", "w", "b"], ["g"], name="one", transB=1),
        make("Relu", ["g"], ["r"], name="relu"),
        make("Gemm", ["r", "w", "b"], ["s"], name="two", transB=1),
        make("Cast", ["s"], ["y"], to=F32),
    ]
    consts = {"w": weights(4, 4).astype(dtype), "b": weights(4).astype(dtype)}
    return model(nodes, consts, {"x": [1, 4]}, {"y": [1, 4]})


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE])
def test_half_and_double_precision_are_quantised_as_float32_is(kind: int) -> None:
    net = half_net(kind)
    done = quantize_model(net, noise((1, 4)))
    assert not done.floats
    assert outputs(done.model)["y"][0] == onnx.TensorProto.INT8
    assert relative_error(codes_of(done.model, noise((1, 4))), run(net, noise((1, 4)))) < 0.02
    for value in (*net.graph.input, *net.graph.output):
        value.type.tensor_type.elem_type = kind
    edge = quantize_model(net, [{"x": s["x"].astype(np.float64)} for s in noise((1, 4))], FLOAT_EDGE)
    assert outputs(edge.model)["y"][0] == F32


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"x": np.zeros(4)}, "x is float64[4], the model takes x: float32[1, 4]"),
        ({"y": np.zeros((1, 4))}, "there is no x: float32[1, 4]\n  'y' is no input of the model"),
        ({"x": np.array([["a"] * 4])}, "the model takes x: float32[1, 4]"),
        (np.zeros((1, 4)), "a sample is a dict: {'x': array}"),
    ],
)
def test_sample_that_does_not_fit_is_named(sample: Arrays, said: str) -> None:
    with pytest.raises(InputError, match="sample 1 ") as found:
        quantize_model(dense_net(), [*rows([1, 2, 3, 4]), sample])
    assert said in str(found.value)


def open_net() -> onnx.ModelProto:
    """A convolution of an image of any size."""
    net = model([helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1] * 4)], {"w": weights(2, 3, 3, 3)},
                {"x": [1, 3, 6, 5]}, {"y": [1, 2, 6, 5]})  # fmt: skip
    for value in (net.graph.input[0], net.graph.output[0]):
        for axis, name in ((0, "N"), (2, "H"), (3, "W")):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    return net


def test_sizes_that_the_model_leaves_open_are_those_of_the_data() -> None:
    images = np.random.default_rng(1).normal(size=(8, 3, 6, 5)).astype(np.float32)
    for done in (
        glowc.quantize(open_net(), images),
        glowc.quantize(open_net(), images[:, None]),
        quantize_model(open_net(), [{"x": image[None]} for image in images]).model,
    ):
        onnx.checker.check_model(done, full_check=True)
        assert outputs(done)["y"][1] == [1, 2, 6, 5]


@pytest.fixture(name="opened")
def _opened(tmp_path: Path) -> Path:
    """A folder with a model of open sizes, arrays and images."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "net.onnx").write_bytes(open_net().SerializeToString())
    pixels = np.random.default_rng(1).integers(0, 256, (8, 6, 5, 3), np.uint8)
    np.save(tmp_path / "in.npy", np.moveaxis(pixels, 3, 1).astype(np.float32))
    (tmp_path / "images").mkdir()
    for i, one in enumerate(pixels):
        image.fromarray(one).save(tmp_path / "images" / f"{i}.png")
    return tmp_path


def test_open_sizes_on_the_command_line(glowc: Glowc, opened: Path) -> None:
    assert glowc("quantize", opened / "net.onnx", "--data", opened / "in.npy", "-o", "a.onnx").status == 0
    assert outputs(onnx.load(opened / "a.onnx"))["y"][1] == [1, 2, 6, 5]
    given = ("--input-shape", "x=1x3x4x4")
    assert glowc("quantize", opened / "net.onnx", "--data", opened / "images", *given, "-o", "b.onnx").status == 0
    assert outputs(onnx.load(opened / "b.onnx"))["y"][1] == [1, 2, 4, 4]
    symbols = ("--define-symbol", "H=6", "--define-symbol", "W=5", "--batch-size", "2")
    np.save(opened / "pairs.npy", np.zeros((4, 2, 3, 6, 5), np.float32))
    assert glowc("quantize", opened / "net.onnx", "--data", opened / "pairs.npy", *symbols, "-o", "d.onnx").status == 0
    assert outputs(onnx.load(opened / "d.onnx"))["y"][1] == [2, 2, 6, 5]
    assert glowc("profile", opened / "net.onnx", "--data", opened / "images", *given, "-o", "p.yaml").status == 0
    assert glowc("quantize", opened / "net.onnx", "--profile", "p.yaml", *given, "-o", "c.onnx").status == 0


def test_images_of_a_model_of_open_sizes_are_not_scaled_to_one_pixel(glowc: Glowc, opened: Path) -> None:
    done = glowc("quantize", opened / "net.onnx", "--data", opened / "images", "-o", "q.onnx")
    assert done.status == 1
    assert "it takes x: float32[N, 3, H, W]" in done.err
    assert "--input-shape x=Nx3xHxW with numbers" in done.err


def test_every_shape_that_does_not_fit_is_said(glowc: Glowc, opened: Path) -> None:
    wrong = ("--input-shape", "x=1x4x6x5", "--input-shape", "z=1x2", "--define-symbol", "Q=2")
    done = glowc("quantize", opened / "net.onnx", "--data", opened / "in.npy", *wrong, "-o", "q.onnx")
    assert done.status == 1
    assert "--input-shape z: the model has x" in done.err
    assert "--define-symbol Q: the model has no such dimension" in done.err
    assert "--input-shape x=1x4x6x5: the model takes x: float32[N, 3, H, W]" in done.err


@pytest.mark.parametrize("options", [[], ["--define-symbol", "N=1"], ["--input-shape", "x=1x3x6x5"]])
def test_open_sizes_when_compiling_with_samples(glowc: Glowc, opened: Path, options: list[str]) -> None:
    done = glowc("compile", opened / "net.onnx", "--quantize-data", opened / "in.npy", *options, "-o", "out")
    assert (done.status, done.err) == (0, "")


def twins() -> onnx.ModelProto:
    """Two branches with the same weights, folded into another BatchNormalization each, and a layer used three times."""
    r = np.random.default_rng(2)
    consts = {
        "w": weights(8, 3, 3, 3) / 5,
        "g": 1 + r.random(8).astype(np.float32),
        "b": weights(8),
        "w2": weights(8, 8),
    }
    nodes = []
    for x in "pq":
        nodes += [
            helper.make_node("Conv", [x, "w"], [f"c{x}"], name=f"conv_{x}", pads=[1] * 4),
            helper.make_node("BatchNormalization", [f"c{x}", "g", "b", "b", "g"], [f"n{x}"], name=f"norm_{x}"),
            helper.make_node("Relu", [f"n{x}"], [f"r{x}"], name=f"relu_{x}"),
            helper.make_node("GlobalAveragePool", [f"r{x}"], [f"m{x}"], name=f"mean_{x}"),
            helper.make_node("Flatten", [f"m{x}"], [f"f{x}"], name=f"flat_{x}"),
            helper.make_node("Gemm", [f"f{x}", "w2", "b"], [f"y{x}"], name=f"dense_{x}", transB=1),
        ]
    nodes.append(helper.make_node("Sub", ["yp", "yq"], ["y"], name="difference"))
    return model(nodes, consts, {"p": [1, 3, 6, 6], "q": [1, 3, 6, 6]}, {"y": [1, 8]})


def test_weights_that_layers_share_are_stored_once() -> None:
    samples = [{**p, **q} for p, q in zip(noise((1, 3, 6, 6), name="p"), noise((1, 3, 6, 6), name="q"), strict=True)]
    for sample in samples:
        sample["q"] = sample["q"][:, :, ::-1] * np.float32(0.7)
    done = quantize_model(twins(), samples, FLOAT_EDGE)
    onnx.checker.check_model(done.model, full_check=True)
    sizes = [int(np.prod(i.dims)) for i in done.model.graph.initializer if i.data_type == onnx.TensorProto.INT8]
    assert [size for size in sizes if size > 8] == [216, 64]
    assert relative_error(run(done.model, samples), run(twins(), samples)) < 0.03


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (1, 1), (5, 1), (5, 3)], ids=str)
@pytest.mark.parametrize("attrs", [{"transB": 1}, {"transB": 1, "alpha": 0.5, "beta": 2.0}], ids=["plain", "scaled"])
def test_whatever_a_gemm_adds(shape: tuple[int, ...], attrs: dict[str, float]) -> None:
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], name="dense", **attrs)
    added = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    net = model([node], {"w": weights(3, 4), "c": np.asarray(added)}, {"x": [5, 4]}, {"y": [5, 3]})
    done = quantize_model(net, noise((5, 4)), FLOAT_EDGE)
    onnx.checker.check_model(done.model, full_check=True)
    assert not done.floats
    assert relative_error(run(done.model, noise((5, 4))), run(net, noise((5, 4)))) < 0.02
    assert import_model(done.model).outputs == ("y",)


def test_average_with_dilations_gives_a_file_that_onnxruntime_loads() -> None:
    attrs = {"kernel_shape": [2, 2], "dilations": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("AveragePool", ["c"], ["y"], name="mean", **attrs),
    ]
    net = model(nodes, {"w": weights(4, 3, 3, 3)}, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 4, 4]})
    net.opset_import[0].version = 19
    done = quantize_model(net, noise((1, 3, 8, 8)), FLOAT_EDGE)
    assert relative_error(run(done.model, noise((1, 3, 8, 8))), run(net, noise((1, 3, 8, 8)))) < 0.02


def test_profile_of_other_sizes_says_how_to_give_them(
    glowc: Glowc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)]
    net = model(nodes, {"w": weights(4, 3, 3, 3)}, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]})
    for axis in (2, 3):
        net.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = "side"
    onnx.save(net, "net.onnx")
    np.save("x.npy", np.stack([s["x"] for s in noise((1, 3, 8, 8))]))
    assert glowc("profile", "net.onnx", "--data", "x.npy", "-o", "p.yaml").status == 0
    done = glowc("quantize", "net.onnx", "--profile", "p.yaml", "-o", "q.onnx")
    assert "the model leaves sizes of x open: --input-shape as with glowc profile" in done.err
    assert (
        glowc("quantize", "net.onnx", "--profile", "p.yaml", "--input-shape", "x=1x3x8x8", "-o", "q.onnx").status == 0
    )


def operators(net: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in net.graph.node if "Linear" not in node.op_type]


@pytest.mark.parametrize(
    "name", ["MatMul", "matmul", "mm", "bias", "Flatten", "GlobalAveragePool", "BatchNormalization"]
)
def test_a_node_is_called_by_what_the_file_calls_it_whatever_became_of_it(name: str) -> None:
    done = quantize_model(conv_net(), images(), QuantizeOptions(keep_float=(name,)))
    assert "--keep-float" in {node.reason for node in done.floats}


def test_operators_that_glowc_lacks_stay_in_the_file_beside_layers_on_codes() -> None:
    """An operator of another domain, frames and their spectra."""
    make = helper.make_node
    scaler = make("Scaler", ["g"], ["h"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    gemms = [make("Gemm", [x, "w"], [y], transB=1) for x, y in ("xg", "hy")]
    net = model([gemms[0], scaler, gemms[1]], {"w": weights(4, 4)}, {"x": [1, 4]}, {"y": [1, 4]})
    net.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    assert operators(quantize_model(net, noise((1, 4)), FLOAT_EDGE).model) == ["Gemm", "Scaler", "Gemm"]
    frames = [make("STFT", ["x", "step", "window"], ["s"]), make("Reshape", ["s", "flat"], ["p"]),
              make("MatMul", ["p", "w"], ["y"])]  # fmt: skip
    consts = {"step": np.array(8), "window": np.hanning(16).astype(np.float32), "flat": np.array([7, -1])}
    net = model(frames, {**consts, "w": weights(18, 5)}, {"x": [1, 64]}, {"y": [7, 5]})
    done = quantize_model(net, noise((1, 64)), FLOAT_EDGE)
    assert operators(done.model) == ["STFT", "Reshape", "Gemm"]
    assert relative_error(run(done.model, noise((1, 64))), run(net, noise((1, 64)))) < 0.02


def test_a_convolution_of_volumes_is_quantised_as_one_of_images() -> None:
    make, shape = helper.make_node, (1, 3, 4, 4, 4)
    volumes = [make("Conv", ["x", "w", "b"], ["h"], kernel_shape=[2, 2, 2]), make("Relu", ["h"], ["y"])]
    net = model(volumes, {"w": weights(3, 3, 2, 2, 2), "b": weights(3)}, {"x": [*shape]}, {"y": [1, 3, 3, 3, 3]})
    done = quantize_model(net, noise(shape), FLOAT_EDGE)
    assert (done.layers, not done.floats) == (1, True)
    assert relative_error(run(done.model, noise(shape)), run(net, noise(shape))) < 0.02


def test_a_loop_of_known_length_is_quantised_step_by_step() -> None:
    make = helper.make_node
    state, row = (helper.make_tensor_value_info(name, F32, [4]) for name in ("s", "r"))
    ends = [helper.make_tensor_value_info(name, F32, [4]) for name in ("t", "o")]
    body = helper.make_graph([make("Add", ["s", "r"], ["t"]), make("Relu", ["t"], ["o"])], "step", [state, row], ends)
    nodes = [make("MatMul", ["x", "w"], ["h"]), make("Scan", ["z", "h"], ["last", "y"], body=body, num_scan_inputs=1)]
    net = model(nodes, {"w": weights(4, 4), "z": np.zeros(4, np.float32)}, {"x": [3, 4]}, {"y": [3, 4]})
    done = quantize_model(net, noise((3, 4)), FLOAT_EDGE)
    assert not done.floats
    assert relative_error(run(done.model, noise((3, 4))), run(net, noise((3, 4)))) < 0.02


def test_a_gelu_in_parts_is_one_operator() -> None:
    make = helper.make_node
    nodes = [
        make("MatMul", ["x", "w"], ["h"]), make("Div", ["h", "root"], ["d"]), make("Erf", ["d"], ["e"]),
        make("Add", ["e", "one"], ["a"]), make("Mul", ["h", "a"], ["m"]), make("Mul", ["m", "half"], ["g"]),
        make("MatMul", ["g", "w"], ["y"]),
    ]  # fmt: skip
    numbers = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    net = model(nodes, {"w": weights(4, 4), **numbers}, {"x": [3, 4]}, {"y": [3, 4]})
    assert operators(quantize_model(net, noise((3, 4)), FLOAT_EDGE).model) == ["Gemm", "Gelu", "Gemm"]

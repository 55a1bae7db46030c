"""The quantiser: what its files say, how far they are from float, and that C computes them as onnxruntime does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.errors import InputError, ModelError
from glowc.frontend import import_model
from glowc.machine.validate import validate_model
from glowc.passes.pipeline import run_pipeline
from glowc.quant import Calibration, QuantizeOptions, Schema, quantize_model
from glowc.quant.calibrate import grid_params
from glowc.quant.engine import Engine, prepare_interpreter, prepare_onnxruntime, run_net
from glowc.quant.load import load_float
from glowc.quant.scheme import Params
from glowc.quant.simulate import relative_error
from glowc.quant.tune import outputs_of
from tests.conftest import require_module
from tests.unit.quantize_nets import branch_net, conv_net, dense_net, images, model, rows

MODELS = ("mlperf_kws_dscnn_fp32", "mlperf_ad_autoencoder_fp32", "torch_resnet_tiny_fp32", "torch_tinybert_fp32")


def run(model: onnx.ModelProto, samples: list[dict[str, np.ndarray]]) -> np.ndarray:
    ort = require_module("onnxruntime")
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, sample)[0] for sample in samples])


def codes_of(model: onnx.ModelProto, samples: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Real outputs of a model whose inputs and outputs are codes."""
    (scale, zero), (out_scale, out_zero) = int8_of(model, "x"), int8_of(model, "y")
    coded = [{"x": np.clip(np.rint(s["x"] / scale) + zero, -128, 127).astype(np.int8)} for s in samples]
    return (run(model, coded).astype(np.float32) - out_zero) * np.float32(out_scale)


def int8_of(model: onnx.ModelProto, name: str) -> tuple[float, int]:
    """Scale and zero point of the QuantizeLinear or DequantizeLinear that reads or writes `name`."""
    consts = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    node = next(n for n in model.graph.node if name in (n.input[0], n.output[0]) and "Linear" in n.op_type)
    return float(consts[node.input[1]]), int(consts[node.input[2]])


def test_file_is_valid_and_near_float() -> None:
    done = quantize_model(conv_net(), images(), QuantizeOptions(float_edge=True))
    onnx.checker.check_model(done.model, full_check=True)
    exact = run(conv_net(), images())
    assert relative_error(run(done.model, images()), exact) < 0.01
    assert done.error is not None
    assert done.error < 0.01


def test_last_sums_are_not_rounded_where_outputs_are_float() -> None:
    done = quantize_model(conv_net(), images(), QuantizeOptions(float_edge=True))
    reasons = [(f.op, f.reason) for f in done.floats]
    assert reasons == [("Softmax", "the sums before it are not rounded: outputs are float")]
    quantised = {n.input[0] for n in done.model.graph.node if n.op_type == "QuantizeLinear"}
    assert not {"logits", "y"} & quantised
    large = quantize_model(dense_net(), rows([1, 2, 3, 4]), QuantizeOptions(float_edge=True))
    assert [n.op_type for n in large.model.graph.node][-2:] == ["QuantizeLinear", "DequantizeLinear"]


def test_edge_is_int8_with_scales() -> None:
    model = quantize_model(conv_net(), images()).model
    kinds = [p.type.tensor_type.elem_type for p in (*model.graph.input, *model.graph.output)]
    assert kinds == [onnx.TensorProto.INT8] * 2
    assert [p.name for p in (*model.graph.input, *model.graph.output)] == ["x", "y"]


def test_normalisation_and_bias_are_folded_and_activations_fused() -> None:
    model = quantize_model(conv_net(), images()).model
    kinds = Counter(n.op_type for n in model.graph.node)
    assert "BatchNormalization" not in kinds
    assert "MatMul" not in kinds
    producers = {o: n for n in model.graph.node for o in n.output}
    for node in model.graph.node:
        if node.op_type in ("Relu", "Clip"):
            assert producers[node.input[0]].op_type in ("Conv", "Add")


def test_bias_has_the_scale_of_the_sums() -> None:
    model = quantize_model(dense_net(), rows([1, 2, 3, 4], [-1, 0, 1, 2])).model
    consts = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    assert consts["y_bias_codes"].dtype == np.int32
    scale, _ = int8_of(model, "x")
    np.testing.assert_array_equal(consts["y_bias_scale"], np.float32(scale) * consts["w_scale"])


def test_concat_and_pooling_share_a_scale() -> None:
    model = quantize_model(conv_net(), images()).model
    found = {int8_of(model, f"{name}_quantized") for name in ("r1", "sum", "both", "p1")}
    assert len(found) == 1


@pytest.mark.parametrize("calibration", list(Calibration))
def test_calibration(calibration: Calibration) -> None:
    done = quantize_model(conv_net(), images(), QuantizeOptions(calibration=calibration, float_edge=True))
    allowed = 0.1 if calibration is Calibration.ENTROPY else 0.05  # which cuts much off so few values
    assert relative_error(run(done.model, images()), run(conv_net(), images())) < allowed


@pytest.mark.parametrize("schema", list(Schema))
def test_schema(schema: Schema) -> None:
    done = quantize_model(conv_net(), images(), QuantizeOptions(schema=schema, float_edge=True))
    assert relative_error(run(done.model, images()), run(conv_net(), images())) < 0.05
    consts = {i.name: numpy_helper.to_array(i) for i in done.model.graph.initializer}
    zeros = {int(a) for n, a in consts.items() if n.endswith("_zero_point") and a.ndim == 0}
    scales = np.array([float(a) for n, a in consts.items() if n.endswith("_scale") and a.ndim == 0])
    if schema is not Schema.ASYMMETRIC:
        assert zeros <= ({0, -128} if schema is Schema.SYMMETRIC_WITH_UINT8 else {0})
    if schema is Schema.SYMMETRIC_WITH_POWER2_SCALE:
        np.testing.assert_array_equal(np.log2(scales), np.rint(np.log2(scales)))


def test_kept_and_unknown_operators_stay_float_with_the_cause() -> None:
    net = conv_net()
    net.graph.node[5].op_type = "Conv"
    net.graph.node[13].op_type = "LogSoftmax"
    done = quantize_model(net, images(), QuantizeOptions(keep_float=("depthwise",)))
    assert {f.name: f.reason for f in done.floats} == {
        "depthwise": "--keep-float",
        "clip": 'its input is the float result of "depthwise"',
        "softmax": "LogSoftmax has no int8 form here",
    }
    onnx.checker.check_model(done.model, full_check=True)


def test_unknown_name_to_keep_lists_the_nodes() -> None:
    with pytest.raises(InputError, match=r"no node is called 'conv9'\n.*first"):
        quantize_model(conv_net(), images(2), QuantizeOptions(keep_float=("conv9",)))


def test_image_of_bytes_keeps_its_bytes() -> None:
    rng = np.random.default_rng(3)
    samples = [{"x": (rng.integers(0, 256, (1, 3, 12, 12)) / 255).astype(np.float32)} for _ in range(4)]
    scale, zero = int8_of(quantize_model(conv_net(), samples).model, "x")
    assert (scale, zero) == (pytest.approx(1 / 255), -128)


@pytest.mark.parametrize(
    ("levels", "zero"), [((0, 16), 0), ((-32, 31), 0), ((0, 31), 0), ((0, 32), -128), ((-33, 0), 127)]
)
def test_few_steps_are_codes_as_they_are_where_four_times_as_many_have_room(levels: tuple[int, int], zero: int) -> None:
    found = grid_params(np.arange(levels[0], levels[1] + 1, dtype=np.float32) / 16)
    assert found == Params(1 / 16, zero)


def test_values_far_below_the_largest_of_a_softmax_take_no_codes() -> None:
    net = dense_net()
    net.graph.node[0].output[0] = "logits"
    net.graph.node.append(helper.make_node("Softmax", ["logits"], ["y"], name="softmax"))
    net.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.array([4, 5, -1000], np.float32), "b"))
    samples = rows([1, 2, 3, 4], [-1, 0, 1, 2], [2, -1, 0, 1])
    model = quantize_model(net, samples).model
    scale, zero = int8_of(model, "logits_quantized")
    assert -30 < (-128 - zero) * scale < 0
    whole = quantize_model(net, samples, QuantizeOptions(calibration=Calibration.MINMAX)).model
    assert int8_of(whole, "logits_quantized")[0] > 3
    got = codes_of(model, samples)
    np.testing.assert_allclose(got, run(net, samples), atol=0.03)


def test_shortcut_is_written_before_the_longer_branch() -> None:
    order = [n.name for n in quantize_model(branch_net(), images()).model.graph.node if n.op_type == "Conv"]
    assert order == ["long1", "short", "long2"]


def test_engines_agree() -> None:
    require_module("onnxruntime")
    stacked = {"x": np.stack([s["x"] for s in images(3)])}
    found = []
    for prepare in (prepare_onnxruntime, prepare_interpreter):
        engine = Engine(prepare)
        found.append(run_net(engine, load_float(conv_net()), stacked))
    assert found[0].keys() == found[1].keys()
    for name in found[0]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-4, atol=1e-5, err_msg=name)


_NEAREST = QuantizeOptions(calibration=Calibration.MINMAX, equalise=False, bias_correction=False, rounding=False)


def test_fitting_beats_the_nearest_codes() -> None:
    nearest, fitted = (quantize_model(conv_net(), images(32), o).error for o in (_NEAREST, QuantizeOptions()))
    assert nearest is not None
    assert fitted is not None
    assert fitted < nearest


@pytest.mark.parametrize("count", [8, 16, 32])
def test_fitting_beats_the_nearest_codes_on_other_samples(count: int) -> None:
    net, engine, fresh = load_float(conv_net()), Engine(), images(64, seed=99)
    exact = run_net(engine, net, {"x": np.stack([s["x"] for s in fresh])})[net.outputs[0].name]
    models = [quantize_model(conv_net(), images(count), o).model for o in (_NEAREST, QuantizeOptions())]
    nearest, fitted = (relative_error(outputs_of(m, net.inputs, fresh), exact) for m in models)
    assert fitted < 0.8 * nearest


def test_equal_data_gives_equal_bytes() -> None:
    first, second = (quantize_model(conv_net(), images()).model.SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_one_sample_is_enough_and_said() -> None:
    done = quantize_model(conv_net(), images(1))
    assert "only 1 sample" in done.notes[0]


def test_constant_input_is_said() -> None:
    done = quantize_model(dense_net(), rows(*[[0.5, 0.5, 0.5, 0.5]] * 3))
    assert any("never changed on this data: 'x'" in note for note in done.notes)
    onnx.checker.check_model(done.model)


def test_not_a_number_names_tensor_and_sample() -> None:
    with pytest.raises(InputError, match="sample 1: input 'x' is not a number in 1 of 4"):
        quantize_model(dense_net(), rows([1, 2, 3, 4], [1, float("nan"), 3, 4]))


def test_infinite_value_inside_is_named() -> None:
    with pytest.raises(InputError, match="sample 0: value 'y' is infinite"):
        quantize_model(dense_net(), rows([3e38, 3e38, 3e38, 3e38]))


def test_no_samples() -> None:
    with pytest.raises(InputError, match="no sample was profiled"):
        quantize_model(dense_net(), [])


def test_quantised_model_is_refused() -> None:
    model = quantize_model(dense_net(), rows([1, 2, 3, 4])).model
    with pytest.raises(ModelError, match="is quantized already"):
        load_float(model)


def test_c_computes_the_bytes_of_onnxruntime(tmp_path: Path) -> None:
    require_module("onnxruntime")
    _validate(tmp_path, quantize_model(conv_net(), images()).model, {"x": np.stack([s["x"] for s in images()])})


@pytest.mark.shared
@pytest.mark.parametrize("name", MODELS)
def test_c_of_shared_model_computes_the_bytes_of_onnxruntime(tmp_path: Path, shared_models: Path, name: str) -> None:
    require_module("onnxruntime")
    with np.load(shared_models / name / "inputs.npz") as file:
        arrays = {n: file[n][:4] for n in file.files}
    samples = [{n: a[i] for n, a in arrays.items()} for i in range(4)]
    done = quantize_model(shared_models / name / "model.onnx", samples)
    _validate(tmp_path, done.model, arrays)


def _validate(folder: Path, model: onnx.ModelProto, samples: dict[str, np.ndarray]) -> None:
    """Compare C on the host with onnxruntime: every output equal byte for byte."""
    (folder / "q.onnx").write_bytes(model.SerializeToString())
    codes = {}
    for port in model.graph.input:
        if port.type.tensor_type.elem_type == onnx.TensorProto.INT8:
            scale, zero = int8_of(model, port.name)
            codes[port.name] = np.clip(np.rint(samples[port.name] / scale) + zero, -128, 127).astype(np.int8)
        else:
            codes[port.name] = samples[port.name]
    np.savez(folder / "in.npz", **codes)
    found = validate_model(folder / "q.onnx", load_board("host"), CompileOptions(), folder / "in.npz")
    assert [output["equal_share"] for output in found["outputs"]] == [1.0]


@pytest.mark.parametrize(("shape", "op"), [((1,), "Lut"), ((6, 1, 1), "ChannelLines"), ((6, 4, 1), "PRelu")])
def test_prelu_is_on_codes_where_its_slopes_are_of_one_axis(shape: tuple[int, ...], op: str) -> None:
    rng = np.random.default_rng(0)
    consts = {
        "w": rng.normal(size=(6, 2, 3, 3)),
        "s": rng.uniform(0.05, 0.5, shape),
        "v": rng.normal(size=(3, 6, 1, 1)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("PRelu", ["a", "s"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["y"]),
    ]  # fmt: skip
    held = {name: array.astype(np.float32) for name, array in consts.items()}
    net = model(nodes, held, {"x": [1, 2, 6, 6]}, {"y": [1, 3, 4, 4]})
    done = quantize_model(net, [{"x": rng.normal(size=(1, 2, 6, 6)).astype(np.float32)} for _ in range(4)])
    assert {f.op for f in done.floats} == ({"PRelu"} if op == "PRelu" else set())
    assert op in {n.op for n in run_pipeline(import_model(done.model)).nodes}

"""Channels that are far larger than the others become copies of a part of them each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.compiler.options import CompileOptions
from glowc.machine.layer_error import layer_errors
from glowc.quant import QuantizeOptions, quantize_model
from glowc.quant.emit import SOURCES_KEY
from glowc.quant.engine import Engine, default_prepare, run_net
from glowc.quant.load import load_float
from glowc.quant.split import copies, joined, shares, splittable, with_copies
from tests.unit.cli_calls import Glowc
from tests.unit.quantize_nets import Arrays, branch_net, conv_net, model


def outlier_net() -> onnx.ModelProto:
    """Two convolutions; one channel between them is 20 times larger, and is read with smaller weights."""
    rng = np.random.default_rng(5)
    consts = {"w": rng.normal(size=(8, 3, 3, 3)), "b": rng.normal(size=8), "v": rng.normal(size=(4, 8, 1, 1))}
    consts["w"][2] *= 20
    consts["b"][2] *= 20
    consts["v"][:, 2] /= 20
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "v"], ["y"], name="second"),
    ]
    floats = {name: array.astype(np.float32) for name, array in consts.items()}
    return model(nodes, floats, {"x": [1, 3, 12, 12]}, {"y": [1, 4, 12, 12]})


def samples(count: int = 12) -> list[Arrays]:
    rng = np.random.default_rng(6)
    return [{"x": rng.normal(size=(1, 3, 12, 12)).astype(np.float32)} for _ in range(count)]


def test_copies_are_always_of_the_channel_whose_part_is_largest() -> None:
    source = copies(np.array([1.0, 9.0, 4.0]), 3)
    assert source.tolist() == [0, 1, 2, 1, 1, 2]  # 9, then 4.5, then 4
    np.testing.assert_allclose(shares(source), [1, 1 / 3, 1 / 2, 1 / 3, 1 / 3, 1 / 2])


def test_joined_adds_the_copies_up() -> None:
    source, values = np.array([0, 1, 0]), np.arange(12, dtype=np.float32).reshape(2, 1, 3, 2)
    np.testing.assert_array_equal(
        joined(values, source), np.stack([values[:, :, 0] + values[:, :, 2], values[:, :, 1]], 2)
    )


@pytest.mark.parametrize("make", [outlier_net, branch_net, conv_net])
def test_network_with_copies_computes_the_same(make: object) -> None:
    engine = Engine()
    net = load_float(make())  # type: ignore[operator]
    given = {"x": np.stack([s["x"] for s in samples(2)])}
    exact = run_net(engine, net, given)
    shapes = {name: array.shape[1:] for name, array in exact.items()}
    for one in splittable(net, shapes):
        channels = shapes[one.values[0]][1]
        changed = with_copies(net, one, copies(np.arange(1.0, channels + 1), 4))
        got = run_net(engine, changed, given)
        assert got[one.values[0]].shape[2] == channels + 4
        np.testing.assert_allclose(got["y"], exact["y"], rtol=1e-4, atol=1e-5)
    assert len(splittable(net, shapes)) == {outlier_net: 1, branch_net: 1, conv_net: 0}[make]  # type: ignore[index]


def test_outputs_err_less_with_copies_and_the_file_runs_in_onnxruntime() -> None:
    plain = quantize_model(outlier_net(), samples(), QuantizeOptions(equalise=False))
    split = quantize_model(outlier_net(), samples(), QuantizeOptions(equalise=False, split=0.5))
    assert plain.error is not None
    assert split.error is not None
    assert split.copies == 4
    assert split.error < 0.8 * plain.error
    codes = default_prepare()(split.model)({"x": np.zeros((1, 3, 12, 12), np.int8)})
    assert codes[0].shape == (1, 4, 12, 12)


def test_no_copies_where_they_gain_nothing_or_are_not_asked_for() -> None:
    assert quantize_model(branch_net(), samples(), QuantizeOptions(split=0.25)).copies == 0
    assert quantize_model(outlier_net(), samples()).copies == 0


def test_layers_are_compared_with_copies_added_up(tmp_path: Path) -> None:
    exact, file = tmp_path / "float.onnx", tmp_path / "split.onnx"
    onnx.save(outlier_net(), exact)
    done = quantize_model(exact, samples(), QuantizeOptions(equalise=False, split=0.5, float_edge=True))
    file.write_bytes(done.model.SerializeToString())
    assert SOURCES_KEY in {p.key for p in done.model.metadata_props}
    given = {"x": np.stack([s["x"] for s in samples(3)])}
    rows = layer_errors(exact, given, file, given, CompileOptions())
    assert {row["value"] for row in rows} >= {"r", "y"}
    assert all(row["sqnr_db"] > 25 for row in rows)


def test_command_says_how_many_copies_there_are(tmp_path: Path, glowc: Glowc) -> None:
    onnx.save(outlier_net(), tmp_path / "net.onnx")
    np.savez(tmp_path / "data.npz", x=np.concatenate([s["x"] for s in samples()]))
    done = glowc("quantize", tmp_path / "net.onnx", "--data", tmp_path / "data.npz", "--no-equalize",
                 "--split-channels", "0.5", "-o", tmp_path / "q.onnx")  # fmt: skip
    assert "4 channels more, as copies" in done.out + done.err

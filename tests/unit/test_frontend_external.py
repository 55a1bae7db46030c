"""Weights in files beside the model: links, damaged fields, and one message per file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from tests.unit.onnx_builders import f32, model, node

WEIGHTS = np.arange(4, dtype=np.float32)


def saved(folder: Path, count: int = 1, **fields: str) -> Path:
    """Write a model whose `count` weights are in w.bin of the same folder; `fields` replace what it says of them."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"w{i}" for i in range(count)]
    values = ["x", *(f"v{i}" for i in range(count))]
    nodes = [node("Add", f"{values[i]} {w}", values[i + 1]) for i, w in enumerate(names)]
    proto = model(nodes, {"x": "f32[4]"}, values[-1], {w: f32(WEIGHTS) for w in names})
    for tensor in proto.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in ({"location": "w.bin"} | fields).items():
            tensor.external_data.add(key=key, value=value)
    path = folder / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(path)
    return str(caught.value)


def weights(path: Path) -> list[float]:
    graph = import_model(path)
    return next(a for a in graph.consts.values() if a.size == 4).tolist()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"offset": "x"}, "has the offset 'x', which is no number of bytes"),
        ({"offset": "-1"}, "has the offset '-1'"),
        ({"offset": "9" * 30}, "has the offset"),
        ({"length": "-1"}, "has the length '-1'"),
        ({"length": "1e3"}, "has the length '1e3'"),
        ({"offset": "64"}, "is too short"),
        ({"length": "64"}, "is too short"),
        ({"location": "x" * 5000}, "cannot be read"),
        ({"location": ""}, "has no usable name"),
        ({"location": "w\0.bin"}, "has no usable name"),
        ({"location": "."}, "is no file"),
        ({"location": "../w.bin"}, "lies outside of the model's folder"),
        ({"location": "/etc/passwd"}, "lies outside of the model's folder"),
        ({"location": "none.bin"}, "is missing"),
    ],
)
def test_damaged_reference_names_the_tensor(fields: dict[str, str], words: str, tmp_path: Path) -> None:
    path = saved(tmp_path, **fields)
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    text = refusal(path)
    assert words in text
    assert '"w0"' in text
    assert "hint: " in text
    assert len(text) < 500


def test_missing_file_of_many_tensors_is_one_problem(tmp_path: Path) -> None:
    text = refusal(saved(tmp_path, count=89))
    assert 'weights file "w.bin" of 89 tensors ("w0", "w1", "w2" and 86 more) is missing' in text
    assert "problems" not in text


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_inside_of_the_folder_is_followed(link: object, tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "blob").write_bytes(WEIGHTS.tobytes())
    link(tmp_path / "blob", tmp_path / "w.bin")  # type: ignore[operator]
    assert weights(path) == WEIGHTS.tolist()


def test_links_of_a_hub_cache_are_followed_to_its_blobs(tmp_path: Path) -> None:
    cache, snapshot = tmp_path / "models--own--net", tmp_path / "models--own--net" / "snapshots" / "abc"
    path = saved(snapshot / "onnx")
    blobs = cache / "blobs"
    blobs.mkdir()
    (blobs / "1").write_bytes(WEIGHTS.tobytes())
    path.rename(blobs / "2")
    path.symlink_to(Path("../../../blobs/2"))
    (path.parent / "w.bin").symlink_to(Path("../../../blobs/1"))
    assert weights(path) == WEIGHTS.tolist()


def test_link_out_of_the_folder_is_refused_with_its_target(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(WEIGHTS.tobytes())
    path = saved(tmp_path / "model")
    (path.parent / "w.bin").symlink_to(secret)
    text = refusal(path)
    assert f"is a link to {secret.resolve()}, outside of the model's folder" in text


def test_links_in_a_circle(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "w.bin").symlink_to(tmp_path / "v.bin")
    (tmp_path / "v.bin").symlink_to(tmp_path / "w.bin")
    assert '"w0"' in refusal(path)

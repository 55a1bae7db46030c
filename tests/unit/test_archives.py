"""Files of PyTorch and Keras: recognized without either installed; states in a model's metadata."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from glowc.api.session import InferenceSession
from glowc.errors import MissingToolError, ModelError, ModelFileError
from glowc.frontend import import_model
from glowc.frontend.kept import STATES_KEY, Kept, note_states
from tests.unit.cli_calls import Glowc, refused


def archive(*names: str) -> bytes:
    """Return a zip archive with empty files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            file.writestr(name, "")
    return buffer.getvalue()


def summing() -> onnx.ModelProto:
    """Return a model that adds its input to a total, with the total before as a result, too."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> sums (float[1, 2] x, float[1, 2] total) =>'
        " (float[1, 2] y, float[1, 2] total_next) { total_next = Add(x, total) y = Neg(total_next) }"
    )
    return model


@pytest.mark.parametrize(
    ("names", "package", "says"),
    [
        (("net/archive_format", "net/models/model.json"), "torch", "is a PyTorch program"),
        (("serialized_exported_program.json",), "torch", "is a PyTorch program"),
        (("metadata.json", "config.json", "model.weights.h5"), "keras", "is a Keras model"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    names: tuple[str, ...], package: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / "net.pt2"
    path.write_bytes(archive(*names))
    with pytest.raises(MissingToolError, match=says) as caught:
        import_model(path)
    assert f"pip install 'glowc[{package}]'" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (archive("net/data.pkl", "net/version"), "pickled PyTorch objects"),
        (archive("holiday.jpg"), "without a network"),
        (archive("net/archive_format")[:40], "is a damaged archive"),
    ],
    ids=["pickled", "empty", "damaged"],
)
def test_other_archives_are_told_apart(data: bytes, says: str, glowc: Glowc) -> None:
    Path("net.pt2").write_bytes(data)
    refused(glowc, "compile", "net.pt2", "-o", "build", says=["net.pt2", says])


def test_a_file_whose_name_does_not_say_so_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(archive("net/archive_format"))
    for source in (path, path.read_bytes()):
        with pytest.raises(ModelFileError, match="zip archive"):
            import_model(source)


def test_noted_states_keep_their_values() -> None:
    model = summing()
    note_states(model, [Kept("total", "total_next", np.float32([[3, 4]]))])
    graph = import_model(model)
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    session = InferenceSession(model)
    x = np.float32([[1, 2]])
    assert np.array_equal(session.run(None, {"x": x})[0], [[-4, -6]])
    assert np.array_equal(session.run(None, {"x": x})[0], [[-5, -8]])
    session.reset()
    assert np.array_equal(session.run(None, {"x": x})[0], [[-4, -6]])


def test_a_state_with_a_value_is_a_constant() -> None:
    model = summing()
    note_states(model, [Kept("total", "total_next", np.zeros(1))])
    graph = import_model(model, set_inputs={"total": (1.0,)})
    assert graph.states == ()
    assert graph.outputs == ("y", "total_next")


def test_something_besides_states_comes_out() -> None:
    model = summing()
    del model.graph.output[0]
    note_states(model, [Kept("total", "total_next", np.zeros(1))])
    with pytest.raises(ModelError, match="every output is a state"):
        import_model(model)


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "are damaged"), ("[1]", "are damaged"), ('{"x": "nothing"}', "name no states"), ('{"x": "x"}', "name no")],
)
def test_damaged_notes_are_told(text: str, says: str) -> None:
    model = summing()
    onnx.helper.set_model_props(model, {STATES_KEY: text})
    with pytest.raises(ModelFileError, match=says):
        import_model(model)

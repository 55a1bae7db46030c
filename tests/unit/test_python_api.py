"""glowc in Python: bundles loaded into this process give the interpreter's bytes, and say what does not fit them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

import glowc
from glowc.errors import InputError, ToolError
from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import DIGITS
from tests.unit.onnx_builders import model as onnx_model
from tests.unit.onnx_builders import node
from tests.unit.quantize_nets import conv_net, images

with np.load(ROOT / "examples/digits/digits_test.npz") as _data:
    IMAGES, GOLDEN = _data["image"][:12], _data["golden"][:12]


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    require_tool("gcc")


@pytest.fixture(scope="module", name="digits")
def _digits(tmp_path_factory: pytest.TempPathFactory) -> glowc.LoadedModel:
    return glowc.load(glowc.compile(DIGITS, tmp_path_factory.mktemp("digits") / "bundle"))


@pytest.fixture(name="counter")
def _counter(tmp_path: Path) -> glowc.LoadedModel:
    """y = the sum of all x so far."""
    nodes = [node("Add", "x h", "hn"), node("Identity", "hn", "y")]
    net = onnx_model(nodes, {"x": "f32[2]", "h": "f32[2]"}, {"y": "f32[2]", "hn": "f32[2]"})
    states = glowc.CompileOptions(states={"h": "hn"})
    return glowc.load(glowc.compile(net.SerializeToString(), tmp_path / "counter", options=states))


def test_the_loaded_c_gives_the_golden_bytes(digits: glowc.LoadedModel) -> None:
    for image, golden in zip(IMAGES, GOLDEN, strict=True):
        assert np.array_equal(digits(image), golden)
    assert not digits.has_state


def test_threads_have_arenas_of_their_own(digits: glowc.LoadedModel) -> None:
    order = np.random.default_rng(0).integers(0, len(IMAGES), 400)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: digits(IMAGES[i]), order))
    assert np.array_equal(np.stack(results), GOLDEN[order])


def test_code_for_a_cortex_m4_runs_by_its_twins(tmp_path: Path) -> None:
    model = glowc.load(glowc.compile(DIGITS, tmp_path / "m4", board="mps2-an386"))
    assert np.array_equal(np.stack([model(image) for image in IMAGES]), GOLDEN)


def test_code_for_helium_is_refused_with_the_way_out(tmp_path: Path) -> None:
    bundle = glowc.compile(DIGITS, tmp_path / "m55", board="mps3-an547")
    with pytest.raises(ToolError, match="cannot be built for this machine") as caught:
        glowc.load(bundle.folder)
    assert "--board host" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"input_stream": "rows"}, "by rows"),
        ({"regions": (("a", 4096), ("b", 4096))}, "several parts"),
    ],
)
def test_bundles_without_one_arena_and_whole_inputs_are_refused(
    tmp_path: Path, options: Mapping[str, object], says: str
) -> None:
    bundle = glowc.compile(DIGITS, tmp_path / "bundle", options=glowc.CompileOptions(**options))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=says):
        glowc.load(bundle)


def test_inputs_that_lie_apart_in_memory_are_taken(digits: glowc.LoadedModel) -> None:
    image = np.asfortranarray(IMAGES[3])
    assert np.array_equal(digits(image[..., ::1]), GOLDEN[3])
    assert np.array_equal(digits(np.repeat(IMAGES[3], 2, axis=-1)[..., ::2]), GOLDEN[3])


@pytest.mark.parametrize(
    "arrays", [(), (IMAGES[0, 0],), (IMAGES[0].astype(np.float32),), (IMAGES[0], IMAGES[0]), ([1],)],
    ids=["none", "shape", "dtype", "two", "a list"],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_told(digits: glowc.LoadedModel, arrays: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(InputError, match=r"image: int8 \[1, 1, 8, 8\]"):
        digits(*arrays)


def test_states_are_kept_reset_and_apart_from_another_sequence(counter: glowc.LoadedModel) -> None:
    one, other = np.float32([1, 2]), counter.another()
    assert counter.has_state
    assert [counter(one).tolist() for _ in range(2)] == [[1, 2], [2, 4]]
    assert other(one).tolist() == [1, 2]
    counter.reset()
    assert counter(one).tolist() == [1, 2]
    assert other(one).tolist() == [2, 4]


def test_a_session_stands_in_for_that_of_onnxruntime(digits: glowc.LoadedModel) -> None:
    ort = require_module("onnxruntime").InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
    ours = glowc.InferenceSession(digits.info.folder, providers=["CPUExecutionProvider"])
    for a, b in ((ours.get_inputs(), ort.get_inputs()), (ours.get_outputs(), ort.get_outputs())):
        assert [(x.name, x.type, x.shape) for x in a] == [(x.name, x.type, x.shape) for x in b]
    assert np.array_equal(ours.run(["logits"], {"image": IMAGES[0]})[0], GOLDEN[0])
    assert np.array_equal(ours.run(None, {"image": IMAGES[:, 0]})[0], GOLDEN[:, 0])


def test_a_session_keeps_the_layout_of_the_file(tmp_path: Path) -> None:
    options = glowc.CompileOptions(io_layout="nhwc", io_type="float")
    ours = glowc.InferenceSession(glowc.compile(DIGITS, tmp_path / "nhwc", options=options))
    assert np.array_equal(ours.run([], {"image": IMAGES[5]})[0], GOLDEN[5])


def test_all_that_is_wrong_with_a_feed_is_told_at_once(digits: glowc.LoadedModel) -> None:
    ours = glowc.InferenceSession(digits.info.folder)
    with pytest.raises(InputError, match="no output nothing"):
        ours.run(["nothing"], {"image": IMAGES[0]})
    for feed, says in (
        ({"other": IMAGES[0]}, ["no array for image", "no input other"]), ({"image": IMAGES[0, 0]}, ["int8 [1, 8, 8]"]),
        ({"image": IMAGES[0].astype(float)}, ["float64 [1, 1, 8, 8]"]), ({"image": IMAGES[:0, 0]}, ["[0, 1, 8, 8]"]),
        ({"image": np.int8(1)}, ["image is int8 []"]),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            ours.run(None, feed)
        assert all(text in str(caught.value) for text in says)


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Exception, match="is no bundle of glowc"):
        glowc.compile(DIGITS, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    bundle = glowc.compile(DIGITS, tmp_path, force=True)
    assert (tmp_path / "mine.txt").exists()
    assert bundle.arena_bytes > 0 < bundle.weights_bytes


def test_arrays_quantise_as_files_do(tmp_path: Path) -> None:
    require_module("onnxruntime")
    net, x = conv_net(), np.stack([sample["x"] for sample in images(8)])
    np.savez(tmp_path / "in.npz", x=x)
    (tmp_path / "net.onnx").write_bytes(net.SerializeToString())
    forms = [glowc.quantize(net, data) for data in (x, {"x": x}, tmp_path / "in.npz", [str(tmp_path / "in.npz")])]
    forms.append(glowc.quantize(str(tmp_path / "net.onnx"), x))
    texts = {form.graph.SerializeToString(deterministic=True) for form in forms[:-1]}
    assert len(texts) == 1
    assert isinstance(forms[-1], onnx.ModelProto)
    for data, says in (({"z": x}, "not those of the model"), (x[..., :3], "does not fit the model")):
        with pytest.raises(InputError, match=says):
            glowc.quantize(net, data)


def test_unknown_names_are_no_part_of_it() -> None:
    stub = (ROOT / "glowc/__init__.pyi").read_text()
    assert {"__version__", *re.findall(r" as (\w+)", stub)} == set(glowc.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        glowc.nothing  # noqa: B018


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("onnxruntime")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/PYTHON.md").read_text(), re.M | re.S)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(DIGITS.read_bytes())
    (tmp_path / "float.onnx").write_bytes(conv_net().SerializeToString())
    names: dict[str, object] = {"shape": images(1)[0]["x"].shape}
    for block in blocks:
        exec(block, names)
    assert np.shape(names["scores"]) == (1, 10)

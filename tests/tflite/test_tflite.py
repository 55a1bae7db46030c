"""Models of one operator and whole ones against the TFLM runtime: integers equal byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from glowc.errors import GlowcError, InputError, ModelError
from glowc.frontend import import_model
from tests.conftest import require_tool
from tests.tflite.cases import make_case
from tests.tflite.compare import difference, lowered
from tests.tflite.runtime import Runtime, RuntimeRefusalError

MODELS = Path(__file__).parents[3] / "shared" / "tflite"
CODES = (
    "ADD", "SUB", "MUL", "LEAKY_RELU", "DEQUANTIZE", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED",
    "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "RESHAPE", "SQUEEZE", "EXPAND_DIMS",
    "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "TRANSPOSE", "PAD",
    "PADV2", "GATHER", "GATHER_ND", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "BATCH_TO_SPACE_ND", "REVERSE_V2",
    "BROADCAST_TO", "FILL", "SHAPE", "ZEROS_LIKE", "EMBEDDING_LOOKUP", "SVDF",
)  # fmt: skip
CASES = 20
_ONE = make_case("CONV_2D", 0)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    pytest.importorskip("tflite_micro", reason="the TFLM runtime is not installed")
    with Runtime() as found:
        yield found


@pytest.mark.parametrize("code", CODES)
def test_seeded_models_of_one_operator_answer_as_the_runtime(code: str, runtime: Runtime) -> None:
    refused = 0
    for seed in range(CASES):
        case = make_case(code, seed)
        try:
            want = runtime.run(case.model, case.calls)
        except RuntimeRefusalError:
            refused += 1
            continue
        found = difference(lowered(case.model, case.calls), want, case.rtol)
        assert not found, f"seed {seed}, {case.label}: {found}"
    assert refused < CASES / 2


# What has operators that are not there yet.
LACKING = ("tflm_mnist_lstm_int8", "tflm_dtln_int8", "tflm_audio_preprocessor_int8")
NAMES = sorted(p.name for p in MODELS.iterdir() if (p / "model.tflite").exists()) if MODELS.is_dir() else []
MOST_CALLS = 3


def _model(name: str, most: int) -> tuple[bytes, list[tuple[np.ndarray, ...]], list[tuple[np.ndarray, ...]]]:
    """Return a model, what it is called with, and what the runtime answered."""
    folder = MODELS / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent")
    inputs, golden = np.load(folder / "inputs.npz"), np.load(folder / "golden.npz")
    roles = sorted(key for key in golden.files if "litert" not in key)
    calls = list(zip(*(inputs[key][:most] for key in sorted(inputs.files)), strict=True))
    want = list(zip(*(golden[key][:most] for key in roles), strict=True))
    return (folder / "model.tflite").read_bytes(), calls, want


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LACKING])
def test_models_answer_as_the_runtime(name: str) -> None:
    data, calls, want = _model(name, MOST_CALLS)
    assert not difference(lowered(data, calls), want, 1e-5)


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["host", "mps2-an386"])
@pytest.mark.parametrize("name", ["mlperf_ic_int8", "microwakeword_okay_nabu"])
def test_boards_answer_as_the_runtime(name: str, board: str, tmp_path: Path) -> None:
    if board != "host":
        require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    _, calls, want = _model(name, 40)
    graph = import_model(MODELS / name / "model.tflite")
    np.savez(tmp_path / "in.npz", **{n: np.stack([c[i] for c in calls]) for i, n in enumerate(graph.inputs)})
    files = ["--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    done = CliRunner().invoke(app, ["run", str(MODELS / name / "model.tflite"), "--board", board, *files])
    assert done.exit_code == 0, done.output
    got = np.load(tmp_path / "out.npz")
    for i, output in enumerate(graph.outputs):
        np.testing.assert_array_equal(got[output], np.stack([w[i] for w in want]))


def test_mutated_files_are_refused_or_read(tmp_path: Path) -> None:
    data = _ONE.model
    rng, path = np.random.default_rng(0), tmp_path / "net.tflite"
    for _ in range(300):
        mutated = bytearray(data)
        for at in rng.integers(8, len(data), int(rng.integers(1, 6))):
            mutated[at] = int(rng.integers(256))
        path.write_bytes(bytes(mutated[: int(rng.integers(16, len(data) + 1))]))
        with suppress(GlowcError):
            import_model(path)


def test_a_file_that_ends_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(_ONE.model[:100])
    with pytest.raises(ModelError, match=r"damaged or truncated|missing|a list of"):
        import_model(path)


def test_shapes_of_the_file_stay() -> None:
    with pytest.raises(InputError, match="--batch-size: a TensorFlow Lite model has the shapes"):
        import_model(_ONE.model, batch_size=4)

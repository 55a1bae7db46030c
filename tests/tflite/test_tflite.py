"""Models of one operator and whole ones against the TFLM runtime: integers equal byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glowc.app.cli import app
from glowc.errors import InputError, ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite, require_tool
from tests.fuzz.importing import GOOD
from tests.tflite.cases import MAKERS, make_case
from tests.tflite.compare import difference, lowered
from tests.tflite.mutants import run_damaged
from tests.tflite.runtime import Runtime, RuntimeRefusalError
from tests.tflite.writer import Build, Tensor

MODELS = Path(__file__).parents[3] / "shared" / "tflite"
CASES = 5
_ONE = make_case("CONV_2D", 0)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    require_tflite()
    with Runtime() as found:
        yield found


@pytest.mark.parametrize("code", sorted(MAKERS))
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


@pytest.mark.parametrize("seed", [5003, 5013])
def test_products_of_a_transposed_constant_answer_as_the_runtime(seed: int, runtime: Runtime) -> None:
    case = make_case("BATCH_MATMUL", seed)
    assert not difference(lowered(case.model, case.calls), runtime.run(case.model, case.calls), case.rtol)


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


@pytest.mark.parametrize("name", NAMES)
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


def test_damaged_files_end_in_a_bundle_or_a_message(tmp_path: Path) -> None:
    made = list(run_damaged(range(80), tmp_path))
    assert [m for m in made if m.outcome not in GOOD] == []
    assert len({m.outcome for m in made}) == 2


def test_a_block_of_zero_and_a_product_without_scales_are_told() -> None:
    build = Build()
    x = build.input((4, 2, 2, 1), "float32")
    consts = [build.const(np.asarray(a, np.int32)) for a in ([0, 2], [[0, 0], [0, 0]])]
    build.op("BATCH_TO_SPACE_ND", [x, *consts], Tensor((1, 4, 4, 1), "float32"))
    with pytest.raises(ModelError, match=r"operator 0 \(BATCH_TO_SPACE_ND\)"):
        import_model(build.bytes())
    build = Build()
    inputs = [build.input(shape, "int16") for shape in ((2, 8), (8, 3))]
    build.op("BATCH_MATMUL", inputs, Tensor((2, 3), "int16"), adjX=False, adjY=False)
    with pytest.raises(ModelError, match="have no scale"):
        import_model(build.bytes())


def test_outputs_have_the_names_of_the_file() -> None:
    for code in ("CONV_2D", "ADD", "RESHAPE"):
        graph = import_model(make_case(code, 0).model)
        assert all(name.startswith("t") and "." not in name for name in graph.outputs)


def test_a_file_that_ends_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(_ONE.model[:100])
    with pytest.raises(ModelError, match=r"damaged or truncated|missing|a list of"):
        import_model(path)


def test_an_operator_that_is_not_known_is_named_by_index_and_tensor() -> None:
    build = Build()
    x = build.input((2, 3), "float32")
    build.op("UNIQUE", [build.op("ABS", [x], Tensor((2, 3), "float32"))], Tensor((2, 1), "float32"))
    with pytest.raises(ModelError, match=r'UNIQUE \(1 node\): "operator 1, t2"') as problem:
        import_model(build.bytes())
    assert "glowc ops --format tflite" in str(problem.value.hint)


def _branches(then: Build, otherwise: Build) -> bytes:
    build, shape = Build(), (2, 2)
    build.called = [then, otherwise]
    ends = [build.input((1,), "bool"), build.input(shape, "float32")]
    build.op("IF", ends, Tensor(shape, "float32"), thenSubgraphIndex=1, elseSubgraphIndex=2)
    return build.bytes()


def _branch(code: str) -> Build:
    build = Build()
    build.op(code, [build.input((2, 2), "float32")], Tensor((2, 2), "float32"))
    return build


def test_a_condition_that_is_computed_chooses_between_branches(runtime: Runtime) -> None:
    model, x = _branches(_branch("ABS"), _branch("NEG")), np.asarray([[1, -2], [3, -4]], np.float32)
    calls = [(np.asarray([taken]), x) for taken in (True, False)]
    assert not difference(lowered(model, calls), runtime.run(model, calls), 0)


def test_a_branch_with_a_memory_is_refused_where_the_condition_is_computed() -> None:
    keeps = Build()
    x = keeps.input((2, 2), "float32")
    handle = keeps.op("VAR_HANDLE", [], Tensor((), "int32"), sharedName=b"v")
    keeps.ops.append(("ASSIGN_VARIABLE", (handle, x), (), {}, b""))
    keeps.op("ABS", [x], Tensor((2, 2), "float32"))
    with pytest.raises(ModelError, match=r"operator 0 \(IF\): a branch keeps values between inferences"):
        import_model(_branches(keeps, _branch("ABS")))


def test_subgraphs_that_call_themselves_are_refused() -> None:
    build, shape = Build(), (2, 2)
    inner = Build()
    condition = inner.const(np.asarray([True]))
    inner.op("IF", [condition, inner.input(shape, "float32")], Tensor(shape, "float32"), thenSubgraphIndex=1,
             elseSubgraphIndex=1)  # fmt: skip
    build.called = [inner]
    build.op("IF", [build.const(np.asarray([True])), build.input(shape, "float32")], Tensor(shape, "float32"),
             thenSubgraphIndex=1, elseSubgraphIndex=1)  # fmt: skip
    with pytest.raises(ModelError, match="more than 16 levels deep"):
        import_model(build.bytes())


def test_symbols_and_values_of_inputs_are_not_for_tflite_files() -> None:
    with pytest.raises(InputError, match="--define-symbol: not for a TensorFlow Lite model"):
        import_model(_ONE.model, symbols={"n": 4})

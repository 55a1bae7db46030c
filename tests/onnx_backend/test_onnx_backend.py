"""ONNX's own node tests: none gives a wrong answer, and as many pass as are recorded in counts.toml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.machine.execute import execute, load_bundle
from tests.conftest import require_module, require_tool
from tests.onnx_backend import report, suite
from tests.onnx_backend.build import REFUSED, Built, Result, compile_test, differences
from tests.onnx_backend.cases import OTHER_ANSWERS, NodeTest, all_tests, plain_array

SAMPLE = tuple((Path(__file__).parent / "sample.txt").read_text().split())


def test_no_wrong_answer_and_counts_do_not_fall(capsys: pytest.CaptureFixture[str]) -> None:
    require_tool("gcc")
    results = suite.run_all()
    with capsys.disabled():
        print("\n" + report.table(results))
    bad = [r for r in results if r.outcome in suite.MUST_BE_ZERO]
    assert not bad, "\n".join(f"{r.outcome}: {r.name}: {r.reason}" for r in bad)
    assert not report.problems(results)


def test_every_refusal_has_a_reason() -> None:
    test = next(t for t in all_tests() if t.name == "test_nonzero_example")
    (result,) = suite.run_all([test], jobs=1)
    assert result.outcome == REFUSED
    assert suite.reason_class(result) == "shapes that depend on data"


def test_other_answers_are_onnxruntimes() -> None:
    ort = require_module("onnxruntime")
    tests = {t.name: t for t in all_tests()}
    for name in OTHER_ANSWERS:
        session = ort.InferenceSession(tests[name].model.SerializeToString(), providers=["CPUExecutionProvider"])
        inputs, (want,) = tests[name].data[0]
        names = [i.name for i in session.get_inputs()]
        (got,) = session.run(None, dict(zip(names, inputs, strict=True)))
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_only_parameters_become_constants() -> None:
    tests = {t.name: t for t in all_tests()}
    bound = tests["test_reshape_allowzero_reordered"].bound(1)
    assert bound is not None
    assert [v.name for v in bound.model.graph.input] == ["data"]
    assert tests["test_add"].bound(1) is None
    assert tests["test_conv_with_autopad_same"].bound(1) is None


@pytest.mark.qemu
@pytest.mark.parametrize("board_name", ["mps2-an386", "linux-aarch64"])
@pytest.mark.parametrize("part", range(4))
def test_sample_on_board(board_name: str, part: int, tmp_path: Path) -> None:
    board = load_board(board_name)
    require_tool(board.cpu.cc, board.run_argv[0])
    tests = {t.name: t for t in all_tests()}
    for name in SAMPLE[part::4]:
        built = compile_test(tests[name], tmp_path, board)
        assert isinstance(built, Built), f"{name}: {built.reason if isinstance(built, Result) else built}"
        assert not _on_board(built.test, built, board_name), name


def _on_board(test: NodeTest, built: Built, board_name: str) -> str:
    info = load_bundle(built.folder)
    for inputs, outputs in test.data:
        filled = [plain_array(a) for a in inputs if np.asarray(a).size]
        arrays = {p.name: a.reshape(1, *p.shape) for p, a in zip(info.inputs, filled, strict=True)}
        done = execute(info, load_board(board_name), {n: np.ascontiguousarray(a) for n, a in arrays.items()})
        got = [done.outputs[p.name][0] for p in info.outputs]
        problem = differences(test, got, outputs)
        if problem:
            return problem
    return ""

"""Budgets: arena, constants, stack, code size and executed instructions of whole models may only fall.

tests/budgets.toml holds the best values so far. A worse one fails; one that is better by over 1 % is a warning
that asks to record it: `make budgets` (GLOWC_UPDATE_BUDGETS=1) rewrites the file with what is measured now.
The arena and the constants depend on glowc alone; the others also on the C compiler, so they are compared only with the
version that they were recorded with; so is the stack that `glowc compile` predicts, which must be near what is taken.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
import tomllib
import warnings
from functools import cache
from pathlib import Path

import pytest

from glowc.board import Board, load_board
from glowc.compiler.pipeline import write_bundle
from glowc.compiler.report import BenchReport
from glowc.machine.execute import bench, load_bundle
from tests.conftest import ROOT, require_tool
from tests.e2e.models import DIGITS, MLPERF, TFLITE, TINYMAIX, board_tools, compiled, model_path, sample

FILE = ROOT / "tests" / "budgets.toml"
UPDATE = os.environ.get("GLOWC_UPDATE_BUDGETS") == "1"
ONNX = (DIGITS, *MLPERF, *TINYMAIX)
MODELS = (*ONNX, *TFLITE)
BOARDS = ("mps2-an386", "mps3-an547", "linux-aarch64")
CPUS = ("mps2-an385", "mps2-an505", "linux-aarch64/cortex-a76", "linux-aarch64/armv8.6-i8mm", "linux-armhf/cortex-a7")
TARGETS = (*BOARDS, *CPUS)  # a board, or a board and one of its CPUs
CASES = [*((m, b) for m in ONNX for b in BOARDS), *((m, c) for m in MLPERF for c in CPUS)]
CASES += [(m, "mps2-an386") for m in TFLITE]
CASES += [(m, b) for m in ("mlperf_ic_int8", "mlperf_vww_int8") for b in BOARDS[1:]]
OWN_KEYS = ("arena_bytes", "weights_bytes")  # whatever the C compiler
KEYS = (*OWN_KEYS, "stack_bytes", "text_bytes", "insns")
WORTH_RECORDING = 0.01
STACK_MARGIN, STACK_MARGIN_BYTES = 0.25, 64
MARK_MARGIN = 1.0
"""The same above a painted mark: one inference touches less than the most that it may take, which is predicted."""
STACK_MISSED = {
    **{(model, "mps3-an547"): 370 for model in ("mlperf_ic_resnet8", "mlperf_ic_int8")},
    ("mlperf_kws_dscnn", "mps3-an547"): 150,
    ("tinymaix_cifar10", "mps2-an386"): 110,
}
"""Bytes by which a prediction may miss: other functions of the same kernel take more."""
Budgets = dict[str, dict[str, dict[str, int]]]

HEADER = """\
# The best values so far of each model on each board; written by `make budgets`, checked by tests/e2e/test_budgets.py.
# weights_bytes are all constants, text_bytes is the code of the bundle itself, stack_bytes and insns are those of one
# inference as QEMU counts them (first sample, --opt balanced).
"""


def load(target: str) -> Board:
    """Return `board` or `board/cpu`."""
    board, _, cpu = target.partition("/")
    return load_board(board, cpu or None)


@cache
def compiler_version(target: str) -> str:
    cc = load(target).cpu.cc
    argv = [cc, "-dumpfullversion"]
    return f"{cc} {subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()}"


def measure(name: str, target: str) -> BenchReport:
    """Return what `glowc bench` says of a model now."""
    board = load(target)
    board_tools(board.name)
    require_tool("gcc")  # builds the plugin that counts
    result = compiled(name, board.name, board.cpu.name)
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(result, Path(folder))
        info = load_bundle(Path(folder))
        return bench(info, board, sample(name).first_on(info))


def budgeted(report: BenchReport) -> dict[str, int]:
    """Return what the budgets limit."""
    return {key: int(report[key]) for key in KEYS}  # type: ignore[literal-required]


def far_stack(report: BenchReport, margin_bytes: int) -> str:
    """Return how far the predicted stack is from what was measured, nothing where it is near."""
    estimate, bound = report["stack_bytes_estimate"], report["stack_bound_bytes"]
    taken = bound or report["stack_bytes"]
    assert taken
    below, above = (max(m * taken, margin_bytes) for m in (STACK_MARGIN, STACK_MARGIN if bound else MARK_MARGIN))
    near = estimate is not None and -below <= estimate - taken <= above
    return "" if near else f"predicted stack {estimate}, measured {taken}"


def read() -> tuple[dict[str, str], Budgets]:
    """Return the compilers of the recording by board, and the budgets by model and board."""
    data = tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return data.pop("compilers", {}), data


def render(compilers: dict[str, str], budgets: Budgets) -> str:
    """Return the text of the file: the same for the same values, whatever their order."""
    lines = [HEADER, "[compilers]", *(f'"{target}" = "{compilers[target]}"' for target in sorted(compilers))]
    for model in sorted(budgets, key=MODELS.index):
        for target in sorted(budgets[model], key=TARGETS.index):
            lines += ["", f'[{model}."{target}"]' if "/" in target else f"[{model}.{target}]"]
            lines += [f"{key} = {budgets[model][target][key]}" for key in KEYS]
    return "\n".join([*lines, ""])


def record(name: str, target: str, values: dict[str, int]) -> None:
    """Put one measurement into the file; other workers may do so at the same time."""
    with Path(f"{tempfile.gettempdir()}/glowc-budgets-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compilers, budgets = read()
        compilers[target] = compiler_version(target)
        budgets.setdefault(name, {})[target] = values
        FILE.write_text(render(compilers, budgets), encoding="utf-8")


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("name", "target"), [pytest.param(m, t, marks=[] if m == DIGITS else [pytest.mark.shared]) for m, t in CASES]
)
def test_budget_holds(name: str, target: str) -> None:
    model_path(name)
    report = measure(name, target)
    values = budgeted(report)
    bound = report["stack_bound_bytes"]
    assert bound is None or values["stack_bytes"] <= bound, "an inference took more stack than its worst case"
    if UPDATE:
        record(name, target, values)
        return
    compilers, budgets = read()
    limits = budgets.get(name, {}).get(target)
    if limits is None:
        pytest.fail(f"tests/budgets.toml has nothing of {name} on {target}; record it: make budgets", pytrace=False)
    same_compiler = compilers.get(target) == compiler_version(target)
    worse, better = compare(values, limits, KEYS if same_compiler else OWN_KEYS)
    if same_compiler and (far := far_stack(report, STACK_MISSED.get((name, target), STACK_MARGIN_BYTES))):
        pytest.fail(f"{name} on {target}: {far}; fit it again: make stack-costs", pytrace=False)
    if worse:
        pytest.fail(f"{name} on {target} is over its budget: {'; '.join(worse)}", pytrace=False)
    if better:
        warnings.warn(f"{name} on {target} is better: {'; '.join(better)}; record it: make budgets", stacklevel=1)
    if not same_compiler:
        pytest.skip(f"size and instructions are recorded with {compilers.get(target)}, not {compiler_version(target)}")


def compare(values: dict[str, int], limits: dict[str, int], keys: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return what is over its limit, and what is so far below that it should be recorded."""
    worse, better = [], []
    for key in keys:
        change = f"{key} {values[key]:,}, recorded {limits[key]:,} ({values[key] / max(limits[key], 1) - 1:+.2%})"
        if values[key] > limits[key]:
            worse.append(change)
        elif values[key] < limits[key] * (1 - WORTH_RECORDING):
            better.append(change)
    return worse, better


def test_one_byte_over_the_budget_is_worse_and_one_percent_below_is_better() -> None:
    limits = dict.fromkeys(KEYS, 1000)
    assert compare({**limits, "arena_bytes": 1001, "insns": 990}, limits, KEYS) == (
        ["arena_bytes 1,001, recorded 1,000 (+0.10%)"],
        [],
    )
    assert compare({**limits, "insns": 989}, limits, KEYS) == ([], ["insns 989, recorded 1,000 (-1.10%)"])
    assert compare({**limits, "insns": 2000}, limits, OWN_KEYS) == ([], [])


def test_file_is_written_in_one_way_only() -> None:
    if UPDATE:
        return
    compilers, budgets = read()
    assert render(compilers, budgets) == FILE.read_text(encoding="utf-8")
    backwards = {m: dict(reversed(b.items())) for m, b in reversed(budgets.items())}
    assert render(dict(reversed(compilers.items())), backwards) == FILE.read_text(encoding="utf-8")
    assert set(budgets) <= set(MODELS)

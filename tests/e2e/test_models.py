"""Whole int8 models: every sample of every model gives onnxruntime's bytes on every machine.

All machines are compared with the same golden bytes, so they also equal one another; the two numpy
interpreters are compared with them too. Besides: the arena, the instructions, the compile time.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from glowc.lower.lowering import lower_graph
from glowc.ops.interp import run_graph
from glowc.place.places import plan_memory, schedule
from glowc.program.interp import run_program
from tests.e2e.models import DIGITS, MLPERF, TINYMAIX, assert_same_bytes, compiled, model_path, outputs_on, sample

MACHINES = ("host", "mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf")
FEW_MACHINES = ("host", "mps2-an386", "linux-aarch64")
TORCH = tuple(f"torch_{net}_{kind}" for net in ("simplecnn", "resnet_tiny") for kind in ("qdq", "qdq_u8", "qop"))
OTHERS = (*TORCH, "tflm_hello_world", "emx_micro_kws_m_static_qoperator")
ONE_MODEL_MACHINES = (
    ("mlperf_kws_dscnn", "virt-a53"),
    ("mlperf_vww_mobilenetv1", "mps2-an500"),
    ("mlperf_kws_dscnn", "mps2-an505"),
    ("mlperf_ic_resnet8", "netduinoplus2"),
    ("tflm_hello_world", "microbit"),
)
RUNS = (
    *((DIGITS, board) for board in (*MACHINES, "virt-a53", "mps2-an500", "mps2-an505", "netduinoplus2", "microbit")),
    *((name, board) for name in (*MLPERF, *TINYMAIX) for board in MACHINES),
    *((name, board) for name in OTHERS for board in FEW_MACHINES),
    *ONE_MODEL_MACHINES,
)
ARENA_BYTES = {  # at most; tests/budgets.toml holds what is reached
    "mlperf_ic_resnet8": 49_152,
    "mlperf_kws_dscnn": 16_000,
    "mlperf_vww_mobilenetv1": 55_296,
    "mlperf_ad_autoencoder": 768,
}
EXACT = (DIGITS, *MLPERF, *TINYMAIX)
# As imported, a QDQ graph means float arithmetic between DQ and Q, and a float sum may fall on the other side of a
# rounding tie than the integers' (onnxruntime itself differs by up to 10 steps there without its integer kernels).
FLOAT_BETWEEN_Q_AND_DQ = {"mlperf_ic_resnet8": 10}

# The limits are seconds of a process that has one core to itself, where they equal its processor time; that is what
# is measured, since other workers of `make test` run beside it. A core of a build server may be half as fast.
SLOW_MACHINE = 2.0
COMPILE_S, HELP_S, VWW_C_BYTES = 3.0, 0.5, 2_000_000


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [] if name == DIGITS else [pytest.mark.shared]


def models(names: tuple[str, ...]) -> list[object]:
    return [pytest.param(name, marks=marks(name)) for name in names]


@pytest.mark.parametrize(
    ("name", "board"),
    [
        pytest.param(name, board, marks=[*marks(name), *([] if board == "host" else [pytest.mark.qemu])])
        for name, board in RUNS
    ],
)
def test_every_sample_gives_the_bytes_of_onnxruntime(name: str, board: str) -> None:
    case = sample(name)
    assert_same_bytes(outputs_on(compiled(name, board), case.inputs), case.golden)


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-a76", "armv8.6-i8mm"])
@pytest.mark.parametrize("name", models(EXACT))
def test_every_sample_gives_the_same_bytes_on_newer_a64_cpus(name: str, cpu: str) -> None:
    case = sample(name)
    assert_same_bytes(outputs_on(compiled(name, "linux-aarch64", cpu), case.inputs), case.golden)


@pytest.mark.parametrize("opt", ["size", "speed"])
@pytest.mark.parametrize("name", models(EXACT))
def test_opt_level_does_not_change_the_bytes(name: str, opt: str) -> None:
    case = sample(name)
    assert_same_bytes(outputs_on(compiled(name, "host", None, opt), case.inputs), case.golden)


@pytest.mark.parametrize("name", models((*EXACT, *OTHERS)))
def test_interpreters_of_both_levels_give_the_same_bytes(name: str) -> None:
    """The graph as imported, the optimised graph, and the program in its planned arena; two samples each."""
    case, result = sample(name), compiled(name, "host")
    plan = result.plan
    for index in range(2):
        inputs = {key: array[index] for key, array in case.inputs.items()}
        wanted = {key: array[index] for key, array in case.golden.items()}
        if name not in FLOAT_BETWEEN_Q_AND_DQ:
            assert_same_bytes(run_graph(result.imported, inputs), wanted)
        assert_same_bytes(run_graph(result.graph, inputs), wanted)
        planned = run_program(result.program, inputs, offsets_bytes=plan.offsets_bytes, arena_bytes=plan.arena_bytes)
        assert_same_bytes(planned, wanted)


@pytest.mark.parametrize("name", models(tuple(FLOAT_BETWEEN_Q_AND_DQ)))
def test_graph_as_imported_is_close_where_it_means_float(name: str) -> None:
    case, result = sample(name), compiled(name, "host")
    for index in range(2):
        outputs = run_graph(result.imported, {key: array[index] for key, array in case.inputs.items()})
        for key, array in outputs.items():
            steps = np.abs(array.astype(np.int32) - case.golden[key][index])
            assert steps.max() <= FLOAT_BETWEEN_Q_AND_DQ[name]


@pytest.mark.parametrize("board", ["host", "mps2-an386", "mps3-an547", "linux-aarch64"])
@pytest.mark.parametrize("name", models(EXACT))
def test_arena_is_the_lower_bound(name: str, board: str) -> None:
    """The plan without overlapping layers is proven minimal; the one that is used needs no more."""
    result = compiled(name, board)
    plain = plan_memory(schedule(lower_graph(result.graph, result.board.cpu)))
    assert plain.arena_bytes == plain.lower_bound_bytes
    assert result.plan.arena_bytes <= min(plain.arena_bytes, ARENA_BYTES.get(name, plain.arena_bytes))


@pytest.mark.parametrize("name", models(EXACT))
def test_no_instruction_only_moves_data(name: str) -> None:
    result = compiled(name, "host")
    moving = [i.name for i in result.program.instrs if i.kernel.startswith("copy") or i.op == "Transpose"]
    assert moving == []
    assert [node.label for node in result.graph.nodes if node.op == "Transpose"] == []


def glowc(*argv: str) -> float:
    """Run the command as its own process and return the seconds of processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "glowc", *argv], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", models(EXACT))
def test_compile_takes_at_most_three_seconds(name: str, tmp_path: Path) -> None:
    argv = ("compile", str(model_path(name)), "--board", "mps2-an386", "-o", str(tmp_path / "bundle"))
    assert min(glowc(*argv) for _ in range(2)) <= COMPILE_S * SLOW_MACHINE  # the first may have to fill the cache


def test_help_takes_at_most_half_a_second() -> None:
    assert min(glowc("--help") for _ in range(3)) <= HELP_S * SLOW_MACHINE


@pytest.mark.shared
@pytest.mark.parametrize("opt", ["size", "balanced", "speed"])
def test_c_of_vww_is_at_most_two_megabytes(opt: str) -> None:
    files = compiled("mlperf_vww_mobilenetv1", "mps3-an547", None, opt).bundle.files
    assert sum(len(text.encode()) for text in files.values()) <= VWW_C_BYTES


@pytest.mark.shared
def test_wrong_plan_gives_wrong_bytes() -> None:
    """The interpreter of programs really runs in the arena: putting everything at offset 0 must show."""
    case, result = sample("mlperf_ic_resnet8"), compiled("mlperf_ic_resnet8", "host")
    broken = dict.fromkeys(result.plan.offsets_bytes, 0)
    inputs = {key: array[0] for key, array in case.inputs.items()}
    outputs = run_program(result.program, inputs, offsets_bytes=broken, arena_bytes=result.plan.arena_bytes)
    assert not np.array_equal(outputs["output"], case.golden["output"][0])


def test_glowc_runs_as_a_module_without_a_home_folder(tmp_path: Path) -> None:
    env = {**os.environ, "GLOWC_CACHE_DIR": str(tmp_path)}
    env.pop("HOME", None)
    done = subprocess.run([sys.executable, "-m", "glowc", "--version"], env=env, capture_output=True, check=False)
    assert done.returncode == 0

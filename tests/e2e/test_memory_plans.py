"""Memory plans of whole models: the arenas that they must reach, the same bytes under every plan on every machine,
rows pushed one by one, limits, and the proof by execution."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, optimise, write_bundle
from glowc.errors import BoardError, InputError
from glowc.lower.lowering import lower_graph
from glowc.machine.execute import bench, load_bundle
from glowc.memory import check
from glowc.place.places import verify_plan
from glowc.place.planning import Request, make_plan, pareto
from glowc.program.interp import run_program
from glowc.program.lifetimes import strip_markers
from tests.conftest import require_tool
from tests.e2e.models import DIGITS, MLPERF, TINYMAIX, assert_same_bytes, board_tools, model_path, outputs_on, sample
from tests.unit.cli_calls import Glowc, accepted

# Bytes that --plan overlap, --plan stream, and rows (the autoencoder: buffers of the caller) may take at most, with
# nhwc images and reference kernels; inputs and outputs are inside but for the autoencoder's last.
MOST_BYTES = {
    "mlperf_ic_resnet8": (33_792, 15_104, 12_096),
    "mlperf_kws_dscnn": (8_640, 6_500, 5_760),
    "mlperf_vww_mobilenetv1": (37_248, 28_032, 14_208),
    "mlperf_ad_autoencoder": (768, 768, 256),
}
MOST_BYTES_EXPORTED = {"mlperf_vww_mobilenetv1": (46_080, 42_000)}
PLANS: dict[str, dict[str, str]] = {
    "plain": {"plan": "plain"},
    "overlap": {"plan": "overlap"},
    "stream": {"plan": "stream"},
    "rows": {"input_stream": "rows"},
    "caller": {"plan": "stream", "io_buffers": "caller"},
}
REF_BOARD, PLAN_S, SLOW_MACHINE = "mps2-an385", 0.1, 2.0
NETS = tuple(m for m in (*MLPERF, *TINYMAIX, DIGITS))


def models(names: tuple[str, ...]) -> list[object]:
    return [pytest.param(n, marks=[] if n == DIGITS else [pytest.mark.shared]) for n in names]


@cache
def made(name: str, board: str, plan: str, layout: str = "exported", opt: str = "balanced") -> Compiled:
    options = CompileOptions(name=name, io_layout=layout, opt=opt, **PLANS[plan])  # type: ignore[arg-type]
    return compile_model(model_path(name), load_board(board), options)


def reference_bytes(name: str, layout: str, request: Request) -> int:
    """Return the arena with kernels that need no scratch."""
    graph, cpu = optimise(model_path(name), CompileOptions(io_layout=layout)), load_board("host").cpu
    planned = make_plan(lambda _: lower_graph(graph, cpu, lambda _: True), request)
    verify_plan(planned.program, planned.plan)
    return planned.plan.arena_bytes


@pytest.mark.parametrize("name", models(MLPERF))
def test_arenas_are_no_larger_than_promised(name: str) -> None:
    overlap, stream, rows = MOST_BYTES[name]
    assert reference_bytes(name, "nhwc", Request("overlap")) <= overlap
    assert reference_bytes(name, "nhwc", Request("stream")) <= stream
    last = Request("stream", caller_io=True) if name == "mlperf_ad_autoencoder" else Request(fed=True)
    assert reference_bytes(name, "nhwc", last) <= rows


@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf"])
@pytest.mark.parametrize("name", models(MLPERF))
def test_fast_kernels_stream_too_and_grow_the_arena_by_little(name: str, board: str) -> None:
    times = 2 if board == "mps2-an386" else 1  # once more for scratch that saves a larger share of the instructions
    for plan, most in zip(("overlap", "stream", "rows"), MOST_BYTES[name], strict=True):
        if (name, plan) != ("mlperf_ad_autoencoder", "rows"):
            result = made(name, board, plan, "nhwc")
            assert result.plan.arena_bytes <= most + times * max(most * 0.15, 8_192), plan
            slow = [
                i.name
                for i in strip_markers(result.program).instrs
                if i.rows is not None and i.macs and i.variant == "ref"
            ]
            assert not slow, plan


@pytest.mark.parametrize("name", models(MLPERF))
def test_exported_layout_costs_at_most_a_kilobyte(name: str) -> None:
    overlap, stream = MOST_BYTES_EXPORTED.get(name, tuple(n + 1024 for n in MOST_BYTES[name][:2]))
    assert reference_bytes(name, "exported", Request("overlap")) <= overlap
    assert reference_bytes(name, "exported", Request("stream")) <= stream


@pytest.mark.parametrize("name", models(NETS))
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_gives_the_same_bytes_on_the_host(name: str, plan: str) -> None:
    case = sample(name)
    if (name, plan) == ("mlperf_ad_autoencoder", "rows"):
        with pytest.raises(InputError, match="cannot be fed by rows"):
            made(name, "host", plan)
        return
    got = outputs_on(made(name, "host", plan), case.first(4))
    assert_same_bytes(got, {key: array[:4] for key, array in case.golden.items()})


@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "linux-aarch64"])
@pytest.mark.parametrize("plan", ["overlap", "stream", "rows", "caller"])
@pytest.mark.parametrize("name", models(MLPERF[:3]))
def test_every_plan_gives_the_same_bytes_on_boards(name: str, plan: str, board: str) -> None:
    case = sample(name)
    got = outputs_on(made(name, board, plan), case.first(2))
    assert_same_bytes(got, {key: array[:2] for key, array in case.golden.items()})


@pytest.mark.shared
@pytest.mark.parametrize("opt", ["size", "speed"])
@pytest.mark.parametrize("plan", ["stream", "rows"])
def test_opt_level_does_not_change_streamed_bytes(plan: str, opt: str) -> None:
    case = sample("mlperf_kws_dscnn")
    got = outputs_on(made("mlperf_kws_dscnn", "host", plan, opt=opt), case.first(3))
    assert_same_bytes(got, {key: array[:3] for key, array in case.golden.items()})


@pytest.mark.parametrize("name", models(NETS))
def test_every_plan_of_the_frontier_is_proven_and_computes_the_same(name: str) -> None:
    case, whole = sample(name), made(name, "host", "overlap")
    wanted = {key: array[0] for key, array in case.golden.items()}
    inputs = {key: array[0] for key, array in case.inputs.items()}
    board = load_board("host")
    for done in pareto(lambda streaming: lower_graph(whole.graph, board.cpu, streaming), Request("stream")):
        check(done.plan, done.blocks, done.overlaps)
        verify_plan(done.program, done.plan)
        plan = done.plan
        got = run_program(done.program, inputs, offsets_bytes=plan.offsets_bytes, arena_bytes=plan.arena_bytes)
        assert_same_bytes(got, wanted)


@pytest.mark.parametrize("name", models(MLPERF))
def test_no_multiplication_is_made_twice(name: str) -> None:
    for plan in ("stream", "caller"):
        result = made(name, "host", plan)
        assert sum(layer.macs for layer in result.bundle.layers) == sum(i.macs for i in result.program.instrs)
        for segment in result.planned.program.segments:
            for number, instr in enumerate(result.planned.program.instrs[segment.begin : segment.end]):
                if instr.rows is not None:
                    assert segment.steps.count(number) <= instr.rows[1]


@pytest.mark.parametrize("name", models(MLPERF))
def test_a_plan_without_streams_takes_a_tenth_of_a_second(name: str) -> None:
    graph, cpu = made(name, "host", "overlap").graph, load_board("host").cpu
    program = lower_graph(graph, cpu)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        make_plan(lambda _: program, Request("overlap"))
        seconds.append(time.process_time() - start)
    assert min(seconds) <= PLAN_S * SLOW_MACHINE


@pytest.mark.shared
def test_limit_chooses_the_cheapest_plan_that_fits_or_names_the_closest() -> None:
    path, board = model_path("mlperf_ic_resnet8"), load_board(REF_BOARD)
    kinds = [compile_model(path, board, CompileOptions(ram_limit=n)).planned for n in (60_000, 40_000, 20_000, 13_000)]
    assert [p.kind for p in kinds] == ["overlap", "overlap", "stream", "stream"]
    assert 0 < kinds[2].extra_insns < kinds[3].extra_insns
    with pytest.raises(BoardError) as caught:
        compile_model(path, board, CompileOptions(ram_limit=5_000))
    assert re.search(r"the plan is stream .*the peak .*is at", str(caught.value), re.DOTALL)
    with pytest.raises(BoardError, match=r"the smallest plan, stream .*, needs 1\d,?\d\d\d bytes"):
        compile_model(path, board, CompileOptions(ram_limit=20_000, plan="overlap"))


@pytest.mark.shared
def test_a_small_board_gets_a_streamed_plan_by_itself() -> None:
    result = compile_model(model_path("mlperf_ic_resnet8"), load_board("microbit"), CompileOptions())
    assert result.planned.kind == "stream"
    assert result.plan.arena_bytes <= 16_384


PUSH = r"""
#include <string.h>
#include "net.h"
%(vectors)s
#define CHECK(condition) do { if (!(condition)) { return __LINE__ %% 200 + 1; } } while (0)
static _Alignas(64) uint8_t own[NET_ARENA_BYTES];
enum { ROWS = NET_INPUT_ROWS, ROW = NET_INPUT_ROW_ELEMENTS };

static int same(const int8_t *got, size_t sample) {
  return memcmp(got, wanted + sample * NET_OUTPUT_ELEMENTS, NET_OUTPUT_BYTES) == 0;
}

int main(void) {
  int8_t out[NET_OUTPUT_ELEMENTS];
  CHECK(net_invoke(input, out) == GLOW_OK && same(out, 0));
  CHECK(net_begin() == GLOW_OK);
  for (int step = 1; step <= ROWS; step += 3) { /* 1, 4, 7 ... rows at a time; later inputs start by themselves */
    for (int row = 0; row < ROWS; row += step) {
      const int count = row + step < ROWS ? step : ROWS - row;
      CHECK(net_push_rows(input + ROWS * ROW + row * ROW, count) == (row + count < ROWS ? GLOW_MORE : GLOW_OK));
    }
    CHECK(same(net_output(), 1u));
  }
  CHECK(net_push_rows(NULL, 1) == GLOW_ERROR_NULL && net_push_rows(input, 0) == GLOW_ERROR_ROWS);
  CHECK(net_push_rows(input, -1) == GLOW_ERROR_ROWS && net_push_rows(input, ROWS + 1) == GLOW_ERROR_ROWS);
  CHECK(net_push_rows(input, 2) == GLOW_MORE && net_push_rows(input, ROWS - 1) == GLOW_ERROR_ROWS);
  CHECK(net_begin() == GLOW_OK && net_push_rows(input, ROWS) == GLOW_OK && same(net_output(), 0));
  CHECK(net_begin_in(own, sizeof own - 1) == GLOW_ERROR_ARENA_SIZE && net_begin_in(NULL, 0) == GLOW_ERROR_NULL);
  CHECK(net_push_rows_in(own + 1, sizeof own, input, 1) == GLOW_ERROR_ARENA_ALIGN);
  memset(own, 0x5a, sizeof own);
  CHECK(net_begin_in(own, sizeof own) == GLOW_OK && net_push_rows_in(own, sizeof own, input, ROWS) == GLOW_OK);
  CHECK(same((const int8_t *)own + NET_OUTPUT_OFFSET_BYTES, 0));
  CHECK(net_invoke_in(own, sizeof own, input + ROWS * ROW, out) == GLOW_OK && same(out, 1));
  CHECK(net_invoke(NULL, out) == GLOW_ERROR_NULL);
  return 0;
}
"""


def array_text(name: str, array: np.ndarray) -> str:
    return f"static const int8_t {name}[] = {{{', '.join(map(str, array.reshape(-1).tolist()))}}};"


@pytest.mark.shared
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_rows_pushed_in_any_number_equal_the_whole_input(cc: str, tmp_path: Path) -> None:
    require_tool(cc)
    case = sample("mlperf_ic_resnet8")
    options = CompileOptions(name="net", input_stream="rows")
    result = compile_model(model_path("mlperf_ic_resnet8"), load_board("host"), options)
    write_bundle(result, tmp_path)
    images = case.inputs["input"][:2, 0].transpose(0, 2, 3, 1)
    vectors = f"{array_text('input', images)}\n{array_text('wanted', case.golden['output'][:2])}"
    (tmp_path / "push.c").write_text(PUSH % {"vectors": vectors})
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"]
    flags.append("-ffp-contract=off")
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [tmp_path / "push.c", tmp_path / "net.c", tmp_path / "net_weights.c"]
    subprocess.run([cc, *flags, *sanitize, f"-I{tmp_path}", *sources, "-o", tmp_path / "push", "-lm"], check=True)
    done = subprocess.run([tmp_path / "push"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.shared
@pytest.mark.parametrize("plan", ["stream", "rows", "caller"])
def test_golden_vectors_hold_under_every_plan(plan: str, tmp_path: Path) -> None:
    require_tool("gcc")
    case = sample("mlperf_kws_dscnn")
    np.savez(tmp_path / "in.npz", **case.first(2))
    options = CompileOptions(name="net", golden=tmp_path / "in.npz", **PLANS[plan])  # type: ignore[arg-type]
    write_bundle(compile_model(model_path("mlperf_kws_dscnn"), load_board("host"), options), tmp_path)
    main = '#include "net_golden.h"\nint main(void) { return (int)net_golden_failures(); }\n'
    (tmp_path / "main.c").write_text(main)
    sources = [tmp_path / f"{n}.c" for n in ("main", "net", "net_weights", "net_golden")]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    subprocess.run(["gcc", *flags, f"-I{tmp_path}", *sources, "-o", tmp_path / "main", "-lm"], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.qemu
@pytest.mark.shared
@pytest.mark.parametrize("plan", ["stream", "rows", "caller"])
def test_bench_counts_each_layer_of_a_segment(plan: str) -> None:
    board_tools("mps2-an385")
    require_tool("gcc")
    result = made("mlperf_kws_dscnn", REF_BOARD, plan)
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(result, Path(folder))
        report = bench(load_bundle(Path(folder)), load_board(REF_BOARD))
    layers = sum(layer["insns"] for layer in report["layers"])
    assert all(layer["insns"] > 0 for layer in report["layers"])
    assert 0.9 * report["insns"] < layers <= report["insns"]


def test_command_line_shows_plans_and_the_map(glowc: Glowc, tmp_path: Path) -> None:
    out = tmp_path / "out"
    argv = ["compile", model_path(DIGITS), "-o", out]
    shown = accepted(glowc, *argv, "--plan", "stream", "--memory-map", "--pareto")
    assert "memory map: arena" in shown
    assert "stream (layers" in shown
    svg = (out / "digits_memory.svg").read_text()
    assert svg.startswith("<svg")
    assert "peak" in svg
    listed = json.loads(accepted(glowc, *argv, "--pareto", "--json"))
    sizes = [entry["arena_bytes"] for entry in listed["pareto"]]
    assert sizes == sorted(sizes, reverse=True)
    assert listed["pareto"][0]["extra_insns"] == 0


def test_rows_and_the_callers_buffers_exclude_each_other() -> None:
    options = CompileOptions(input_stream="rows", io_buffers="caller")
    with pytest.raises(InputError, match="--input-stream rows"):
        compile_model(model_path(DIGITS), load_board("host"), options)

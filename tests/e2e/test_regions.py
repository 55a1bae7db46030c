"""Models whose arena is split among memory regions: the same bytes, arrays in their places, the caller's memory."""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import BoardError, InputError
from glowc.machine.elf import symbols
from glowc.machine.execute import bench, build_bundle, load_bundle
from tests.conftest import require_tool
from tests.e2e.models import DIGITS, assert_same_bytes, board_tools, model_path, outputs_on, sample
from tests.ops.recurrent_models import layer, model_of
from tests.unit.cli_calls import Glowc, accepted

BOARD = "mps3-an547"
TWO = (("dtcm", 8_200), ("sram", None))
KWS, IC = "mlperf_kws_dscnn", "mlperf_ic_resnet8"
PLANS: dict[str, dict[str, object]] = {
    "overlap": {"plan": "overlap"},
    "stream": {"plan": "stream"},
    "rows": {"input_stream": "rows"},
    "caller": {"plan": "stream", "io_buffers": "caller"},
}
WARNINGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wcast-align", "-Werror"]
SANITIZE = ["-ffp-contract=off", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@cache
def made(name: str, board: str, regions: tuple[tuple[str, int | None], ...], plan: str = "overlap") -> Compiled:
    options = CompileOptions(name="net", regions=regions, **PLANS[plan])  # type: ignore[arg-type]
    return compile_model(model_path(name), load_board(board), options)


def used(result: Compiled) -> list[str]:
    return [r.name for r in result.plan.regions if r.plan.arena_bytes]


@pytest.mark.qemu
@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "plan", "dtcm"),
    [(KWS, "overlap", 8_200), (IC, "overlap", 9_000), (IC, "stream", 4_000), (IC, "rows", 4_000)],
)
def test_split_models_give_the_golden_bytes_on_the_board(name: str, plan: str, dtcm: int) -> None:
    case, result = sample(name), made(name, BOARD, (("dtcm", dtcm), ("sram", None)), plan)
    assert used(result) == ["dtcm", "sram"]
    assert all(r.plan.arena_bytes <= r.capacity_bytes for r in result.plan.regions)
    got = outputs_on(result, case.first(2))
    assert_same_bytes(got, {key: array[:2] for key, array in case.golden.items()})


@pytest.mark.shared
def test_linker_puts_each_array_into_its_region() -> None:
    board_tools(BOARD)
    board, result = load_board(BOARD), made(IC, BOARD, TWO)
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(result, Path(folder))
        found = symbols(build_bundle(load_bundle(Path(folder)), board, Path(folder)).path)
    for region in result.plan.regions:
        array = found[f"net_arena_{region.name}"]
        assert array.size == region.plan.arena_bytes
        assert board.memory[region.name].holds(array.address, array.size)


def test_arena_of_one_named_region_lies_there() -> None:
    board_tools(BOARD)
    board = load_board(BOARD)
    for region in ("dtcm", "sram"):
        result = made(DIGITS, BOARD, ((region, None),))
        with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
            write_bundle(result, Path(folder))
            found = symbols(build_bundle(load_bundle(Path(folder)), board, Path(folder)).path)
        array = found["net_arena"]
        assert board.memory[region].holds(array.address, array.size)


def test_h743_links_with_its_regions() -> None:
    board_tools("nucleo-h743zi")
    board, result = load_board("nucleo-h743zi"), made(DIGITS, "nucleo-h743zi", (("dtcm", 300), ("axi", None)))
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(result, Path(folder))
        found = symbols(build_bundle(load_bundle(Path(folder)), board, Path(folder)).path)
    assert used(result) == ["dtcm", "axi"]
    assert all(board.memory[r].holds(found[f"net_arena_{r}"].address) for r in ("dtcm", "axi"))


@pytest.mark.shared
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", [KWS, IC])
def test_three_regions_give_the_same_bytes_under_every_plan(name: str, plan: str) -> None:
    case = sample(name)
    whole = compile_model(model_path(name), load_board("host"), CompileOptions(**PLANS[plan])).plan.arena_bytes  # type: ignore[arg-type]
    result = made(name, "host", (("one", whole // 4), ("two", whole // 2), ("rest", 1 << 20)), plan)
    assert len(used(result)) >= 2
    got = outputs_on(result, case.first(3))
    assert_same_bytes(got, {key: array[:3] for key, array in case.golden.items()})


def test_one_region_changes_nothing_in_the_generated_code() -> None:
    plain = compile_model(model_path(DIGITS), load_board("host"), CompileOptions(name="net", plan="overlap"))
    assert made(DIGITS, "host", (("ram", 100_000),)).bundle.files == plain.bundle.files


OWN = r"""
#include <string.h>
#include "net.h"
#include "net_golden.h"
#define CHECK(condition) do { if (!(condition)) { return __LINE__ % 200 + 1; } } while (0)
static _Alignas(64) uint8_t fast[NET_ARENA_FAST_BYTES];
static _Alignas(64) uint8_t slow[NET_ARENA_SLOW_BYTES];

int main(void) {
  NET_OUTPUT_TYPE out[NET_OUTPUT_ELEMENTS];
  const NET_INPUT_TYPE *in = net_golden_input[0];
  const NET_OUTPUT_TYPE *wanted = net_golden_output[0];
  net_arenas_t arenas = {.fast = fast, .fast_bytes = sizeof fast, .slow = slow, .slow_bytes = sizeof slow};
  CHECK(NET_ARENA_BYTES == sizeof fast + sizeof slow && NET_ARENA_SPARE_BYTES == 0u); /* .spare stays NULL */
  CHECK(net_invoke(in, out) == GLOW_OK && memcmp(out, wanted, NET_OUTPUT_BYTES) == 0);
  memset(out, 0, sizeof out);
  memset(fast, 0x5a, sizeof fast);
  memset(slow, 0x5a, sizeof slow);
  CHECK(net_invoke_in(&arenas, in, out) == GLOW_OK && memcmp(out, wanted, NET_OUTPUT_BYTES) == 0);
  memcpy(NET_INPUT_IN(&arenas), in, NET_INPUT_BYTES);
  CHECK(net_run_in(&arenas) == GLOW_OK && memcmp(NET_OUTPUT_IN(&arenas), wanted, NET_OUTPUT_BYTES) == 0);
  memcpy(net_input(), in, NET_INPUT_BYTES);
  CHECK(net_run() == GLOW_OK && memcmp(net_output(), wanted, NET_OUTPUT_BYTES) == 0);
  CHECK(net_golden_failures() == 0u && net_golden_failures_in(&arenas) == 0u);
  CHECK(net_golden_failures_in(NULL) == NET_GOLDEN_COUNT);
  CHECK(net_run_in(NULL) == GLOW_ERROR_NULL && net_invoke_in(&arenas, NULL, out) == GLOW_ERROR_NULL);
  arenas.slow_bytes--;
  CHECK(net_run_in(&arenas) == GLOW_ERROR_ARENA_SIZE && net_golden_failures_in(&arenas) == NET_GOLDEN_COUNT);
  arenas.slow_bytes++;
  arenas.fast = fast + 1;
  CHECK(net_run_in(&arenas) == (NET_ARENA_ALIGN > 1u ? GLOW_ERROR_ARENA_ALIGN : GLOW_OK));
  arenas.fast = NULL;
  CHECK(net_run_in(&arenas) == GLOW_ERROR_NULL);
  return 0;
}
"""


@pytest.mark.shared
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_firmware_hands_over_its_own_memory_for_each_region(cc: str, tmp_path: Path) -> None:
    require_tool(cc)
    np.savez(tmp_path / "in.npz", **sample(IC).first(2))
    regions = (("fast", 17_000), ("slow", 40_000), ("spare", 40_000))
    options = CompileOptions(name="net", plan="overlap", regions=regions, golden=tmp_path / "in.npz")
    write_bundle(compile_model(model_path(IC), load_board("host"), options), tmp_path)
    (tmp_path / "main.c").write_text(OWN)
    sources = [tmp_path / f"{n}.c" for n in ("main", "net", "net_weights", "net_golden")]
    command = [cc, *WARNINGS, *SANITIZE, f"-I{tmp_path}", *sources, "-o", tmp_path / "main", "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "main"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    subprocess.run([cc, *WARNINGS, "-DNET_NO_STATIC_ARENA", "-c", tmp_path / "net.c", "-o", "/dev/null"], check=True)


@pytest.mark.shared
@pytest.mark.parametrize("plan", PLANS)
def test_split_sources_are_clean_in_c_and_the_header_in_cpp(plan: str, tmp_path: Path) -> None:
    require_tool("gcc", "g++")
    write_bundle(made(IC, "host", (("one", 5_000), ("two", 17_000), ("rest", 40_000)), plan), tmp_path)
    subprocess.run(["gcc", *WARNINGS, "-c", tmp_path / "net.c", "-o", "/dev/null"], check=True)
    subprocess.run(["g++", "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", tmp_path / "net.h"], check=True)


STATEFUL = r"""
#include <string.h>
#include "net.h"
static _Alignas(64) uint8_t one[NET_ARENA_ONE_BYTES + 1u];
static _Alignas(64) uint8_t two[NET_ARENA_TWO_BYTES + 1u];
int main(void) {
  static NET_INPUT_TYPE in[NET_INPUT_ELEMENTS];
  NET_OUTPUT_TYPE out[3][NET_OUTPUT_ELEMENTS];
  const net_arenas_t arenas = {.one = one, .one_bytes = sizeof one, .two = two, .two_bytes = sizeof two};
  in[0] = 3;
  memset(one, 0x5a, sizeof one);
  memset(two, 0x5a, sizeof two);
  int ok = net_reset() == GLOW_OK && net_reset_in(&arenas) == GLOW_OK;
  ok = ok && net_invoke(in, out[0]) == GLOW_OK && net_invoke(in, out[1]) == GLOW_OK;
  ok = ok && net_reset() == GLOW_OK && net_invoke(in, out[2]) == GLOW_OK;
  ok = ok && memcmp(out[0], out[2], sizeof out[0]) == 0 && memcmp(out[0], out[1], sizeof out[0]) != 0;
  ok = ok && net_invoke_in(&arenas, in, out[2]) == GLOW_OK && memcmp(out[0], out[2], sizeof out[0]) == 0;
  ok = ok && net_invoke_in(&arenas, in, out[2]) == GLOW_OK && memcmp(out[1], out[2], sizeof out[1]) == 0;
  return ok ? 0 : 1;
}
"""


def test_states_keep_their_bytes_in_any_region(tmp_path: Path) -> None:
    require_tool("gcc")
    path = tmp_path / "gru.onnx"
    path.write_bytes(model_of(layer("GRU", seq=4), const=(1, 2, 3, 5, 6, 7), outputs=["y"]).SerializeToString())
    whole = compile_model(path, load_board("host"), CompileOptions(stateful=True)).plan.arena_bytes
    options = CompileOptions(name="net", stateful=True, regions=(("one", whole // 2), ("two", whole)))
    result = compile_model(path, load_board("host"), options)
    assert used(result) == ["one", "two"]
    write_bundle(result, tmp_path)
    (tmp_path / "main.c").write_text(STATEFUL)
    sources = [tmp_path / f"{n}.c" for n in ("main", "net", "net_weights")]
    subprocess.run(["gcc", *WARNINGS, *SANITIZE, f"-I{tmp_path}", *sources, "-o", tmp_path / "main", "-lm"], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.shared
def test_report_and_maps_have_every_region(tmp_path: Path) -> None:
    options = CompileOptions(name="net", plan="overlap", regions=TWO, memory_map=True)
    result = compile_model(model_path(KWS), load_board(BOARD), options)
    regions = result.report["regions"]
    assert isinstance(regions, list)
    assert [r["name"] for r in regions] == ["dtcm", "sram"]
    assert sum(r["arena_bytes"] for r in regions) == result.report["arena_bytes"]
    assert sum(r["accesses_share"] for r in regions) == pytest.approx(1, abs=1e-3)
    assert regions[0]["capacity_bytes"] == 8_200
    assert result.report["regions_proven_best"] is True
    assert {"net_memory_dtcm.svg", "net_memory_sram.svg"} <= set(result.bundle.files)
    assert "region dtcm" in result.bundle.files["net_memory_dtcm.svg"]
    assert "--region dtcm=8200 --region sram" in result.bundle.files["net.h"]
    assert "NET_ARENA_DTCM_ATTR" in result.bundle.files["README.md"]
    assert f"NET_ARENA_DTCM_BYTES := {regions[0]['arena_bytes']}" in result.bundle.files["net.mk"]


@pytest.mark.qemu
@pytest.mark.shared
def test_bench_measures_a_split_model() -> None:
    board_tools(BOARD)
    require_tool("gcc")
    with tempfile.TemporaryDirectory(prefix="glowc-test-") as folder:
        write_bundle(made(KWS, BOARD, TWO), Path(folder))
        report = bench(load_bundle(Path(folder)), load_board(BOARD))
    assert report["insns"] > 0
    assert report["bss_bytes"] >= report["arena_bytes"]


@pytest.mark.shared
def test_regions_that_are_too_small_name_the_peak_and_the_sizes() -> None:
    with pytest.raises(BoardError) as caught:
        made(IC, BOARD, (("dtcm", 1_000), ("sram", 2_000)))
    assert "regions dtcm (1000 bytes), sram (2000 bytes) allow 3000" in str(caught.value)
    assert "the peak is at" in str(caught.value)
    with pytest.raises(BoardError) as caught:
        made(IC, "host", (("a", 15_000), ("b", 15_000), ("c", 15_000)))
    assert "cannot be divided among the regions a (15000 bytes)" in str(caught.value)
    assert "--plan auto" in str(caught.value)
    with pytest.raises(BoardError, match="board microbit allows 14208"):
        made(IC, "microbit", (("a", 50_000), ("b", 50_000)))  # of 16 KB, with its stack
    options = CompileOptions(regions=(("a", 6_000), ("b", 12_000)))  # too small for layers as a whole
    assert compile_model(model_path(IC), load_board("host"), options).planned.kind == "stream"


def test_the_board_must_have_regions() -> None:
    with pytest.raises(InputError, match=r"cannot be split so on host\n.*has no arena_regions"):
        compile_model(model_path(DIGITS), load_board("host"), CompileOptions(arena_split=True))


@pytest.mark.qemu
def test_command_line_compiles_runs_and_validates_with_regions(glowc: Glowc, tmp_path: Path) -> None:
    board_tools(BOARD)
    model, split = model_path(DIGITS), ["--board", BOARD, "--arena-split", "--region", "dtcm=300"]
    shown = accepted(glowc, "compile", model, "-o", tmp_path / "out", *split, "--memory-map")
    assert "of 300 bytes" in shown
    assert "region sram: memory map" in shown
    case = sample(DIGITS)
    np.savez(tmp_path / "in.npz", **case.first(2))
    accepted(glowc, "run", model, *split, "-i", tmp_path / "in.npz", "-o", tmp_path / "out.npz", "--json")
    assert_same_bytes(dict(np.load(tmp_path / "out.npz")), {k: a[:2] for k, a in case.golden.items()})
    assert json.loads(accepted(glowc, "validate", model, *split, "-i", tmp_path / "in.npz", "--json"))["ok"]
    report = json.loads(accepted(glowc, "bench", model, *split, "--json"))
    assert [r["name"] for r in report["regions"]] == ["dtcm", "sram"]
    wrong = ["--region", "dtmc=1", "--region", "ddr=1"]
    done = glowc("compile", model, "-o", tmp_path / "no", "--board", BOARD, *wrong)
    assert done.status == 1
    assert 'unknown region "dtmc"; did you mean "dtcm"?' in done.err
    assert 'unknown region "ddr"' in done.err
    assert not (tmp_path / "no").exists()

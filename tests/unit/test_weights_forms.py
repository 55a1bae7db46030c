"""--weights: constants as C, assembly, an object or a mapped file give the same bytes, and say where they cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.codegen.export import WEIGHTS
from glowc.compiler.group import GroupSpec, compile_group
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError
from glowc.machine.elf import symbols
from glowc.machine.execute import BundleInfo, bench, execute, load_bundle, random_inputs
from glowc.machine.firmware import build_firmware
from glowc.machine.kit import kit_of, write_kit
from glowc.machine.shared import shared_library
from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wcast-align", "-Werror"]
SPLIT = ("asm", "object")
WRONG_MODEL, NO_FILE = 18, 23
MAIN = """#include "digits.h"
#include <stdio.h>
int main(void) {
  static int8_t in[DIGITS_INPUT_BYTES], out[DIGITS_OUTPUT_BYTES];
  printf("%d", digits_invoke(in, out));
  for (unsigned i = 0; i < sizeof out; i++) { printf(" %d", out[i]); }
  return 0;
}
"""


def bundle(
    folder: Path, weights: str = "auto", board: str = "host", model: Path = DIGITS, **more: object
) -> BundleInfo:
    options = CompileOptions(name="digits", weights=weights, **more)  # type: ignore[arg-type]
    write_bundle(compile_model(model, load_board(board), options), folder)
    return load_bundle(folder)


def tools(board: str) -> None:
    require_tool(
        load_board(board).cpu.cc,
        *{"mps2-an386": ["qemu-system-arm"], "virt-a53": ["qemu-system-aarch64"]}.get(board, []),
    )


@pytest.mark.parametrize("board", ["host", "mps2-an386", "virt-a53"])
def test_bytes_are_equal_and_the_c_compiles_without_a_warning(board: str, tmp_path: Path) -> None:
    tools(board)
    machine, results = load_board(board), {}
    for weights in WEIGHTS if board == "host" else WEIGHTS[:-1]:
        info = bundle(tmp_path / weights, weights, board)
        outputs = execute(info, machine, random_inputs(info, 4), extra_flags=STRICT).outputs
        results[weights] = [array.tobytes() for array in outputs.values()]
    assert all(found == results["c"] for found in results.values())


@pytest.mark.parametrize("weights", SPLIT)
def test_the_constants_of_firmware_lie_where_its_linker_script_wants_them(weights: str, tmp_path: Path) -> None:
    tools("mps2-an386")
    board = load_board("mps2-an386")
    info = bundle(tmp_path / "digits", weights, board.name)
    build_firmware(info, board, tmp_path / "out.elf", tmp_path / "out.map")
    place = symbols(tmp_path / "out.elf")["digits_weights"]
    assert board.memory[board.weights_region].holds(place.address, place.size)
    assert place.address % 16 == 0
    assert ".rodata.digits_weights" in (tmp_path / "out.map").read_text(encoding="utf-8")
    assert (bench(info, board)["rodata_bytes"] or 0) > 8312


@pytest.mark.parametrize("weights", SPLIT)
def test_a_kit_has_them(weights: str, tmp_path: Path) -> None:
    tools("mps2-an386")
    require_tool("make")
    np.savez(tmp_path / "in.npz", image=np.zeros((2, 1, 1, 8, 8), np.int8))
    info = bundle(tmp_path / "digits", weights, "mps2-an386", golden=tmp_path / "in.npz")
    write_kit(kit_of(info, load_board("mps2-an386")), tmp_path / "kit")
    done = subprocess.run(["make", "-C", str(tmp_path / "kit"), "check"], capture_output=True, text=True, check=False)
    assert "2 of 2 test vectors" in done.stdout, done.stderr


def output(*argv: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_assembly_is_found_from_everywhere(compiler: str, tmp_path: Path) -> None:
    require_tool(compiler)
    folder = bundle(tmp_path / "some" / "digits", "asm").folder
    (tmp_path / "main.c").write_text(MAIN)
    output(compiler, tmp_path / "main.c", "digits.c", "digits_weights.S", "-I.", "-o", "a.out", cwd=folder)
    files = ["main.c", "-Isome/digits", "some/digits/digits.c", "some/digits/digits_weights.S"]
    answers = {output("./a.out", cwd=folder)}
    for flags in ([], ["-O2", "-flto"]):
        output(compiler, *flags, *files, "-o", "a.out", cwd=tmp_path)
        answers.add(output("./a.out", cwd=tmp_path))
    assert len(answers) == 1
    assert answers.pop().startswith("0 ")


@pytest.mark.parametrize("weights", SPLIT)
def test_make_and_cmake_build_them(weights: str, tmp_path: Path) -> None:
    require_tool("gcc", "make", "cmake")
    bundle(tmp_path / "plain", weights)
    bundle(tmp_path / "cmake", weights, form="cmake")
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "Makefile").write_text(
        "include plain/digits.mk\nCFLAGS += $(DIGITS_CFLAGS)\napp: main.o $(DIGITS_OBJS)\n\t$(CC) $^ -o $@\n"
    )
    output("make", cwd=tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES C)\nadd_subdirectory(cmake)\n"
        "add_executable(other main.c)\ntarget_link_libraries(other PRIVATE glowc::digits)\n"
    )
    output("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    output("cmake", "--build", "build", cwd=tmp_path)
    assert output("./app", cwd=tmp_path) == output("build/other", cwd=tmp_path)


@pytest.mark.parametrize("weights", SPLIT)
def test_glowc_mk_has_them_among_its_sources(weights: str, tmp_path: Path) -> None:
    require_tool("make")
    folder = (ROOT / "runtime_c" / "make").as_posix()
    (tmp_path / "Makefile").write_text(
        f"GLOWC := false\nGLOWC_MODELS := a b\nGLOWC_FLAGS_b := --weights {weights}\ninclude {folder}/glowc.mk\n"
        "$(info $(GLOWC_SRCS) | $(call glowc_args,a) | $(call glowc_args,b))\nall:;@true\n"
    )
    a, b = "build/models/a/a", "build/models/b/b"
    sources = f"{a}.c {a}_weights.c {b}.c {b}_weights.{'S' if weights == 'asm' else 'o'}"
    assert f"{sources} | --name a --weights c | --name b --weights {weights}\n" in output("make", cwd=tmp_path)


def test_a_file_that_was_not_updated_is_noticed(tmp_path: Path) -> None:
    require_tool("gcc")
    model = onnx.load(DIGITS)
    model.doc_string = "trained again"
    onnx.save(model, tmp_path / "new.onnx")
    info = bundle(tmp_path / "digits", "asm")
    other = bundle(tmp_path / "other", "asm", model=tmp_path / "new.onnx")
    (tmp_path / "main.c").write_text(MAIN)
    argv = ["gcc", "main.c", "digits/digits.c", "digits/digits_weights.S", "-Idigits", "-o", "a.out"]
    old = (info.folder / "digits_weights.bin").read_bytes()
    (info.folder / "digits_weights.bin").write_bytes((other.folder / "digits_weights.bin").read_bytes())
    output(*argv, cwd=tmp_path)
    assert output("./a.out", cwd=tmp_path).split()[0] == str(WRONG_MODEL)
    (info.folder / "digits_weights.bin").write_bytes(old[:-1])
    assert "digits_weights" in subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stderr
    texts = [(one.folder / "digits_weights.S").read_text(encoding="utf-8") for one in (info, other)]
    assert texts[0] != texts[1]  # make builds it again


def test_a_file_is_mapped(tmp_path: Path) -> None:
    require_tool("gcc")
    bundle(tmp_path / "digits", "file")
    (tmp_path / "main.c").write_text(
        MAIN.replace("  printf", '  printf("%d ", digits_use_weights_file("none"));\n'
                     '  printf("%d ", digits_use_weights_file("digits/digits_weights.bin"));\n  printf', 1)
    )  # fmt: skip
    sources = ["main.c", "digits/digits.c", "digits/digits_weights.c"]
    output("gcc", *STRICT, "-std=c11", *sources, "-Idigits", "-o", "a.out", cwd=tmp_path)
    assert output("./a.out", cwd=tmp_path).startswith(f"{NO_FILE} 0 0 ")


def large(path: Path) -> Path:
    weights = np.random.default_rng(0).standard_normal((600, 600)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 600]) for name in "xy"]
    graph = helper.make_graph([node], "large", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_a_megabyte_and_more_is_assembly_where_the_format_takes_it(tmp_path: Path) -> None:
    model = large(tmp_path / "large.onnx")
    assert bundle(tmp_path / "digits").weights_source == "digits_weights.c"
    for form, source in (("folder", "S"), ("cmake", "S"), ("zephyr", "c"), ("single", "c")):
        info = bundle(tmp_path / form, model=model, form=form)
        assert info.weights_source == f"digits_weights.{source}"
    assert bundle(tmp_path / "c", "array", model=model).weights_source == "digits_weights.c"
    group = compile_group([f"a={model}"], load_board("host"), CompileOptions(), GroupSpec("app", False, False))
    assert group.report["sources"] == ["app.c", "app_weights.c"]


def test_what_excludes_each_other_is_refused_by_name(tmp_path: Path) -> None:
    arm, host = load_board("mps2-an386"), load_board("host")
    cases = (
        (host, {"weights": "asm", "form": "single"}, "--weights asm: --format single"),
        (host, {"weights": "object", "form": "arduino"}, "--weights object: --format arduino"),
        (arm, {"weights": "file"}, "--weights file: mps2-an386 has no operating system"),
    )
    for board, options, says in cases:
        with pytest.raises(InputError, match=says):
            compile_model(DIGITS, board, CompileOptions(name="digits", **options))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot have --weights object"):
        compile_group([str(DIGITS)], host, CompileOptions(weights="object"), GroupSpec("app", False, False))
    info = bundle(tmp_path / "digits", "object", "mps2-an386")
    for call in (lambda: shared_library(info), lambda: execute(info, host, random_inputs(info))):
        with pytest.raises(InputError, match="are an object for cortex-m4, not for host"):
            call()

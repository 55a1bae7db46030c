"""What `glowc compile --format` writes, built as its users build it; build systems that are not here have stand-ins."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from glowc.app.cli import app
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, read_inputs
from tests.conftest import ROOT, require_tool
from tests.e2e.stand_ins import ARDUINO, ZEPHYR_KERNEL

pytestmark = pytest.mark.qemu

MODELS = ROOT / "examples/firmware-make/models"
DIGITS, DIGITS_TEST = MODELS / "digits.onnx", MODELS / "digits_test.npz"
SINE, SINE_TEST = MODELS / "sine.onnx", MODELS / "sine_test.npz"
STRICT = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror", "-O2"]


def call(*argv: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def export(source: Path, form: str, folder: Path, board: str = "host", golden: Path | None = None) -> Path:
    write_bundle(compile_model(source, load_board(board), CompileOptions(form=form, golden=golden)), folder)
    return folder


@pytest.mark.parametrize("board", ["host", "microbit", "mps2-an386", "mps3-an547", "linux-aarch64", "linux-armhf"])
def test_single_builds_alone_without_a_warning(board: str, tmp_path: Path) -> None:
    target = load_board(board)
    require_tool(target.cpu.cc, "clang")
    folder = export(DIGITS, "single", tmp_path / "single", board)
    flags = [flag for flag in target.cpu.cflags if flag != "-ffp-contract=off"]
    call(target.cpu.cc, *flags, *STRICT, "-c", folder / "digits.c", "-o", tmp_path / "digits.o")
    if board in ("host", "mps2-an386"):  # clang of this machine: the latter as portable C
        more = ["-DGLOW_ANY_CORE"] if board != "host" else []
        call("clang", *STRICT, *more, "-c", folder / "digits.c", "-o", tmp_path / "clang.o")


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_single_gives_the_bytes_of_the_folder(board: str, tmp_path: Path) -> None:
    target = load_board(board)
    require_tool(target.cpu.cc)
    outputs = []
    for form in ("folder", "single"):
        info = load_bundle(export(DIGITS, form, tmp_path / form, board))
        outputs.append(execute(info, target, read_inputs(info, DIGITS_TEST)).outputs["logits"])
    np.testing.assert_array_equal(outputs[0], outputs[1])


def test_single_rounds_products_without_a_flag(tmp_path: Path) -> None:
    """gcc fuses multiply and add unless it is told; the file tells it."""
    require_tool("arm-none-eabi-gcc", "arm-none-eabi-objdump")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("HardSigmoid", ["x"], ["y"])], "net", [x], [y])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "net.onnx"
    )
    folder = export(tmp_path / "net.onnx", "single", tmp_path / "single", "mps2-an386")
    text = (folder / "net.c").read_text()
    (tmp_path / "untold.c").write_text(text.replace("#pragma GCC optimize", "// "))
    fused = []
    for source in (folder / "net.c", tmp_path / "untold.c"):
        flags = [flag for flag in load_board("mps2-an386").cpu.cflags if flag != "-ffp-contract=off"]
        call("arm-none-eabi-gcc", *flags, "-O2", f"-I{folder}", "-c", source, "-o", tmp_path / "net.o")
        fused.append("vfma" in call("arm-none-eabi-objdump", "-d", tmp_path / "net.o"))
    assert fused == [False, True]


def test_cmake_library_is_built_and_tested(tmp_path: Path) -> None:
    require_tool("cmake", "make", "gcc")
    export(SINE, "cmake", tmp_path / "sine", golden=SINE_TEST)
    (tmp_path / "main.c").write_text(
        '#include "sine_golden.h"\nint main(void) { return (int)sine_golden_failures(); }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES C)\nadd_subdirectory(sine)\n"
        "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE glowc::sine_golden)\n"
    )
    call("cmake", "-B", "build", "-G", "Unix Makefiles", cwd=tmp_path)
    lines = call("cmake", "--build", "build", "--verbose", cwd=tmp_path)
    assert "-ffp-contract=off" in lines
    call(tmp_path / "build/app")


ZEPHYR = """\
macro(zephyr_library_named name)
  set(library ${name})
  add_library(${name} STATIC)
endmacro()
macro(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGN})
endmacro()
macro(zephyr_include_directories)
  target_include_directories(${library} PUBLIC ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${library} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_definitions)
  target_compile_definitions(${library} PRIVATE ${ARGN})
endmacro()
set(CONFIG_GLOWC_SINE y)
set(CONFIG_GLOWC_SINE_STATIC_ARENA y)
set(CONFIG_GLOWC_SINE_ARENA_SECTION .my_arena)
set(CONFIG_GLOWC_SINE_WEIGHTS_SECTION .my_weights)
"""
ESP_IDF = """\
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SRCS;INCLUDE_DIRS")
  add_library(glowc_sine STATIC ${arg_SRCS})
  target_include_directories(glowc_sine PUBLIC ${arg_INCLUDE_DIRS})
  set(COMPONENT_LIB glowc_sine PARENT_SCOPE)
endfunction()
"""


@pytest.mark.parametrize(("form", "functions"), [("zephyr", ZEPHYR), ("esp-idf", ESP_IDF)])
def test_descriptions_name_the_sources(form: str, functions: str, tmp_path: Path) -> None:
    """With stand-ins for the functions of the build system: sources, include folder, flags and sections arrive."""
    require_tool("cmake", "make", "gcc")
    export(SINE, form, tmp_path / "sine")
    top = f"cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES C)\n{functions}add_subdirectory(sine)\n"
    (tmp_path / "CMakeLists.txt").write_text(top)
    call("cmake", "-B", "build", "-G", "Unix Makefiles", cwd=tmp_path)
    assert "-ffp-contract=off" in call("cmake", "--build", "build", "--verbose", cwd=tmp_path)
    (library,) = (tmp_path / "build").rglob("libglowc_sine.a")
    names = call("objdump", "-h", library)
    assert (".my_arena" in names, ".my_weights" in names) == (form == "zephyr", form == "zephyr")
    assert "sine_invoke" in call("nm", library)


def test_arduino_sketch_runs_with_a_stand_in(tmp_path: Path) -> None:
    """The sketch is C++, the library C; every source of src/ is compiled, as the IDE does it."""
    require_tool("gcc", "g++")
    folder = export(SINE, "arduino", tmp_path / "sine")
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    sketch = (folder / "examples/sine/sine.ino").read_text()
    main = "\nPort Serial;\nint main() { setup(); loop(); return 0; }\n"
    (tmp_path / "sketch.cpp").write_text(f'#include "Arduino.h"\n{sketch}{main}')
    for source in sorted((folder / "src").glob("*.c")):
        call("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", source, cwd=tmp_path)
    flags = ("-std=gnu++17", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'src'}", "-I.")
    call("g++", *flags, "sketch.cpp", *sorted(tmp_path.glob("*.o")), "-o", "sketch", cwd=tmp_path)
    assert call("./sketch", cwd=tmp_path).startswith("status 0, microseconds 0\n")


@pytest.mark.parametrize("name", ["zephyr", "arduino"])
def test_example_says_how_its_module_is_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path / name)
    (command,) = re.findall(r"^glowc (.*)$", Path("README.md").read_text(), re.MULTILINE)
    app(command.split(), standalone_mode=False)
    assert len(list(tmp_path.rglob("report.json"))) == 1


def test_zephyr_application_runs_with_a_stand_in(tmp_path: Path) -> None:
    require_tool("gcc")
    folder = export(SINE, "zephyr", tmp_path / "sine", golden=SINE_TEST) / "src"
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr/kernel.h").write_text(ZEPHYR_KERNEL)
    main = ROOT / "examples/zephyr/app/src/main.c"
    call("gcc", *STRICT, f"-I{folder}", f"-I{tmp_path}", main, *folder.glob("*.c"), "-o", tmp_path / "app")
    printed = call(tmp_path / "app")
    assert printed.startswith("sine: 0 of 20 vectors wrong\n")
    assert 950 <= int(printed.split()[-2]) <= 1000


def test_cmake_library_becomes_part_of_a_shared_one(tmp_path: Path) -> None:
    """x86-64's linker refuses static libraries without position-independent code."""
    require_tool("cmake", "make", "gcc")
    export(SINE, "cmake", tmp_path / "sine")
    (tmp_path / "part.c").write_text('#include "sine.h"\nint part(void);\nint part(void) { return sine_run(); }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES C)\nadd_subdirectory(sine)\n"
        "add_library(part SHARED part.c)\ntarget_link_libraries(part PRIVATE glowc::sine)\n"
    )
    call("cmake", "-B", "build", "-G", "Unix Makefiles", cwd=tmp_path)
    call("cmake", "--build", "build", cwd=tmp_path)


def test_cmake_library_is_installed_and_found_by_a_program_in_cpp(tmp_path: Path) -> None:
    """By find_package in a project without C, and by pkg-config."""
    require_tool("cmake", "make", "g++", "pkg-config")
    export(SINE, "cmake", tmp_path / "sine")
    call("cmake", "-S", "sine", "-B", "lib", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/to", cwd=tmp_path)
    call("cmake", "--build", "lib", "--target", "install", cwd=tmp_path)
    (tmp_path / "main.cpp").write_text('#include "sine.h"\nint main() { return sine_run(); }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES CXX)\nfind_package(sine 0.1 REQUIRED)\n"
        "add_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE glowc::sine)\n"
    )
    call("cmake", "-B", "build", "-G", "Unix Makefiles", f"-DCMAKE_PREFIX_PATH={tmp_path}/to", cwd=tmp_path)
    call("cmake", "--build", "build", cwd=tmp_path)
    call(tmp_path / "build/app")
    found = next((tmp_path / "to").rglob("sine.pc"))
    flags = call("pkg-config", "--cflags", "--libs", found).split()
    call("g++", tmp_path / "main.cpp", *flags, "-o", tmp_path / "app")
    call(tmp_path / "app")


HOOKS = """\
#include "glow_runtime.h"
#include "one.h"
#include "two.h"
static unsigned calls[2];
#ifdef GLOW_PROFILE_MODELS
void glow_profile_model_begin(glow_model_t model, uint32_t) { calls[model == two_layer_name]++; }
void glow_profile_model_end(glow_model_t model, uint32_t layer) { if (model(layer)[0] == 0) { calls[0] = 99; } }
static const unsigned want[2] = {ONE_LAYER_COUNT, 2 * TWO_LAYER_COUNT};
#else
void glow_profile_begin(uint32_t) { calls[0]++; }
void glow_profile_end(uint32_t) { calls[1]++; }
static const unsigned want[2] = {ONE_LAYER_COUNT + 2 * TWO_LAYER_COUNT, ONE_LAYER_COUNT + 2 * TWO_LAYER_COUNT};
#endif
int main() { one_run(); two_run(); two_run(); return calls[0] == want[0] && calls[1] == want[1] ? 0 : 1; }
"""


@pytest.mark.parametrize("define", ["GLOW_PROFILE", "GLOW_PROFILE_MODELS"])
def test_profile_hooks_are_written_in_cpp_and_know_the_model(define: str, tmp_path: Path) -> None:
    require_tool("gcc", "g++")
    (tmp_path / "hooks.cpp").write_text(HOOKS)
    objects, include = [], []
    for name, source in (("one", SINE), ("two", DIGITS)):
        compiled = compile_model(source, load_board("host"), CompileOptions(name=name))
        write_bundle(compiled, tmp_path / name)
        include.append(f"-I{tmp_path / name}")
        for part in (name, f"{name}_weights"):
            objects.append(tmp_path / f"{part}.o")
            call("gcc", *STRICT, f"-D{define}", "-c", tmp_path / name / f"{part}.c", "-o", objects[-1])
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wundef", "-Werror"]
    call("g++", "-std=c++17", *warnings, f"-D{define}", *include, tmp_path / "hooks.cpp", *objects, "-lm", "-o", "app",
         cwd=tmp_path)  # fmt: skip
    call(tmp_path / "app")


def test_flags_of_a_bundle_are_of_use_in_cpp(tmp_path: Path) -> None:
    """NAME_CPPFLAGS has nothing that g++ warns of, as NAME_CFLAGS has (-std=c11)."""
    require_tool("make", "g++")
    export(SINE, "folder", tmp_path / "sine", golden=SINE_TEST)
    headers = "".join(f'#include "{path.name}"\n' for path in sorted((tmp_path / "sine").glob("*.h")))
    (tmp_path / "main.cpp").write_text(f"{headers}int main() {{ return 0; }}\n")
    (tmp_path / "Makefile").write_text(
        "include sine/sine.mk\nmain.o: main.cpp $(SINE_HDRS)\n"
        "\tg++ -Wall -Wextra -Wpedantic -Werror $(SINE_CPPFLAGS) -c $< -o $@\n"
    )
    call("make", cwd=tmp_path)

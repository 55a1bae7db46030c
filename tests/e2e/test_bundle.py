"""The bundle as firmware sees it: it compiles without a warning everywhere, keeps all state in the arena, has no
heap and no recursion, is the same bytes every time, and every function and macro of its header does what it says.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.codegen.mains import render_main
from glowc.codegen.names import c_lines
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.machine.elf import sections, symbols
from glowc.machine.execute import calls_of, load_bundle, random_inputs
from glowc.machine.link import build_elf
from glowc.ops.interp import run_graph
from tests.conftest import ROOT, require_tool
from tests.e2e.models import DIGITS, compiled, exported_outputs, model_path, sample
from tests.golden.nets import NETS
from tests.unit.onnx_builders import model, node

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Wvla", "-Werror")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLOAT, TWO_INPUTS = "float_mlp", "concat"
MODELS = (DIGITS, FLOAT, TWO_INPUTS, "mlperf_kws_dscnn", "mlperf_vww_mobilenetv1")
COMPILERS = {  # (board, compiler besides the board's)
    "gcc": ("host", None),
    "clang": ("host", "clang"),
    "m0": ("rpi-pico", None),
    "m3": ("mps2-an385", None),
    "m4": ("mps2-an386", None),
    "m55": ("mps3-an547", None),
    "aarch64": ("linux-aarch64", None),
    "armhf": ("linux-armhf", None),
}
# What a model may take from outside: string.h, math.h, and the arithmetic of the compiler's own library.
ALLOWED = re.compile(r"mem(cpy|set|move|cmp)|(exp|log|sqrt|tanh|erf|pow|floor|ceil|rint|sin|cos|tan|atan)\w*|__\w+")
LIBGCC = re.compile(r"__(aeabi|gnu|arm)_\w+|__\w+(si|di|sf|df)[23456]?")


def marked(name: str) -> object:
    return pytest.param(name, marks=[pytest.mark.shared] if name.startswith("mlperf") else [])


@cache
def bundle(name: str, board: str = "host", opt: str = "balanced") -> Compiled:
    """A model of the repository, one of ../shared/models, or a small network of the golden tests."""
    if name not in NETS:
        return compiled(name, board, None, opt)
    path = Path(os.environ["GLOWC_CACHE_DIR"]) / f"{name}-{os.getpid()}.onnx"
    path.write_bytes(NETS[name]().SerializeToString())
    return compile_model(path, load_board(board), CompileOptions(name=name, opt=opt))


def written(result: Compiled, folder: Path) -> Path:
    write_bundle(result, folder)
    return folder


def call(argv: Sequence[object], cwd: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(a) for a in argv], cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
    return done.stdout


def objects(folder: Path, name: str, kind: str, flags: Sequence[str] = ("-O2",)) -> list[Path]:
    """Compile the sources of a bundle with the strict warnings; `kind` is a key of COMPILERS."""
    board_name, cc = COMPILERS[kind]
    cpu = load_board(board_name).cpu
    require_tool(cc or cpu.cc)
    made = []
    for source in sorted(folder.glob(f"{name}*.c")):
        out = folder / f"{source.stem}.{kind}.o"
        call([cc or cpu.cc, *cpu.cflags, *STRICT, *flags, f"-I{folder}", "-c", source, "-o", out], folder)
        made.append(out)
    return made


@pytest.mark.qemu
@pytest.mark.parametrize("kind", COMPILERS)
@pytest.mark.parametrize("name", [marked(name) for name in MODELS])
def test_c_compiles_without_a_warning(name: str, kind: str, tmp_path: Path) -> None:
    folder = written(bundle(name, COMPILERS[kind][0]), tmp_path)
    objects(folder, name, kind)


@pytest.mark.qemu
@pytest.mark.parametrize("kind", COMPILERS)
@pytest.mark.parametrize("name", [marked(name) for name in (DIGITS, "mlperf_ic_resnet8", "mlperf_vww_mobilenetv1")])
def test_c_compiles_without_optimisation(name: str, kind: str, tmp_path: Path) -> None:
    """Assembly that takes all registers must leave the frame its own."""
    objects(written(bundle(name, COMPILERS[kind][0]), tmp_path), name, kind, ("-O0",))


@pytest.mark.qemu
@pytest.mark.parametrize("kind", ["clang", "m55"])
@pytest.mark.parametrize("opt", ["size", "speed"])
@pytest.mark.parametrize("name", [marked(name) for name in (DIGITS, FLOAT, "mlperf_vww_mobilenetv1")])
def test_c_of_every_opt_level_compiles_without_a_warning(name: str, opt: str, kind: str, tmp_path: Path) -> None:
    folder = written(bundle(name, COMPILERS[kind][0], opt), tmp_path)
    objects(folder, name, kind, ("-Os",) if opt == "size" else ("-O3",))


@pytest.mark.parametrize("name", NETS)
def test_c_of_small_nets_compiles_without_a_warning(name: str, tmp_path: Path) -> None:
    objects(written(bundle(name), tmp_path), name, "gcc", ("-O0", "-Wpedantic"))


@pytest.mark.parametrize(("cc", "language"), [("gcc", "c11"), ("clang", "c11"), ("g++", "c++11"), ("g++", "c++20")])
@pytest.mark.parametrize("name", [DIGITS, TWO_INPUTS])
def test_header_stands_alone(name: str, cc: str, language: str, tmp_path: Path) -> None:
    require_tool(cc)
    folder = written(bundle(name), tmp_path)
    suffix = "cpp" if "++" in language else "c"
    user = folder / f"user.{suffix}"
    user.write_text(f'#include "{name}.h"\n#include "{name}.h"\nint use(void) {{ return {name}_run(); }}\n')
    prototype = () if suffix == "cpp" else ("-Wstrict-prototypes",)
    if suffix == "cpp":
        user.write_text(user.read_text().replace("int use", "int use(void);\nint use"))
    else:
        user.write_text(user.read_text().replace("int use", "extern int use(void);\nint use"))
    flags = ("-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror", *prototype)
    call([cc, f"-std={language}", *flags, "-c", user, "-o", folder / "user.o"], folder)


def run_native(sources: Sequence[Path], folder: Path, flags: Sequence[str] = (), cc: str = "gcc") -> bytes:
    """Build a program of C files on the host, run it, and return what it wrote to standard output."""
    require_tool(cc)
    program = folder / "program"
    call([cc, *STRICT, "-O1", *flags, f"-I{folder}", *sources, "-o", program, "-lm"], folder)
    done = subprocess.run([program], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr.decode()}"
    return done.stdout


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("name", [marked(name) for name in MODELS])
def test_sanitizers_find_nothing_and_the_bytes_are_the_same(name: str, cc: str, tmp_path: Path) -> None:
    require_tool(cc)
    result = bundle(name)
    info = load_bundle(written(result, tmp_path))
    inputs = random_inputs(info, 2)
    plain = exported_outputs(info, "host", None, {p.name: p.to_exported(inputs[p.name]) for p in info.inputs})
    with (tmp_path / "in.bin").open("wb") as file:
        file.write(np.uint32(2).tobytes())
        file.writelines(inputs[p.name][i].tobytes() for i in range(2) for p in info.inputs)
    main = tmp_path / "main_run.c"
    main.write_text(render_main(calls_of(info)))
    runtime = ROOT / "runtime_c/io"
    sources = [main, tmp_path / f"{name}.c", tmp_path / f"{name}_weights.c", runtime / "glow_io_stdio.c"]
    program = tmp_path / "program"
    include = (f"-I{tmp_path}", f"-I{runtime}")
    call(
        [cc, "-std=gnu11", "-O1", "-ffp-contract=off", *SANITIZERS, *include, *sources, "-o", program, "-lm"], tmp_path
    )
    call([program], tmp_path, {"ASAN_OPTIONS": "detect_stack_use_after_return=1"})
    expected = b"".join(plain[p.name][i].tobytes() for i in range(2) for p in info.outputs)
    assert (tmp_path / "out.bin").read_bytes() == expected


@pytest.mark.qemu
@pytest.mark.parametrize("kind", ["m0", "m4", "m55"])
@pytest.mark.parametrize("name", [marked(name) for name in MODELS])
def test_only_the_arena_is_writable_and_nothing_allocates(name: str, kind: str, tmp_path: Path) -> None:
    require_tool("arm-none-eabi-nm")
    made = objects(written(bundle(name, COMPILERS[kind][0]), tmp_path), name, kind)
    lines = [line.split() for path in made for line in call(["arm-none-eabi-nm", path], tmp_path).splitlines()]
    defined = {line[-1]: line[-2] for line in lines if line[-2] != "U"}
    undefined = {line[-1] for line in lines if line[-2] == "U"} - set(defined)
    assert [(symbol, kind) for symbol, kind in defined.items() if kind in "bBdDcCsSgG"] == [(f"{name}_arena", "b")]
    assert [s for s in {*defined, *undefined} if re.search("malloc|calloc|realloc|free|sbrk|heap", s)] == []
    wrong = [s for s in undefined if not ALLOWED.fullmatch(s) or (s.startswith("__") and not LIBGCC.fullmatch(s))]
    assert wrong == []
    if "f32" not in "".join(layer.kernel for layer in bundle(name, COMPILERS[kind][0]).bundle.layers):
        assert [s for s in undefined if not s.startswith(("mem", "__"))] == [], "math.h in an integer network"
    arena = bundle(name, COMPILERS[kind][0]).plan.arena_bytes
    assert sum(s.size for path in made for s in sections(path) if s.kind in ("bss", "data")) == arena


@pytest.mark.qemu
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize("name", [marked(name) for name in MODELS])
def test_stack_is_static_and_nothing_calls_itself(name: str, opt: str, tmp_path: Path) -> None:
    folder = written(bundle(name, "mps2-an386"), tmp_path)
    objects(folder, name, "m4", (opt, "-fstack-usage", "-fcallgraph-info"))
    usage = [line.split("\t") for path in folder.glob("*.su") for line in path.read_text().splitlines()]
    assert usage
    assert [line for line in usage if line[2] != "static"] == []
    calls: dict[str, set[str]] = {}
    for path in folder.glob("*.ci"):
        for caller, callee in re.findall(r'sourcename: "([^"]+)" targetname: "([^"]+)"', path.read_text()):
            calls.setdefault(caller, set()).add(callee)
    assert calls
    assert list(cycles(calls)) == []


def cycles(calls: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield every function that can reach itself."""
    for start in calls:
        seen: set[str] = set()
        todo = list(calls[start])
        while todo:
            name = todo.pop()
            if name == start:
                yield start
            if name not in seen:
                seen.add(name)
                todo += calls.get(name, ())


@pytest.mark.parametrize("opt", ["balanced", "speed"])
def test_equal_input_gives_equal_bytes(opt: str, tmp_path: Path) -> None:
    """Other folder, other path to the model, other hash seed, other user and time zone: the same files."""
    first, second = tmp_path / "first", tmp_path / "second" / "deeper"
    for folder in (first, second):
        folder.mkdir(parents=True)
    (second / "digits.onnx").write_bytes(model_path(DIGITS).read_bytes())
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, image=sample(DIGITS).inputs["image"][:2])
    argv = (sys.executable, "-m", "glowc", "compile")
    options = ("--board", "mps2-an386", "--opt", opt, "--golden", vectors)
    call([*argv, model_path(DIGITS), "-o", first / "out", *options], first, {"PYTHONHASHSEED": "1", "USER": "ann"})
    moved = {"PYTHONHASHSEED": "2", "USER": "bob", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    call([*argv, "digits.onnx", "-o", "out", *options], second, moved)
    ours, theirs = ({p.name: p.read_bytes() for p in (f / "out").iterdir()} for f in (first, second))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    forbidden = (str(tmp_path), str(ROOT), "ann\b", "/tmp", "/home", getpass.getuser() + "@")
    for name, data in ours.items():
        text = data.decode()
        assert [word for word in forbidden if word in text] == [], name
        assert re.findall(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text) == [], name


def literal(name: str, array: np.ndarray, ctype: str = "int8_t") -> str:
    return f"static const {ctype} {name}[] = {{\n{c_lines(array)}\n}};\n"


API = r"""
#include <string.h>
#include "digits.h"

%(vectors)s

#define CHECK(condition) do { if (!(condition)) { return __LINE__ %% 200 + 1; } } while (0)

static _Alignas(64) uint8_t own[DIGITS_ARENA_BYTES + DIGITS_ARENA_ALIGN];

int main(void) {
  int8_t out[DIGITS_OUTPUT_ELEMENTS];
  CHECK(sizeof image == DIGITS_INPUT_BYTES && sizeof logits == DIGITS_OUTPUT_BYTES);
  CHECK(DIGITS_INPUT_COUNT == 1u && DIGITS_OUTPUT_COUNT == 1u && DIGITS_INPUT_RANK == 4u);
  const uint32_t shape[DIGITS_INPUT_RANK] = DIGITS_INPUT_SHAPE;
  CHECK(shape[0] == 1u && shape[1] == 1u && shape[2] == 8u && shape[3] == 8u);
  CHECK(DIGITS_INPUT_ZERO_POINT == %(zero)d && DIGITS_INPUT_SCALE == %(scale)s);
  DIGITS_INPUT_TYPE typed = image[0];
  CHECK(typed == image[0]);

  CHECK(digits_invoke(image, out) == GLOW_OK && memcmp(out, logits, sizeof out) == 0);
  CHECK(digits_invoke(NULL, out) == GLOW_ERROR_NULL && digits_invoke(image, NULL) == GLOW_ERROR_NULL);

  memset(out, 0, sizeof out);
  CHECK(digits_invoke_in(own, sizeof own, image, out) == GLOW_OK && memcmp(out, logits, sizeof out) == 0);
  CHECK(digits_invoke_in(own, DIGITS_ARENA_BYTES, image, out) == GLOW_OK);
  memset(out, 1, sizeof out);
  CHECK(digits_invoke_in(own, DIGITS_ARENA_BYTES - 1u, image, out) == GLOW_ERROR_ARENA_SIZE);
  CHECK(digits_invoke_in(own + 1, DIGITS_ARENA_BYTES, image, out) == GLOW_ERROR_ARENA_ALIGN);
  CHECK(digits_invoke_in(NULL, DIGITS_ARENA_BYTES, image, out) == GLOW_ERROR_NULL);
  CHECK(digits_invoke_in(own, DIGITS_ARENA_BYTES, NULL, out) == GLOW_ERROR_NULL);
  CHECK(out[0] == 1 && out[DIGITS_OUTPUT_ELEMENTS - 1u] == 1); /* an error writes nothing */

  for (int again = 0; again < 2; again++) { /* no state is left from one run to the next */
    memcpy(digits_input(), image, DIGITS_INPUT_BYTES);
    CHECK(digits_run() == GLOW_OK && memcmp(digits_output(), logits, DIGITS_OUTPUT_BYTES) == 0);
  }

  memset(own, 0x5A, sizeof own); /* nothing has to be initialized, and no byte beyond is touched */
  memcpy(own + DIGITS_INPUT_OFFSET_BYTES, image, DIGITS_INPUT_BYTES);
  CHECK(digits_run_in(own, DIGITS_ARENA_BYTES) == GLOW_OK);
  CHECK(memcmp(own + DIGITS_OUTPUT_OFFSET_BYTES, logits, DIGITS_OUTPUT_BYTES) == 0);
  for (size_t i = DIGITS_ARENA_BYTES; i < sizeof own; i++) {
    CHECK(own[i] == 0x5A);
  }
  CHECK(digits_run_in(own, 1u) == GLOW_ERROR_ARENA_SIZE && digits_run_in(NULL, 1u) == GLOW_ERROR_NULL);
  CHECK(strcmp(digits_layer_name(0u), "%(first)s") == 0);
  CHECK(digits_layer_name(DIGITS_LAYER_COUNT)[0] == 0 && digits_layer_name(0xFFFFFFFFu)[0] == 0);
  return 0;
}
"""


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_every_function_of_the_header_does_what_it_says(cc: str, tmp_path: Path) -> None:
    case, result = sample(DIGITS), bundle(DIGITS)
    folder = written(result, tmp_path)
    vectors = literal("image", case.inputs["image"][7]) + literal("logits", case.golden["logits"][7])
    view = result.bundle.inputs[0]
    values = {
        "vectors": vectors,
        "zero": view.zero_point,
        "scale": f"{view.scale!r}f",
        "first": result.bundle.layers[0].name,
    }
    main = folder / "api.c"
    main.write_text(API % values)
    sources = [main, folder / "digits.c", folder / "digits_weights.c"]
    run_native(sources, folder, [*SANITIZERS, "-Wno-float-equal"], cc)


TWO = r"""
#include <stdio.h>
#include <string.h>
#include "digits.h"
#include "concat.h"

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define BOTH(what) MAX(DIGITS_ARENA_##what, CONCAT_ARENA_##what)
static _Alignas(BOTH(ALIGN)) uint8_t shared[BOTH(BYTES)];

%(vectors)s

int main(void) {
  int8_t out[DIGITS_OUTPUT_ELEMENTS];
  float sum[CONCAT_OUTPUT_ELEMENTS];
  int wrong = 0;
  for (int again = 0; again < 2; again++) {
    wrong |= digits_invoke_in(shared, sizeof shared, image, out) != GLOW_OK || memcmp(out, logits, sizeof out) != 0;
    wrong |= concat_invoke_in(shared, sizeof shared, a, b, sum) != GLOW_OK || memcmp(sum, y, sizeof sum) != 0;
  }
  return wrong;
}
"""


def test_two_models_share_one_arena(tmp_path: Path) -> None:
    case, other = sample(DIGITS), bundle(TWO_INPUTS)
    rng = np.random.default_rng(0)
    inputs = {n: rng.integers(-8, 9, other.imported.types[n].shape).astype(np.float32) for n in ("a", "b")}
    vectors = literal("image", case.inputs["image"][0]) + literal("logits", case.golden["logits"][0])
    arrays = {**inputs, "y": run_graph(other.imported, inputs)["y"]}
    vectors += "".join(literal(name, array, "float") for name, array in arrays.items())
    for result in (bundle(DIGITS), other):
        write_bundle(result, tmp_path)
    (tmp_path / "two.c").write_text(TWO % {"vectors": vectors})
    flags = ["-DDIGITS_NO_STATIC_ARENA", "-DCONCAT_NO_STATIC_ARENA", *SANITIZERS]
    run_native(sorted(tmp_path.glob("*.c")), tmp_path, flags)
    for name in (DIGITS, TWO_INPUTS):
        out = tmp_path / f"{name}.o"
        call(["gcc", *STRICT, *flags[:2], "-fno-pie", "-c", tmp_path / f"{name}.c", "-o", out], tmp_path)
        assert [s for s in sections(out) if s.kind in ("bss", "data") and s.size] == []


@pytest.mark.qemu
def test_placement_macros_put_arena_and_weights_where_the_firmware_says(tmp_path: Path) -> None:
    result = bundle(DIGITS, "mps2-an386")
    places = ('-DDIGITS_ARENA_ATTR=__attribute__((section(".dtcm")))',
              '-DDIGITS_WEIGHTS_ATTR=__attribute__((section(".xip")))')  # fmt: skip
    made = objects(written(result, tmp_path), DIGITS, "m4", ("-O2", *places))
    sizes = {s.name: s.size for path in made for s in sections(path) if s.size}
    assert sizes[".dtcm"] == result.plan.arena_bytes
    assert sizes[".xip"] >= result.bundle.weights_bytes
    assert ".bss" not in sizes
    assert sum(size for name, size in sizes.items() if name.startswith(".rodata")) < 1024  # names and arguments
    placed = symbols(made[0]) | symbols(made[1])
    assert placed["digits_arena"].size == result.plan.arena_bytes


PROFILE = r"""
#include <stdio.h>
#include "digits.h"

void glow_profile_begin(uint32_t layer);
void glow_profile_end(uint32_t layer);
void glow_profile_begin(uint32_t layer) { printf("begin %u %s\n", (unsigned)layer, digits_layer_name(layer)); }
void glow_profile_end(uint32_t layer) { printf("end %u %s\n", (unsigned)layer, digits_layer_name(layer)); }

int main(void) { return digits_run(); }
"""


def test_profile_hooks_are_called_once_per_layer_in_order(tmp_path: Path) -> None:
    result = bundle(DIGITS)
    folder = written(result, tmp_path)
    (folder / "main.c").write_text(PROFILE)
    printed = run_native(sorted(folder.glob("*.c")), folder, ["-DGLOW_PROFILE"]).decode().splitlines()
    names = [layer["name"] for layer in json.loads((folder / "report.json").read_text())["layers"]]
    assert printed == [f"{what} {i} {name}" for i, name in enumerate(names) for what in ("begin", "end")]


MAKEFILE = """
include net/digits.mk
CFLAGS += $(DIGITS_CFLAGS) -O1 -Wall -Wextra -Werror
app: main.o $(DIGITS_SRCS:.c=.o) $(DIGITS_GOLDEN_SRCS:.c=.o)
\t$(CC) $^ $(DIGITS_LDLIBS) -o $@
main.o $(DIGITS_SRCS:.c=.o) $(DIGITS_GOLDEN_SRCS:.c=.o): $(DIGITS_HDRS)
"""
GOLDEN_MAIN = '#include "digits_golden.h"\nint main(void) { return (int)digits_golden_failures(); }\n'


@pytest.fixture(scope="module")
def with_golden(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """digits with test vectors of five images."""
    vectors = tmp_path_factory.mktemp("vectors") / "in.npz"
    np.savez(vectors, image=sample(DIGITS).inputs["image"][:5])
    return compile_model(model_path(DIGITS), load_board("host"), CompileOptions(golden=vectors))


def test_makefile_fragment_and_golden_vectors(with_golden: Compiled, tmp_path: Path) -> None:
    require_tool("make", "gcc")
    write_bundle(with_golden, tmp_path / "net")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "main.c").write_text(GOLDEN_MAIN)
    env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    for expected in ("-o app", "'app' is up to date"):
        done = subprocess.run(
            ["make", "-j2", "CC=gcc", "app"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    call([tmp_path / "app"], tmp_path)


def test_golden_vectors_are_onnxruntimes_and_a_wrong_one_is_found(with_golden: Compiled, tmp_path: Path) -> None:
    folder = written(with_golden, tmp_path)
    source = folder / "digits_golden.c"
    text, expected = source.read_text(), sample(DIGITS).golden["logits"][:5]
    assert all(c_lines(array) in text for array in expected)
    (folder / "main.c").write_text(GOLDEN_MAIN.replace("return (int)", "return 1 != (int)"))
    line = c_lines(expected[3]).splitlines()[0]
    source.write_text(text.replace(line, line.replace(str(expected[3][0, 0]), "77", 1), 1))
    run_native(sorted(folder.glob("*.c")), folder)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["mlperf_ic_resnet8", "torch_resnet_tiny_qdq"])
def test_golden_vectors_of_a_large_model_hold(name: str, tmp_path: Path) -> None:
    case = sample(name)
    np.savez(tmp_path / "in.npz", **case.first(3))
    options = CompileOptions(name="net", golden=tmp_path / "in.npz")
    folder = written(compile_model(case.path, load_board("host"), options), tmp_path / "net")
    (folder / "main.c").write_text(GOLDEN_MAIN.replace("digits", "net"))
    run_native(sorted(folder.glob("*.c")), folder)


def test_operators_without_weights_need_no_constants(tmp_path: Path) -> None:
    path = tmp_path / "plain.onnx"
    path.write_bytes(model([node("Relu", "x", "y")], {"x": "f32[2,3]"}, "y").SerializeToString())
    result = compile_model(path, load_board("host"))
    assert result.bundle.weights_bytes == 0
    objects(written(result, tmp_path / "out"), "plain", "gcc")


def test_bundle_in_one_folder_with_build_elf(tmp_path: Path) -> None:
    """`build_elf` with -Werror over a bundle whose path has a blank and a quote."""
    folder = written(bundle(DIGITS), tmp_path / "it's a folder")
    main = folder / "main.c"
    main.write_text('#include "digits.h"\nint main(void) { return digits_run(); }\n')
    sources = [main, folder / "digits.c", folder / "digits_weights.c"]
    elf = build_elf(sources, load_board("host"), folder / "app.elf", include_dirs=[folder], extra_flags=["-Werror"])
    assert elf.object_sizes["digits.c"].bss == bundle(DIGITS).plan.arena_bytes

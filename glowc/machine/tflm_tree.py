"""A tree of TensorFlow Lite Micro's sources + a model -> a program under QEMU, counted as a bundle is.

The tree is what TFLM's create_tflm_tree.py writes with OPTIMIZED_KERNEL_DIR=cmsis_nn. The library is compiled once for
each tree and core, into the cache. Kernels and CMSIS-NN are compiled with -O2, the rest with -Os, as TFLM's own
Makefile does; messages are left out (TF_LITE_STRIP_ERROR_STRINGS).
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glowc.board import ARENA_SECTION, Board, Chip, require_tool, run_tool
from glowc.codegen.blob import assembly
from glowc.codegen.kernels import environment
from glowc.errors import InputError, ToolError
from glowc.machine.cycles.measure import INFERENCE, count_program
from glowc.machine.execute import BundleInfo, read_samples, write_samples
from glowc.machine.link import build_elf
from glowc.machine.qemu import require_runnable, run_elf
from glowc.paths import find_cached, store_cached

MAKE_TREE = (
    "in a checkout of tflite-micro: python3 tensorflow/lite/micro/tools/project_generation/create_tflm_tree.py DIR "
    '--makefile_options="TARGET=cortex_m_generic OPTIMIZED_KERNEL_DIR=cmsis_nn TARGET_ARCH=project_generation"'
)
_RESOLVER = "tensorflow/lite/micro/micro_mutable_op_resolver.h"
_MAKEFILE = "tensorflow/lite/micro/tools/make/Makefile"  # of a checkout, whose tests and other targets are no library
_CXX = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-fno-use-cxa-atexit")
_CODE = {".c": ("-std=c11",), ".cc": _CXX, ".cpp": _CXX}
_DEFINES = (
    "TF_LITE_STATIC_MEMORY", "TF_LITE_STRIP_ERROR_STRINGS", "TF_LITE_DISABLE_X86_NEON", "TF_LITE_MCU_DEBUG_LOG",
    "NDEBUG", "CMSIS_NN", "KERNELS_OPTIMIZED_FOR_SPEED",
)  # fmt: skip
_FLAGS = ("-w", "-funsigned-char", "-fomit-frame-pointer", "-fno-unwind-tables")
_INCLUDED = ("", *(f"third_party/{d}" for d in ("", "gemmlowp", "flatbuffers/include", "kissfft", "ruy", "cmsis_nn",
                                                "cmsis")))  # fmt: skip
_HEADERS = ("arm_nnfunctions.h", "cmsis_compiler.h", "arm_math.h")  # in folders whose places differ between versions
_ADD = re.compile(r"TfLiteStatus (Add\w+)\(")
_ADDED = re.compile(r'AddBuiltin\(\s*BuiltinOperator_(\w+)|AddCustom\(\s*"(\w+)"')
_VARIABLE = "VAR_HANDLE"
_ROOM = 3 / 4  # of the board's memory for the arena, which the interpreter takes what it needs of


@dataclass(frozen=True, slots=True)
class TreeRun:
    """What a program of TFLM leaves: outputs by the bundle's names with leading sample axes, and figures.

    `flash_bytes` are those of the whole program.
    """

    outputs: Mapping[str, np.ndarray]
    insns: int
    cycles: float | None
    arena_bytes: int
    flash_bytes: int


@dataclass(frozen=True, slots=True)
class TreeProgram:
    """A model and the tree it is built with: the functions that add its operators, and how many variables it names."""

    tree: Path
    model: bytes
    adds: tuple[str, ...]
    variables: int


def tree_program(tree: Path, model: bytes, codes: Sequence[str]) -> TreeProgram:
    """Return what to build for a model whose operators have these codes.

    Raises InputError when the folder is no tree of TFLM's sources, or lacks an operator.
    """
    known, wanted = _known_adds(tree), sorted(set(codes))
    if missing := [code for code in wanted if code not in known]:
        raise InputError(f"TensorFlow Lite Micro in {tree} has no {', '.join(missing)}", hint="compare without --tflm")
    return TreeProgram(tree, model, tuple(known[code] for code in wanted), codes.count(_VARIABLE))


def run_tree(
    program: TreeProgram, info: BundleInfo, board: Board, chip: Chip | None, inputs: Mapping[str, np.ndarray]
) -> TreeRun:
    """Build TFLM with a model for a Cortex-M board and run it on samples, which are in the form of the bundle.

    Raises BoardError when the board does not count, ToolError when a compiler or the program fails.
    """
    require_runnable(board, marks=True)
    with tempfile.TemporaryDirectory(prefix="glowc-tflm-") as folder:
        work = Path(folder)
        sources = [_main(work, program, board), _model_source(work, program.model), _library(program.tree, board)]
        elf = build_elf(sources, board, work / "tflm.elf", include_dirs=_folders(program.tree), defines=_DEFINES,
                        extra_flags=[*_CXX, *_FLAGS, "--specs=nosys.specs"])  # fmt: skip
        count = len(next(iter(inputs.values())))
        write_samples(work / "in.bin", info, inputs, count)
        marks = run_elf(elf.path, board, cwd=work, marks=True).marks
        outputs = read_samples(work / "out.bin", info, count)
        arena_bytes = int(np.fromfile(work / "arena.bin", np.uint32)[0])
        cycles = None
        if chip is not None:
            write_samples(work / "in.bin", info, inputs, 1)
            cycles = count_program(elf.path, board, chip, work, (["tflm_model"], ["tflm_arena"]))[INFERENCE].cycles
    return TreeRun(outputs, marks[3] - marks[2] - (marks[1] - marks[0]), cycles, arena_bytes, elf.flash)


def _known_adds(tree: Path) -> dict[str, str]:
    """Return the functions of the resolver by operator. Raises InputError when the folder is no tree."""
    path = tree / _RESOLVER
    if not path.is_file() or (tree / _MAKEFILE).is_file():
        what = "is a checkout of TensorFlow Lite Micro" if path.is_file() else f"has no {_RESOLVER}"
        raise InputError(f"--tflm {tree}: the folder {what}; a tree of its sources is needed", hint=MAKE_TREE)
    _cmsis_nn(tree)
    _, *parts = _ADD.split(path.read_text(encoding="utf-8", errors="replace"))
    found = {name: _ADDED.search(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
    return {match[1] or match[2]: name for name, match in found.items() if match}


def _cmsis_nn(tree: Path) -> Path:
    """Return the folder of CMSIS-NN. Raises InputError when the tree is one of other kernels."""
    found = next((tree / "third_party").rglob("arm_nnfunctions.h"), None)
    if found is None:
        raise InputError(f"--tflm {tree}: the tree has no CMSIS-NN (arm_nnfunctions.h)", hint=MAKE_TREE)
    return found.parent.parent


def _main(work: Path, program: TreeProgram, board: Board) -> Path:
    room = board.memory[board.arena_region].size_bytes
    text = environment().get_template("main_tflm.cc.j2").render(
        operators=program.adds, variables=program.variables, arena_bytes=int(room * _ROOM) // 16 * 16,
        arena_section=ARENA_SECTION,
    )  # fmt: skip
    path = work / "main_tflm.cc"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _model_source(work: Path, model: bytes) -> Path:
    """Write the model where the board has constants."""
    file, path = work / "model.tflite", work / "tflm_weights.S"
    file.write_bytes(model)
    path.write_text(assembly("tflm_model", file.as_posix(), model, 16, "The model."), encoding="utf-8", newline="\n")
    return path


def _folders(tree: Path) -> list[Path]:
    """Return the folders of headers."""
    fixed = [tree / name for name in _INCLUDED]
    found = [path.parent for name in _HEADERS for path in sorted((tree / "third_party").rglob(name))]
    return list(dict.fromkeys(folder for folder in (*fixed, *found) if folder.is_dir()))


def _library(tree: Path, board: Board) -> Path:
    """Return an object of all sources, compiled for the board's core."""
    files = sorted(path for folder in ("tensorflow", "signal", "third_party") for path in (tree / folder).rglob("*"))
    hashed = hashlib.sha256(repr((_FLAGS, _DEFINES, _CODE, board.cpu.cflags, str(require_tool(board.cpu.cc)))).encode())
    for path in filter(Path.is_file, files):
        hashed.update(path.relative_to(tree).as_posix().encode() + b"\0" + path.read_bytes())
    name = f"tflm-{hashed.hexdigest()[:16]}.o"
    return find_cached(name) or store_cached(name, _compiled(tree, board, files))


def _compiled(tree: Path, board: Board, files: Iterable[Path]) -> bytes:
    """Return TFLM and CMSIS-NN as one object; the C of other third parties is included by files of TFLM."""
    groups: dict[tuple[str, str], list[Path]] = {}
    third_party, nn = tree / "third_party", _cmsis_nn(tree) / "Source"
    for path in files:
        if path.suffix in _CODE and (path.is_relative_to(nn) or not path.is_relative_to(third_party)):
            fast = "kernels" in path.parts or path.is_relative_to(nn)
            groups.setdefault((path.suffix, "-O2" if fast else "-Os"), []).append(path)
    with tempfile.TemporaryDirectory(prefix="glowc-tflm-") as folder:
        work = Path(folder)
        for (suffix, opt), sources in groups.items():
            build_elf(sources, board, work / f"{suffix[1:]}{opt}.elf", include_dirs=_folders(tree), defines=_DEFINES,
                      opt=opt, extra_flags=[*_CODE[suffix], *_FLAGS], link=False)  # fmt: skip
        whole = work / "whole.o"
        objects = [str(path) for path in sorted(work.glob("*.obj/*.o"))]
        done = run_tool(
            [str(require_tool(board.cpu.cc)), *board.cpu.cflags, "-nostdlib", "-r", *objects, "-o", str(whole)]
        )
        if done.returncode:
            raise ToolError("cannot link TensorFlow Lite Micro", details=done.stderr.splitlines()[-20:])
        return whole.read_bytes()

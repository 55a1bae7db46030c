#!/usr/bin/env python3
"""Measure the stack of kernels: bytes in boards/_costs/<cpu>.json. Runs as `make stack-costs`.

    scripts/fit_stack.py
    scripts/fit_stack.py --targets stm32l4r5 linux-armhf/cortex-a7 --jobs 2
    scripts/fit_stack.py --targets stm32l4r5 --keys "conv_s8.dsp_quad*"
    scripts/fit_stack.py --keys                         what programs have besides alone

Functions of many layers are printed and compiled as for scripts/fit_code.py, each together with others, so that what it
calls stays a function. Of each kernel, variant, path and way of printing the one that takes the most is kept; where it
calls others, by itself, too: the compiler puts what is called once into its caller. On Cortex-M that is computed of the
code, assembly included; on others it is the compiler's own account. What a program has besides is fitted to sample
models, whose bytes are those of the linked code, on others the painted mark of one inference. Prints how many of these
are predicted within 25 % or 64 bytes, and how many by the base of all other models; nothing else is fitted to them.
What was measured is kept in build/stack by a hash of the program.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path

from count_costs import target_of
from fit_code import FLAGS, LEVELS, PER_FILE, Printed, call_graph, compiled_text, forms_of, printed_functions, text_of
from fit_costs import TARGETS, each_target, parser_of, write

from glowc.board import Board, find_tool
from glowc.board.tools import require_tool, run_tool
from glowc.codegen.view import headers_of
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.execute import (
    BundleInfo,
    build_bundle,
    entry_points,
    execute,
    load_bundle,
    random_inputs,
    stack_report,
)
from glowc.machine.listing import read_functions
from glowc.machine.stack import Bounds
from glowc.select.code import WAYS, way_of
from glowc.select.cost import cost_file, key_of
from glowc.select.stack import Stacks, parse_stacks

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
NEAR, NEAR_BYTES = 0.25, 64
EVERYTHING = "*"
EVERY = 3  # sample models, one of which is built
SURE, SURE_MARKS = 0.9, 0.5  # share of the programs that have no more besides than is said; marks are below the truth
GRAIN = 8  # bytes that the stack of a function is a multiple of, and entries that differ by less are one
NODE = re.compile(r'node: { title: "(?:[^":]*:)?(\w[\w.]*)" label: "[^"]*?\\n(\d+) bytes')
EDGE = re.compile(r'edge: { sourcename: "(?:[^":]*:)?(\w[\w.]*)" targetname: "(?:[^":]*:)?(\w[\w.]*)"')


@dataclass(frozen=True)
class Taken:
    """One program: its model, whether it has several layers, what these take at most, and the stack of an inference."""

    model: str
    opt: str
    several: bool
    layers: int
    bytes: int


def models() -> list[Path]:
    """Return the sample models."""
    found = [*(SHARED / "models").glob("*/model.onnx"), *(SHARED / "tflite").glob("*/model.tflite")]
    return [ROOT / "examples" / "digits" / "digits.onnx", *sorted(found)]


def measured(text: str, path: Path, opt: str, stacks: Stacks) -> Taken | None:
    """Return what a model's program takes, or took when it was built before; None when the board cannot hold it."""
    board = target_of(text).board
    try:
        compiled = compile_model(path, board, CompileOptions(opt=opt))
        with tempfile.TemporaryDirectory(prefix="glowc-stack-") as folder:
            write_bundle(compiled, Path(folder) / "bundle")
            taken = known_bytes(load_bundle(Path(folder) / "bundle"), board, opt, Path(folder))
    except GlowcError as error:
        print(f"  {path.parent.name} on {text}, {opt}: {error.message.splitlines()[0]}", file=sys.stderr)
        return None
    several = sum(not i.is_marker for i in compiled.program.instrs) > 1
    return Taken(path.parent.name, opt, several, stacks.layers(compiled.program, opt), taken)


def known_bytes(info: BundleInfo, board: Board, opt: str, folder: Path) -> int:
    """Return the bytes of stack of a bundle, from build/stack where the same program was built before."""
    compiler = subprocess.run([str(find_tool(board.cpu.cc)), "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(repr((board.name, board.cpu, opt)).encode() + compiler)
    for path in sorted(info.include_dir.glob("*.[ch]")):
        digest.update(path.name.encode() + path.read_bytes())
    file = ROOT / "build" / "stack" / digest.hexdigest()[:32]
    if not file.is_file():
        taken = bytes_of(info, board, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(taken), encoding="utf-8")
    return int(file.read_text(encoding="utf-8"))


def bytes_of(info: BundleInfo, board: Board, folder: Path) -> int:
    """Build a bundle and return the bytes of stack of an inference, by the worst entry point."""
    if board.cpu.family != "cortex-m":
        return execute(info, board, random_inputs(info)).stack_bytes
    kept = [f"-Wl,-u,{name}" for name in entry_points(info)]
    bound = stack_report(info, board, build_bundle(info, board, folder, extra_flags=kept))["stack_bound_bytes"]
    if bound is None:
        raise GlowcError("no bound of the stack can be computed")
    return bound


def depths(board: Board, printed: Sequence[Printed], level: str, *flags: str) -> dict[str, tuple[int, bool]]:
    """Return the bytes of stack of functions compiled together, by name, and whether each calls others of its file."""
    with tempfile.TemporaryDirectory(prefix="glowc-stack-") as folder:
        flags = (*flags, "-fcallgraph-info=su")
        code = compiled_text(
            board, text_of(printed), headers_of([p.instr for p in printed]), level, Path(folder), *flags
        )
        calls = call_graph(code, board)
        computed = linked_depths if board.cpu.family == "cortex-m" else stated_depths
        taken = computed(board, code, [p.name for p in printed])
        return {p.name: (taken[p.name], any(c.startswith(("glow_", p.name)) for c in calls[p.name])) for p in printed}


def linked_depths(board: Board, code: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the bytes of stack of functions of an object, from its instructions and those of the library."""
    image = code.with_suffix(".elf")
    flags = ["-nostartfiles", *(f"-Wl,{x}" for x in ("--unresolved-symbols=ignore-all", "-e,0", "--no-gc-sections"))]
    argv = [require_tool(board.cpu.cc), *board.cpu.core_flags, *flags, code, "-lm", "-lc", "-o", image]
    done = run_tool([str(word) for word in argv])
    if not image.is_file():
        raise GlowcError(f"cannot link functions for {board.cpu.name}:\n{done.stderr[:2000]}")
    bounds = Bounds(read_functions(image, board), names)
    return {name: bounds.of(name) for name in names}


def stated_depths(_: Board, code: Path, names: Sequence[str]) -> dict[str, int]:
    """Return the bytes of stack of functions of an object as the compiler states them, without those of the library."""
    text = code.with_suffix(".ci").read_text(encoding="utf-8")
    own = {name: int(size) for name, size in NODE.findall(text)}
    calls: dict[str, set[str]] = defaultdict(set)
    for caller, callee in EDGE.findall(text):
        calls[caller].add(callee)

    @cache
    def depth(name: str) -> int:
        return own.get(name, 0) + max(map(depth, calls[name]), default=0)

    return {name: depth(name) for name in names}


def kernels_of(board: Board, keys: Sequence[str]) -> dict[str, list[int]]:
    """Return the bytes of each kernel whose key fits a pattern."""
    printed = printed_functions(f for f in forms_of(board) if any(fnmatch(key_of(f), key) for key in keys))
    print(f"{board.cpu.name}: {len(printed)} functions", flush=True)
    found: dict[str, list[int]] = defaultdict(lambda: [0] * (2 * len(WAYS)))
    for opt, level in LEVELS.items():
        deepest: dict[tuple[str, int], tuple[int, bool, Printed]] = {}
        for at in range(0, len(printed), PER_FILE):
            some = printed[at : at + PER_FILE]
            together = depths(board, some, level, *FLAGS)
            for p in some:
                at_key = key_of(p.instr), way_of(opt, literal=p.literal)
                if at_key not in deepest or together[p.name][0] > deepest[at_key][0]:
                    deepest[at_key] = *together[p.name], p
        for (key, way), (taken, calling, p) in deepest.items():
            found[key][way] = taken
            found[key][way + len(WAYS)] = depths(board, [p], level)[p.name][0] if calling else taken
    for taken in found.values():  # what was printed in one way alone
        for way, size in enumerate(taken):
            taken[way] = size or max(taken)
    return {key: found[key] for key in sorted(found)}


def written(kernels: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Return the bytes of kernels as a file holds them, near ones once."""
    found: dict[str, list[int]] = {}
    for key, taken in kernels.items():
        words = [-(-size // GRAIN) * GRAIN for size in taken]
        shared, alone = words[: len(WAYS)], words[len(WAYS) :]
        pairs = [max(pair) for pair in zip(shared, alone, strict=True)]
        most = shared + alone
        if all(near(max(most), size) for size in most):
            found[key] = [max(most)]
        elif all(near(a, b) for a, b in zip(shared, alone, strict=True)):
            found[key] = pairs
        else:
            found[key] = most
    return found


def near(a: int, b: int) -> bool:
    """Say whether two numbers are as good as one."""
    return abs(a - b) <= GRAIN


def base_of(programs: Sequence[Taken], sure: float) -> list[list[int]]:
    """Return the bytes that programs of one layer and of several have besides, by -O2 and by -Os: few have more."""
    return [[most([p for p in programs if p.opt == opt and p.several == several], sure) for several in (False, True)]
            for opt in LEVELS]  # fmt: skip


def most(programs: Sequence[Taken], sure: float) -> int:
    """Return the bytes besides layers that few programs exceed."""
    rest = sorted(p.bytes - p.layers for p in programs)
    return max(0, rest[int(sure * (len(rest) - 1))]) if rest else 0


def off(programs: Sequence[Taken], base: Sequence[Sequence[int]]) -> Iterator[tuple[str, str, int, int]]:
    """Yield (model, level, predicted, measured) of programs that are not predicted well enough."""
    for p in programs:
        predicted = p.layers + base[p.opt == "size"][p.several]
        if abs(predicted - p.bytes) > max(NEAR * p.bytes, NEAR_BYTES):
            yield p.model, p.opt, predicted, p.bytes


def left_out(programs: Sequence[Taken], sure: float) -> list[tuple[str, str, int, int]]:
    """Return what `off` yields of each model by the base of all the others."""
    found = []
    for name in sorted({p.model for p in programs}):
        others = [p for p in programs if p.model != name]
        found += off([p for p in programs if p.model == name], base_of(others, sure))
    return found


def fit_target(text: str, jobs: int, keys: Sequence[str]) -> None:
    """Measure one target, write its figures and print how good they are."""
    board = target_of(text).board
    file = cost_file(board.cpu.name)
    known = json.loads(file.read_text(encoding="utf-8"))
    kernels = known["stack"]["kernels"] if "stack" in known and EVERYTHING not in keys else {}
    if keys:
        kernels = dict(sorted({**kernels, **written(kernels_of(board, keys))}.items()))
    stacks = parse_stacks({"kernels": kernels, "base": [[0, 0], [0, 0]]})
    calls = [(text, path, opt, stacks) for opt in LEVELS for path in models()[::EVERY]]
    with ProcessPoolExecutor(jobs) as pool:
        programs = [p for p in pool.map(measured, *zip(*calls, strict=True)) if p is not None]
    sure = SURE if board.cpu.family == "cortex-m" else SURE_MARKS
    base, last = base_of(programs, sure), known.pop("kernels")
    write({**known, "stack": {"base": base, "kernels": kernels}, "kernels": last}, file)
    wrong, alone = list(off(programs, base)), left_out(programs, sure)
    below = sum(p.layers + base[p.opt == "size"][p.several] < p.bytes for p in programs)
    print(
        f"{board.cpu.name}: {len(programs)} programs, {len(kernels)} kernels, base {base}; {below} below the truth, "
        f"{len(wrong)} off by more than 25 %, left out {len(alone)}",
        *wrong,
        sep="\n  ",
        flush=True,
    )


def main() -> int:
    """Measure, fit and write."""
    parser = parser_of((__doc__ or "").splitlines()[0], TARGETS, "CHIP|BOARD/CPU")
    parser.add_argument("--keys", nargs="*", default=[EVERYTHING], help="measure kernels of these patterns, no others")
    args = parser.parse_args()
    return each_target(args.targets, partial(fit_target, jobs=args.jobs, keys=args.keys))


if __name__ == "__main__":
    sys.exit(main())

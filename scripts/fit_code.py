#!/usr/bin/env python3
"""Measure the code of kernels and of the runtime: bytes in boards/_costs/<cpu>.json. Runs as `make code-costs`.

    scripts/fit_code.py
    scripts/fit_code.py --targets stm32l4r5 linux-armhf/cortex-a7

A target is one of scripts/fit_costs.py; nothing is run. Functions of many layers, chosen and drawn ones, are printed
with every variant, for the layer's shape and for any, and compiled by -O2 and by -Os without inlining what is called
once, so that each function has a size. Per kernel, variant, path and way of printing two coefficients are fitted: bytes
a + b x lines of C. Of a function of the runtime the bytes are those where it stands for itself, times the share of the
printed functions that still call it of those whose text leads to it (`glowc.codegen.headers.reached`): the compiler
leaves out what numbers decide. Those that no layer led to are compiled by themselves. What a program has besides, of
whole models, is fitted to their layers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from cost_layers import SAMPLES, groups
from cost_small_chips import measured_on
from cost_tflite import TFLITE, is_tflite
from count_costs import Samples, target_of, written
from drawn_layers import Drawn
from fit_costs import LAYERS_PER_MODEL, TARGETS, drawn_for, each_target, nnls, parser_of, write

from glowc.board import Board, find_tool
from glowc.board.flags import compile_argv
from glowc.board.tools import require_tool, run_tool
from glowc.codegen.headers import RUNTIME_FILES, reached
from glowc.codegen.kernels import Helpers, args_struct, identity, render_function
from glowc.codegen.view import headers_of
from glowc.compiler import pipeline
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import GlowcError
from glowc.machine.elf import sections
from glowc.machine.execute import build_bundle, load_bundle
from glowc.paths import data_dir, runtime_header
from glowc.program.ir import Instr
from glowc.program.lifetimes import strip_markers
from glowc.select.code import WAYS, parse_code, way_of
from glowc.select.cost import Costs, cost_file, key_of, load_costs
from glowc.select.pricing import Pricing, count_lines

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.tflite.cases import MAKERS, make_case

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
EVERY = 12  # chosen layers of a kind, one of which is printed
FORMS = 5  # of a kernel, with texts as different as there are
CASES = 3  # of each operator of TensorFlow Lite
PER_FILE = 60  # functions that are compiled together
ZERO = ((0.0, 0.0), (0.0, 0.0))
LEVELS = {"balanced": "-O2", "size": "-Os"}
SMALL = 200  # bytes: errors of smaller functions are relative to this
FEW = 6  # models of TensorFlow Lite, one of which is compiled
CALL = 48  # bytes: smaller functions are not called
FLAGS = ("-fno-inline-functions-called-once",)  # so that each function has a size
CLONE = re.compile(r"\.(constprop|isra|part|cold|lto_priv)(\.\d+)?")
LARGE = 400  # bytes: such functions, called once, become parts of their caller, with what its numbers leave of them
HELD, DEFINED = re.compile(r"noinline|NOINLINE|_FUNCTION"), re.compile(r".*?\b(glow_\w+)\(")
INLINE = re.compile(r"\b(?:\w*INLINE|static inline|\w*ALWAYS)\b[^;{}()]*\b(glow_\w+)\(")


@dataclass(frozen=True)
class Printed:
    """The function of an instruction in C, with those of its helpers; `literal`: for its shape alone.

    `runtime`: functions of the runtime that are printed beside it, by name.
    """

    instr: Instr
    literal: bool
    name: str
    struct: str
    text: str
    runtime: Mapping[str, str]

    @property
    def lines(self) -> int:
        """Lines that are not empty."""
        return count_lines(self.text)


@dataclass(frozen=True)
class Sized:
    """A printed function as compiled: its bytes, functions of the runtime that it leads to and that it still calls."""

    key: str
    mode: str
    lines: int
    bytes: int
    reached: frozenset[str]
    called: set[str]


@dataclass(frozen=True)
class Compiled:
    """Functions as compiled together, first by -O2; and the bytes of those of the runtime, by level."""

    found: Sequence[Sized]
    functions: Mapping[str, Mapping[str, int]]


def layers_for(board: Board) -> Iterator[Samples]:
    """Yield the layers whose functions are compiled, cut into models."""
    seen: Counter[str] = Counter()
    chosen = []
    for sample in measured_on(board.cpu.features, SAMPLES):
        if seen[sample.kind] % EVERY == 0:
            chosen.append(sample)
        seen[sample.kind] += 1
    yield from groups(chosen, 1 << 40, LAYERS_PER_MODEL)
    yield from groups(TFLITE, 1 << 40, LAYERS_PER_MODEL)
    yield from drawn_for(board, None)[::2]


def files_for(board: Board, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield models of these layers and of every operator of TensorFlow Lite, and the layout of their inputs."""
    for samples in layers_for(board):
        first = samples[0]
        exported = isinstance(first, Drawn) or first.planar or is_tflite(first)
        yield written(samples, folder), "exported" if exported else "nhwc"
    for code in sorted(MAKERS):
        for seed in range(CASES):
            path = folder / "case.tflite"
            path.write_bytes(make_case(code, seed).model)
            yield path, "exported"


def forms_of(board: Board) -> list[Instr]:
    """Return the forms of all layers that differ, of each kernel a few."""
    found: dict[object, Instr] = {}
    with tempfile.TemporaryDirectory(prefix="glowc-code-") as folder:
        for path, layout in files_for(board, Path(folder)):
            try:
                layers = compile_model(path, board, CompileOptions(io_layout=layout, plan="plain")).selection.layers
            except GlowcError:  # what computes nothing
                continue
            for form in (form for layer in layers for form in layer.forms):
                found.setdefault(identity(form, literal=True), form)
    by_key: dict[str, list[Instr]] = defaultdict(list)
    for form in found.values():
        by_key[key_of(form)].append(form)
    rng = np.random.default_rng(0)
    return [form for forms in by_key.values() for form in most_different(forms, rng)]


def most_different(forms: Sequence[Instr], rng: np.random.Generator) -> list[Instr]:
    """Return a few forms, first those whose functions have different numbers of lines."""
    first: list[Instr] = []
    others: list[Instr] = []
    lines: set[int] = set()
    for at in rng.permutation(len(forms))[: 4 * FORMS]:
        count = printed_form(forms[at], "fn", literal=True).lines
        (others if count in lines else first).append(forms[at])
        lines.add(count)
    return [*first, *others][:FORMS]


def printed_form(form: Instr, name: str, *, literal: bool) -> Printed:
    """Return the function of a form."""
    helpers, struct = Helpers(), None if literal else args_struct(form, f"{name}_args_t")
    function = render_function(form, name, helpers, name, struct)
    definition = "" if struct is None else struct.definition()
    own, runtime = helpers.take_apart()
    return Printed(form, literal, name, definition, "\n".join([*own.values(), function]), runtime)


def printed_functions(forms: Iterable[Instr]) -> list[Printed]:
    """Return the functions of all forms, each once."""
    found: dict[object, Printed] = {}
    for form in forms:
        for literal in (True, False):
            own = identity(form, literal=literal)
            if own not in found:
                found[own] = printed_form(form, f"k{len(found)}", literal=literal)
    return list(found.values())


def compiled_text(board: Board, text: str, headers: Iterable[str], level: str, folder: Path, *flags: str) -> Path:
    """Return the object of C that includes headers of the runtime."""
    source, target = folder / "code.c", folder / "code.o"
    includes = "".join(f'#include "{name}"\n' for name in (*RUNTIME_FILES, *headers))
    source.write_text(f"#include <math.h>\n#include <string.h>\n{includes}{text}", encoding="utf-8")
    root = data_dir("runtime_c")
    folders = [root, *(path for path in root.iterdir() if path.is_dir())]
    defines = [f"GLOW_LOOP_BYTES={board.cpu.loop_bytes}"] if board.cpu.loop_bytes else []
    argv = compile_argv(
        require_tool(board.cpu.cc),
        board,
        source,
        target,
        include_dirs=folders,
        defines=defines,
        opt=level,
        extra_flags=["-std=c11", "-w", *flags],
    )
    done = run_tool(argv)
    if done.returncode != 0:
        raise GlowcError(f"cannot compile functions for {board.cpu.name}:\n{done.stderr[:2000]}")
    return target


def text_of(printed: Sequence[Printed]) -> str:
    """Return the C of functions, with those of the runtime that are printed beside them, that keeps all of them."""
    runtime = {name: text for p in printed for name, text in p.runtime.items()}
    table = ", ".join(f"(const void *)&{p.name}" for p in printed)
    functions = "".join([*runtime.values(), *(f"{p.struct}{p.text}\n" for p in printed)])
    return f"{functions}extern const void *const table[];\nconst void *const table[] = {{{table}}};\n"


def sized(board: Board, printed: Sequence[Printed], flags: Sequence[str] = FLAGS) -> Compiled:
    """Return functions as compiled together."""
    found, functions = list[Sized](), dict[str, dict[str, int]]()
    text = text_of(printed)
    headers, names = headers_of([p.instr for p in printed]), {p.name for p in printed}
    with tempfile.TemporaryDirectory(prefix="glowc-code-") as folder:
        for opt, level in LEVELS.items():
            path = compiled_text(board, text, headers, level, Path(folder), *flags)
            own: dict[str, dict[str, int]] = defaultdict(dict)
            for fn, size in functions_in(path):
                of = own[owner_of(fn, names) or ""]
                of[fn] = of.get(fn, 0) + size
            calls, functions[opt] = call_graph(path, board), own.pop("", {})
            for p in printed:
                way, leads = WAYS[way_of(opt, literal=p.literal)], reached(p.text, headers_of([p.instr]))
                size, calling = sum(own[p.name].values()), called(own[p.name], calls)
                found.append(Sized(key_of(p.instr), way, p.lines, size, leads, calling))
    return Compiled(found, functions)


def merged(board: Board, printed: Sequence[Printed], together: Compiled) -> dict[str, list[float]]:
    """Return what is left of large functions of the runtime that one function alone calls, as a share, by name.

    The compiler puts them into it, with what its numbers leave of them. One function of each kernel tells.
    """
    kept = {name for header in headers_of([p.instr for p in printed]) for name in held(header)}
    shares: dict[str, list[float]] = defaultdict(list)
    seen = set[str]()
    for p, by_o2 in zip(printed, together.found[: len(printed)], strict=True):
        sizes = together.functions["balanced"]
        large = {name for name in by_o2.called - kept if sizes.get(name, 0) >= LARGE}
        if not large or not p.literal or by_o2.key in seen:
            continue
        seen.add(by_o2.key)
        alone = sized(board, [p], ())
        gone, alone_sizes = by_o2.called - alone.found[0].called - kept, alone.functions["balanced"]
        if gone & large:
            grown = sum(size - sizes.get(name, size) for name, size in alone_sizes.items())
            left = alone.found[0].bytes - by_o2.bytes + grown
            for name in gone:
                shares[name].append(left / sum(sizes.get(n, 0) for n in gone))
    return shares


@cache
def held(header: str) -> frozenset[str]:
    """Return the functions of a header that the compiler may not put into their caller."""
    lines = runtime_header(header).read_text(encoding="utf-8").splitlines()
    return frozenset(match[1] for line in lines if HELD.search(line) and (match := DEFINED.match(line)))


def called(functions: Iterable[str], calls: Mapping[str, set[str]]) -> set[str]:
    """Return what functions call, directly or not."""
    seen, todo = set[str](), list(functions)
    while todo:
        new = calls.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen


def alone(board: Board, forms: Sequence[Instr]) -> dict[str, dict[str, int]]:
    """Return the bytes of all functions of the runtime by level, those that may be inlined left out."""
    found, headers = {}, headers_of(forms)
    texts = (runtime_header(name).read_text(encoding="utf-8") for name in (*RUNTIME_FILES, *headers))
    inlined = {name for text in texts for name in INLINE.findall(text)}
    with tempfile.TemporaryDirectory(prefix="glowc-code-") as folder:
        for opt, level in LEVELS.items():
            kept = (*FLAGS, "-fkeep-static-functions", "-fkeep-inline-functions")
            path = compiled_text(board, "", headers, level, Path(folder), *kept)
            found[opt] = {
                n: b for n, b in functions_in(path) if n.startswith("glow_") and b >= CALL and n not in inlined
            }
    return found


def functions_of(
    parts: Sequence[Mapping[str, Mapping[str, int]]], found: Sequence[Sized], unseen: Mapping[str, dict[str, int]]
) -> dict[str, int | list[int]]:
    """Return the bytes of each function of the runtime by way of printing, times the share of those that call it."""
    table: dict[str, list[int]] = defaultdict(lambda: [0] * len(WAYS))
    for at, mode in enumerate(WAYS):
        opt = "size" if "size" in mode else "balanced"
        sizes: dict[str, Counter[int]] = defaultdict(Counter)
        for part in parts:
            for name, size in part[opt].items():
                sizes[name][size] += 1
        led, used = Counter[str](), Counter[str]()
        for x in (x for x in found if x.mode == mode):
            led.update(x.reached)
            used.update(x.called)
        for name in {n for n in (*sizes, *unseen[opt]) if n.startswith("glow_")}:
            size = sizes[name].most_common(1)[0][0] if name in sizes else unseen[opt].get(name, 0)
            share = min(used[name] / led[name], 1.0) if led[name] else 1.0
            table[name][at] = round(size * share)
    return {name: sizes[0] if len(set(sizes)) == 1 else sizes for name, sizes in sorted(table.items()) if any(sizes)}


def fit_lines(points: Iterable[tuple[int, int]]) -> list[float] | float:
    """Return (a, b) of bytes = a + b x lines, both at least 0, with the least relative error; b alone where a is 0."""
    lines, size = (np.array(column, float) for column in zip(*sorted(set(points)), strict=True))
    weights = 1 / np.maximum(size, SMALL)
    a, b = nnls(np.stack([weights, lines * weights], axis=1), size * weights)
    return [round(float(a)), round(float(b), 1)] if round(float(a)) else round(float(b), 1)


def texts_of(found: Sequence[Sized]) -> dict[str, list[list[float] | float]]:
    """Return the coefficients of each kernel by way of printing, those of all kernels under an empty name."""
    points: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for x in found:
        for key in (x.key, ""):
            points[key, x.mode].append((x.lines, x.bytes))
    keys = sorted({key for key, _ in points})
    return {key: [fit_lines(points[key, mode] or points["", mode]) for mode in WAYS] for key in keys}


def functions_in(path: Path) -> list[tuple[str, int]]:
    """Return the functions of an object file and their bytes."""
    return [(plain(s.name), s.size) for s in sections(path) if s.kind == "text"]


def plain(section: str) -> str:
    """Return the function of a section `.text.<function>`, without what the compiler appends to a clone's name."""
    return CLONE.sub("", re.sub(r"^\.text\.(unlikely\.|startup\.|hot\.)?", "", section))


def owner_of(fn: str, names: set[str]) -> str | None:
    """Return the layer function that a function is or belongs to (`<function>_tile0`)."""
    words = fn.split("_")
    stems = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return next((stem for stem in stems if stem in names), None)


def call_graph(path: Path, board: Board) -> dict[str, set[str]]:
    """Return which functions of an object each of its functions refers to, by the relocations."""
    tool = find_tool(f"{board.cpu.tool_prefix}objdump")
    text = subprocess.run([str(tool), "-r", str(path)], capture_output=True, text=True, check=True).stdout
    calls: dict[str, set[str]] = defaultdict(set)
    current = ""
    for line in text.splitlines():
        if match := re.match(r"RELOCATION RECORDS FOR \[\.text\.(\S+)\]", line):
            current = plain(f".text.{match[1]}")
        elif line.startswith("RELOCATION"):
            current = ""
        elif current and (match := re.match(r"[0-9a-f]+ \S+\s+(\S+?)(?:[+-]0x[0-9a-f]+)?$", line)):
            calls[current].add(plain(match[1]))
    return calls


def models() -> list[Path]:
    """Return sample models."""
    return [*sorted(SHARED.glob("models/*/model.onnx")), *sorted(SHARED.glob("tflite/*/model.tflite"))[::FEW]]


def base_of(board: Board, costs: Costs, paths: Sequence[Path]) -> list[list[float]]:
    """Return (fixed, per layer) of the bytes of whole models that kernels do not take, by level."""
    found = []
    for opt in LEVELS:
        rows = list(filter(None, (besides(path, board, opt, costs) for path in paths)))
        layers, rest, total = (np.array(column, float) for column in zip(*rows, strict=True))
        a, b = nnls(np.stack([1 / total, layers / total], axis=1), rest / total)
        found.append([round(float(a), 1), round(float(b), 1)])
    return found


def besides(path: Path, board: Board, opt: str, costs: Costs) -> tuple[int, float, int] | None:
    """Return the layers of a model, bytes of its code that are not predicted, and all; None where it is too large."""
    try:
        compiled = compile_model(path, board, CompileOptions(opt=opt))
    except GlowcError:
        return None
    instrs = strip_markers(compiled.program).instrs
    kernels = Pricing(replace(costs, code=replace(costs.code, base=ZERO)), {}, opt, lambda _: opt).code(instrs)
    total = compiled_bytes(compiled, board)
    return len(instrs), max(total - kernels, 0.0), total


def compiled_bytes(compiled: pipeline.Compiled, board: Board) -> int:
    """Return the bytes of code of a compiled model."""
    with tempfile.TemporaryDirectory(prefix="glowc-code-") as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        build_bundle(info, board, Path(folder), link=False)
        return sum(size for _, size in functions_in(Path(folder) / "model.obj" / f"{info.name}.o"))


def fit_target(text: str) -> None:
    """Measure one target and write its file."""
    begin, board = time.perf_counter(), target_of(text).board
    forms = forms_of(board)
    printed = printed_functions(forms)
    print(f"{board.cpu.name}: {len(printed)} functions, {time.perf_counter() - begin:.0f} s", flush=True)
    found, parts, shares = list[Sized](), [], defaultdict[str, list[float]](list)
    for at in range(0, len(printed), PER_FILE):
        some = printed[at : at + PER_FILE]
        together = sized(board, some)
        found += together.found
        parts.append(together.functions)
        for name, left in merged(board, some, together).items():
            shares[name] += left
    functions = functions_of(parts, found, alone(board, forms))
    merge = {name: round(float(np.mean(left)), 2) for name, left in sorted(shares.items()) if name in functions}
    code = {"functions": functions, "merged": merge, "texts": texts_of(found), "base": ZERO}
    print(f"  compiled, {time.perf_counter() - begin:.0f} s", flush=True)
    file, costs = cost_file(board.cpu.name), load_costs(board.cpu)
    code["base"] = base_of(board, replace(costs, code=parse_code(code)), models())
    known = json.loads(file.read_text(encoding="utf-8"))
    kernels = known.pop("kernels")
    write({**known, "code": code, "kernels": kernels}, file)
    print(
        f"  {len(functions)} functions of the runtime, base {code['base']}, {time.perf_counter() - begin:.0f} s",
        flush=True,
    )


def main() -> int:
    """Measure, fit and write."""
    parser = parser_of((__doc__ or "").splitlines()[0], TARGETS, "CHIP|BOARD/CPU")
    return each_target(parser.parse_args().targets, fit_target)


if __name__ == "__main__":
    sys.exit(main())

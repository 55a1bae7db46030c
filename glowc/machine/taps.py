"""What every layer leaves on a board, beside what the interpreter says it should."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from glowc.board import ARENA_SECTION, Board
from glowc.codegen.kernels import environment
from glowc.codegen.names import c_ident
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.graph.scope import know_only, scoped
from glowc.graph.types import TensorType
from glowc.machine.execute import BundleInfo, blob_source, bundle_defines, load_bundle, read_blob, write_samples
from glowc.machine.link import build_elf
from glowc.machine.qemu import require_runnable, run_elf
from glowc.program.interp import Memory, run_instr
from glowc.program.ir import BufferKind, Instr, Operand, Program
from glowc.program.lifetimes import strip_markers

Arrays = dict[str, np.ndarray]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Tap:
    """A tensor that a layer leaves: where it lies in the arena (bytes), and what it is."""

    layer: int
    value: str
    offset_bytes: int
    type: TensorType

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor."""
        return self.type.size_bytes


@dataclass(frozen=True, slots=True)
class Tapped:
    """A layer's result, samples first: on the board, and by the interpreter."""

    tap: Tap
    op: str
    nodes: tuple[str, ...]
    kernel: str
    board: np.ndarray
    expected: np.ndarray


def whole_layers(model: Path, board: Board, options: CompileOptions, progress: Progress) -> Compiled:
    """Compile a model so that every layer leaves its whole result in one arena: not row by row, not in the caller's."""
    plain = replace(options, io_buffers="arena", regions=(), arena_split=False,
                    input_stream="whole" if options.input_stream == "rows" else options.input_stream)  # fmt: skip
    compiled = compile_model(model, board, plain, progress)
    if compiled.program.segments:
        compiled = compile_model(model, board, replace(plain, plan="overlap"), progress)
    return compiled


@scoped
def tapped(compiled: Compiled, board: Board, samples: Mapping[str, np.ndarray], progress: Progress) -> list[Tapped]:
    """Run a model of `whole_layers` on a board and in the interpreter; return every layer's result, in order.

    `samples` are in the exported form, with a leading axis. Raises BoardError, ToolError.
    """
    require_runnable(board)
    know_only(compiled.known)
    program = strip_markers(compiled.program)
    taps = list(taps_of(program, compiled.plan.offsets_bytes))
    with tempfile.TemporaryDirectory(prefix="glowc-debug-") as folder:
        write_bundle(compiled, Path(folder) / "bundle")
        info = load_bundle(Path(folder) / "bundle")
        given = {port.name: port.to_bundle(samples[port.name]) for port in info.inputs}
        progress(f"building and running on {board.name}")
        found = board_values(info, board, taps, given, Path(folder))
    progress("computing in the interpreter")
    expected = interpreted(program, taps, given)
    return [_tapped(t, program.instrs[t.layer], a, b) for t, a, b in zip(taps, found, expected, strict=True)]


def _tapped(tap: Tap, instr: Instr, board: np.ndarray, expected: np.ndarray) -> Tapped:
    return Tapped(tap, instr.op, instr.origin, f"{instr.kernel}__{instr.variant}", board, expected)


def taps_of(program: Program, offsets_bytes: Mapping[str, int]) -> Iterator[Tap]:
    """Return a tap for every tensor that an instruction writes and something reads, scratch and states aside."""
    read = {program.root(o.buffer)[0] for i in program.instrs for o in i.operands if not o.access.writes}
    read |= {program.root(o.buffer)[0] for o in program.outputs}
    last = {o.buffer: layer for layer, i in enumerate(program.instrs) for o in i.operands if o.access.writes}
    for layer, instr in enumerate(program.instrs):
        for operand in instr.operands:
            root, inside = program.root(operand.buffer)
            kept = program.buffers[operand.buffer].kind not in (BufferKind.SCRATCH, BufferKind.STATE)
            whole = operand.access.writes and last[operand.buffer] == layer  # parts that others write are there, too
            if whole and kept and root in read and root in offsets_bytes:
                yield Tap(layer, operand.buffer, offsets_bytes[root] + inside, operand.type)


def board_values(
    info: BundleInfo, board: Board, taps: Sequence[Tap], inputs: Mapping[str, np.ndarray], work: Path
) -> list[np.ndarray]:
    """Build a bundle with a program that writes every tap, run it, and return the taps, samples first."""
    prefix, main, blob = c_ident(info.name).lower(), work / "main_taps.c", read_blob(info)
    inputs_ = tuple(p.ident.upper() for p in info.inputs)
    facts = _Main(info.name, prefix, prefix.upper(), inputs_, tuple(taps), len(blob))
    main.write_text(environment().get_template("main_taps.c.j2").render(m=facts), encoding="utf-8", newline="\n")
    sources = [main, *info.sources, *([blob_source(info, blob, work)] if blob else [])]
    section = f'__attribute__((section("{ARENA_SECTION}")))' if board.bare_metal else ""
    macros = [
        f"{facts.P}_NO_STATIC_ARENA",
        f"{facts.P}_TAPS_ATTR={section}",
        "GLOW_PROFILE",
        *bundle_defines(info, board, in_order=True),
    ]
    elf = build_elf(sources, board, work / "taps.elf", include_dirs=[info.include_dir], defines=macros,
                    opt=info.optimisation, extra_flags=["-std=c11"])  # fmt: skip
    count = len(next(iter(inputs.values()))) if inputs else 1
    write_samples(work / "in.bin", info, inputs, count)
    run_elf(elf.path, board, cwd=work)
    return _read(work / "taps.bin", taps, count)


@dataclass(frozen=True, slots=True)
class _Main:
    """What the program that writes taps prints by."""

    name: str
    prefix: str
    P: str
    inputs: tuple[str, ...]
    taps: tuple[Tap, ...]
    blob_bytes: int


def _read(path: Path, taps: Sequence[Tap], count: int) -> list[np.ndarray]:
    raw = np.fromfile(path, np.uint8).reshape(count, -1)
    ends = np.cumsum([0, *(tap.size_bytes for tap in taps)])
    columns = [raw[:, begin:end] for begin, end in pairwise(ends)]
    return [
        np.ascontiguousarray(column).view(tap.type.dtype.numpy).reshape(count, *tap.type.shape)
        for tap, column in zip(taps, columns, strict=True)
    ]


@np.errstate(all="ignore")
def interpreted(program: Program, taps: Sequence[Tap], inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the taps by the interpreter of instructions, samples first; states are kept from one to the next."""
    memory, columns = Memory(program, None, 0), [list[np.ndarray]() for _ in taps]
    for sample in range(len(next(iter(inputs.values()))) if inputs else 1):
        for operand in program.inputs:
            memory.array(operand)[...] = inputs[operand.role][sample].reshape(operand.type.shape)
        for layer, instr in enumerate(program.instrs):
            run_instr(instr, memory)
            for tap, column in zip(taps, columns, strict=True):
                if tap.layer == layer:
                    column.append(memory.array(_operand(instr, tap)).copy())
    return [np.stack(column) for column in columns]


def _operand(instr: Instr, tap: Tap) -> Operand:
    return next(o for o in instr.operands if o.buffer == tap.value and o.access.writes)

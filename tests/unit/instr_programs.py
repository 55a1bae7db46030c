"""Hand-made and random programs of relu, add, copy and fill on f32, and a machine that runs them element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glowc.graph.types import DType, TensorType
from glowc.memory import MemoryPlan
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, ParamValue, Program
from tests.kernels.params import axis_params

COLS = 2
RELU: Mapping[str, ParamValue] = {"op": "relu", "expr": "x", "uses": 0, "a": 0.0, "b": 0.0}
SUM: Mapping[str, ParamValue] = {
    "op": "add", "expr": "a + b", "clamp": 0, "rank": 2, "act_min": -math.inf, "act_max": math.inf,
}  # fmt: skip


class Maker:
    """Collects a program; a value is a buffer of `rows` x COLS floats."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.buffers: dict[str, Buffer] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.instrs: list[Instr] = []

    def value(self, name: str, rows: int, kind: BufferKind = BufferKind.ACTIVATION, align: int = 4) -> str:
        self.rows[name] = rows
        self.buffers[name] = Buffer(name, kind, rows * COLS * 4, align)
        return name

    def input(self, name: str, rows: int) -> str:
        return self.value(name, rows, BufferKind.INPUT)

    def const(self, name: str, rows: int) -> str:
        self.consts[name] = np.arange(rows * COLS, dtype=np.float32).reshape(rows, COLS) + 0.5
        return self.value(name, rows, BufferKind.CONST)

    def relu(self, x: str, out: str) -> str:
        self.value(out, self.rows[x]) if out not in self.rows else None
        return self._emit("unary", {"in": x, "out": out}, {"n": self.rows[x] * COLS, **RELU})

    def add(self, a: str, b: str, out: str) -> str:
        """The sum of two values; `b` may have one row, which is added to each row of `a`."""
        self.value(out, self.rows[a]) if out not in self.rows else None
        step = COLS if self.rows[b] == self.rows[a] else 0
        params = axis_params("d", (self.rows[a], COLS), 1) | axis_params("a", (COLS, 1), 0)
        return self._emit("binary", {"a": a, "b": b, "out": out}, params | axis_params("b", (step, 1), 0) | SUM)

    def copy(self, x: str, out: str, rows: int, begin: int = 0, out_begin: int = 0) -> str:
        n = rows * COLS
        params: dict[str, ParamValue] = {
            "in_offset": begin * COLS, "out_offset": out_begin * COLS, "rank": 1, "contiguous": 1,
        }  # fmt: skip
        params |= axis_params("d", (n,), 1) | axis_params("i", (1,), 0) | axis_params("o", (1,), 0)
        return self._emit("copy_b4", {"in": x, "out": out}, params)

    def fill(self, out: str) -> str:
        return self._emit("fill_b4", {"out": out}, {"n": self.rows[out] * COLS, "value": 0x40000000, "value_hi": 0})

    def _emit(self, kernel: str, operands: Mapping[str, str], params: Mapping[str, ParamValue]) -> str:
        bound = tuple(
            Operand(
                role, name, Access.OUT if role == "out" else Access.IN, TensorType((self.rows[name], COLS), DType.F32)
            )
            for role, name in operands.items()
        )
        name = f"{kernel}.{len(self.instrs)}"
        self.instrs.append(Instr(kernel, "ref", bound, dict(params), None, name, (name,), kernel))
        return operands["out"]

    def program(self, *outputs: str) -> Program:
        for name in outputs:
            self.buffers[name] = replace(self.buffers[name], kind=BufferKind.OUTPUT)
        inputs = [n for n, b in self.buffers.items() if b.kind is BufferKind.INPUT]
        ins, outs = (
            tuple(Operand(n, n, access, TensorType((self.rows[n], COLS), DType.F32)) for n in names)
            for names, access in ((inputs, Access.IN), (outputs, Access.OUT))
        )
        return Program("p", ins, outs, self.buffers, self.consts, tuple(self.instrs))


def random_program(seed: int) -> Program:
    """A program of up to twelve operators: chains, branches, slices, concatenations and padded copies."""
    rng = np.random.default_rng(seed)
    m = Maker()
    values = [m.input(f"in{i}", int(rng.integers(1, 5))) for i in range(int(rng.integers(1, 3)))]
    if rng.random() < 0.3:
        values.append(m.const("k", 2))
    for index in range(int(rng.integers(2, 13))):
        x = values[int(rng.integers(max(0, len(values) - 4), len(values)))]
        values.append(_random_op(rng, m, x, values, f"v{index}"))
    computed = [v for v in values if v.startswith("v")]
    chosen = {computed[-1], *(v for v in computed if rng.random() < 0.15)}
    return m.program(*(v for v in computed if v in chosen))


def _random_op(rng: np.random.Generator, m: Maker, x: str, values: list[str], out: str) -> str:
    kind = str(rng.choice(["relu", "add", "slice", "reshape", "concat", "pad"]))
    rows = m.rows[x]
    if kind == "relu":
        return m.relu(x, out)
    if kind == "add":
        fitting = [v for v in values if m.rows[v] in (1, rows)]
        return m.add(x, str(rng.choice(fitting or [x])), out)
    if kind == "slice":
        begin = int(rng.integers(rows))
        end = int(rng.integers(begin + 1, rows + 1))
        return m.copy(x, m.value(out, end - begin), end - begin, begin)
    if kind == "reshape":
        return m.copy(x, m.value(out, rows), rows)
    if kind == "pad":
        before = int(rng.integers(0, 3))
        m.fill(m.value(out, rows + before + 1))
        return m.copy(x, out, rows, 0, before)
    other = str(rng.choice(values))
    m.value(out, rows + m.rows[other])
    m.copy(x, out, rows)
    return m.copy(other, out, m.rows[other], 0, rows)


def run(program: Program, inputs: Mapping[str, np.ndarray], plan: MemoryPlan | None = None) -> dict[str, np.ndarray]:
    """Run as C does: one element after the other, on one arena if there is a plan."""
    arena = np.full(plan.arena_bytes if plan else 0, 0x7F, np.uint8)
    own = {n: np.full(b.size_bytes, 0x7F, np.uint8) for n, b in program.buffers.items() if b.alias_of is None}
    own |= {n: a.reshape(-1).view(np.uint8) for n, a in program.consts.items()}

    def floats(name: str) -> np.ndarray:
        root, offset = program.root(name)
        raw = own[root]
        if plan is not None and root not in program.consts:
            raw = arena[plan.offsets_bytes[root] :]
        return raw[offset : offset + program.buffers[name].size_bytes].view(np.float32)

    for operand in program.inputs:
        floats(operand.buffer)[:] = inputs[operand.role].reshape(-1)
    for instr in program.instrs:
        if not instr.is_marker:
            _step(instr, {o.role: floats(o.buffer) for o in instr.operands})
    return {o.role: floats(o.buffer).copy() for o in program.outputs}


def _step(instr: Instr, at: Mapping[str, np.ndarray]) -> None:
    p, out = instr.params, at["out"]
    if instr.kernel == "unary":
        for i in range(int(p["n"])):
            out[i] = max(at["in"][i], np.float32(0))
    elif instr.kernel == "binary":
        for y in range(int(p["d0"])):
            for x in range(int(p["d1"])):
                a, b = (at[s][y * int(p[f"{s}0"]) + x * int(p[f"{s}1"])] for s in "ab")
                out[y * int(p["d1"]) + x] = a + b
    elif instr.kernel == "copy_b4":
        for i in range(int(p["d0"])):
            out[int(p["out_offset"]) + i] = at["in"][int(p["in_offset"]) + i]
    else:
        out[: int(p["n"])] = 2.0


def random_inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Return inputs by name: small numbers, so that sums are exact."""
    rng = np.random.default_rng(seed)
    return {o.role: rng.integers(-9, 10, o.type.shape).astype(np.float32) for o in program.inputs}

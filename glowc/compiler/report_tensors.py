"""What report.json says of the data: tensors with place and life, constants, quantisation, and what each layer uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from glowc.graph.graph import Graph
from glowc.graph.types import QuantParams, TensorType
from glowc.memory.types import MemoryPlan
from glowc.place.places import local_offsets
from glowc.program.ir import BufferKind, Instr, Operand, Program
from glowc.program.lifetimes import root_lifetimes, strip_markers


class PlacedTensor(TypedDict):
    """A buffer that is no constant. `storage` is the buffer whose bytes it is a part of, or its own name.

    It lies at `offset_bytes` of the arena (of its region), null in a caller's buffer; its storage is alive in the
    layers from `first_layer` to before `end_layer`.
    """

    name: str
    storage: str
    kind: str
    dtype: str
    shape: list[int]
    size_bytes: int
    offset_bytes: int | None
    region: str
    first_layer: int
    end_layer: int
    scale: float | None
    zero_point: int | None


class ConstantReport(TypedDict):
    """A constant array of the bundle; `role` is what the first kernel that reads it calls it."""

    name: str
    role: str
    dtype: str
    shape: list[int]
    size_bytes: int


class QuantReport(TypedDict):
    """A quantised value of the graph: one scale, or `scales` of them along `axis`; the zero point where it is one."""

    name: str
    constant: bool
    dtype: str
    shape: list[int]
    axis: int | None
    scales: int
    scale_min: float
    scale_max: float
    zero_point: int | None


class LayerData(TypedDict):
    """The tensors that a layer reads and writes, scratch among the latter, and its constants, by name."""

    reads: list[str]
    writes: list[str]
    constants: list[str]


class DataReport(TypedDict):
    """All tensors in the order of first use, all constants, and the quantisation of the graph's values."""

    tensors: list[PlacedTensor]
    constants: list[ConstantReport]
    quantisation: list[QuantReport]


def data_report(program: Program, plan: MemoryPlan, graph: Graph) -> DataReport:
    """Return what is known of the tensors and constants of a planned program of `graph`."""
    plain = strip_markers(program)
    return {
        "tensors": _tensors(plain, plan, graph), "constants": _constants(plain),
        "quantisation": [_quant(name, t, t.quant, name in graph.consts) for name, t in graph.types.items() if t.quant],
    }  # fmt: skip


def layer_data(program: Program) -> list[LayerData]:
    """Return what each layer of a program reads and writes."""
    return [_uses(program, instr) for instr in strip_markers(program).instrs]


def _uses(program: Program, instr: Instr) -> LayerData:
    constant = {o.buffer: _is_constant(program, o.buffer) for o in instr.operands}

    def names(chosen: list[str]) -> list[str]:
        return list(dict.fromkeys(chosen))

    return {
        "reads": names([o.buffer for o in instr.operands if o.access.reads and not constant[o.buffer]]),
        "writes": names([o.buffer for o in instr.operands if o.access.writes and not constant[o.buffer]]),
        "constants": names([program.root(o.buffer)[0] for o in instr.operands if constant[o.buffer]]),
    }


def _is_constant(program: Program, buffer: str) -> bool:
    return program.buffers[program.root(buffer)[0]].kind is BufferKind.CONST


def _operands(program: Program) -> dict[str, Operand]:
    """Return the first operand of each buffer: what is seen in its bytes."""
    found: dict[str, Operand] = {}
    for operand in (*program.inputs, *(o for i in program.instrs for o in i.operands), *program.outputs):
        found.setdefault(operand.buffer, operand)
    return found


def _tensors(program: Program, plan: MemoryPlan, graph: Graph) -> list[PlacedTensor]:
    offsets, lives = local_offsets(plan), root_lifetimes(program)
    regions = {name: r.name for r in plan.regions for name in r.plan.offsets_bytes}
    seen = {name: o.type for name, o in _operands(program).items() if not _is_constant(program, name)}
    unseen = {name: None for name in lives if name not in seen}
    rows = [_tensor(program, name, t, graph, offsets, lives, regions) for name, t in (seen | unseen).items()]
    return sorted(rows, key=lambda row: row["first_layer"])


def _tensor(
    program: Program, name: str, seen: TensorType | None, graph: Graph, offsets: Mapping[str, int],
    lives: Mapping[str, tuple[int, int]], regions: Mapping[str, str],
) -> PlacedTensor:  # fmt: skip
    root, offset = program.root(name)
    first, end = lives[root]
    value = graph.types.get(name)
    quant = value.quant if value is not None and value.quant is not None and not value.quant.per_axis else None
    size_bytes = program.buffers[name].size_bytes
    return {
        "name": name, "storage": root, "kind": program.buffers[root].kind.value,
        "dtype": seen.dtype.value if seen else "u8", "shape": list(seen.shape) if seen else [size_bytes],
        "size_bytes": size_bytes, "offset_bytes": offsets[root] + offset if root in offsets else None,
        "region": regions.get(root, ""), "first_layer": first, "end_layer": end,
        "scale": quant.scale[0] if quant else None, "zero_point": quant.zero_point[0] if quant else None,
    }  # fmt: skip


def _constants(program: Program) -> list[ConstantReport]:
    roles: dict[str, str] = {}
    for operand in (o for i in program.instrs for o in i.operands):
        roles.setdefault(program.root(operand.buffer)[0], operand.role)
    return [
        {"name": name, "role": roles.get(name, ""), "dtype": _dtype(array.dtype.name),
         "shape": list(array.shape), "size_bytes": array.nbytes}
        for name, array in program.consts.items()
    ]  # fmt: skip


def _dtype(numpy_name: str) -> str:
    """Return the project's name of a numpy dtype: int8 -> s8, uint16 -> u16, float32 -> f32."""
    for long, short in (("uint", "u"), ("int", "s"), ("float", "f")):
        if numpy_name.startswith(long):
            return short + numpy_name.removeprefix(long)
    return numpy_name


def _quant(name: str, t: TensorType, quant: QuantParams | None, constant: bool) -> QuantReport:
    assert quant is not None
    zeros = set(quant.zero_point)
    return {
        "name": name, "constant": constant, "dtype": t.dtype.value, "shape": list(t.shape), "axis": quant.axis,
        "scales": len(quant.scale), "scale_min": min(quant.scale), "scale_max": max(quant.scale),
        "zero_point": zeros.pop() if len(zeros) == 1 else None,
    }  # fmt: skip

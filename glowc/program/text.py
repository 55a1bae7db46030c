"""The text form of a program: a stable dump and the parser that reads it back.

program "net" {
  buffer %x : input 4 align 1
  buffer %y : activation 2 align 1 alias %x + 2
  const %w : s8[2,4] = [[1, 2, 3, 4], [5, 6, 7, 8]]
  input %x : s8[1,4] q(0.5, -3)
  output %y : s8[1,2] q(0.25, 0)
  alloc %x
  fc_s8__ref in %x:"@in" ...
}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NotRequired, TypedDict

import numpy as np

from glowc.errors import GlowcError
from glowc.graph.text import parse_array, parse_name, parse_type, print_array, print_name, print_type
from glowc.graph.types import DType, TensorType, type_of
from glowc.program.ir import (
    NO_PLAN,
    Access,
    Advance,
    Buffer,
    BufferKind,
    Instr,
    Operand,
    ParamValue,
    Plan,
    Program,
    Segment,
)


def dump_program(program: Program) -> str:
    """Return the text form; equal programs give equal text."""
    lines = [f"program {json.dumps(program.name)} {{"]
    lines += [f"  {_buffer(b)}" for b in program.buffers.values() if b.kind is not BufferKind.CONST]
    lines += [
        f"  const {print_name(n)} : {print_type(_const_type(program, n))} = {print_array(a)}"
        for n, a in program.consts.items()
    ]
    lines += [
        f"  state {print_name(n)} : {print_type(type_of(a))} = {print_array(a)}" for n, a in program.states.items()
    ]
    lines += [f"  input {_named(o)}" for o in program.inputs]
    lines += [f"  output {_named(o)}" for o in program.outputs]
    lines += [f"  {_segment(s)}" for s in program.segments]
    lines += ["  caller_io"] if program.caller_io else []
    lines += [f"  {_instr(i)}" for i in program.instrs]
    return "\n".join([*lines, "}", ""])


def _const_type(program: Program, name: str) -> TensorType:
    return type_of(program.consts[name])


def _named(o: Operand) -> str:
    return f"{print_name(o.role)} in {print_name(o.buffer)} : {print_type(o.type)}"


def _buffer(b: Buffer) -> str:
    alias = f" alias {print_name(b.alias_of)} + {b.alias_offset_bytes}" if b.alias_of is not None else ""
    return f"buffer {print_name(b.name)} : {b.kind.value} {b.size_bytes} align {b.align_bytes}{alias}"


def _segment(s: Segment) -> str:
    def words(a: Advance) -> list[object]:
        return [a.role, a.row_bytes, a.ring]

    record = {
        "begin": s.begin, "end": s.end, "steps": list(s.steps),
        "advances": [[words(a) for a in row] for row in s.advances],
        "feed": words(s.feed) if s.feed is not None else None, "progress": s.progress,
    }  # fmt: skip
    return f"segment {json.dumps(record)}"


def _parse_segment(text: str) -> Segment:
    record = json.loads(text)
    advances = tuple(tuple(Advance(*a) for a in row) for row in record["advances"])
    feed = Advance(*record["feed"]) if record["feed"] else None
    return Segment(record["begin"], record["end"], tuple(record["steps"]), advances, feed, record["progress"])


class Record(TypedDict):
    """What stands after the operands of an instruction, as JSON."""

    params: dict[str, ParamValue]
    rows: list[int] | None
    name: str
    origin: list[str]
    op: str
    macs: int
    plan: NotRequired[Any]


def _instr(i: Instr) -> str:
    if i.is_marker:
        return f"{i.kernel} {print_name(i.operands[0].buffer)}"
    operands = ", ".join(
        f"@{o.access.value} {o.role} {print_name(o.buffer)} : {print_type(o.type)}" for o in i.operands
    )
    record: Record = {
        "params": dict(i.params), "rows": list(i.rows) if i.rows else None, "name": i.name,
        "origin": list(i.origin), "op": i.op, "macs": i.macs,
    }  # fmt: skip
    if i.plan != NO_PLAN:
        record["plan"] = _plan(i.plan)
    return f"{i.kernel}__{i.variant} {operands} ; {json.dumps(record)}"


def _plan(value: object) -> object:
    """Return a plan as {class: fields}, its fields as they are."""
    if isinstance(value, Plan):
        shown = {f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) != f.default}
        return {type(value).title(): {name: _plan(item) for name, item in shown.items()}}
    return [_plan(item) for item in value] if isinstance(value, tuple) else value


def _parse_plan(record: Mapping[str, Mapping[str, object]]) -> Plan:
    ((name, values),) = record.items()
    return Plan.named(name)(**{key: _parse_field(value) for key, value in values.items()})  # type: ignore[arg-type]


def _parse_field(value: object) -> object:
    if isinstance(value, dict):
        return _parse_plan(value)
    return tuple(map(_parse_field, value)) if isinstance(value, list) else value


_NAME = r'%(?:[A-Za-z_][A-Za-z0-9_.]*|"(?:[^"\\]|\\.)*")'
_BUFFER = re.compile(rf"buffer ({_NAME}) : (\w+) (\d+) align (\d+)(?: alias ({_NAME}) \+ (-?\d+))?\Z")
_TYPE = r"\w+\[[^\]]*\](?:@\w+)?(?: q\([^)]*\))?"
_OPERAND = re.compile(rf"@(\w+) (\w+) ({_NAME}) : ({_TYPE})(?:, )?")
_RECORD = re.compile(r" ?; (\{.*\})\Z")
_CONST = re.compile(rf"const ({_NAME}) : ({_TYPE}) = (.*)\Z")
_IO = re.compile(rf"(input|output) ({_NAME}) in ({_NAME}) : (.*)\Z")


def parse_program(text: str, consts: Mapping[str, np.ndarray] | None = None) -> Program:
    """Return the program that `text` describes; GlowcError names the line that cannot be read."""
    name = "program"
    inputs: list[Operand] = []
    outputs: list[Operand] = []
    buffers: dict[str, Buffer] = {}
    arrays: dict[str, np.ndarray] = {}
    states: dict[str, np.ndarray] = {}
    instrs: list[Instr] = []
    segments: list[Segment] = []
    caller_io = False
    for number, line in enumerate(text.splitlines(), 1):
        part = line.strip()
        try:
            if not part or part == "}" or part.startswith("//"):
                continue
            if part.startswith("program "):
                name = json.loads(part.removeprefix("program ").removesuffix("{").strip())
            elif match := _BUFFER.match(part):
                buffer = _parse_buffer(match)
                buffers[buffer.name] = buffer
            elif part.startswith("const "):
                const, array = _parse_const(part, consts or {})
                arrays[const] = array
                buffers[const] = Buffer(const, BufferKind.CONST, array.nbytes, array.dtype.itemsize)
            elif part.startswith("state "):
                state, array = _parse_const(part.replace("state ", "const ", 1), consts or {})
                states[state] = array
            elif part.startswith("segment "):
                segments.append(_parse_segment(part.removeprefix("segment ")))
            elif part == "caller_io":
                caller_io = True
            elif match := _IO.match(part):
                access = Access.IN if match[1] == "input" else Access.OUT
                target = inputs if match[1] == "input" else outputs
                target.append(Operand(parse_name(match[2]), parse_name(match[3]), access, parse_type(match[4])))
            else:
                instrs.append(_parse_instr(part, buffers))
        except (ValueError, KeyError, IndexError, SyntaxError) as error:
            raise GlowcError(f"line {number} of the program text: {error}", details=[part]) from error
    return Program(
        name, tuple(inputs), tuple(outputs), buffers, arrays, tuple(instrs), states=states,
        segments=tuple(segments), caller_io=caller_io,
    )  # fmt: skip


def _parse_buffer(match: re.Match[str]) -> Buffer:
    alias = parse_name(match[5]) if match[5] else None
    kind = BufferKind(match[2])
    return Buffer(parse_name(match[1]), kind, int(match[3]), int(match[4]), alias, int(match[6] or 0))


def _parse_const(part: str, consts: Mapping[str, np.ndarray]) -> tuple[str, np.ndarray]:
    match = _CONST.match(part)
    if match is None:
        raise ValueError("not a constant")
    name = parse_name(match[1])
    return name, parse_array(match[3], parse_type(match[2]), consts.get(name))


def _parse_instr(part: str, buffers: Mapping[str, Buffer]) -> Instr:
    head, _, rest = part.partition(" ")
    if head in ("alloc", "dealloc"):
        name = parse_name(rest)
        access = Access.OUT if head == "alloc" else Access.INOUT
        whole = TensorType((buffers[name].size_bytes,), DType.U8)
        return Instr(head, "", (Operand("buffer", name, access, whole),), name=f"{head} {name}")
    operands, position = [], 0
    while m := _OPERAND.match(rest, position):
        operands.append(Operand(m[2], parse_name(m[3]), Access(m[1]), parse_type(m[4])))
        position = m.end()
    record = _RECORD.match(rest, position)
    if record is None:
        raise ValueError(f"cannot read from {rest[position : position + 40]!r} on")
    extra: Record = json.loads(record[1])
    rows = (extra["rows"][0], extra["rows"][1]) if extra["rows"] else None
    kernel, _, variant = head.rpartition("__")
    return Instr(
        kernel, variant, tuple(operands), extra["params"], rows, extra["name"], tuple(extra["origin"]), extra["op"],
        extra["macs"], _parse_plan(extra["plan"]) if "plan" in extra else NO_PLAN,
    )  # fmt: skip

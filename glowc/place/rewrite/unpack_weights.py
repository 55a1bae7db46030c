"""Weights of 4 or 2 bits, or of a palette, are stored as such; an instruction in front of their layer unpacks them.

The layer reads in the arena what it would read as a constant, so its kernel and its bytes stay the same; what it costs
is a pass over its weights, and their room in the arena while it runs. Where there is less room than a layer has
weights, it is computed in parts: some output channels after the others. A convolution of several pixels writes those of
a part side by side, and they are copied to their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from glowc.board import Cpu
from glowc.graph.few_codes import FewCodes
from glowc.graph.types import DType, TensorType, type_of
from glowc.kernels.base import Prepared, prepare, prepared_instr
from glowc.kernels.choice import candidates, variant_of
from glowc.kernels.common.narrow import palette_of, stored_form, unpack_kernel, words_of
from glowc.kernels.records import Records
from glowc.ops.params import padded_dims, padded_steps
from glowc.ops.strided import CopyParams
from glowc.place.rewrite.keep_weights import without_unused
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, Program, scratch_of
from glowc.program.kernel import Arrays
from glowc.program.params import as_mapping

_STEP = 8  # channels: parts begin at whole blocks of nearly every kernel
_MOST_PARTS = {"conv": 16, "fc": 64}  # the inputs of a window are collected anew for each part


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that an arena has for the weights of a layer: for all of them, or for those of one part after the other."""

    whole_bytes: int
    part_bytes: int


@dataclass(frozen=True, slots=True)
class Narrow:
    """A layer whose weights can be stored in few bits: its constants as the kernel defines them, its channels.

    `form` is that of all weights.
    """

    instr: Instr
    constants: Arrays
    form: FewCodes
    channels: int
    unpacked_bytes: int

    @property
    def family(self) -> str:
        """conv or fc."""
        return self.instr.kernel.partition("_")[0]

    def parts(self, room: Room) -> list[range] | None:
        """Return the channels of each part that there is room for; None: for not even the least."""
        if self.unpacked_bytes <= room.whole_bytes:
            return [range(self.channels)]
        most = _MOST_PARTS[self.family]
        each = room.part_bytes * self.channels // self._part_bytes // _STEP * _STEP
        count = -(-self.channels // each) if each > 0 else most + 1
        if count > most:
            return None
        size = -(-self.channels // (count * _STEP)) * _STEP
        return [range(at, min(at + size, self.channels)) for at in range(0, self.channels, size)]

    @property
    def _part_bytes(self) -> int:
        """Bytes that parts take for all channels: weights, and outputs that lie side by side before they are copied."""
        out = self.instr.operand("out").type
        return self.unpacked_bytes + (out.size_bytes if out.elements > self.channels else 0)


def narrow_layers(program: Program) -> list[Narrow]:
    """Return the layers whose weights can be stored in few bits."""
    found = (_narrow(program, instr) for instr in program.instrs if instr.name in program.narrow)
    return [layer for layer in found if layer is not None]


def _narrow(program: Program, instr: Instr) -> Narrow | None:
    weights = instr.operand("weights")
    packed = program.consts.get(weights.buffer)
    form = stored_form(variant_of(instr), instr, packed) if packed is not None else None
    if form is None:
        return None
    arrays = {o.role: program.consts[o.buffer] for o in instr.operands if o.buffer in program.consts}
    originals = {role: program.unpacked.get(f"{instr.name}:{role}", array) for role, array in arrays.items()}
    return Narrow(instr, originals, form, len(originals["bias"]), weights.type.size_bytes)


def unpack_weights(program: Program, layers: list[Narrow], rooms: Mapping[str, Room], cpu: Cpu) -> Program:
    """Return the program whose layers unpack their weights, in as few parts as there is room for by name."""
    for layer in layers:
        parts = layer.parts(rooms[layer.instr.name])
        cut = _Cut.of(layer, parts, cpu) if parts is not None else None
        if cut is not None:
            program = cut.replaced(program)
    return without_unused(program)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some channels of a layer as an instruction with constants of its own, and where the weights lie in them."""

    instr: Instr
    constants: Arrays
    prepared: Arrays
    form: FewCodes
    channels: range

    @property
    def records(self) -> Records:
        """Where the weights lie in their constant."""
        where = variant_of(self.instr).records
        found = where(self.instr) if where is not None else None
        assert found is not None
        return found

    @staticmethod
    def of(layer: Narrow, channels: range, number: int) -> _Part | None:
        """Return a part; None where the variant of the layer is not for it."""
        constants = {role: _channels_of(array, layer, channels) for role, array in layer.constants.items()}
        operands = (_typed(o, constants, layer, len(channels)) for o in layer.instr.operands if o.role != "scratch")
        name = f"{layer.instr.name}.part{number}" if len(channels) < layer.channels else layer.instr.name
        plain = replace(layer.instr, operands=tuple(operands), params=_params(layer, len(channels)), name=name)
        variant = variant_of(plain)
        if not variant.accepts(plain):
            return None
        prepared = prepare(variant, constants, plain)
        instr = prepared_instr(plain, prepared)
        arrays = {**constants, **prepared.constants}
        form = stored_form(variant, instr, arrays["weights"], layer.form.palette)
        macs = layer.instr.macs * len(channels) // layer.channels
        return None if form is None else _Part(replace(instr, macs=macs), constants, arrays, form, channels)


def _channels_of(array: np.ndarray, layer: Narrow, channels: range) -> np.ndarray:
    """Return what belongs to some channels of a constant, of which one number may serve all."""
    return array if len(array) != layer.channels else array[channels.start : channels.stop]


def _typed(operand: Operand, constants: Arrays, layer: Narrow, count: int) -> Operand:
    """Return an operand as it is before constants are packed, for `count` channels."""
    if operand.role in constants:
        return replace(operand, type=type_of(constants[operand.role]))
    if operand.role != "out" or count == layer.channels:
        return operand
    return replace(operand, type=replace(operand.type, shape=(*operand.type.shape[:-1], count)))


def _params(layer: Narrow, count: int) -> Mapping[str, int | float | str]:
    params = layer.instr.params
    if layer.family == "fc":
        return {**params, "out_n": count}
    row = layer.instr.int_("out_w") * count
    return {**params, "out_c": count, "out_row": row, "out_batch": layer.instr.int_("out_h") * row}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A layer as parts; the channels of a part are not adjacent in the output where it has several `pixels`."""

    layer: Narrow
    parts: tuple[_Part, ...]
    cpu: Cpu

    @staticmethod
    def of(layer: Narrow, channels: list[range], cpu: Cpu) -> _Cut | None:
        parts = [_Part.of(layer, part, number) for number, part in enumerate(channels)]
        whole = [part for part in parts if part is not None]
        return _Cut(layer, tuple(whole), cpu) if len(whole) == len(parts) else None

    @property
    def pixels(self) -> int:
        return self.layer.instr.operand("out").type.elements // self.layer.channels

    def replaced(self, program: Program) -> Program:
        """Return the program with the parts in place of the layer."""
        made = _Made(program, self.cpu, self.layer.instr.name)
        for part in self.parts:
            self._emit(made, part)
        index = next(n for n, instr in enumerate(program.instrs) if instr.name == self.layer.instr.name)
        instrs = (*program.instrs[:index], *made.instrs, *program.instrs[index + 1 :])
        return replace(program, instrs=instrs, buffers=made.buffers, consts=made.consts, unpacked=made.unpacked)

    def _emit(self, made: _Made, part: _Part) -> None:
        out = self.layer.instr.operand("out")
        if len(self.parts) == 1:
            made.emit(part, out)
        elif self.pixels == 1:
            made.emit(part, made.output(part, out))
        else:
            aside = made.output(part, None)
            made.emit(part, aside)
            made.copy(part, aside, out, self.pixels, self.layer.channels)


class _Made:
    """What takes the place of the layer `name` in a program."""

    def __init__(self, program: Program, cpu: Cpu, name: str) -> None:
        self.cpu, self.name, self.instrs = cpu, name, list[Instr]()
        self.buffers, self.consts = dict(program.buffers), dict(program.consts)
        self.unpacked = dict(program.unpacked)

    def output(self, part: _Part, of: Operand | None) -> Operand:
        """Return the output of a part: a piece of the layer's, or a tensor of its own."""
        operand, name = part.instr.operand("out"), f"{part.instr.name}.out"
        self._add(name, operand.type.size_bytes)
        if of is not None:
            at = part.channels.start * of.type.dtype.bytes
            self.buffers[name] = replace(self.buffers[name], alias_of=of.buffer, alias_offset_bytes=at)
        return replace(operand, buffer=name)

    def _add(self, name: str, size_bytes: int, kind: BufferKind = BufferKind.ACTIVATION) -> None:
        self.buffers[name] = Buffer(name, kind, size_bytes, max(4, self.cpu.align_bytes))

    def const(self, name: str, array: np.ndarray) -> str:
        """Add a constant."""
        self.consts[name] = np.ascontiguousarray(array)
        self.buffers[name] = Buffer(name, BufferKind.CONST, array.nbytes, array.dtype.itemsize)
        return name

    def emit(self, part: _Part, target: Operand) -> None:
        """Add the instruction of a part, and the one that unpacks its weights."""
        words, name = words_of(part.prepared["weights"]), part.instr.name
        self._add(f"{name}.weights", words.nbytes)
        self._unpack(part, words)
        operands = []
        for operand in part.instr.operands:
            if operand.role == "weights":
                operand = replace(operand, buffer=f"{name}.weights")
            elif operand.role in part.prepared:
                operand = replace(operand, buffer=self._same(operand, f"{name}.{operand.role}", part))
            if operand.role in part.constants:
                self.unpacked[f"{name}:{operand.role}"] = part.constants[operand.role]
            operands.append(target if operand.role == "out" else operand)
        self.instrs.append(self._with_scratch(replace(part.instr, operands=tuple(operands))))

    def _same(self, operand: Operand, name: str, part: _Part) -> str:
        """Return the constant of a part: that of the whole layer where it is the same."""
        array, whole = part.prepared[operand.role], self.consts[operand.buffer]
        return operand.buffer if whole.tobytes() == array.tobytes() else self.const(name, array)

    def _unpack(self, part: _Part, words: np.ndarray) -> None:
        type_, layer, form = TensorType(words.shape, DType.U32), part.instr, part.form
        packed = f"{layer.name}.{'p' if form.palette else 's'}{form.bits}"
        operands = [
            Operand("packed", packed, Access.IN, type_), Operand("out", f"{layer.name}.weights", Access.OUT, type_)
        ]  # fmt: skip
        constants = {"packed": words}
        if form.palette:
            constants["palette"] = palette_of(form)
            operands.insert(1, Operand("palette", "", Access.IN, type_of(constants["palette"])))
        records = part.records
        params = {**asdict(records), "joined": int(records.joined), "rest": words.size - records.words}
        plain = Instr(unpack_kernel(form), "", tuple(operands), params)
        instr, prepared = self._best(layer, plain, constants, "unpack")
        arrays = {**constants, **prepared.constants}
        self.const(packed, arrays["packed"])
        self.unpacked[f"{instr.name}:packed"] = words
        if form.palette:
            name = self._palette(arrays["palette"], f"{self.name}.palette")
            instr = replace(instr, operands=tuple(replace(o, buffer=o.buffer or name) for o in instr.operands))
        self.instrs.append(self._with_scratch(instr))

    def _palette(self, codes: np.ndarray, name: str) -> str:
        """Return the constant of a palette: that of the part before where it is the same."""
        while name in self.consts and self.consts[name].tobytes() != codes.tobytes():
            name += "_"
        return name if name in self.consts else self.const(name, codes)

    def _with_scratch(self, instr: Instr) -> Instr:
        """Return an instruction with the scratch that its variant needs."""
        size = variant_of(instr).scratch_bytes(instr)
        if not size:
            return instr
        name = f"{instr.name}.scratch"
        self._add(name, size, BufferKind.SCRATCH)
        self.buffers[name] = scratch_of(instr, self.buffers[name])
        scratch = Operand("scratch", name, Access.OUT, TensorType((size,), DType.U8))
        return replace(instr, operands=(*instr.operands, scratch))

    def copy(self, part: _Part, source: Operand, out: Operand, pixels: int, channels: int) -> None:
        """Add the copy of the channels of a part to their places."""
        count = len(part.channels)
        params = CopyParams(
            2, padded_dims((pixels, count)), padded_steps((count, 1)), padded_steps((channels, 1)),
            0, part.channels.start, contiguous=1,
        )  # fmt: skip
        operands = (replace(source, role="in", access=Access.IN), replace(out, role="out", access=Access.OUT))
        plain = Instr(f"copy_b{out.type.dtype.bytes}", "", operands, as_mapping(params))
        self.instrs.append(self._best(part.instr, plain, {}, "copy")[0])

    def _best(self, layer: Instr, instr: Instr, constants: Arrays, what: str) -> tuple[Instr, Prepared]:
        """Return an instruction beside a layer with its best variant."""
        variant = max(candidates(instr, self.cpu.features, constants.keys()), key=lambda v: v.rank)
        named = replace(instr, variant=variant.name, name=f"{layer.name}.{what}", origin=layer.origin, op=layer.op)
        prepared = prepare(variant, constants, named)
        return prepared_instr(named, prepared), prepared

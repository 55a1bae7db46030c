"""Graph -> instructions: walks the graph, asks each operator to lower itself, picks kernel variants."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from glowc.board import Cpu
from glowc.errors import InternalError, UnsupportedError
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import DType, TensorType, type_of
from glowc.kernels.base import PLAIN, KernelVariant, Prepared, fits, prepare, prepared_instr, streams_rows
from glowc.kernels.choice import candidates
from glowc.kernels.common.narrow import stored_form
from glowc.kernels.common.reals import SAME
from glowc.kernels.records import has_narrow_weights
from glowc.lower.between import between_sixteen_bits
from glowc.ops.base import OpError, Ref
from glowc.ops.registry import find_op
from glowc.ops.strided import emit_copy, whole
from glowc.program.ir import NO_PLAN, Access, Buffer, BufferKind, Instr, Operand, Program
from glowc.program.kernel import AnyKernel, Arrays, find_kernel
from glowc.program.params import NO_PARAMS, Params, as_mapping

Finish = Callable[[KernelVariant], Instr]
Choose = Callable[[Instr, Sequence[KernelVariant], Finish], KernelVariant]
"""Chooses among the variants that an instruction may have; the function tells how it would look with each."""

Prepare = Callable[[KernelVariant, Arrays, Instr], Prepared]
"""Prepares an instruction for a variant: `glowc.kernels.base.prepare`, or one that remembers."""


def seen_as(instr: Instr, variant: KernelVariant) -> Instr:
    """Return an instruction with a variant, not prepared yet."""
    return replace(instr, variant=variant.name)


def never(_: str) -> bool:
    """Say no of every instruction."""
    return False


def by_rank(_: Instr, variants: Sequence[KernelVariant], __: Finish) -> KernelVariant:
    """Choose the variant with the highest rank."""
    return max(variants, key=lambda v: v.rank)


def lower_graph(
    graph: Graph, cpu: Cpu, streaming: Callable[[str], bool] = never, choose: Choose = by_rank,
    preparing: Prepare = prepare,
) -> Program:  # fmt: skip
    """Return the program of `graph` for `cpu`; the instructions named by `streaming` get variants that stream rows.

    Raises ModelError that lists every node without a lowering, all at once.
    """
    lowering = Lowering(graph, cpu, streaming, choose, preparing)
    problems = []
    for node in graph.nodes:
        op = find_op(node.op)
        try:
            if op is None:
                raise OpError("not supported")
            lowering.node = node
            op.lower(node, lowering)
        except OpError as error:
            inputs = ", ".join(str(t) for t in graph.in_types(node) if t is not None)
            problems.append(f"{node.label}: {error} (inputs {inputs})")
    lowering.copy_constant_outputs()
    lowering.keep_states()
    if problems:
        raise UnsupportedError(
            f"{len(problems)} operator{'s' if len(problems) > 1 else ''} of model {graph.name!r} cannot be compiled "
            f"for {cpu.name}",
            details=problems,
            hint="`glowc ops` lists what is supported; docs/ADDING.md shows how to add an operator",
        )
    return lowering.program()


class Lowering:
    """The context of one lowering; see `glowc.ops.base.LowerCtx`."""

    def __init__(
        self, graph: Graph, cpu: Cpu, streaming: Callable[[str], bool] = never, choose: Choose = by_rank,
        preparing: Prepare = prepare,
    ) -> None:  # fmt: skip
        self.graph, self._cpu, self._streaming, self._choose_variant = graph, cpu, streaming, choose
        self._prepare = preparing
        self._between = between_sixteen_bits(graph)
        self.node: Node | None = None
        self.buffers: dict[str, Buffer] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.instrs: list[Instr] = []
        self.unpacked: dict[str, np.ndarray] = {}
        self.states: dict[str, np.ndarray] = {}
        self.narrow: set[str] = set()
        self._const_names: dict[tuple[bytes, str, tuple[int, ...]], str] = {}
        self._homes = {state.next: state.value for state in graph.states if grows_in_place(graph, state)}
        for name in (*graph.inputs, *graph.outputs):
            self._value_buffer(name)
        for state in graph.states:
            self._state(state.value, graph.types[state.value], state.initial)

    @property
    def cpu(self) -> Cpu:
        """The CPU compiled for."""
        return self._cpu

    def type(self, value: str) -> TensorType:
        """Type of a graph value."""
        return self.graph.types[value]

    def const_value(self, value: str) -> np.ndarray | None:
        """The array of a graph constant, None when computed at run time."""
        return self.graph.consts.get(value)

    def is_used(self, value: str) -> bool:
        """True when a node reads the graph value or it is an output of the model."""
        return value in self.graph.results or any(value in node.inputs for node in self.graph.nodes)

    def read(self, value: str) -> Ref:
        """Operand that reads a graph value."""
        array = self.graph.consts.get(value)
        if array is not None:
            return replace(self.const(array, value), type=self.type(value))
        return Ref(self._value_buffer(value), self.type(value))

    def write(self, value: str) -> Ref:
        """Operand that writes a graph value."""
        return Ref(self._value_buffer(value), self.type(value))

    def const(self, array: np.ndarray, name: str) -> Ref:
        """Add a constant; equal constants are stored once."""
        data = np.ascontiguousarray(array)
        key = (hashlib.sha256(data.reshape(-1).view(np.uint8).data).digest(), data.dtype.str, data.shape)
        found = self._const_names.get(key)
        if found is None:
            found = self._fresh(name)
            self._const_names[key] = found
            self.consts[found] = data
            self.buffers[found] = Buffer(found, BufferKind.CONST, data.nbytes, data.dtype.itemsize)
        return Ref(found, type_of(data))

    def temp(self, type_: TensorType, name: str) -> Ref:
        """Add an intermediate tensor that is no graph value."""
        return Ref(self._buffer(self._fresh(name), BufferKind.ACTIVATION, type_.size_bytes, type_.dtype), type_)

    def state(self, name: str, type_: TensorType, initial: np.ndarray) -> Ref:
        """Add a tensor that keeps its value between inferences."""
        return self._state(self._fresh(name), type_, initial)

    def kept(self, value: str, initial: np.ndarray) -> Ref:
        """Let a graph value keep its bytes between inferences; of a model's output only a copy can."""
        return self._state(self._fresh(value) if value in self.buffers else value, self.type(value), initial)

    def _state(self, name: str, type_: TensorType, initial: np.ndarray) -> Ref:
        self._buffer(name, BufferKind.STATE, type_.size_bytes, type_.dtype)
        self.states[name] = np.ascontiguousarray(initial, type_.dtype.numpy).reshape(type_.shape)
        return Ref(name, type_)

    def emit(
        self,
        kernel: str,
        operands: Mapping[str, Ref],
        params: Params = NO_PARAMS,
        *,
        rows: tuple[int, int] | None = None,
        macs: int = 0,
    ) -> None:
        """Append one instruction for the node being lowered."""
        node, definition = self.node, find_kernel(kernel)
        assert node is not None
        if definition is None:
            raise OpError("no kernel computes it on these types")
        _check_call(definition, operands, params, rows)
        bound = tuple(Operand(r, operands[r].buffer, a, operands[r].type) for r, a in definition.roles)
        instr = Instr(
            kernel,
            "",
            bound,
            as_mapping(params),
            rows,
            f"{node.name}.{len(self.instrs)}",
            node.origin or (node.name,),
            node.op,
            macs,
        )
        if has_narrow_weights(instr):
            self.narrow.add(instr.name)
        self.instrs.append(self._choose(instr))

    def _choose(self, instr: Instr) -> Instr:
        constants = self._constants(instr)
        found = candidates(instr, self._cpu.features, constants.keys())
        prepared = {v: self._prepare(v, constants, seen_as(instr, v)) for v in found}
        found = [v for v in found if fits(prepared[v])]
        if instr.name in self.narrow:
            found = self._storing(instr, found, prepared)
        if self._streaming(instr.name):
            found = [v for v in found if streams_rows(v, prepared_instr(seen_as(instr, v), prepared[v]))] or found
        same = self._is_same(instr)
        found = [v for v in found if v.same_bits == same or (same and v.isa == PLAIN.isa)]
        if not found:
            raise OpError(f"no variant of {instr.kernel} for cpu {self._cpu.name}")

        def finish(variant: KernelVariant) -> Instr:
            done = self._with_scratch(self._packed(seen_as(instr, variant), prepared[variant]), variant)
            return replace(done, plan=SAME) if same and variant.isa == PLAIN.isa and done.plan == NO_PLAN else done

        return finish(self._choose_variant(instr, found, finish))

    def _is_same(self, instr: Instr) -> bool:
        """Say whether an instruction computes reals that have to be the same on every CPU."""
        assert self.node is not None
        kinds = {o.type.dtype for o in instr.operands}
        return self.node.name in self._between and kinds == {DType.F32}

    def _storing(
        self, instr: Instr, variants: list[KernelVariant], prepared: Mapping[KernelVariant, Prepared]
    ) -> list[KernelVariant]:
        """Return the variants whose constants can hold weights of few bits; all, where only portable C has them."""
        plain = self.consts[instr.operand("weights").buffer]

        def stores(variant: KernelVariant) -> bool:
            seen = prepared_instr(seen_as(instr, variant), prepared[variant])
            return stored_form(variant, seen, prepared[variant].constants.get("weights", plain)) is not None

        found = [v for v in variants if v.unpacks or stores(v)]
        return found if any(v.isa != PLAIN.isa for v in found) else variants

    def _constants(self, instr: Instr) -> dict[str, np.ndarray]:
        return {o.role: self.consts[o.buffer] for o in instr.operands if o.buffer in self.consts}

    def _packed(self, instr: Instr, prepared: Prepared) -> Instr:
        operands = []
        for operand in instr.operands:
            if operand.role in prepared.constants:
                ref = self.const(prepared.constants[operand.role], f"{operand.buffer}.{instr.variant}")
                self.unpacked[f"{instr.name}:{operand.role}"] = self.consts[operand.buffer]
                operand = replace(operand, buffer=ref.buffer, type=ref.type)
            operands.append(operand)
        return replace(instr, operands=tuple(operands), plan=prepared.plan)

    def _with_scratch(self, instr: Instr, variant: KernelVariant) -> Instr:
        size = variant.scratch_bytes(instr)
        if size == 0 or any(o.role == "scratch" for o in instr.operands):
            return instr
        name = self._fresh(f"{instr.name}.scratch")
        self.buffers[name] = Buffer(name, BufferKind.SCRATCH, size, self._cpu.align_bytes)
        operand = Operand("scratch", name, Access.OUT, TensorType((size,), DType.U8))
        return replace(instr, operands=(*instr.operands, operand))

    def copy_constant_outputs(self) -> None:
        """Emit a copy for every output that is known at compile time."""
        for name in self.graph.outputs:
            array = self.graph.consts.get(name)
            if array is not None and array.size == 0:
                raise UnsupportedError(f"output {name!r} of model {self.graph.name!r} has no elements")
            if array is not None:
                self.node = Node(f"{name}_constant", "Constant", (), (name,))
                emit_copy(self, self.read(name), self.write(name), whole(array.shape))

    def keep_states(self) -> None:
        """Emit the copies that let states become what the inference made of them."""
        for state in self.graph.states:
            if state.next in self._homes:
                continue
            self.node = Node(f"{state.value}_kept", "State", (), (state.value,))
            emit_copy(self, self.read(state.next), self.read(state.value), whole(self.type(state.value).shape))

    def program(self) -> Program:
        """Return what was emitted; constants that packing left unused are dropped."""
        g = self.graph
        used = {o.buffer for i in self.instrs for o in i.operands} | set(g.inputs) | set(g.outputs)
        inputs = tuple(Operand(n, n, Access.IN, g.types[n]) for n in g.inputs)
        outputs = tuple(Operand(n, n, Access.OUT, g.types[n]) for n in g.outputs)
        buffers = {name: b for name, b in self.buffers.items() if name in used}
        consts = {name: a for name, a in self.consts.items() if name in used}
        return Program(
            g.name, inputs, outputs, buffers, consts, tuple(self.instrs), self.unpacked, self.states,
            narrow=frozenset(self.narrow),
        )  # fmt: skip

    def _value_buffer(self, value: str) -> str:
        value = self._homes.get(value, value)
        if value not in self.buffers:
            kind = BufferKind.ACTIVATION
            if value in self.graph.inputs:
                kind = BufferKind.INPUT
            elif value in self.graph.outputs:
                kind = BufferKind.OUTPUT
            type_ = self.type(value)
            self._buffer(value, kind, type_.size_bytes, type_.dtype)
        return value

    def _buffer(self, name: str, kind: BufferKind, size_bytes: int, dtype: DType) -> str:
        edge = kind in (BufferKind.INPUT, BufferKind.OUTPUT)
        align = math.lcm(dtype.bytes, self._cpu.align_bytes, self._cpu.line_bytes if edge else 1)
        self.buffers[name] = Buffer(name, kind, size_bytes, align)
        return name

    def _fresh(self, base: str) -> str:
        name, index = base, 0
        while name in self.buffers or (name in self.graph.types and name in self.graph.producers()):
            index += 1
            name = f"{base}.{index}"
        return name


def grows_in_place(graph: Graph, state: State) -> bool:
    """Say whether a state becomes itself with new rows, so that nobody needs it without them."""
    node = graph.producers().get(state.next)
    grows = node is not None and node.op == "Append" and node.inputs[0] == state.value
    return grows and len(graph.users().get(state.value, [])) == 1 and state.value not in graph.results


def _check_call(
    kernel: AnyKernel,
    operands: Mapping[str, Ref],
    params: Params,
    rows: tuple[int, int] | None,
) -> None:
    roles = {role for role, _ in kernel.roles}
    if type(params) is not kernel.takes:
        raise InternalError(f"kernel {kernel.name} takes {kernel.takes.__name__}, not {type(params).__name__}")
    if roles != set(operands) or kernel.rows != (rows is not None):
        raise InternalError(
            f"kernel {kernel.name} called with other operands or rows than it declares",
            details=[f"operands: {sorted(roles ^ set(operands))}", f"rows: {rows}"],
        )

"""The most stack that a function of an image can take: what it and all that it calls push, along every path.

Computed from the linked code, so that inline assembly and the compiler's library count as C does. Source of the
instructions: Armv6-M and Armv8-M Architecture Reference Manuals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from glowc.board import Board
from glowc.errors import ToolError
from glowc.machine.listing import CONDITIONS, Function, Insn, read_functions

_LIST = re.compile(r"\{(.*)\}")
_IMMEDIATE = re.compile(r"#(-?\d+)")
_REGISTER_BYTES = {"d": 8, "s": 4, "q": 16}
_CONDITIONAL_POP = re.compile(rf"^(?:v?pop|ldmia|ldmfd|ldm|ldr|add|addw)(?:{CONDITIONS})(?:\.[nw])?$")
_MOVE = re.compile(r"^(?:movs?|movw|mov\.w|movs\.w)$")


class UnboundedError(ToolError):
    """The stack of a function has no bound that can be computed: recursion, a call through a pointer, unknown code."""


def stack_bounds(elf: Path, board: Board, names: tuple[str, ...]) -> dict[str, int]:
    """Return the bytes of stack that each of the functions `names` of a Thumb image can take; absent ones are left out.

    Raises UnboundedError when there is no bound, ToolError when objdump is missing.
    """
    functions = read_functions(elf, board)
    roots = [name for name in names if name in functions]
    bounds = Bounds(functions, roots)
    return {name: bounds.of(name) for name in roots}


class Bounds:
    """Bounds of the functions of one image, each computed once."""

    def __init__(self, functions: Mapping[str, Function], roots: Iterable[str]) -> None:
        self._functions = functions
        self._known: dict[str, int] = {}
        self._open: list[str] = []
        self._pointed = _pointed(functions, roots)

    def of_pointer(self, function: Function) -> int:
        """Return the bytes of a call through a pointer: of any function whose address the code under a root loads."""
        if not self._pointed:
            raise UnboundedError(f"the stack of {function.name} is not known: it calls through a pointer")
        return max(self.of(name) for name in self._pointed)

    def of(self, name: str) -> int:
        """Return the bytes that a call of the function takes below the caller's stack pointer."""
        name = behind_veneer(name, self._functions)
        if name in self._known:
            return self._known[name]
        if name in self._open:
            raise UnboundedError(f"the stack of {name} has no bound: it calls itself", details=self._open)
        if name not in self._functions:
            raise UnboundedError(f"the stack of {name} is not known: it has no code in the image")
        self._open.append(name)
        self._known[name] = _Walk(self._functions[name], self).bytes()
        self._open.pop()
        return self._known[name]


def behind_veneer(name: str, functions: Mapping[str, Function]) -> str:
    """Return the function that the linker's `__NAME_veneer` jumps to, which is too far for a call; else `name`."""
    found = _VENEER.fullmatch(name)
    return found[1] if found is not None and found[1] in functions else name


def _pointed(functions: Mapping[str, Function], roots: Iterable[str]) -> tuple[str, ...]:
    """Return the functions whose addresses are constants in code that can be reached from the roots."""
    starts = {f.insns[0].address: name for name, f in functions.items() if f.insns}
    todo, seen, found = list(roots), set[str](), set[str]()
    while todo:
        name = behind_veneer(todo.pop(), functions)
        if name in seen or name not in functions:
            continue
        seen.add(name)
        loaded = {starts[a] for a in loaded_addresses(functions[name]) if a in starts}
        found |= loaded
        todo += [*loaded, *(insn.target[1] for insn in functions[name].insns if insn.target is not None)]
    return tuple(sorted(found))


class _Walk:
    """Every path through one function, with the depth of the stack at each instruction."""

    def __init__(self, function: Function, bounds: Bounds) -> None:
        self._function, self._bounds = function, bounds
        self._depths: dict[int, int] = {}
        self._todo: list[tuple[int, int]] = []
        self._most = 0
        insns = enumerate(function.insns)
        self._once = sum(
            max(0, pushed_bytes(insn, function, i)) for i, insn in insns
        )  # all that a path without a loop pushes

    def bytes(self) -> int:
        """Return the deepest point of the function and of what it calls."""
        jumps = self._drain(0, 0)
        # Where a computed jump leads is not known: to any code that nothing else leads to, as deep as the jump. Where
        # there is none, one that left nothing on the stack ends the function by a call through a pointer.
        if 0 in jumps and not any(self._is_left(i) for i in range(len(self._function.insns))):
            self._most = max(self._most, self._bounds.of_pointer(self._function))
        for i in range(len(self._function.insns)):
            if jumps and i not in self._depths:
                jumps |= self._drain(i, max(jumps))
        return self._most

    def _is_left(self, i: int) -> bool:
        """Say whether no path has reached an instruction that does something."""
        return i not in self._depths and not self._function.insns[i].name.startswith("nop")

    def _drain(self, begin: int, depth: int) -> set[int]:
        """Follow all paths from an instruction; return the depths at computed jumps."""
        self._todo.append((begin, depth))
        jumps, limit = set(), depth + self._once
        while self._todo:
            i, depth = self._todo.pop()
            if i >= len(self._function.insns) or self._depths.get(i, -1) >= depth:
                continue
            self._depths[i] = depth
            insn = self._function.insns[i]
            after = depth + pushed_bytes(insn, self._function, i)
            if after > limit:
                raise UnboundedError(f"the stack of {self._function.name} has no bound: a loop pushes")
            self._most = max(self._most, depth, after)
            self._follow(insn, i, after)
            if insn.is_computed:
                jumps.add(after)
        return jumps

    def _follow(self, insn: Insn, i: int, depth: int) -> None:
        if insn.is_indirect_call:
            self._most = max(self._most, depth + self._bounds.of_pointer(self._function))
        far = self._far_jump(insn)
        if far is not None:
            self._todo.append((far, depth))
            return
        if insn.is_call and insn.target is not None:
            self._call(insn.target[1], depth)
        elif insn.is_branch and insn.target is not None:
            address, name = insn.target
            if address in self._function.index:
                self._todo.append((self._function.index[address], depth))
            else:
                self._call(name, depth)  # a tail call
        if not insn.stops:
            self._todo.append((i + 1, depth))

    def _far_jump(self, insn: Insn) -> int | None:
        """Return where a `bl` leads inside the function: what Armv6-M has for jumps over more than 2 KB."""
        if not insn.is_call or insn.target is None or insn.target[0] == self._function.insns[0].address:
            return None
        return self._function.index.get(insn.target[0])

    def _call(self, name: str, depth: int) -> None:
        self._most = max(self._most, depth + self._bounds.of(name))


_VENEER = re.compile(r"__([\w.$]+)_veneer")
_LOADED = re.compile(r"^(\w+), #(\d+)")


def loaded_addresses(function: Function) -> set[int]:
    """Return what may be addresses of functions among the constants of a function's code."""
    found = {word & ~1 for word in function.words.values() if word & 1}
    low: dict[str, int] = {}
    for insn in function.insns:
        half = _LOADED.match(insn.operands)
        if half is not None and insn.name.startswith("movw"):
            low[half[1]] = int(half[2])
        elif half is not None and insn.name.startswith("movt"):
            found.add((int(half[2]) << 16 | low.get(half[1], 0)) & ~1)
    return found


def pushed_bytes(insn: Insn, function: Function, i: int) -> int:
    """Return by how much an instruction lowers the stack pointer; negative when it raises it.

    One that raises it on a condition leaves it where it is on the path that goes on.
    """
    name, operands = insn.name, insn.operands
    if _CONDITIONAL_POP.match(name):
        return 0
    if name.startswith(("push", "vpush")):
        return _list_bytes(operands)
    if name.startswith(("pop", "vpop")):
        return -_list_bytes(operands)
    if operands.startswith("sp!"):
        sign = 1 if "db" in name else -1
        return sign * _list_bytes(operands)
    if "[sp, #" in operands and operands.endswith("]!"):
        return -_immediate(operands)
    if "[sp], #" in operands:
        return -_immediate(operands)
    if re.match(r"^sp\b", operands) and name.startswith(("add", "sub", "mov")):
        return _moved_bytes(insn, function, i)
    return 0


def _list_bytes(operands: str) -> int:
    """Return the bytes of a list of registers such as {r4-r6, lr} or {d8-d15}."""
    found = _LIST.search(operands)
    total = 0
    for item in (found[1] if found else "").split(","):
        first, _, last = item.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        size = _REGISTER_BYTES.get(first[:1], 4) if first[1:].isdigit() else 4
        total += count * size
    return total


def _immediate(operands: str) -> int:
    found = _IMMEDIATE.search(operands)
    return int(found[1]) if found else 0


def _moved_bytes(insn: Insn, function: Function, i: int) -> int:
    """Return by how much add, sub or mov changes the stack pointer, also by a register that was loaded before."""
    sign = 1 if insn.name.startswith("sub") else -1
    if insn.name.startswith("mov"):
        raise UnboundedError(f"the stack of {function.name} is not known: it moves a register to sp")
    if "#" in insn.operands:
        return sign * _immediate(insn.operands)
    register = insn.operands.split(",")[-1].strip()
    return sign * _value(function, register, i)


def _value(function: Function, register: str, before: int) -> int:
    """Return the constant that the instructions before one load into a register."""
    for i in range(before - 1, -1, -1):
        insn = function.insns[i]
        if insn.operands.split(",")[0].strip() != register or insn.name.startswith(("cmp", "str", "push", "tst")):
            continue
        if insn.name.startswith("ldr") and "[pc" in insn.operands:
            place = ((insn.address + 4) & ~3) + _immediate(insn.operands)
            if place in function.words:
                word = function.words[place]
                return word - (1 << 32) if word >> 31 else word
        if _MOVE.match(insn.name) and "#" in insn.operands:
            return _immediate(insn.operands)
        break
    raise UnboundedError(f"the stack of {function.name} is not known: sp changes by {register}")

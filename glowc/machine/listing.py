"""Thumb code of an ELF as objdump lists it: functions, instructions, and what each does to the flow and the stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from glowc.board import Board, require_tool, run_tool
from glowc.errors import ToolError

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)(?:\t([^@;]*))?")
_TARGET = re.compile(r"([0-9a-f]+) <([^>+]+)(?:\+0x[0-9a-f]+)?>")
CONDITIONS = "eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
_BRANCH = re.compile(rf"^(?:b({CONDITIONS})?|cbn?z|le|wls|dls|wlstp|dlstp|letp)(?:\.(?:[nw]|8|16|32|64))?$")
_CALL = re.compile(rf"^bl(?:{CONDITIONS})?(?:\.w)?$")
_PC_LOADED = re.compile(r"\bpc\b")
_ALWAYS = frozenset({"b", "b.n", "b.w", "le", "letp"} - {"le", "letp"})
_RAW_DATA = frozenset({".word", ".short", ".byte"})


@dataclass(frozen=True, slots=True)
class Insn:
    """One instruction: address, mnemonic, operands as text."""

    address: int
    name: str
    operands: str

    @property
    def target(self) -> tuple[int, str] | None:
        """Address and function that a branch or a call leads to."""
        found = _TARGET.search(self.operands)
        return (int(found[1], 16), found[2]) if found else None

    @property
    def is_call(self) -> bool:
        """True for a direct call."""
        return _CALL.match(self.name) is not None

    @property
    def is_indirect_call(self) -> bool:
        """True for a call through a register."""
        return self.name.startswith("blx") and self.target is None

    @property
    def is_branch(self) -> bool:
        """True for a jump to a label, taken or not; hardware loops are such jumps."""
        return _BRANCH.match(self.name) is not None and self.target is not None

    @property
    def is_computed(self) -> bool:
        """True for a jump to where a register or a table says, inside the function."""
        if self.name.startswith(("tbb", "tbh")):
            return True
        if self.name == "bx":
            return self.operands.strip() != "lr"
        return self.name.startswith(("mov", "add")) and self.operands.startswith("pc,")

    @property
    def returns(self) -> bool:
        """True for what loads the program counter from the stack or from lr."""
        if self.name == "bx" and self.operands.strip() == "lr":
            return True
        loads = self.name.startswith(("pop", "ldm")) or (self.name.startswith("ldr") and "[sp]" in self.operands)
        listed = self.operands.split("{")[-1] if "{" in self.operands else self.operands.split(",")[0]
        return loads and _PC_LOADED.search(listed) is not None and self.name.rstrip(".wn").endswith(_ENDS)

    @property
    def stops(self) -> bool:
        """True when the next instruction is not reached from this one."""
        return self.returns or self.is_computed or self.name in _ALWAYS or self.name in ("udf", "bkpt", "udf.w")


_ENDS = ("pop", "ldmia", "ldm", "ldr")  # without a condition


@dataclass(frozen=True)
class Function:
    """The instructions of one function, in order, and the words between them."""

    name: str
    insns: tuple[Insn, ...]
    words: Mapping[int, int]

    @cached_property
    def index(self) -> Mapping[int, int]:
        """Position of each instruction by its address."""
        return {insn.address: i for i, insn in enumerate(self.insns)}


def read_functions(elf: Path, board: Board) -> dict[str, Function]:
    """Return the functions of an ELF by name, as objdump lists them. Raises ToolError when it fails."""
    objdump = require_tool(f"{board.cpu.tool_prefix}objdump")
    argv = [str(objdump), "-d", "--no-show-raw-insn", str(elf)]
    done = run_tool(argv)
    if done.returncode != 0:
        raise ToolError(f"objdump cannot read {elf.name}", details=done.stderr.splitlines()[:5])
    return parse_listing(done.stdout)


def parse_listing(text: str) -> dict[str, Function]:
    """Return the functions of a listing by name."""
    found: dict[str, tuple[list[Insn], dict[int, int]]] = {}
    insns: list[Insn] = []
    words: dict[int, int] = {}
    for line in text.splitlines():
        if head := _FUNCTION.match(line):
            insns, words = found.setdefault(head[2], ([], {}))
        elif row := _LINE.match(line):
            address, name, operands = int(row[1], 16), row[2], (row[3] or "").strip()
            if name == ".word":
                words[address] = int(operands, 16)
            elif name not in _RAW_DATA:
                insns.append(Insn(address, name, operands))
    owners = {insn.address: name for name, (code, _) in found.items() for insn in code}
    return {name: Function(name, tuple(_owned(i, owners) for i in code), data) for name, (code, data) in found.items()}


def _owned(insn: Insn, owners: Mapping[int, str]) -> Insn:
    """Return an instruction that names the function which it leads into.

    The nearest symbol, which objdump names, may be a number that the linker script defines.
    """
    if insn.target is None or owners.get(insn.target[0], insn.target[1]) == insn.target[1]:
        return insn
    return replace(insn, operands=f"{insn.target[0]:x} <{owners[insn.target[0]]}>")

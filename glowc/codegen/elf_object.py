"""An ELF object of one constant array, as an assembler writes it for `.incbin`: for targets without such a one."""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Collection
from dataclasses import dataclass

from glowc.errors import InputError

_NOTE = ".note.GNU-stack"  # the stack need not be executable
_PROGBITS, _SYMTAB, _STRTAB, _ALLOC = 1, 2, 3, 2
_GLOBAL_OBJECT = 1 << 4 | 1  # STB_GLOBAL, STT_OBJECT


@dataclass(frozen=True, slots=True)
class Machine:
    """What ELF says of a processor: `number` is e_machine, `flags` e_flags; `wide` files have 64 bits."""

    number: int
    wide: bool
    flags: int = 0


_ARM = Machine(40, wide=False, flags=0x5000000)  # version 5 of the EABI; data is of no float ABI
_OF_64_BITS = {"aarch64": Machine(183, wide=True), "arm64": Machine(183, wide=True), "x86_64": Machine(62, wide=True)}


def machine_of(features: Collection[str]) -> Machine:
    """Return the machine of a CPU's features, that of this computer where they name none. Raises InputError."""
    if "a64" in features:
        return _OF_64_BITS["aarch64"]
    if {"a32", "thumb"} & {*features}:
        return _ARM
    found = _OF_64_BITS.get(platform.machine())
    if found is None or sys.platform in ("win32", "darwin"):
        raise InputError("--weights object: objects of this computer are of another kind than ELF for 64 bits",
                         hint="--weights asm, or the --board or --cpu of the target")  # fmt: skip
    return found


def elf_object(symbol: str, content: bytes, align_bytes: int, machine: Machine) -> bytes:
    """Return the object that defines `symbol` as `content` in section `.rodata.<symbol>`, little-endian.

    Layout: header, content, symbols, names of symbols, names of sections, section headers (System V ABI, chapter 4).
    """
    wide = machine.wide
    names, strings = f"\0.rodata.{symbol}\0.symtab\0.strtab\0.shstrtab\0{_NOTE}\0".encode(), f"\0{symbol}\0".encode()
    if wide:
        symbols = bytes(24) + struct.pack("<IBBHQQ", 1, _GLOBAL_OBJECT, 0, 1, 0, len(content))
    else:
        symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0, len(content), _GLOBAL_OBJECT, 0, 1)
    # name, type, flags, content, link, info, alignment, bytes of an entry
    rows = (
        (f".rodata.{symbol}", _PROGBITS, _ALLOC, content, 0, 0, align_bytes, 0),
        (".symtab", _SYMTAB, 0, symbols, 3, 1, 8, len(symbols) // 2),
        (".strtab", _STRTAB, 0, strings, 0, 0, 1, 0),
        (".shstrtab", _STRTAB, 0, names, 0, 0, 1, 0),
        (_NOTE, _PROGBITS, 0, b"", 0, 0, 1, 0),
    )
    header, entry, layout = (64, 64, "<IIQQQQIIQQ") if wide else (52, 40, "<IIIIIIIIII")
    parts, at, table = list[bytes](), header, bytearray(entry)
    for name, kind, flags, data, link, info, align, each in rows:
        gap = -at % align
        found = names.index(f"\0{name}\0".encode()) + 1
        table += struct.pack(layout, found, kind, flags, 0, at + gap, len(data), link, info, align, each)
        parts += [bytes(gap), data]
        at += gap + len(data)
    parts.append(bytes(-at % 8))
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    fields = (1, machine.number, 1, 0, 0, at + -at % 8, machine.flags, header, 0, 0, entry, len(rows) + 1, 4)
    head = ident + struct.pack("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", *fields)
    return b"".join([head, *parts, table])

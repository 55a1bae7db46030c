"""ELF -> section sizes and symbols, read directly: one reader for every target and no tool to install."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from glowc.errors import ToolError

_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 1, 2, 4
_EM_ARM = 40
_HOST_PROGRAMS = (b"MZ", b"\x64\x86", b"\x64\xaa", b"\xcf\xfa\xed\xfe")  # of Windows and macOS, and objects
_SYMBOL_TYPES = {1: "object", 2: "func"}


@dataclass(frozen=True, slots=True)
class Section:
    """A section that takes memory on the target; `size` is in bytes."""

    name: str
    address: int
    size: int
    kind: str  # "text", "rodata", "data" or "bss"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A defined symbol: its address (Thumb bit clear), size in bytes and type."""

    address: int
    size: int
    type: str  # "func", "object" or "other"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes by kind of section. Flash holds text + rodata + data, RAM holds data + bss."""

    text: int = 0
    rodata: int = 0
    data: int = 0
    bss: int = 0

    @staticmethod
    def of(sections: Iterable[Section]) -> Sizes:
        """Return the sum by kind; the linker's reserve for the stack (.stack) is no variable."""
        totals = {"text": 0, "rodata": 0, "data": 0, "bss": 0}
        for section in sections:
            if section.name != ".stack":
                totals[section.kind] += section.size
        return Sizes(**totals)


@dataclass(frozen=True, slots=True)
class _Header:
    """The fields of a section header that matter here."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


class _Reader:
    """A little-endian ELF file of 32 or 64 bits: its section headers and strings."""

    def __init__(self, path: Path) -> None:
        self.raw = path.read_bytes()
        if self.raw[:4] != b"\x7fELF":
            raise ToolError(f"{path} is not an ELF file", hint="`glowc build` writes one")
        self.wide = self.raw[4] == 2
        fields = struct.unpack_from("<16sHHIQQQIHHHHHH" if self.wide else "<16sHHIIIIIHHHHHH", self.raw)
        self.machine = fields[2]
        offset, entry_bytes, count, self.names_index = fields[6], fields[11], fields[12], fields[13]
        layout = "<IIQQQQI" if self.wide else "<IIIIIII"
        self.headers = [_Header(*struct.unpack_from(layout, self.raw, offset + i * entry_bytes)) for i in range(count)]

    def string(self, table: int, offset: int) -> str:
        """Return the string at `offset` of string table number `table`."""
        start = self.headers[table].offset + offset
        return self.raw[start : self.raw.index(b"\0", start)].decode()

    def symbols(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield (name, address, size, info, section number) of every entry of the symbol table."""
        for header in self.headers:
            if header.kind != _SHT_SYMTAB:
                continue
            body = self.raw[header.offset : header.offset + header.size]
            for entry in struct.iter_unpack("<IBBHQQ" if self.wide else "<IIIBBH", body):
                if self.wide:
                    name, info, _, section, address, size = entry
                else:
                    name, address, size, info, _, section = entry
                yield self.string(header.link, name), address, size, info, section


def sections(elf: Path) -> tuple[Section, ...]:
    """Return the sections of an ELF file or object that take memory. Raises ToolError if it is no ELF.

    Those of what Windows and macOS run themselves are not told: nobody flashes them.
    """
    with elf.open("rb") as file:
        if file.read(4).startswith(_HOST_PROGRAMS):
            return ()
    reader = _Reader(elf)
    return tuple(
        Section(reader.string(reader.names_index, header.name), header.address, header.size, _kind(header))
        for header in reader.headers
        if header.flags & _SHF_ALLOC and header.size
    )


def _kind(header: _Header) -> str:
    if header.flags & _SHF_EXECINSTR:
        return "text"
    if not header.flags & _SHF_WRITE:
        return "rodata"
    return "bss" if header.kind == _SHT_NOBITS else "data"


def symbols(elf: Path) -> Mapping[str, Symbol]:
    """Return the defined symbols of an ELF file by name. Raises ToolError if it is no ELF."""
    reader = _Reader(elf)
    found = {}
    for name, address, size, info, section in reader.symbols():
        if not name or section == 0:
            continue
        kind = _SYMBOL_TYPES.get(info & 15, "other")
        if kind == "func" and reader.machine == _EM_ARM:
            address &= ~1  # bit 0 says "Thumb code", not where it is
        found[name] = Symbol(address, size, kind)
    return found

"""Where buffers lie, as generated C says it: one arena by one pointer, or the parts of a split arena by one each.

A split arena is handed over as a struct NAME_arenas_t with pointer and size of every region. The zones of `--guard` are
bytes before and after every tensor in the arena that hold a pattern while it is alive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from glowc.codegen.names import is_ident
from glowc.errors import InputError
from glowc.program.ir import Program
from glowc.program.lifetimes import root_lifetimes, strip_markers


@dataclass(frozen=True, slots=True)
class ArenaPart:
    """What a memory region holds of a split arena: its bytes, and the roots of the buffers that lie there."""

    region: str
    size_bytes: int
    roots: frozenset[str]

    @property
    def pointer(self) -> str:
        """The parameter of the generated functions that points to it."""
        return f"arena_{self.region}"

    @property
    def macro(self) -> str:
        """The region's part in the names of macros."""
        return self.region.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaTexts:
    """How arenas are handed on: to layers, to functions that take the caller's (`in_`), from these, by a user."""

    params: str
    args: str
    in_params: str
    in_args: str
    own_args: str
    from_in: str
    from_bytes: str
    user_args: str
    user_need: str


@dataclass(frozen=True, slots=True)
class Places:
    """Offsets by root, from the start of the arena or of the part that it lies in; `parts` of a split arena.

    The properties are pieces of C. Parts of no bytes have a place in the struct, but no array and no pointer.
    """

    offsets: Mapping[str, int]
    parts: tuple[ArenaPart, ...] = ()
    shared: str = ""  # the array that several models have as their arena

    @property
    def used(self) -> tuple[ArenaPart, ...]:
        """The parts that hold something."""
        return tuple(part for part in self.parts if part.size_bytes)

    @property
    def pointers(self) -> tuple[str, ...]:
        """The parameters of the functions that execute layers."""
        return tuple(part.pointer for part in self.used) or ("arena",)

    def region(self, root: str) -> str:
        """Return the region in which a root lies, "" in an arena that is whole or outside of it."""
        return next((part.region for part in self.parts if root in part.roots), "")

    def pointer(self, root: str) -> str:
        """Return the parameter that points to the part in which a root lies."""
        region = self.region(root)
        return f"arena_{region}" if region else "arena"

    def base(self, region: str) -> str:
        """Return the start of a region's part in a function that takes the caller's arena."""
        return f"(uint8_t *)arenas->{region}" if region else "bytes"

    def own(self, prefix: str, region: str) -> str:
        """Return the array of the bundle itself for a region."""
        return f"{prefix}_arena_{region}" if region else self.shared or f"{prefix}_arena"

    def lacking(self, prefix: str) -> str:
        """Return the condition that a caller's split arena lacks a part or has one that is too small."""
        parts = [(f"arenas->{part.region}", f"{prefix.upper()}_ARENA_{part.macro}_BYTES") for part in self.used]
        return " || ".join(["arenas == NULL", *(f"{at} == NULL || {at}_bytes < {size}" for at, size in parts)])

    def texts(self, prefix: str) -> ArenaTexts:
        """Return parameters and arguments by which arenas are handed on."""
        params, args = ", ".join(f"uint8_t *{name}" for name in self.pointers), ", ".join(self.pointers)
        if not self.parts:
            return ArenaTexts(
                params=params, args=args, in_params="void *arena, size_t arena_bytes", in_args="arena, arena_bytes",
                own_args=f"{self.own(prefix, '')}, sizeof {self.own(prefix, '')}", from_in="(uint8_t *)arena",
                from_bytes="bytes", user_args="arena, sizeof arena",
                user_need=f"at least `{prefix.upper()}_ARENA_BYTES` bytes",
            )  # fmt: skip
        unpacked = ", ".join(self.base(part.region) for part in self.used) or "NULL"
        return ArenaTexts(
            params=params, args=args, in_params=f"const {prefix}_arenas_t *arenas", in_args="arenas",
            own_args=f"&{prefix}_arenas", from_in=unpacked, from_bytes=unpacked, user_args="&arenas",
            user_need="memory for every region (see below)",
        )  # fmt: skip


def unused_pointers(places: Places, used: Collection[str]) -> list[str]:
    """Return the pointers to arenas other than those that are `used`."""
    return [name for name in places.pointers if name not in used]


def check_parts(parts: Sequence[ArenaPart]) -> None:
    """Raise InputError when the names of regions cannot be names of struct fields and macros."""
    problems = [f'region "{part.region}" is no C identifier' for part in parts if not is_ident(part.region)]
    taken: set[str] = set()
    for part in parts:
        own = {part.macro, f"{part.macro}_BYTES"}
        if taken & own:
            problems.append(f'region "{part.region}" has the C name of another one')
        taken |= own
    if problems:
        raise InputError("regions cannot be named so", details=problems, hint="use e.g. --region dtcm=65536")


@dataclass(frozen=True, slots=True)
class Zone:
    """Where the pattern lies, in bytes from the start of the arena, and the layers first <= n <= last of the tensor."""

    before: int
    behind: int
    first: int
    last: int


def guard_zones(program: Program, places: Places, guard_bytes: int) -> tuple[Zone, ...]:
    """Return the zones of all tensors, in the order of their addresses; none without a guard."""
    if not guard_bytes:
        return ()
    plain = strip_markers(program)
    zones = []
    for root, (begin, end) in root_lifetimes(plain).items():
        if root in places.offsets and plain.buffers[root].size_bytes:
            at = places.offsets[root]
            zones.append(Zone(at - guard_bytes, at + plain.buffers[root].size_bytes, begin, end - 1))
    return tuple(sorted(zones, key=lambda z: (z.before, z.first)))

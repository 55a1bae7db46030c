"""Places for the registers of a listing that is in its final order.

Of the core r0 to r12 and lr, of the FPU s0 to s15, which a function may change, of vectors q0 to q7; none that the
listing names. Registers of one instruction that must follow each other do: ascending ones of LDM, adjacent ones of
VLDM and of VMOV of two words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from glowc.asm.insn import CORE, FPU, VECTOR, Either, Insn, Listing, Loop, Register, instructions
from glowc.asm.isa import ISA, Kind
from glowc.errors import InternalError

_UNSAVED_FPU = 16
PLACES: Mapping[str, Sequence[int]] = {CORE: (*range(13), 14), FPU: range(_UNSAVED_FPU), VECTOR: range(8)}
_ADJACENT = ("vldm", "vmov_pair")


def allocate(
    listing: Listing, fixed: Mapping[Register, int], low: Sequence[Kind] = (Kind.LOAD,), fpu: int = _UNSAVED_FPU,
    kept: Sequence[Register] = (),
) -> Listing:  # fmt: skip
    """Return the listing with places; `fixed` gives those of its inputs. InternalError where registers run out.

    Registers in instructions of the kinds `low` come from the low ones, which short instructions name. `fpu`: registers
    of the FPU, where some that are saved may be taken after all others. `kept`: places that have values all the time.
    """
    order = list(instructions(listing))
    times = _times(order, _ways(listing))
    places = {r: Register(r.bank, n, virtual=False) for r, n in fixed.items()}
    low_ones = {r for insn in order if ISA[insn.op].kind in low for r in (*insn.reads, *insn.writes)}
    numbers_of = {**{bank: free_places(order, bank, kept) for bank in PLACES}, FPU: range(fpu)}
    for insn in order:
        for bank, numbers in numbers_of.items():
            wanted = [r for r in insn.writes if r.virtual and r.bank == bank and r not in places]
            if wanted:
                own = reduce(or_, (times[r] for r in wanted))
                taken = {place.number for r, place in places.items() if r.bank == bank and times.get(r, 0) & own}
                free = [number for number in numbers if number not in taken]
                from_below = any(r in low_ones for r in wanted) or len(numbers) > _UNSAVED_FPU
                run = _chosen(free, len(wanted), adjacent=bank == FPU and insn.op in _ADJACENT, from_below=from_below)
                if len(run) < len(wanted):
                    raise InternalError(f"{insn.op}: {len(wanted)} registers of bank {bank}, {len(free)} are free")
                places |= {r: Register(bank, n, virtual=False) for r, n in zip(wanted, run, strict=True)}
    return _placed(listing, places)


def _chosen(free: Sequence[int], count: int, *, adjacent: bool, from_below: bool) -> Sequence[int]:
    """Return so many of the free numbers, fewer where there are none."""
    if adjacent:
        fits = (free[k : k + count] for k in range(len(free) - count + 1))
        return next((run for run in fits if run[-1] - run[0] == count - 1), [])
    return free[:count] if from_below else free[-count:]


def free_places(insns: Sequence[Insn], bank: str, kept: Sequence[Register] = ()) -> Sequence[int]:
    """Return the places of a bank that instructions do not name, and that are not kept."""
    registers = (*kept, *(r for insn in insns for r in (*insn.reads, *insn.writes)))
    named = {r.number for r in registers if r.bank == bank and not r.virtual}
    return [n for n in PLACES[bank] if n not in named]


def _placed(listing: Listing, places: Mapping[Register, Register]) -> Listing:
    def placed(item: Insn | Loop | Either) -> Insn | Loop | Either:
        if isinstance(item, Loop):
            entry = item.entry and places.get(item.entry, item.entry)
            return replace(item, body=_placed(item.body, places), entry=entry)
        if isinstance(item, Either):
            return Either(*(tuple(insn.placed(places) for insn in way) for way in (item.body, item.apart)))
        return item.placed(places)

    return tuple(placed(item) for item in listing)


def _times(order: Sequence[Insn], ways: Sequence[Sequence[int]]) -> Mapping[Register, int]:
    """Return after which instructions each virtual register has a value, a bit for each.

    Registers keep their places between values, those of the core unless a loop is entered at a step.
    """
    known = sorted({r for insn in order for r in (*insn.reads, *insn.writes) if r.virtual})
    bits = {r: 1 << number for number, r in enumerate(known)}
    reads, writes = [_sum(bits, insn.reads) for insn in order], [_sum(bits, insn.writes) for insn in order]
    before, after = [0] * len(order), [0] * len(order)
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(order))):
            after[at] = reduce(or_, (before[to] for to in ways[at]), 0)
            needed = after[at] & ~writes[at] | reads[at]
            changed |= needed != before[at]
            before[at] = needed
    times = dict.fromkeys(known, 0)
    for at, mask in enumerate(map(or_, after, writes)):
        while mask:
            times[known[(mask & -mask).bit_length() - 1]] |= 1 << at
            mask &= mask - 1
    apart = {CORE} if any(insn.op == "bx" for insn in order) else set[str]()
    return {r: time if r.bank in apart else (1 << time.bit_length()) - (time & -time or 1) for r, time in times.items()}


def _sum(bits: Mapping[Register, int], registers: Iterable[Register]) -> int:
    """Return the bits of the virtual ones of registers."""
    return reduce(or_, (bits[r] for r in registers if r.virtual), 0)


def _ways(listing: Listing) -> list[tuple[int, ...]]:
    """Return the numbers of the instructions that may come after each one."""
    count = sum(1 for _ in instructions(listing))
    ways: list[tuple[int, ...]] = [(at + 1,) if at + 1 < count else () for at in range(count)]

    def walk(items: Listing, at: int) -> int:
        for item in items:
            first = at
            if isinstance(item, Loop):
                at = walk(item.body, first)
                ways[at - 1] = (first, *ways[at - 1])
                if item.entry is not None:
                    ways[first - 1] = tuple(first + number for number in item.begins)
            elif isinstance(item, Either):
                apart, at = first + len(item.body), first + len(item.body) + len(item.apart)
                ways[first - 1] = (first, apart)
                ways[apart - 1] = ways[at - 1] = ways[at - 1]
            else:
                at += 1
        return at

    walk(listing, 0)
    return ways

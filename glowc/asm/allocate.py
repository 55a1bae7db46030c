"""Places for the registers of a listing that is in its final order.

Of the core r0 to r12 and lr, of the FPU s0 to s15, which a function may change, of vectors q4 to q7: others hold
sums. Registers of one instruction that must follow each other do: ascending ones of LDM, adjacent ones of VLDM and of
VMOV of two words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from glowc.asm.insn import CORE, FPU, VECTOR, Either, Insn, Listing, Loop, Register, instructions, read_first
from glowc.asm.isa import ISA, Kind
from glowc.errors import InternalError

PLACES: Mapping[str, tuple[int, ...]] = {CORE: (*range(13), 14), FPU: tuple(range(16)), VECTOR: (4, 5, 6, 7)}
_ADJACENT = ("vldm", "vmov_pair")


@dataclass(slots=True)
class _Span:
    """Where a register has a value: from the instruction that makes it up to the last that uses it."""

    first: int
    last: int


def allocate(listing: Listing, fixed: Mapping[Register, int], low: Sequence[Kind] = (Kind.LOAD,)) -> Listing:
    """Return the listing with places; `fixed` gives those of its inputs. InternalError where registers run out.

    Registers in instructions of the kinds `low` come from the low ones, which short instructions name.
    """
    order = list(instructions(listing))
    spans = _spans(listing)
    places = {r: Register(r.bank, n, virtual=False) for r, n in fixed.items()}
    free = {bank: [n for n in numbers if n not in fixed.values() or bank != CORE] for bank, numbers in PLACES.items()}
    high = spans.keys() - {r for insn in order if ISA[insn.op].kind in low for r in (*insn.reads, *insn.writes)}
    ends: dict[int, list[Register]] = {}
    for r, span in sorted(spans.items()):
        ends.setdefault(span.last, []).append(r)
    for at, insn in enumerate(order):
        ended = ends.get(at, ())
        for r in ended:
            if r not in insn.writes:
                _give_back(places[r], free)
        _place(insn, [r for r in insn.writes if r.virtual and r not in places], places, free, high)
        for r in ended:
            if r in insn.writes:
                _give_back(places[r], free)
    return _placed(listing, places)


def _placed(listing: Listing, places: Mapping[Register, Register]) -> Listing:
    def placed(item: Insn | Loop | Either) -> Insn | Loop | Either:
        if isinstance(item, Loop):
            return Loop(_placed(item.body, places), item.step, item.steps)
        if isinstance(item, Either):
            return Either(*(tuple(insn.placed(places) for insn in way) for way in (item.body, item.apart)))
        return item.placed(places)

    return tuple(placed(item) for item in listing)


def _spans(listing: Listing) -> dict[Register, _Span]:
    """Return where each virtual register has a value; one that a loop needs again has it all through the loop."""
    spans: dict[Register, _Span] = {}
    order = list(instructions(listing))
    for at, insn in enumerate(order):
        for r in (*insn.reads, *insn.writes):
            if r.virtual:
                spans.setdefault(r, _Span(at, at)).last = at
    for first, end in _loops(listing, 0):
        carried = read_first(order[first:end])
        for r, span in spans.items():
            if r in carried:
                span.first, span.last = min(span.first, first), max(span.last, end - 1)
    return spans


def _loops(listing: Listing, at: int) -> list[tuple[int, int]]:
    """Return the first instruction of each loop and the one after its last, inner ones first."""
    found: list[tuple[int, int]] = []
    for item in listing:
        count = sum(1 for _ in instructions((item,)))
        if isinstance(item, Loop):
            found += [*_loops(item.body, at), (at, at + count)]
        at += count
    return found


def _place(
    insn: Insn, new: Sequence[Register], places: dict[Register, Register], free: dict[str, list[int]],
    high: Set[Register],
) -> None:  # fmt: skip
    """Give places to what an instruction makes."""
    for bank in PLACES:
        wanted = [r for r in new if r.bank == bank]
        if not wanted:
            continue
        if bank == FPU and len(wanted) > 1 and insn.op in _ADJACENT:
            run = _run(free[bank], len(wanted))
        elif all(r in high for r in wanted):
            run = free[bank][-len(wanted) :]
        else:
            run = free[bank][: len(wanted)]
        if len(run) < len(wanted):
            raise InternalError(f"{insn.op}: {len(wanted)} registers of bank {bank}, {len(free[bank])} are free")
        for r, number in zip(wanted, list(run), strict=True):
            free[bank].remove(number)
            places[r] = Register(bank, number, virtual=False)


def _run(free: Sequence[int], number: int) -> list[int]:
    """Return adjacent free numbers, [] where there are none."""
    fits = (list(free[k : k + number]) for k in range(len(free) - number + 1))
    return next((run for run in fits if run[-1] - run[0] == number - 1), [])


def _give_back(place: Register, free: dict[str, list[int]]) -> None:
    free[place.bank] = sorted({*free[place.bank], place.number})

"""Runs a listing on numpy: all cases of a batch at once, which go through loops as often."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import numpy as np

from glowc.asm.insn import FLAGS, WIDE_BYTES, Either, Listing, Loop, Register
from glowc.asm.isa import ISA, Memory, Row, Words, results

Memories = MutableMapping[str, Memory]


def run(
    listing: Listing, registers: Mapping[Register, Words], memories: Memories, isa: Mapping[str, Row] = ISA
) -> dict[Register, Words]:
    """Return the registers after a listing; memories change in place. An array that has no words yet gets 32."""
    state = dict(registers)
    _run(listing, state, memories, isa)
    return state


def _run(listing: Listing, state: dict[Register, Words], memories: Memories, isa: Mapping[str, Row]) -> None:
    cases = len(next(iter(state.values())))
    for item in listing:
        if isinstance(item, Loop):
            _run(item.body[_entered(item, state) :], state, memories, isa)
            while not state[FLAGS].all():
                _run(item.body, state, memories, isa)
            continue
        if isinstance(item, Either):
            negative, apart = state[FLAGS].astype(bool), dict(state)
            _run(item.apart, apart, memories, isa)
            _run(item.body, state, memories, isa)
            state |= {r: np.where(negative, apart[r], value) for r, value in state.items() if r in apart}
            continue
        memory = memories.setdefault(item.memory, Memory(np.zeros((cases, 32), np.uint32)))
        state.update(zip(item.writes, results(item, memory, [state[r] for r in item.reads], isa), strict=True))


def _entered(loop: Loop, state: Mapping[Register, Words]) -> int:
    """Return the instruction at which a loop is entered, the same in all cases."""
    if loop.entry is None:
        return 0
    (place,) = np.unique(state[loop.entry])
    step, rest = divmod(int(place) - 1, WIDE_BYTES * len(loop.step))
    assert rest == 0
    return loop.begins[step]

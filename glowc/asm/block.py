"""Listings built by calls, over registers that have no place yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from glowc.asm.insn import CORE, FLAGS, FPU, SP, VECTOR, WIDE_BYTES, Either, Insn, Listing, Loop, Register


class Block:
    """Collects instructions; those emitted inside `with b.loop():` are the body of a loop."""

    def __init__(self) -> None:
        self.group = ""
        self._items: list[Insn | Loop | Either] = []
        self._numbers = count()

    def core(self) -> Register:
        """Return a new register of the core."""
        return Register(CORE, next(self._numbers))

    def fpu(self) -> Register:
        """Return a new single-precision register."""
        return Register(FPU, next(self._numbers))

    def vector(self) -> Register:
        """Return a new vector register."""
        return Register(VECTOR, next(self._numbers))

    def listing(self) -> Listing:
        """Return what was emitted."""
        return tuple(self._items)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Collect the body of a loop, which ends with a branch."""
        items, self._items = self._items, []
        yield
        self._items = [*items, Loop(tuple(self._items))]

    @contextmanager
    def loop_of_steps(self, steps: int, entry: Register | None = None) -> Iterator[Iterator[int]]:
        """The same of a loop that has equal steps, whose numbers are given; with an `entry` it begins at one."""
        items, self._items, begins = self._items, [], list[int]()

        def numbers() -> Iterator[int]:
            for number in range(steps):
                begins.append(len(self._items))
                yield number
            begins.append(len(self._items))

        yield numbers()
        step = tuple(item for item in self._items[begins[0] : begins[1]] if isinstance(item, Insn))
        self._items = [*items, Loop(tuple(self._items), step, steps, entry, begins[0])]

    def step_place(self, number: Register, step: Sequence[Insn]) -> Register:
        """Return where the step of that number of the loop with an entry is, for `go_to_step`."""
        size = self.make("mov_imm", imm=(WIDE_BYTES * len(step),))
        place = self.make("mla", number, size, self.make("adr_steps"))
        self.change("add", place, imm=(1,))
        return place

    def go_to_step(self, place: Register) -> None:
        """Append the branch to a step of the loop that comes next."""
        self.emit("bx", (), (place,))

    def either(self, word: Register, body: Callable[[], None], apart: Callable[[], None], least: int = 0) -> None:
        """Append a branch to what is emitted `apart`, where a word is negative, else to the body.

        With a `least` that is where the word is so much or more, without a sign.
        """
        self.emit("cmp_least" if least else "cmp_zero", (FLAGS,), (word,), *([least] if least else []))
        self.emit("bhs" if least else "bmi", (), (FLAGS,))
        items, ways = self._items, []
        for way in (body, apart):
            self._items = []
            way()
            ways.append(tuple(item for item in self._items if isinstance(item, Insn)))
        self._items = [*items, Either(*ways)]

    def emit(
        self, op: str, writes: Sequence[Register], reads: Sequence[Register], *immediates: int, memory: str = ""
    ) -> None:
        """Append an instruction."""
        self._items.append(Insn(op, tuple(writes), tuple(reads), immediates, memory, self.group))

    def make(self, op: str, *reads: Register, imm: Sequence[int] = ()) -> Register:
        """Append an instruction whose result is a new register of the core."""
        to = self.core()
        self.emit(op, (to,), reads, *imm)
        return to

    def change(self, op: str, target: Register, *others: Register, imm: Sequence[int] = ()) -> None:
        """Append an instruction that changes a register, which it reads first."""
        self.emit(op, (target,), (target, *others), *imm)

    def change_last(self, op: str, target: Register, *others: Register) -> None:
        """Append an instruction that changes a register, which it reads last."""
        self.emit(op, (target,), (*others, target))

    def load(self, base: Register, offset: int, memory: str) -> Register:
        """Return the word at a distance from a base."""
        to = self.core()
        self.emit("ldr", (to,), (base,), offset, memory=memory)
        return to

    def load_list(self, base: Register, number: int, memory: str, *, fpu: bool = False) -> list[Register]:
        """Return words one after the other, past which the base moves."""
        to = [self.fpu() if fpu else self.core() for _ in range(number)]
        self.emit("vldm" if fpu else "ldm", (*to, base), (base,), number, memory=memory)
        return to

    def keep(self, word: Register, slot: int) -> None:
        """Store a word in the stack's frame."""
        self.emit("str", (), (word, SP), 4 * slot, memory=f"slot {slot}")

    def kept(self, slot: int) -> Register:
        """Return a word of the stack's frame."""
        return self.load(SP, 4 * slot, f"slot {slot}")

    def to_fpu(self, *words: Register) -> tuple[Register, ...]:
        """Return one or two words in registers of the FPU that follow each other."""
        to = tuple(self.fpu() for _ in words)
        self.emit("vmov" if len(words) == 1 else "vmov_pair", to, words)
        return to

    def from_fpu(self, *words: Register) -> tuple[Register, ...]:
        """Return one or two words of the FPU, two of registers that follow each other, in registers of the core."""
        to = tuple(self.core() for _ in words)
        self.emit("vmov" if len(words) == 1 else "vmov_pair", to, words)
        return to

    def repeat_until(self, place: Register, end: Register) -> None:
        """Append the branch of a loop that ends where two words are equal."""
        self.emit("cmp", (FLAGS,), (place, end))
        self.emit("bne", (), (FLAGS,))

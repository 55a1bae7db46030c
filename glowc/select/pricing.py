"""What a choice of variants takes: predicted cycles, and bytes of code with the functions that calls share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from glowc.codegen.headers import reached
from glowc.codegen.kernels import Helpers, Identity, args_struct, identity, render_function
from glowc.codegen.view import Family, family, headers_of, literal_families, literal_kernels
from glowc.graph.scope import once
from glowc.kernels.features import work_of
from glowc.program.ir import Instr, Program
from glowc.select.candidates import Layer, Tuned
from glowc.select.code import way_of
from glowc.select.cost import Cost, Costs

_DOUBT = 3  # times what is guessed of a kernel that was never measured, where it would replace another one
MOST_INSNS = 1.25  # times those of another variant: chips with a CPU differ in what they wait for, not in what they run

Modes = Callable[[Instr], str]
"""How a call is printed: one of MODES."""


def likely_modes(layers: Sequence[Layer], opt: str) -> Modes:
    """Return how calls are printed if all layers that could have a variant have it."""
    shapes: dict[Family, set[Identity]] = {}
    for form in (form for layer in layers for form in layer.forms):
        shapes.setdefault(family(form), set()).add(identity(form, literal=True))
    literal = literal_families(shapes, opt)
    return lambda instr: "size" if opt == "size" else "literal" if family(instr) in literal else "shared"


def modes_of(program: Program, opt: str) -> list[tuple[Instr, str]]:
    """Return the calls of a program, each with the way in which its kernel is printed."""
    literal = literal_kernels(program, opt)
    instrs = [i for i in program.instrs if not i.is_marker]
    return [(i, "size" if opt == "size" else "literal" if family(i) in literal else "shared") for i in instrs]


def cost_of(costs: Costs, tuned: Tuned, instr: Instr, mode: str) -> Cost | None:
    """Return what a call takes as measured, else as predicted."""
    found = tuned.get(instr.name, {}).get(instr.variant)
    return costs.predict(instr, mode) if found is None else found


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """What instructions with the same numbers share code by; `instr` is the first of them that was met."""

    instr: Instr
    family: Family
    literal: Identity
    shared: Identity


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one instruction with one variant: predicted cycles, and its code.

    `guess` are the cycles also of a kernel that was not measured.
    """

    cycles: int
    guess: int
    code: Code


class Pricing:
    """Predicts cycles and code of a choice of variants; what was found out once is remembered."""

    def __init__(
        self, costs: Costs, tuned: Tuned, opt: str, mode_of: Modes, fastest: Mapping[str, Instr] | None = None
    ) -> None:  # fmt: skip
        self.costs, self.tuned, self.opt, self.mode_of = costs, tuned, opt, mode_of
        self._fastest = fastest or {}
        self._facts: dict[int, tuple[Instr, Facts]] = {}
        self._taken: dict[object, tuple[int, int]] = {}  # cycles and guesses, by all that they follow from
        self._of_instr: dict[int, tuple[Instr, Code]] = {}
        self._known: dict[Identity, Code] = {}
        self._pieces: dict[tuple[Identity, int], Mapping[str, float]] = {}
        self._prints: dict[Identity, _Print] = {}
        self._codes: dict[object, float] = {}

    def facts(self, instr: Instr) -> Facts:
        """Return what is known of an instruction."""
        if id(instr) not in self._facts:
            code, fastest = self._code(instr), self._fastest.get(instr.name)
            best = fastest and (self._code(fastest), work_of(fastest))
            key = code, work_of(instr), best, instr.name if instr.name in self.tuned else ""
            if key not in self._taken:
                cycles = self._cycles(instr)
                self._taken[key] = cycles, cycles or _DOUBT * self.costs.stated(instr).cycles
            self._facts[id(instr)] = instr, Facts(*self._taken[key], code)
        return self._facts[id(instr)][1]

    def _code(self, instr: Instr) -> Code:
        if id(instr) not in self._of_instr:
            literal = identity(instr, literal=True)
            if literal not in self._known:
                self._known[literal] = Code(instr, family(instr), literal, identity(instr, literal=False))
            self._of_instr[id(instr)] = instr, self._known[literal]
        return self._of_instr[id(instr)][1]

    def _cycles(self, instr: Instr) -> int:
        """Return the cycles of a call, 0 where nothing is known; many more instructions than the fastest count too."""
        cost, best = (
            None if i is None else cost_of(self.costs, self.tuned, i, self.mode_of(i))
            for i in (instr, self._fastest.get(instr.name))
        )
        if cost is None or best is None or best.insns == 0:
            return 0 if cost is None else cost.cycles
        return max(cost.cycles, round(best.cycles * cost.insns / (MOST_INSNS * best.insns)))

    def trusts(self, instr: Instr) -> bool:
        """Say whether the cycles of a call are known well enough to weigh bytes against them."""
        fit = self.costs.fit(instr, self.mode_of(instr))
        return instr.variant in self.tuned.get(instr.name, {}) or (fit is not None and fit.trusted)

    def code(self, instrs: Sequence[Instr]) -> float:
        """Return the predicted bytes of code of a program of these instructions."""
        return self.code_of([self._code(i) for i in instrs], len(instrs))

    def code_of(self, codes: Iterable[Code], count: int) -> float:
        """Return the predicted bytes of code of so many calls, which have these codes."""
        key = count, tuple(dict.fromkeys(codes))
        if key not in self._codes:
            self._codes[key] = self._bytes(*key)
        return self._codes[key]

    def _bytes(self, count: int, codes: Sequence[Code]) -> float:
        shapes: dict[Family, set[Identity]] = {}
        for code in codes:
            shapes.setdefault(code.family, set()).add(code.literal)
        literal = literal_families(shapes, self.opt)
        printed = [(code.literal if code.family in literal else code.shared, code) for code in codes]
        calls = Counter(self._print(*found).function for found in printed)
        pieces: dict[str, float] = {}
        merged: dict[str, set[str]] = {name: set() for name in self.costs.code.merged}
        for key, code in printed:
            function = self._print(key, code).function
            for piece, size in self._taken_by(code, key, constant=calls[function] == 1).items():
                pieces[piece] = max(pieces.get(piece, 0.0), size)
                if piece in merged:
                    merged[piece].add(function)
        for name, users in merged.items():
            if len(users) == 1:
                pieces[name] *= self.costs.code.merged[name]
        return sum(pieces.values()) + self.costs.code.besides(count, self.opt)

    def _taken_by(self, code: Code, key: Identity, *, constant: bool) -> Mapping[str, float]:
        """Return the predicted bytes of what others may have as well, by texts and names.

        That is a function, each of its helpers, and the functions of the runtime. Numbers that all calls share are
        `constant` to the compiler as if they were printed.
        """
        way = way_of(self.opt, literal=constant)
        if (key, way) not in self._pieces:
            lines, leads = self._print(key, code).lines, self._print(key, code).leads
            taken = self.costs.text(code.instr, way, sum(lines.values())) / sum(lines.values())
            called = self.costs.code.called(leads, way)
            self._pieces[key, way] = {**{text: count * taken for text, count in lines.items()}, **called}
        return self._pieces[key, way]

    def _print(self, key: Identity, code: Code) -> _Print:
        if key not in self._prints:
            self._prints[key] = _printed((code, key))
        return self._prints[key]


@dataclass(frozen=True, slots=True)
class _Print:
    """A function in C; the lines of it and of each of its helpers by their text, and what these lead to."""

    function: str
    lines: Mapping[str, int]
    leads: frozenset[str]


def _identity(printed: tuple[Code, Identity]) -> Identity:
    return printed[1]


@once(_identity)
def _printed(printed: tuple[Code, Identity]) -> _Print:
    """Return the function of code as one of its identities."""
    code, key = printed
    helpers, struct = Helpers(), None if key == code.literal else args_struct(code.instr, "args_t")
    function = render_function(code.instr, "fn", helpers, "fn", struct)
    texts = (function, *helpers.take_apart()[0].values())
    leads = reached("\n".join(texts), headers_of([code.instr]))
    return _Print(function, {text: count_lines(text) for text in texts}, leads)


def count_lines(code: str) -> int:
    """Return the lines of C that are not empty."""
    return sum(bool(line.strip()) for line in code.splitlines())

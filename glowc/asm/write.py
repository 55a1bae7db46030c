"""Listings whose registers have places -> an assembly statement in C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from glowc.asm.insn import FPU, WIDE_BYTES, Either, Insn, Listing, Loop, instructions
from glowc.asm.isa import ISA, Row

_WIDE = 110  # columns
_INDENT = 6 * " "
_STEPS = 6  # the label of the steps of a loop with an entry
_SAVED_FPU = 16  # the first of the registers of the FPU that a function saves
_HIGH, _BYTE = 8, 256  # of registers and numbers that short instructions cannot name
_SHORT = {"add": "adds", "add_two": "adds_two", "sub": "subs", "mov_imm": "movs"}


def text(insn: Insn, label: int = 0, isa: Mapping[str, Row] = ISA) -> str:
    """Return an instruction as the assembler reads it; `label` is that of the loop which a branch repeats."""
    names = {f"w{k}": r for k, r in enumerate(insn.writes)} | {f"r{k}": r for k, r in enumerate(insn.reads)}
    values = {f"i{k}": v for k, v in enumerate(insn.immediates)}
    listed, stored = (", ".join(map(str, some[:-1])) for some in (insn.writes, insn.reads))
    line = isa[insn.op].text.format(**names, **values, list=listed, stored=stored, label=label)
    return line.removesuffix(", ror #0").removesuffix(", lsr #0")


def short(listing: Listing) -> Listing:
    """Return a listing, in which nothing is between a comparison and its branch, with instructions that set flags, too,
    where these are shorter.
    """

    def of(item: Insn | Loop | Either) -> Insn | Loop | Either:
        if isinstance(item, Loop):
            return replace(item, body=short(item.body))
        if isinstance(item, Either):
            return Either(*(tuple(_short(insn) for insn in way) for way in (item.body, item.apart)))
        return _short(item)

    return tuple(of(item) for item in listing)


def _short(insn: Insn) -> Insn:
    low = all(r.number < _HIGH for r in (*insn.writes, *insn.reads))
    fits = low and insn.op in _SHORT and all(0 <= i < _BYTE for i in insn.immediates)
    same = insn.op != "add" or insn.reads == insn.writes
    return replace(insn, op=_SHORT[insn.op]) if fits and same else insn


def statement(listing: Listing, frame_bytes: int) -> str:
    """Return the statement of a naked function that saves what it changes and may have a frame on the stack."""
    frame = [f"{op} sp, sp, #{frame_bytes}" for op in ("sub", "add") if frame_bytes]
    last = max((r.number for i in instructions(listing) for r in i.writes if r.bank == FPU), default=0)
    saved = ", ".join(f"s{number}" for number in range(_SAVED_FPU, last + 1))
    save, restore = ([f"v{op} {{{saved}}}"] if saved else [] for op in ("push", "pop"))
    head = [".syntax unified", "push {r4-r11, lr}", *save, *frame[:1]]
    tail = [*frame[1:], *restore, "pop {r4-r11, pc}"]
    apart = [line for way in _apart(listing) for line in (quoted(["9:"]), *_lines(way, 1), quoted(["b.w 8b"]))]
    rows = [quoted(head), *_lines(listing, 1), quoted(tail), *apart]
    return "  __asm__ volatile(\n" + "".join(f"{_INDENT}{row}\n" for row in rows)[:-1] + ");\n"


def _apart(listing: Listing) -> Iterator[Listing]:
    """Yield what a listing has apart."""
    for item in listing:
        if isinstance(item, Loop):
            yield from _apart(item.body)
        elif isinstance(item, Either):
            yield item.apart


def quoted(rows: Iterable[str]) -> str:
    """Return lines of assembly as strings of C."""
    return _filled((f'"{row}\\n"' for row in rows), "")


def rows_of(insns: Iterable[Insn], isa: Mapping[str, Row]) -> list[str]:
    """Return instructions as lines of strings of C."""
    return _rows((f'"{text(insn, isa=isa)}\\n"' for insn in insns), "")


def _filled(pieces: Iterable[str], indent: str) -> str:
    """Return pieces side by side, in as many lines as they fill."""
    return f"\n{_INDENT}".join(_rows(pieces, indent))


def _rows(pieces: Iterable[str], indent: str) -> list[str]:
    rows = [""]
    for piece in pieces:
        if len(rows[-1]) + len(piece) >= _WIDE:
            rows.append(indent)
        rows[-1] += f" {piece}" if rows[-1].strip() else piece
    return rows


def _lines(listing: Listing, label: int) -> Iterator[str]:
    """Yield lines of C: comments say what groups are for; a step of a loop is told before it is ordered."""
    run: list[str] = []
    group = ""
    for item in listing:
        if isinstance(item, Insn):
            if item.group != group and not run:
                yield f"/* {item.group} */"
            group = item.group
            run.append(text(item, label - 1))
            continue
        if run:
            yield quoted(run)
        run, group = [], ""
        if isinstance(item, Either):
            yield from _lines(item.body, label)
            yield quoted(["8:"])
            continue
        if item.step:
            words = f"{item.steps} times, one into the other: {'; '.join(map(text, item.step))}".split()
            yield _filled(["/*", f"{item.step[0].group},", *words, "*/"], "   ")
        yield quoted([".balign 4", f"{label}:"])
        if item.entry is None:
            yield from _lines(item.body, label + 1)
            continue
        begin, end = item.before, item.begins.stop
        yield from _lines(item.body[:begin], label + 1)
        yield quoted([f"{_STEPS}:"])
        yield from _lines(item.body[begin:end], label + 1)
        yield f'GLOW_DSP_CODE_BYTES("{_STEPS}", "{WIDE_BYTES * (end - begin)}")'
        yield from _lines(item.body[end:], label + 1)
    if run:
        yield quoted(run)

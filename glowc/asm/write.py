"""Listings whose registers have places -> an assembly statement in C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from glowc.asm.insn import Either, Insn, Listing, Loop
from glowc.asm.isa import ISA

_WIDE = 110  # columns
_INDENT = 6 * " "
_HIGH, _BYTE = 8, 256  # of registers and numbers that short instructions cannot name
_SHORT = {"add": "adds", "add_two": "adds_two", "sub": "subs", "mov_imm": "movs"}


def text(insn: Insn, label: int = 0) -> str:
    """Return an instruction as the assembler reads it; `label` is that of the loop which a branch repeats."""
    names = {f"w{k}": r for k, r in enumerate(insn.writes)} | {f"r{k}": r for k, r in enumerate(insn.reads)}
    values = {f"i{k}": v for k, v in enumerate(insn.immediates)}
    listed = ", ".join(map(str, insn.writes[:-1]))
    return ISA[insn.op].text.format(**names, **values, list=listed, label=label).removesuffix(", ror #0")


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
    head = [".syntax unified", "push {r4-r11, lr}", *frame[:1]]
    tail = [*frame[1:], "pop {r4-r11, pc}"]
    apart = [line for way in _apart(listing) for line in (_quoted(["9:"]), *_lines(way, 1), _quoted(["b.w 8b"]))]
    rows = [_quoted(head), *_lines(listing, 1), _quoted(tail), *apart]
    return "  __asm__ volatile(\n" + "".join(f"{_INDENT}{row}\n" for row in rows)[:-1] + ");\n"


def _apart(listing: Listing) -> Iterator[Listing]:
    """Yield what a listing has apart."""
    for item in listing:
        if isinstance(item, Loop):
            yield from _apart(item.body)
        elif isinstance(item, Either):
            yield item.apart


def _quoted(rows: Iterable[str]) -> str:
    """Return lines of assembly as strings of C."""
    return _filled((f'"{row}\\n"' for row in rows), "")


def _filled(pieces: Iterable[str], indent: str) -> str:
    """Return pieces side by side, in as many lines as they fill."""
    rows = [""]
    for piece in pieces:
        if len(rows[-1]) + len(piece) >= _WIDE:
            rows.append(indent)
        rows[-1] += f" {piece}" if rows[-1].strip() else piece
    return f"\n{_INDENT}".join(rows)


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
            yield _quoted(run)
        run, group = [], ""
        if isinstance(item, Either):
            yield from _lines(item.body, label)
            yield _quoted(["8:"])
            continue
        if item.step:
            words = f"{item.steps} times, one into the other: {'; '.join(map(text, item.step))}".split()
            yield _filled(["/*", f"{item.step[0].group},", *words, "*/"], "   ")
        yield _quoted([".balign 4", f"{label}:"])
        yield from _lines(item.body, label + 1)
    if run:
        yield _quoted(run)

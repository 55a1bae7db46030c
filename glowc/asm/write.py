"""Listings whose registers have places -> an assembly statement in C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from glowc.asm.insn import Insn, Listing
from glowc.asm.isa import ISA

_WIDE = 110  # columns
_INDENT = 6 * " "


def text(insn: Insn, label: int = 0) -> str:
    """Return an instruction as the assembler reads it; `label` is that of the loop which a branch repeats."""
    names = {f"w{k}": r for k, r in enumerate(insn.writes)} | {f"r{k}": r for k, r in enumerate(insn.reads)}
    values = {f"i{k}": v for k, v in enumerate(insn.immediates)}
    listed = ", ".join(map(str, insn.writes[:-1]))
    return ISA[insn.op].text.format(**names, **values, list=listed, label=label).removesuffix(", ror #0")


def statement(listing: Listing, frame_bytes: int) -> str:
    """Return the statement of a naked function that saves what it changes and may have a frame on the stack."""
    frame = [f"{op} sp, sp, #{frame_bytes}" for op in ("sub", "add") if frame_bytes]
    head = [".syntax unified", "push {r4-r11, lr}", *frame[:1]]
    tail = [*frame[1:], "pop {r4-r11, pc}"]
    rows = [_quoted(head), *_lines(listing, 1), _quoted(tail)]
    return "  __asm__ volatile(\n" + "".join(f"{_INDENT}{row}\n" for row in rows)[:-1] + ");\n"


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
        if item.step:
            words = f"{item.steps} times, one into the other: {'; '.join(map(text, item.step))}".split()
            yield _filled(["/*", f"{item.step[0].group},", *words, "*/"], "   ")
        yield _quoted([".balign 4", f"{label}:"])
        yield from _lines(item.body, label + 1)
    if run:
        yield _quoted(run)

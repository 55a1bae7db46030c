"""Folded text of functions -> the same without the variables of which folding took the last use.

A declaration whose initialiser has no effects goes; another one, and a parameter, gets `(void)name;` after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from glowc.codegen.c_source import Function, Source, Statement, functions

_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_READS = re.compile(r"sizeof|glow_(?:load|twice|four)\w*")  # functions without effects
Edit = tuple[int, int, str]


def without_unused(before: Source, text: str) -> str:
    """Return `text`, made of `before`, without what lost its use."""
    while True:
        after = Source(text)
        lost = {name for name in Counter(before.tokens) - Counter(after.tokens) if name.isidentifier()}
        edits = sorted({edit for f in functions(after) for edit in _edits(after, f, lost)}) if lost else []
        if not edits:
            return text
        text = _applied(text, edits)


def _applied(text: str, edits: list[Edit]) -> str:
    out, done = [], 0
    for begin, end, new in edits:
        out += [text[done:begin], new]
        done = max(done, end)
    return "".join(out) + text[done:]


def _edits(source: Source, function: Function, lost: set[str]) -> Iterator[Edit]:
    body = function.body
    for name in function.parameters:
        if name in lost and not _uses(source, name, body.begin, body.end):
            yield source.ends[body.begin], source.ends[body.begin], f"\n  (void){name};"
    for block in _blocks(body):
        for child in block.children:
            for name in child.names or ():
                if child.kind == "simple" and name in lost:
                    yield from _declared(source, block, child, name)


def _uses(source: Source, name: str, begin: int, end: int) -> list[int]:
    """Return the tokens from `begin` to `end` that are a variable of that name, not a member."""
    return [i for i in range(begin, end) if source.tokens[i] == name and source.at(i - 1) not in (".", "->")]


def _blocks(s: Statement) -> Iterator[Statement]:
    if s.kind == "block":
        yield s
    for child in s.children:
        yield from _blocks(child)


def _declared(source: Source, block: Statement, child: Statement, name: str) -> Iterator[Edit]:
    """Yield what becomes of a declaration of a block that lost a use."""
    uses = _uses(source, name, child.end, block.end)
    writes = {s.begin: s for b in _blocks(block) for s in b.children if _writes(source, s, name)}
    if not set(uses) <= set(writes):
        return
    pure = len(child.names or ()) == 1 and all(_pure(source, s) for s in (child, *writes.values()))
    if pure:
        yield from (_removal(source, s) for s in (child, *writes.values()))
    else:
        yield source.ends[child.end - 1], source.ends[child.end - 1], f"\n(void){name};"


def _writes(source: Source, s: Statement, name: str) -> bool:
    """Say whether a statement does nothing but write to a variable."""
    return s.kind == "simple" and source.tokens[s.begin] == name and source.at(s.begin + 1) in _ASSIGN


def _pure(source: Source, s: Statement) -> bool:
    """Say whether a declaration or an assignment has no effect but that on its variable."""
    tokens = source.tokens[s.begin : s.end]
    effects = sum(token in _ASSIGN for token in tokens)
    called = (a for a, b in pairwise(tokens) if b == "(" and a.isidentifier())
    calls = any(not _READS.fullmatch(name) for name in called)
    return effects <= 1 and not calls and "static" not in tokens


def _removal(source: Source, s: Statement) -> Edit:
    """Return the edit that takes a statement and the spaces before it, and its comment, away."""
    return source.ends[s.begin - 1], source.ends[s.end - 1], ""

"""Text of a kernel's function -> the same without what its literals decide: conditions, branches, loops that never run.

Variables that nothing reads any more go too, so that compilers do not warn. Text that is not understood, assembly,
comments and preprocessor lines stay as they are, and all text that has a volatile object: each of its reads is one to
the device, whatever the value is for. Machine code is the same: `make disasm-diff` shows it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from glowc.codegen.c_exprs import Expr, Reader
from glowc.codegen.c_source import Function, Source, Statement, UnreadableError, functions, is_type
from glowc.codegen.unused import without_unused

_NUM = r"(?<![\w.])\d+[uU]?(?![\w.])"
# Where a rule of c_exprs may apply; what this misses stays as it is.
_CANDIDATE = re.compile(
    rf"""{_NUM}[)\s]*(?:[-+*/%<>?]|[=!<>]=|&&|\|\|)[\s(]*-?{_NUM}
    | (?:[-+|^]|<<|>>)=?\s*0[uU]?(?![\w.])
    | [*/%]\s*[01][uU]?(?![\w.])
    | (?<![\w.])(?:0[uU]?\s*[+*&|^]|1[uU]?\s*\*)
    | \(-?\d+[uU]?\)
    | {_NUM}\s*(?:\?|&&|\|\|) | (?:!|&&|\|\|)\s*{_NUM}""",
    re.VERBOSE,
)
_LOOP = re.compile(r"=\s*(-?\d+);\s*\w+\s*<\s*(-?\d+);")
_CONSTANT = re.compile(r"const (?:int|int32_t) (\w+) = (-?\d+)")
_INIT = re.compile(r"\w+ (\w+) = (-?\d+)")
_BOUND = re.compile(r"(\w+) < (-?\d+)")
_NOTE = re.compile(r"[ \t]*(?:/\*.*?\*/|//[^\n]*)[ \t]*(?=\n)")
_VOLATILE = re.compile(r"(?<!asm )(?<!asm__ )\bvolatile\b")
_ASM = ("asm", "__asm", "__asm__")


def fold(text: str, fields: Mapping[str, str] | None = None) -> str:
    """Return the text of functions with their literals folded; `fields` are C types of `p->name` and the like."""
    places = sorted([
        *(match.start() for match in _CANDIDATE.finditer(text)),
        *(match.start() for match in _LOOP.finditer(text) if int(match[1]) >= int(match[2])),
    ])  # fmt: skip
    if not places or _VOLATILE.search(text):
        return text
    try:
        source = Source(text)
        folded = "".join(_pieces(source, places, fields or {}))
        return without_unused(source, folded)
    except UnreadableError:
        return text


def _pieces(source: Source, places: list[int], fields: Mapping[str, str]) -> list[str]:
    pieces, done = [], 0
    for function in functions(source):
        begin, end = source.starts[function.body.begin], source.ends[function.body.end - 1]
        pieces += [source.text[done:begin], _Folder(source, function, places, fields).block(function.body)]
        done = end
    return [*pieces, source.text[done:]]


def _loops(s: Statement) -> bool:
    return s.kind in ("for", "while") or any(map(_loops, s.children))


@dataclass(slots=True)
class _Folder:
    """Prints the statements of one function."""

    source: Source
    function: Function
    places: list[int]
    fields: Mapping[str, str]
    reader: Reader = field(init=False)
    judge: Reader = field(init=False)  # what it reads is not printed

    def __post_init__(self) -> None:
        types = {**self.function.types, **self.fields}
        self.judge = Reader(self.source, types)
        self.reader = Reader(self.source, types, judge=self.judge)

    def block(self, block: Statement) -> str:
        """Return a block in braces."""
        return "{" + self._items(block) + "}"

    def _items(self, block: Statement) -> str:
        """Return what stands between a block's braces."""
        out = ""
        dropped = False
        for child in block.children:
            text = self._item(child, block)
            out += self._lead(child.begin, dropped) + text if text is not None else ""
            dropped = text is None
        return out + self._lead(block.end - 1, dropped)

    def _lead(self, i: int, dropped: bool) -> str:
        """Return what stands before token `i`; without the comment that ends the line of a dropped statement."""
        lead = self.source.gap(i)
        return _NOTE.sub("", lead, count=1) if dropped and _NOTE.match(lead) else lead

    def _item(self, child: Statement, block: Statement) -> str | None:
        """Return a statement of a block, nothing where it has no effect; a block that always runs loses its braces."""
        taken = self._taken(child)
        if taken is None:
            return None
        if taken is not child and taken.kind == "block" and self._can_join(taken, child, block):
            return self._items(taken).strip() or None
        return self._print(taken)

    def _taken(self, s: Statement) -> Statement | None:
        """Return what of a statement runs: of an if with a literal condition its branch."""
        if not self._may_fold(s.begin, s.head[1]) or self._has_directive(s):
            return s
        if s.kind == "if":
            value = self._whole(*s.head, self.judge).value
            if value is not None and not self._breaks_ties(s, bool(value)):
                rest = s.children[:1] if value else s.children[1:]
                return self._taken(rest[0]) if rest else None
        if s.kind == "while" and self._whole(*s.head, self.judge).value == 0:
            return None
        return None if s.kind == "for" and self._never_runs(s) else s

    def _breaks_ties(self, s: Statement, value: bool) -> bool:
        """Say whether gcc's code for what runs hangs on what does not: where one of several branches is dead and loops.

        gcc 12 chooses between `a < b` and `b > a` by numbers that labels of dead loops take part in; seen on Cortex-A.
        """
        dead = s.children[1:] if value else s.children[:1]
        return len(s.children) > 1 and any(map(_loops, dead))

    def _can_join(self, inner: Statement, child: Statement, block: Statement) -> bool:
        """Say whether the names that a block declares mean nothing else in the block around it."""
        tokens = self.source.tokens
        for statement in inner.children:
            if statement.kind == "simple" and statement.names is None:
                return False
            names = statement.names if statement.kind == "simple" else ()
            for name in names or ():
                if name in tokens[block.begin : child.begin] or name in tokens[child.end : block.end]:
                    return False
        return True

    def _has_directive(self, s: Statement) -> bool:
        return "#" in self.source.text and any(self.source.gap(i).find("#") >= 0 for i in range(s.begin, s.end + 1))

    def _may_fold(self, begin: int, end: int) -> bool:
        """Say whether a rule may apply to tokens [begin, end)."""
        if begin >= end:
            return False
        first = bisect_left(self.places, self.source.starts[begin])
        return first < len(self.places) and self.places[first] < self.source.ends[end - 1]

    def _print(self, s: Statement) -> str:
        if not self._may_fold(s.begin, s.end):
            return self.source.span(s.begin, s.end)
        if s.kind == "block":
            return self.block(s)
        if s.kind == "if":
            return self._if(s)
        if s.kind in ("for", "while"):
            head = self._before(s.begin, s.head[0]) + self._head(s) + self._behind(s.head[1])
            return head + self._body(s.children[0])
        return self._simple(s)

    def _before(self, begin: int, end: int) -> str:
        """Return the text from token `begin` up to token `end`."""
        return self.source.text[self.source.starts[begin] : self.source.starts[end]]

    def _behind(self, i: int) -> str:
        """Return the closing parenthesis `i` of a head, with the spaces around it."""
        return self.source.gap(i) + self.source.tokens[i] + self.source.gap(i + 1)

    def _body(self, s: Statement) -> str:
        taken = self._taken(s)
        return "{}" if taken is None else self._print(taken)

    def _if(self, s: Statement) -> str:
        then = s.children[0]
        condition = self._whole(*s.head)
        head = condition.text if condition.value is None else self.source.span(*s.head)  # a number says less
        text = self._before(s.begin, s.head[0]) + head + self._behind(s.head[1]) + self._body(then)
        other = self._taken(s.children[1]) if len(s.children) > 1 else None
        if other is None:
            return text
        return (
            text
            + self.source.text[self.source.ends[then.end - 1] : self.source.starts[s.children[1].begin]]
            + (self._print(other))
        )

    def _parts(self, s: Statement) -> list[tuple[int, int]]:
        """Return the three parts of a for's head."""
        parts, begin, i = [], s.head[0], s.head[0]
        while i < s.head[1]:
            if self.source.tokens[i] == ";":
                parts.append((begin, i))
                begin = i + 1
            i = self.source.closing.get(i, i) + 1
        return [*parts, (begin, s.head[1])]

    def _head(self, s: Statement) -> str:
        if s.kind == "while":
            return self._whole(*s.head).text
        texts: list[str] = []
        for begin, end in self._parts(s):
            lead = self.source.gap(begin) if texts and begin < end else ""
            texts.append(lead + self._clause(begin, end))
        return ";".join(texts)

    def _clause(self, begin: int, end: int, reader: Reader | None = None) -> str:
        if begin < end and is_type(self.source.tokens[begin]):
            return self._declaration(begin, end, reader)
        return self._whole(begin, end, reader).text if begin < end else ""

    def _never_runs(self, s: Statement) -> bool:
        init, bound, _ = (self._clause(*part, self.judge) for part in self._parts(s))
        if bound == "0":
            return not init or bool(s.names)
        first, last = _INIT.fullmatch(init), _BOUND.fullmatch(bound)
        return bool(first and last and first[1] == last[1] and int(first[2]) >= int(last[2]))

    def _whole(self, begin: int, end: int, reader: Reader | None = None) -> Expr:
        if self._may_fold(begin, end):
            try:
                return (reader or self.reader).whole(begin, end)
            except UnreadableError:
                pass
        return Expr(self.source.span(begin, end))

    def _simple(self, s: Statement) -> str:
        first = self.source.tokens[s.begin]
        if first in _ASM or s.names is None or s.end - s.begin < 3:
            return self.source.span(s.begin, s.end)
        if s.names:
            text = self._declaration(s.begin, s.end - 1)
            self._learn(text)
            return text + self.source.gap(s.end - 1) + ";"
        begin = s.begin + (first == "return")
        return self._before(s.begin, begin) + self._whole(begin, s.end - 1).text + self.source.gap(s.end - 1) + ";"

    def _learn(self, declaration: str) -> None:
        """Note the value of a constant: conditions that it decides may fold, too."""
        found = _CONSTANT.fullmatch(declaration)
        if found and found[1] not in self.function.again and abs(int(found[2])) < 2**31:
            self.judge.known[found[1]] = int(found[2])
            uses = (i for i, token in enumerate(self.source.tokens) if token == found[1])
            self.places = sorted([*self.places, *(self.source.starts[i] for i in uses)])

    def _declaration(self, begin: int, end: int, reader: Reader | None = None) -> str:
        """Return a declaration with its array bounds and initialisers folded."""
        try:
            return self._declarators(begin, end, reader or self.reader)
        except UnreadableError:
            return self.source.span(begin, end)

    def _declarators(self, begin: int, end: int, reader: Reader) -> str:
        out, i = "", begin
        while i < end:
            token = self.source.tokens[i]
            out += (self.source.gap(i) if i > begin else "") + token
            i += 1
            if token == "=":
                out += self.source.gap(i)
                reader.at = i
                out += reader.value().text
                i = reader.at
            elif token == "[" and self.source.tokens[i] != "]":
                out += self.source.gap(i) + self._whole(i, self.source.closing[i - 1]).text
                i = self.source.closing[i - 1]
        return out

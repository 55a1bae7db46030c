"""Text of a C function -> tokens and statements: as much of C's grammar as kernels are printed in.

`Source` is the text with the place of every token; `functions` finds bodies in it and what they declare. Text that this
grammar does not know raises UnreadableError: whoever asked leaves it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:(?:/\*.*?\*/|//[^\n]*|\#(?:\\\n|[^\n])*)\s*)*   # spaces, comments, preprocessor lines
    ( [A-Za-z_]\w*
    | \.?\d(?:[eEpP][+-]|[\w.])*
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | <<= | >>= | \.\.\. | -> | \+\+ | -- | << | >> | && | \|\| | [-+*/%&|^<>=!]=
    | [-+*/%&|^~!<>=?:;,.(){}\[\]] )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*(?:(?:/\*.*?\*/|//[^\n]*|\#(?:\\\n|[^\n])*)\s*)*\Z", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MAY_BE_UNUSED = "GLOW_DSP_UNUSED"  # before parameters of a function of assembly, which does not name them
_QUALIFIERS = frozenset({"const", "restrict", "static", "volatile", "register"})

# Types as the rules of folding see them: i signed with 32 bits, n narrower (promoted to i), u unsigned with 32, l and m
# signed and unsigned with 64, z size_t, f floating point, ? unknown; * after it for a pointer. Others: their own name.
UNKNOWN = "?"
_TYPES = {
    "int": "i", "int32_t": "i", "unsigned": "u", "uint32_t": "u", "int64_t": "l", "uint64_t": "m", "size_t": "z",
    "uintptr_t": "z", "float": "f", "double": "f", "float32_t": "f", "char": "n", "int8_t": "n", "uint8_t": "n",
    "int16_t": "n", "uint16_t": "n", "void": UNKNOWN, "long": UNKNOWN, "short": UNKNOWN, "signed": UNKNOWN,
    "struct": UNKNOWN, "union": UNKNOWN, "enum": UNKNOWN, "_Bool": UNKNOWN, "bool": UNKNOWN, "ptrdiff_t": UNKNOWN,
    "intptr_t": UNKNOWN,
}  # fmt: skip


class UnreadableError(Exception):
    """Text outside of the grammar that this module reads."""


class Source:
    """A text, its tokens, and the brackets that belong together."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = list(_TOKEN.finditer(text))
        self.tokens = [match[1] for match in found]
        self.ends = [match.end() for match in found]
        self.starts = [end - len(token) for end, token in zip(self.ends, self.tokens, strict=True)]
        if [match.start() for match in found] != [0, *self.ends][: len(found)] or not _SPACE.match(text, self.end):
            raise UnreadableError
        self.closing = self._pairs()

    @property
    def end(self) -> int:
        """Where the last token ends."""
        return self.ends[-1] if self.ends else 0

    def _pairs(self) -> dict[int, int]:
        pairs: dict[int, int] = {}
        waiting: list[int] = []
        for i, token in enumerate(self.tokens):
            if token in _CLOSING:
                waiting.append(i)
            elif token in (")", "]", "}"):
                if not waiting or _CLOSING[self.tokens[waiting[-1]]] != token:
                    raise UnreadableError
                pairs[waiting.pop()] = i
        if waiting:
            raise UnreadableError
        return pairs

    def __len__(self) -> int:
        return len(self.tokens)

    def at(self, i: int) -> str:
        """Return token `i`, nothing after the end."""
        return self.tokens[i] if i < len(self.tokens) else ""

    def gap(self, i: int) -> str:
        """Return the spaces and comments before token `i`."""
        return self.text[self.ends[i - 1] if i else 0 : self.starts[i]]

    def span(self, begin: int, end: int) -> str:
        """Return the text of tokens [begin, end)."""
        return self.text[self.starts[begin] : self.ends[end - 1]] if begin < end else ""


@dataclass(frozen=True, slots=True)
class Statement:
    """Tokens [begin, end) of a function; a block's children are its statements, an if's its one or two branches.

    `head` are the tokens between the parentheses of if, for and while; `names` what a declaration declares, None where
    that is not understood.
    """

    kind: str
    begin: int
    end: int
    head: tuple[int, int] = (0, 0)
    children: tuple[Statement, ...] = ()
    names: tuple[str, ...] | None = ()


@dataclass(slots=True)
class Function:
    """A function's parameters, those that it is to use, and body.

    `types` are those of all names that it declares, where they agree; `again` are names that it declares more than
    once.
    """

    parameters: tuple[str, ...] = ()
    body: Statement = field(default_factory=lambda: Statement("simple", 0, 0))
    types: dict[str, str] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)

    def declare(self, name: str, kind: str) -> None:
        """Note the type of a name; names that mean two things are unknown."""
        if name in self.types:
            self.again.add(name)
        self.types[name] = kind if self.types.get(name, kind) == kind else UNKNOWN


def is_type(token: str) -> bool:
    """True for the name of a type and for a qualifier."""
    return token in _TYPES or token in _QUALIFIERS or token.endswith("_t")


def type_of(words: list[str]) -> str:
    """Return the type that words (`const`, `int8_t`, `*`) stand for."""
    names = [w for w in words if w not in _QUALIFIERS and w != "*"]
    base = _TYPES.get(names[0], names[0]) if len(names) == 1 else UNKNOWN
    return base + "*" * words.count("*")


def functions(source: Source) -> Iterator[Function]:
    """Yield the functions that a text defines."""
    i = 0
    while i < len(source):
        if source.tokens[i] == "{" and i and source.tokens[i - 1] == ")":
            function = Function()
            begin = next(k for k, end in source.closing.items() if end == i - 1)
            function.parameters = tuple(_parameters(source, function, begin + 1, i - 1))
            function.body = _Reader(source, function).statement(i)
            yield function
        i = source.closing.get(i, i) + 1


def _parameters(source: Source, function: Function, begin: int, end: int) -> Iterator[str]:
    first = begin
    for i in range(begin, end + 1):
        if i == end or source.tokens[i] == ",":
            if i - first > 1:
                function.declare(source.tokens[i - 1], type_of(source.tokens[first : i - 1]))
                if source.tokens[first] != _MAY_BE_UNUSED:
                    yield source.tokens[i - 1]
            first = i + 1


@dataclass(slots=True)
class _Reader:
    """Reads the statements of one function."""

    source: Source
    function: Function

    def statement(self, i: int) -> Statement:
        """Return the statement that begins at token `i`."""
        token = self.source.at(i)
        if token == "{":
            return self._block(i)
        if token == "if":
            return self._if(i)
        if token in ("for", "while"):
            return self._loop(i)
        if token in ("do", "switch", "case", "default", "goto", "else", "") or self.source.at(i + 1) == ":":
            raise UnreadableError
        end = self._semicolon(i)
        names = self.declaration(i, end) if is_type(token) else ()
        return Statement("simple", i, end + 1, names=names)

    def _block(self, i: int) -> Statement:
        children = []
        end = self.source.closing[i]
        k = i + 1
        while k < end:
            children.append(self.statement(k))
            k = children[-1].end
        return Statement("block", i, end + 1, children=tuple(children))

    def _head(self, i: int) -> tuple[int, int]:
        if self.source.at(i + 1) != "(":
            raise UnreadableError
        return i + 2, self.source.closing[i + 1]

    def _if(self, i: int) -> Statement:
        head = self._head(i)
        then = self.statement(head[1] + 1)
        if self.source.at(then.end) != "else":
            return Statement("if", i, then.end, head, (then,))
        other = self.statement(then.end + 1)
        return Statement("if", i, other.end, head, (then, other))

    def _loop(self, i: int) -> Statement:
        head = self._head(i)
        names: tuple[str, ...] | None = ()
        if is_type(self.source.at(head[0])):
            names = self.declaration(head[0], self._semicolon(head[0]))
        body = self.statement(head[1] + 1)
        return Statement(self.source.at(i), i, body.end, head, (body,), names)

    def _semicolon(self, i: int) -> int:
        while self.source.at(i) != ";":
            if self.source.at(i) in ("", "}"):
                raise UnreadableError
            i = self.source.closing.get(i, i) + 1
        return i

    def declaration(self, begin: int, end: int) -> tuple[str, ...] | None:
        """Return the names that tokens [begin, end) declare and note their types; None when that is not clear."""
        base = begin
        while is_type(self.source.at(base)):
            base += 1
        names: list[str] = []
        i = base
        while i < end:
            name, kind, i = self._declarator(i)
            if not name.isidentifier() or self.source.at(i) not in ("=", ",", ";"):
                return None
            names.append(name)
            self.function.declare(name, type_of(self.source.tokens[begin:base] + kind))
            while i < end and self.source.at(i) != ",":
                i = self.source.closing.get(i, i) + 1
            i += 1
        return tuple(names)

    def _declarator(self, i: int) -> tuple[str, list[str], int]:
        """Return the name that is declared from token `i` on, what it adds to the type, and the token after it."""
        begin = i
        while self.source.at(i) == "*" or self.source.at(i) in _QUALIFIERS:
            i += 1
        kind = self.source.tokens[begin:i]
        name = self.source.at(i)
        i += 1
        while self.source.at(i) == "[":
            kind.append("*")
            i = self.source.closing[i] + 1
        return name, kind, i

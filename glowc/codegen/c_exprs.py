"""Tokens of a C expression -> its text with literal parts folded: `y * 1 - 0` is `y`, `0 != 0 ? a : b` is `b`.

A rule applies only where neither the value nor the type of the whole can change (C11 6.3.1): integers of known type,
literals without overflow, nothing in floating point. Types are those of `c_source`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from glowc.codegen.c_source import UNKNOWN, Source, UnreadableError, is_type, type_of

_COMMA, _ASSIGN, _CHOICE, _OR, _AND, _EQUAL, _LESS, _SUM, _PRODUCT, _UNARY, _POSTFIX, _PRIMARY = (
    1, 2, 3, 4, 5, 9, 10, 12, 13, 14, 15, 16,
)  # fmt: skip
_BINARY = {
    ",": _COMMA, "?": _CHOICE, "||": _OR, "&&": _AND, "|": 6, "^": 7, "&": 8, "==": _EQUAL, "!=": _EQUAL,
    "<": _LESS, ">": _LESS, "<=": _LESS, ">=": _LESS, "<<": 11, ">>": 11, "+": _SUM, "-": _SUM, "*": _PRODUCT,
    "/": _PRODUCT, "%": _PRODUCT,
    **dict.fromkeys(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="), _ASSIGN),
}  # fmt: skip
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, ">": int.__gt__, "<=": int.__le__, ">=": int.__ge__,
}  # fmt: skip
_NUMBER = re.compile(r"(0|[1-9]\d*)([uU]?)")
_HEX = re.compile(r"0[xX][0-9a-fA-F]+([uU]?)")
_VECTOR = re.compile(r"v(?:ld|dup)\w+_([fsu](?:8|16|32|64))")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
_INTEGERS = frozenset("inulmz")
_INT_MAX, _UINT_MAX = 2**31 - 1, 2**32 - 1


class Expr(NamedTuple):
    """A part of an expression: text, type, how strongly it binds; what it is when that is a number.

    `inner` is what its parentheses enclose; `boolean`: 0 or 1; `pure`: without effects; `changed`: not as it was.
    """

    text: str
    type: str = UNKNOWN
    binds: int = _PRIMARY
    value: int | None = None
    boolean: bool = False
    pure: bool = True
    changed: bool = False
    inner: Expr | None = None

    def within(self, binds: int) -> Expr:
        """The same as an operand of arithmetic: no parentheses that folding made useless."""
        inner = self.inner if self.changed and self.value is None else None
        if inner is None or inner.binds < binds:
            return self
        clear = binds in (_SUM, _SUM + 1) or (inner.binds == _UNARY and inner.text[0] == "(")
        return inner._replace(changed=True) if clear else self

    @property
    def bare(self) -> Expr:
        """The same without parentheses that nothing needs any more: not an operand of what binds."""
        useless = self.inner is not None and (self.changed or self.value is not None)
        return self.inner._replace(changed=True) if self.inner is not None and useless else self


def number(value: int, kind: str = "i") -> Expr:
    """Return a literal."""
    text = f"{value}u" if kind == "u" else str(value)
    return Expr(text, kind, _UNARY if value < 0 else _PRIMARY, value, value in (0, 1), changed=True)


def _promoted(kind: str) -> str:
    return "i" if kind == "n" else kind


def _common(a: str, b: str) -> str:
    """Return the type of an arithmetic operation (the usual arithmetic conversions)."""
    a, b = _promoted(a), _promoted(b)
    if a == b:
        return a
    if a not in _INTEGERS or b not in _INTEGERS:
        return UNKNOWN
    if "z" in (a, b):
        return "z" if {a, b} <= {"i", "u", "z"} else UNKNOWN
    return max(a, b, key="iulm".index)


def _type(op: str, a: Expr, b: Expr) -> str:
    """Return the type of a binary operation."""
    if _BINARY[op] in (_OR, _AND, _EQUAL, _LESS):
        return "i"
    if _BINARY[op] == _ASSIGN or (op in "+-" and a.type.endswith("*") and not b.type.endswith("*")):
        return a.type
    if op == "+" and b.type.endswith("*"):
        return b.type
    if op == ",":
        return b.type
    return _promoted(a.type) if op in ("<<", ">>") else _common(a.type, b.type)


def _literals(op: str, a: Expr, b: Expr) -> Expr | None:
    """Return what two numbers make; None where C would convert or overflow."""
    x, y = a.value, b.value
    if x is None or y is None or a.type != b.type:
        return None
    if op in _COMPARE:
        return number(int(_COMPARE[op](x, y)))
    if op in ("/", "%"):
        if y == 0:
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        result = quotient if op == "/" else x - y * quotient
    elif op in ("+", "-", "*"):
        result = {"+": x + y, "-": x - y, "*": x * y}[op]
    else:
        return None
    low, high = (0, _UINT_MAX) if a.type == "u" else (-_INT_MAX, _INT_MAX)
    return number(result, a.type) if low <= result <= high else None


def _logic(op: str, a: Expr, b: Expr) -> Expr | None:
    """Fold && and || of which one side is a number; the other side stays only where it is 0 or 1 by itself."""
    decides = int(op == "||")
    for known, other in ((a, b), (b, a)):
        if known.value is None:
            continue
        if bool(known.value) == bool(decides):
            return number(decides) if known is a or other.pure else None
        if other.value is not None:
            return number(int(bool(other.value)))
        return other._replace(changed=True) if other.boolean else None
    return None


def _same(op: str, e: Expr, kind: str, literal: Expr) -> Expr | None:
    """Return `e` in place of an operation with a neutral number, where that has the type of `e`."""
    if e.type.endswith("*") or (e.type in _INTEGERS and _common(e.type, literal.type) == _promoted(e.type)):
        return e._replace(type=kind, changed=True)
    exact = e.type == UNKNOWN and literal.type == "i" and op in "*/-"  # of floating point, too
    return e._replace(changed=True) if exact else None


def _neutral(op: str, e: Expr, literal: Expr, right: bool) -> Expr | None:
    """Fold an operation with 0 or 1 on its right or left side."""
    value, kind = literal.value, _type(op, e, literal)
    if (value == 0 and (op in "+|^" or (right and op in ("-", "<<", ">>")))) or (
        value == 1 and (op == "*" or (right and op == "/"))
    ):
        return _same(op, e, kind, literal)
    zero = (value == 0 and op in "*&") or (value == 1 and op == "%" and right)
    return number(0, kind) if zero and e.pure and kind in ("i", "u") and e.type in _INTEGERS else None


def _turned(op: str, gap: str, a: Expr, b: Expr) -> Expr | None:
    """Return x + 3 for x - (-3), x - 3 for x + (-3)."""
    if op not in ("+", "-") or gap.strip() != op or b.value is None or b.value >= 0:
        return None
    if a.type not in _INTEGERS and not a.type.endswith("*"):
        return None
    text = a.text + gap.replace(op, "-" if op == "+" else "+") + str(-b.value)
    return Expr(text, _type(op, a, b), _SUM, pure=a.pure, changed=True)


def binary(op: str, gap: str, a: Expr, b: Expr) -> Expr:
    """Return `a op b`, folded; `gap` is the operator with what stands around it."""
    folded = None
    if a.value is not None and b.value is not None and op not in ("&&", "||"):
        folded = _literals(op, a, b)
    elif op in ("&&", "||"):
        folded = _logic(op, a, b)
    elif b.value is not None:
        folded = _neutral(op, a, b, True) or _turned(op, gap, a, b)
    elif a.value is not None:
        folded = _neutral(op, b, a, False)
    if folded is not None:
        return folded
    a, b = a.within(_BINARY[op]), b.within(_BINARY[op] + 1)
    if op in _COMPARE or _BINARY[op] == _ASSIGN or op == ",":
        a, b = a.bare if a.value is not None else a, b.bare if b.value is not None or op not in _COMPARE else b
    return Expr(
        a.text + gap + b.text, _type(op, a, b), _BINARY[op], None, op in _COMPARE or op in ("&&", "||"),
        a.pure and b.pure and _BINARY[op] != _ASSIGN, a.changed or b.changed,
    )  # fmt: skip


def choice(condition: Expr, gaps: tuple[str, str], a: Expr, b: Expr) -> Expr:
    """Return `condition ? a : b`, or its arm where the condition is a number and both arms have one type."""
    a, b = (arm.bare if arm.bare.binds > _CHOICE else arm for arm in (a, b))
    kinds = {_promoted(a.type), _promoted(b.type)}
    arm = a if condition.value else b
    if condition.value is not None and len(kinds) == 1 and kinds != {UNKNOWN} and arm.binds >= _CHOICE:
        return arm._replace(type=kinds.pop(), changed=True)
    return Expr(
        condition.text + gaps[0] + a.text + gaps[1] + b.text, kinds.pop() if len(kinds) == 1 else UNKNOWN, _CHOICE,
        pure=condition.pure and a.pure and b.pure, changed=condition.changed or a.changed or b.changed,
    )  # fmt: skip


def unary(op: str, gap: str, e: Expr) -> Expr:
    """Return `op e`, folded for the sign and the negation of a number."""
    if e.value is not None and op == "!":
        return number(int(not e.value))
    if e.value is not None and op == "-" and e.type == "i":
        folded = number(-e.value)
        return folded if e.value < 0 else folded._replace(text=op + gap + e.text, changed=e.changed)
    kind = {"!": "i", "&": f"{e.type}*", "++": e.type, "--": e.type}.get(op, _promoted(e.type))
    if op == "*":
        kind = e.type[:-1] if e.type.endswith("*") else UNKNOWN
    return Expr(op + gap + e.text, kind, _UNARY, None, op == "!", e.pure and op not in ("++", "--"), e.changed)


@dataclass(slots=True)
class Reader:
    """Reads and folds expressions of a source; `types` are those of its names, `known` what constants among them are.

    `judge` knows such constants for a reader that does not: it decides the conditions whose names are to stay.
    """

    source: Source
    types: Mapping[str, str]
    known: dict[str, int] = field(default_factory=dict)
    judge: Reader | None = None
    at: int = 0

    @property
    def token(self) -> str:
        """The next token."""
        return self.source.at(self.at)

    def take(self) -> str:
        """Go on by one token; return it with the space before it."""
        self.at += 1
        return self.source.gap(self.at - 1) + self.source.tokens[self.at - 1]

    def whole(self, begin: int, end: int) -> Expr:
        """Return the expression that tokens [begin, end) are."""
        self.at = begin
        expr = self.expr(_COMMA)
        if self.at != end:
            raise UnreadableError
        return expr.bare

    def value(self) -> Expr:
        """Return the next initialiser or argument."""
        return (self.braces() if self.token == "{" else self.expr(_ASSIGN)).bare

    def expr(self, least: int) -> Expr:
        """Return the next expression, up to an operator that binds less than `least`."""
        begin = self.at
        left = self.operand()
        while True:
            op = self.token
            binds = _BINARY.get(op, 0)
            if binds < least or binds == 0:
                return left
            if op == "?" and self.judge is not None and self.judge.known:
                self.judge.at = begin
                left = left._replace(value=self.judge.expr(_OR).value)
            gap = self.take() + self.source.gap(self.at)
            if op == "?":
                left = self._choice(left, gap)
            else:
                left = binary(op, gap, left, self.expr(binds if binds == _ASSIGN else binds + 1))

    def _choice(self, condition: Expr, gap: str) -> Expr:
        a = self.expr(_ASSIGN)
        if self.token != ":":
            raise UnreadableError
        colon = self.take() + self.source.gap(self.at)
        return choice(condition, (gap, colon), a, self.expr(_CHOICE))

    def operand(self) -> Expr:
        """Return the next operand of a binary operator."""
        token = self.token
        if token in ("-", "+", "!", "~", "*", "&", "++", "--"):
            self.at += 1
            return unary(token, self.source.gap(self.at), self.operand())
        if token == "sizeof":
            return self._sizeof()
        if token == "(":
            return self._cast() if is_type(self.source.at(self.at + 1)) else self._postfix(self._paren())
        return self._postfix(self._primary())

    def _sizeof(self) -> Expr:
        begin = self.at
        self.at += 1
        if self.token == "(" and is_type(self.source.at(self.at + 1)):
            self.at = self.source.closing[self.at] + 1
        else:
            self.operand()
        return Expr(self.source.span(begin, self.at), "sizeof", _UNARY)  # stays beside a 1, whatever its type

    def _cast(self) -> Expr:
        begin, end = self.at, self.source.closing[self.at]
        kind = type_of(self.source.tokens[begin + 1 : end])
        self.at = end + 1
        gap = self.source.gap(self.at)
        e = self.braces() if self.token == "{" else self.operand()
        return Expr(self.source.span(begin, end + 1) + gap + e.text, kind, _UNARY, pure=e.pure, changed=e.changed)

    def _paren(self) -> Expr:
        gap = self.source.gap(self.at + 1)
        self.at += 1
        e = self.expr(_COMMA)
        if self.token != ")":
            raise UnreadableError
        text = f"({gap}{e.text}{self.take()}"
        literal = e.value is not None and (e.value >= 0 or e.inner is not None)
        if literal or (e.changed and e.binds >= _POSTFIX):
            return e._replace(changed=True)
        return e._replace(text=text, binds=_PRIMARY, inner=e)

    def _primary(self) -> Expr:
        token = self.token
        self.at += 1
        if not token or not (token[0].isalnum() or token[0] in '_."'):
            raise UnreadableError
        if token[0] == '"':
            while self.token.startswith('"'):
                token += self.take()
            return Expr(token, "n*")
        if token in self.known:
            return number(self.known[token])
        if token[0].isalpha() or token[0] == "_":
            return Expr(token, "i" if token in ("INT32_MIN", "INT32_MAX") else self.types.get(token, UNKNOWN))
        return _literal(token)

    def _postfix(self, e: Expr) -> Expr:
        while True:
            match self.token:
                case "(":
                    e = self._call(e)
                case "[":
                    e = self._index(e)
                case "." | "->":
                    text = e.text + self.take() + self.take()
                    e = Expr(text, self.types.get(text, UNKNOWN), _POSTFIX, pure=e.pure, changed=e.changed)
                case "++" | "--":
                    e = Expr(e.text + self.take(), e.type, _POSTFIX, pure=False, changed=e.changed)
                case _:
                    return e

    def _index(self, e: Expr) -> Expr:
        gap = self.take() + self.source.gap(self.at)
        index = self.expr(_COMMA).bare
        if self.token != "]":
            raise UnreadableError
        kind = e.type[:-1] if e.type.endswith("*") else UNKNOWN
        text = e.text + gap + index.text + self.take()
        return Expr(text, kind, _POSTFIX, pure=e.pure and index.pure, changed=e.changed or index.changed)

    def _call(self, e: Expr) -> Expr:
        """Return a call; what a macro does with its arguments is not known, so they stay."""
        begin = self.at
        arguments = self._list(")")
        if _MACRO.fullmatch(e.text):
            return Expr(e.text + self.source.span(begin, self.at), UNKNOWN, _POSTFIX, pure=False)
        found = _VECTOR.fullmatch(e.text)
        kind = f"v{found[1]}" if found else UNKNOWN
        text = e.text + arguments.text
        return Expr(text, kind, _POSTFIX, pure=False, changed=e.changed or arguments.changed)

    def braces(self) -> Expr:
        """Return the next initialiser in braces."""
        return self._list("}")

    def _list(self, end: str) -> Expr:
        text = self.take().lstrip()
        changed = False
        while self.token != end:
            text += self.source.gap(self.at)
            if self.token == "." and end == "}":
                text += self.take().lstrip() + self.take() + self.take() + self.source.gap(self.at)
            item = self.value()
            text += item.text
            changed |= item.changed
            if self.token == ",":
                text += self.take()
            elif self.token != end:
                raise UnreadableError
        return Expr(text + self.take(), pure=False, changed=changed)


def _literal(token: str) -> Expr:
    found = _NUMBER.fullmatch(token)
    if found:
        value, kind = int(found[1]), "u" if found[2] else "i"
        return Expr(token, kind, value=value, boolean=value < 2) if value <= _limit(kind) else Expr(token)
    found = _HEX.fullmatch(token)
    if found:
        kind = "u" if found[1] else "i"
        return Expr(token, kind if int(token.rstrip("uU"), 16) <= _limit(kind) else UNKNOWN)
    return Expr(token, "f" if "." in token or token.endswith("f") else UNKNOWN)


def _limit(kind: str) -> int:
    return _UINT_MAX if kind == "u" else _INT_MAX

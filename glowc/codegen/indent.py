"""Text of C functions -> the same text with two spaces for each block; what continues a line moves along with it.

Preprocessor lines stay where they are; strings and comments stay as they are, whatever brackets they contain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*|/\*|[][(){}]|[^\s"\'/\[\](){}]+|/')
_CLOSING = frozenset(")]}")


def indented(text: str) -> str:
    """Return the text with its lines indented by the blocks that they are in, and at most one empty line in a row."""
    state = _State()
    lines = [state.line(line.rstrip()) for line in text.split("\n")]
    return re.sub(r"\n\n+(?=\n)", "\n", "\n".join(lines)) if not state.stack else text


@dataclass(slots=True)
class _State:
    """Where the next line stands: the brackets around it, `{` of blocks and `(` of all others."""

    stack: list[str] = field(default_factory=list)
    last: str = ";"
    comment: bool = False
    moved: int = 0

    def line(self, line: str) -> str:
        """Return one line, indented; the next one stands after it."""
        bare = line.lstrip()
        if not bare or (bare[0] == "#" and not self.comment):
            return line
        was = len(line) - len(bare)
        now = self._place(bare, was)
        self._read(bare)
        return " " * now + bare

    def _place(self, bare: str, was: int) -> int:
        continues = self.comment or "(" in self.stack or self.last not in (";", "{", "}", ":")
        level = 2 * (self.stack.count("{") - (bare[0] == "}" and not continues))
        if not continues:
            self.moved = level - was
            return level
        now = was + self.moved
        return now if now > level or self.comment else level + 4

    def _read(self, bare: str) -> None:
        at = 0
        if self.comment:
            at = self._comment_end(bare, 0)
        while at >= 0 and (match := _TOKEN.search(bare, at)):
            at = match.end()
            if match[0] == "/*":
                at = self._comment_end(bare, at)
            elif not match[0].startswith("//"):
                self._token(match[0])

    def _comment_end(self, bare: str, at: int) -> int:
        end = bare.find("*/", at)
        self.comment = end < 0
        return end + 2 if end >= 0 else -1

    def _token(self, token: str) -> None:
        if token in ("(", "["):
            self.stack.append("(")
        elif token == "{":
            value = "(" in self.stack or self.last[-1] in "=,({"
            self.stack.append("(" if value and self.last != "{" else "{")
        elif token in _CLOSING and self.stack:
            self.stack.pop()
        self.last = token if token in "{}" else token[-1]

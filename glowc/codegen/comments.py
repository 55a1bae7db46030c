"""Writes the comment above a kernel's function: what it computes, for which layers, what a caller must keep to."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from glowc.codegen.kernels import ArgsStruct
from glowc.codegen.names import in_comment
from glowc.kernels.choice import variant_of
from glowc.program.ir import Access, Instr
from glowc.program.kernel import AnyKernel, get_kernel

_WIDTH = 116
_NAMED = 4  # layers
_LONGEST = 40  # characters of a layer's name
_ACTIVATIONS = ("in", "a", "b")


@dataclass(frozen=True, slots=True)
class User:
    """A layer that calls a function."""

    index: int
    instr: Instr
    model: str = ""  # with a blank behind it, where there are several

    @property
    def name(self) -> str:
        """The user's name of the node."""
        name = in_comment(self.instr.origin[0] if self.instr.origin else self.instr.name)
        return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def function_comment(users: Sequence[User], struct: ArgsStruct | None) -> str:
    """Return the comment of the function that `users` call, a line or more."""
    kernel = get_kernel(users[0].instr.kernel)
    sentences = [_meaning(kernel), _layers(users), "; ".join(_contract(kernel, users, struct))]
    lines = [
        line
        for sentence in sentences
        for line in textwrap.wrap(f"{sentence}.", _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    return "/* " + "\n * ".join(lines).replace("??", "? ?") + " */\n"


def commented(code: str, name: str, comment: str) -> str:
    """Return `code` with the comment above function `name`, of which helpers may stand before."""
    at = code.rfind("\n", 0, max(code.find(f"void {name}("), 0)) + 1
    return code[:at] + comment + code[at:]


def _meaning(kernel: AnyKernel) -> str:
    text = in_comment(kernel.doc or kernel.name).rstrip(".")
    return text[0].upper() + text[1:] if re.match(r"[a-z]{2,} (?!=)", text) else text


def _layers(users: Sequence[User]) -> str:
    """Return the layers by number and name, the first few where they are many."""
    shown = ", ".join(f"{user.model}{user.index} {user.name}" for user in users[:_NAMED])
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    ops = in_comment(", ".join(sorted({user.instr.op for user in users} - {""})))
    return f"Layer{'s' if len(users) > 1 else ''}{f' ({ops})' if ops else ''}: {shown}{more}"


def _contract(kernel: AnyKernel, users: Sequence[User], struct: ArgsStruct | None) -> Iterator[str]:
    instr = users[0].instr
    yield f"Sizes: {_shapes(instr)}" if struct is None else f"Parameters: {struct.name}"
    if kernel.rows:
        yield "computes output rows [y_begin, y_end)"
    yield _overlap(kernel, instr)
    scratch = max((o.type.size_bytes for user in users for o in user.instr.operands if o.role == "scratch"), default=0)
    if scratch:
        yield f"scratch takes {'up to ' if struct is not None else ''}{scratch} bytes"


def _shapes(instr: Instr) -> str:
    inputs = [o for o in instr.operands if o.role in _ACTIVATIONS] or list(instr.operands[:1])
    outputs = [o for o in instr.operands if o.access is not Access.IN and o.role != "scratch" and o not in inputs]
    return ", ".join(f"{o.role} {'x'.join(map(str, o.type.shape)) or 'scalar'}" for o in [*inputs, *outputs])


def _overlap(kernel: AnyKernel, instr: Instr) -> str:
    """Return which operands may overlap: those that `signature` does not declare `restrict`."""
    variant = variant_of(instr)
    if variant.in_place:
        return f"the output may be {' or '.join(kernel.in_place)}"
    if kernel.row_window is not None:
        return "the output may lie over rows of in that no later row reads"
    if kernel.one_buffer:
        return "operands may be parts of one buffer"
    return "no operand overlaps another"

"""A kernel's function as users get it: the rendered text with its literals folded, indented, its signature wrapped.

What functions cost is counted in lines of the rendered text (`glowc.select`), which knows nothing of this.
"""

from __future__ import annotations

from glowc.codegen.fold import fold
from glowc.codegen.indent import indented
from glowc.codegen.kernels import ArgsStruct, render_kernel
from glowc.program.ir import Instr

_WIDTH = 120
_KINDS = {"int32_t": "i", "float": "f"}


def print_kernel(instr: Instr, fn: str, struct: ArgsStruct | None = None) -> str:
    """Return the C definitions of the function for `instr` and its helpers; with `struct`, `p` points to one."""
    return tidy(render_kernel(instr, fn, struct), struct)


def tidy(text: str, struct: ArgsStruct | None = None) -> str:
    """Return rendered functions as they are printed; `struct` is what `p` points to."""
    fields = {f"p->{name}": _KINDS[ctype] for name, ctype in struct.fields} if struct is not None else {}
    lines = indented(fold(text, fields)).split("\n")
    return "\n".join(_wrapped(line) if line.endswith(") {") and line[0] not in " }" else line for line in lines)


def _wrapped(signature: str) -> str:
    """Return the first line of a function in lines of at most 120 columns, where its parameters allow that."""
    lines = [""]
    for part in signature.split(", "):
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(longer) < _WIDTH or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(f"    {part}")
    return ",\n".join(lines)

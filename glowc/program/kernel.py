"""What an instruction kind is: operands, parameters and meaning of a kernel; and the table of all of them.

The low-level IR knows the form of a definition. The operators fill the table (`glowc.ops.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from glowc.errors import InternalError
from glowc.graph.types import DType
from glowc.program.ir import Access, ParamValue

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Formal:
    """What a kernel says of one operand: role, access and the element kinds that it may have."""

    role: str
    access: Access
    kinds: frozenset[DType]


def _formal(text: str, kind: str) -> Formal:
    access, operand = text.split()
    role, _, own = operand.partition(":")
    return Formal(role, Access(access), _kinds(own or kind))


@cache
def _kinds(text: str) -> frozenset[DType]:
    """Return the element kinds of a text: s8|u8, b4 (all of four bytes) or * (all)."""
    if text == "*":
        return frozenset(DType)
    if text.startswith("b") and text[1:].isdigit():
        return frozenset(kind for kind in DType if kind.bytes == int(text[1:]))
    return frozenset(map(DType, text.split("|")))


@dataclass(frozen=True, slots=True)
class KernelDef:
    """One instruction kind: operands in C argument order, parameters and meaning.

    `operands` are "in x", "out y" or "inout z", with the element kinds that they may have, "in w:s8|u8", where those
    are not the kernel's `kind`: "s8|s16", "b4" for all of four bytes, "*" for all. `params` are integers,
    `float_params` float32 numbers, `print_params` numbers or words that the template prints with (unrolling, an
    expression; never function arguments, so they are part of the function's identity). A spatial kernel
    (`rows`) takes the output rows [y_begin, y_end) as run-time arguments. `interpret(arrays, params)`
    fills the output arrays in numpy. `template` names the template file when several kernels share one.
    `row_window(params, y)` are the rows [first, last) of operand `in` that output row y reads: set where a spatial
    kernel reads no others. `length` is the parameter that counts the elements of an elementwise kernel, which
    reads and writes in index order; it then also works on a part of its tensors. `one_buffer`: operands may begin at
    the same address, of which the kernel reads and writes different parts. A plugin's kernel may be the C
    function `extern` instead of a template: operands, then params and float_params; `extern_header` declares it, and
    `extern_sources`, which go into the bundle, define it.
    """

    name: str
    operands: tuple[str, ...]
    params: tuple[str, ...]
    interpret: Callable[[Arrays, Mapping[str, ParamValue]], None]
    float_params: tuple[str, ...] = ()
    print_params: tuple[str, ...] = ()
    rows: bool = False
    in_place: tuple[str, ...] = ()
    template: str = ""
    needs_math: bool = False
    row_window: Callable[[Mapping[str, ParamValue], int], tuple[int, int]] | None = None
    length: str = ""
    one_buffer: bool = False
    kind: str = "*"
    extern: str = ""
    extern_header: str = ""
    extern_sources: tuple[str, ...] = ()
    doc: str = ""
    signature: tuple[Formal, ...] = field(init=False)
    roles: tuple[tuple[str, Access], ...] = field(init=False)
    param_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Read the texts of the operands once."""
        signature = tuple(_formal(text, self.kind) for text in self.operands)
        names = frozenset((*self.params, *self.float_params, *self.print_params))
        object.__setattr__(self, "signature", signature)
        object.__setattr__(self, "roles", tuple((formal.role, formal.access) for formal in signature))
        object.__setattr__(self, "param_names", names)


_kernels: dict[str, KernelDef] = {}


def define_kernels(kernels: Iterable[KernelDef]) -> None:
    """Make these the instruction kinds that there are. InternalError where two have one name."""
    found: dict[str, KernelDef] = {}
    for kernel in kernels:
        if kernel.name in found:
            raise InternalError(f"two definitions of kernel {kernel.name}")
        found[kernel.name] = kernel
    _kernels.clear()
    _kernels.update(sorted(found.items()))


def all_kernels() -> Mapping[str, KernelDef]:
    """Return every instruction kind by name."""
    return _kernels


def find_kernel(name: str) -> KernelDef | None:
    """Return the instruction kind of that name, or None."""
    return _kernels.get(name)


def get_kernel(name: str) -> KernelDef:
    """Return the instruction kind of that name; InternalError when there is none."""
    kernel = _kernels.get(name)
    if kernel is None:
        raise InternalError(f"no kernel named {name}")
    return kernel

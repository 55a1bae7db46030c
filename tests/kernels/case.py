"""One kernel test case: an instruction with its operands' bytes; `make_case` checks it by the KernelDef.

    def kernel_cases() -> Iterator[Case]:      # in tests/ops/test_<op>.py
        x = np.arange(-8, 8, dtype=np.int8)
        yield make_case("relu_s8", {"x": x}, {"n": 16, "zp": 3}, out={"y": ((16,), DType.S8)})

The harness runs every accepted variant of the kernel on every machine and compares what it wrote with
`KernelDef.interpret`: integers bit for bit, floats within `atol + rtol * |expected|` (say why in `why`).
A spatial kernel's `interpret` sees the row range as params `y_begin` and `y_end`. An operand whose role
starts with "scratch" is not compared; its size comes from the variant's `scratch_bytes` when that is not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glowc.graph.types import DType, TensorType, type_of
from glowc.program.ir import Access, Instr, Operand, ParamValue
from glowc.program.kernel import KernelDef, get_kernel

FILL = 0xA5  # bytes of outputs before the kernel runs


@dataclass(frozen=True)
class Case:
    """An instruction and one array per operand; arrays of written operands hold the bytes before the call.

    `folder`: of the kernels that it is about (glowc/kernels/), where it is about those of some.
    """

    instr: Instr
    arrays: Mapping[str, np.ndarray]
    atol: float = 0.0
    rtol: float = 0.0
    why: str = ""
    folder: str = ""

    @property
    def label(self) -> str:
        """What tells this case from others: operand types, numeric params, rows."""
        types = " ".join(f"{o.role}={o.type}" for o in self.instr.operands)
        params = " ".join(f"{k}={v}" for k, v in self.instr.params.items())
        rows = f" rows={self.instr.rows[0]}:{self.instr.rows[1]}" if self.instr.rows else ""
        return f"{self.instr.name + ': ' if self.instr.name else ''}{types} {params}{rows}"


def filled(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Return an array of FILL bytes, so that what a kernel leaves unwritten shows."""
    raw = np.full(TensorType(shape, dtype).size_bytes, FILL, np.uint8)
    return raw.view(dtype.numpy).reshape(shape)


def make_case(
    kernel: str | KernelDef,
    operands: Mapping[str, np.ndarray],
    params: Mapping[str, ParamValue | np.generic],
    *,
    rows: tuple[int, int] | None = None,
    out: Mapping[str, tuple[tuple[int, ...], DType]] | None = None,
    variant: str = "ref",
    name: str = "",
    atol: float = 0.0,
    rtol: float = 0.0,
    why: str = "",
) -> Case:
    """Return a case; ValueError names roles or params that are missing or too many.

    `operands` gives arrays, `out` gives shape and kind of written operands, which are filled with a pattern;
    an INOUT (or partly written OUT) operand may be given in either.
    """
    definition = kernel if isinstance(kernel, KernelDef) else get_kernel(kernel)
    arrays = {role: np.ascontiguousarray(array).reshape(np.shape(array)) for role, array in operands.items()}
    kinds = {role: type_of(array) for role, array in arrays.items()}
    for role, (shape, dtype) in (out or {}).items():
        if role in arrays:
            raise ValueError(f"{definition.name}: {role} is in operands and in out")
        arrays[role], kinds[role] = filled(shape, dtype), TensorType(tuple(shape), dtype)
    _same(f"{definition.name}: operands", [role for role, _ in definition.roles], list(arrays))
    declared = [*definition.params, *definition.float_params, *definition.print_params]
    _same(f"{definition.name}: params", declared, list(params))
    if definition.rows != (rows is not None):
        raise ValueError(f"{definition.name}: rows must {'' if definition.rows else 'not '}be given")
    instr = Instr(
        kernel=definition.name,
        variant=variant,
        operands=tuple(Operand(role, role, access, kinds[role]) for role, access in definition.roles),
        params={key: _param(definition, key, params[key]) for key in declared},
        rows=rows,
        name=name,
    )
    return Case(instr, {role: arrays[role] for role, _ in definition.roles}, atol, rtol, why)


def _param(definition: KernelDef, key: str, value: ParamValue | np.generic) -> ParamValue:
    plain = value.item() if isinstance(value, np.generic) else value
    if key in definition.params:
        if not isinstance(plain, int):
            raise ValueError(f"{definition.name}: param {key} must be an integer, not {plain!r}")
        if not -(2**31) <= plain < 2**31:
            raise ValueError(f"{definition.name}: param {key} = {plain} is no int32")
        return int(plain)
    return float(np.float32(plain)) if key in definition.float_params else plain


def _same(what: str, wanted: list[str], given: list[str]) -> None:
    missing = [key for key in wanted if key not in given]
    extra = [key for key in given if key not in wanted]
    if missing or extra:
        raise ValueError(f"{what}: missing {missing}, unknown {extra}")


def interpret(case: Case) -> dict[str, np.ndarray]:
    """Return every operand's array after `KernelDef.interpret`; the case's own arrays stay as they are."""
    arrays = {role: array.copy() for role, array in case.arrays.items()}
    get_kernel(case.instr.kernel).run(arrays, case.instr.params, case.instr.rows)
    return arrays


def compared(case: Case) -> tuple[str, ...]:
    """Return the roles whose bytes are checked: written ones that are no scratch."""
    operands = case.instr.operands
    return tuple(o.role for o in operands if o.access is not Access.IN and not o.role.startswith("scratch"))

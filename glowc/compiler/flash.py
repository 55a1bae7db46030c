"""What a printed model takes of the flash: counted in its objects where the board's compiler is there, else predicted.

A prediction is off by as much as a tenth, so kernels are chosen by what the compiler makes of them: the usual ones
where they fit, else smaller ones until they do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from glowc.board import Board, find_tool, run_tool
from glowc.board.flags import compile_argv
from glowc.codegen.bundle import Bundle, BundleSpec
from glowc.codegen.export import FORMS
from glowc.compiler.report import CoresReport, SlicesReport
from glowc.errors import ToolError
from glowc.place.planning import Planned
from glowc.program.ir import Program
from glowc.select.choose import Selection

_MORE, _LESS = 1.3, 0.55  # of the predicted code: no model has more, or less
SURE = 0.9  # of the predicted code is needed: it is off by as much as a tenth
_APART = 1024  # what little code may have more besides
_LOWER = 3  # models that are aimed at below the limit
_ABOVE = (1.03, 1.06, 1.1, 1.15)


@dataclass(frozen=True, slots=True)
class Printed:
    """A model as far as C: its kernels, plan and files; `code_bytes` are predicted, `flash_bytes` counted.

    Where nobody has counted them, they are None. `slices` is what the report says of its steps, where it has some,
    `cores` of the cores that share layers.
    """

    selection: Selection
    planned: Planned
    program: Program
    bundle: Bundle
    spec: BundleSpec
    code_bytes: int
    flash_bytes: int | None = None
    slices: SlicesReport | None = None
    cores: CoresReport | None = None

    def predicted(self, factor: float = 1.0) -> int:
        """Return the bytes of constants, and of code by so much of the prediction."""
        return self.bundle.weights_bytes + round(factor * self.code_bytes)


Attempt = Callable[[int | None], Printed]
"""Prints a model with kernels that are predicted to take so many bytes of flash, or with the usual ones."""
Count = Callable[[Printed], Printed]
"""Compiles a model and says in it what it takes."""


def fitted(attempt: Attempt, count: Count, limit: int | None) -> Printed:
    """Return the model with the usual kernels where it takes at most `limit` bytes, else with smaller ones.

    If none fit, the smallest that was found. It is counted unless there is no compiler, or no doubt.
    """
    usual = attempt(None)
    if limit is None or not is_near(usual, limit):
        return usual
    if usual.predicted(_LESS) <= limit:
        usual = count(usual)
        if usual.flash_bytes is not None and usual.flash_bytes <= limit:
            return usual
    off = 0 if usual.flash_bytes is None else usual.flash_bytes - usual.predicted()
    tried: list[Printed] = []
    while (aim := _next_aim(limit, off, tried)) is not None:
        printed = attempt(aim)
        known = (t for t in tried if t.selection.order == printed.selection.order)
        tried.append(next(known, None) or count(printed))
        taken = tried[-1].flash_bytes
        if taken is None or taken <= limit:
            return tried[-1]
    return min(tried, key=lambda printed: printed.flash_bytes or 0)


def _next_aim(limit: int, off: int, tried: Sequence[Printed]) -> int | None:
    """Return what the next model is predicted to take, after those `tried`, which took too much; None to give up.

    First what the prediction was `off` by is taken away, and what was too much, down to the smallest; then what is
    predicted to be somewhat too large may still fit.
    """
    number = len(tried)
    if number < _LOWER:
        return max(limit - off - sum((t.flash_bytes or 0) - limit for t in tried), 0)
    if number == _LOWER:
        return 0
    least = min(t.flash_bytes or 0 for t in tried)
    above = number - _LOWER - 1
    return round(_ABOVE[above] * limit) if above < len(_ABOVE) and least <= _ABOVE[-1] * limit else None


def is_near(printed: Printed, limit: int) -> bool:
    """Say whether a model may take more bytes of flash than `limit`, by what is predicted."""
    return printed.predicted(_MORE) + _APART > limit


def counted(printed: Printed, board: Board) -> Printed:
    """Return a model with what its objects take of the flash; as it is where no compiler is installed."""
    spec, bundle = printed.spec, printed.bundle
    form = FORMS.get(spec.form)
    inside = form.sources if form is not None else ""
    taken = objects_bytes(bundle.files, board, spec.opt, inside, {f"{spec.name}_golden"})
    blob = sum(map(len, bundle.binaries.values()))
    return printed if taken is None else replace(printed, flash_bytes=taken + blob)


def group_bytes(files: Mapping[str, str], models: Sequence[Printed], board: Board, limit: int, weights: int) -> int:
    """Return what several models in one bundle take of the flash: counted where the limit is near, else predicted."""
    code = sum(printed.code_bytes for printed in models)
    if weights + _MORE * code + _APART <= limit:
        return weights + code
    golden = {f"{printed.spec.name}_golden" for printed in models}
    taken = objects_bytes(files, board, models[0].spec.opt, "", golden)
    return weights + round(SURE * code) if taken is None else taken


def objects_bytes(
    files: Mapping[str, str], board: Board, opt: str, inside: str, apart: Collection[str]
) -> int | None:  # fmt: skip
    """Return the bytes of code, constants and data of the C files in the folder `inside`, but those called `apart`.

    None where no compiler is installed. Raises ToolError when it fails.
    """
    cc, size = find_tool(board.cpu.cc), find_tool(f"{board.cpu.tool_prefix}size")
    if cc is None or size is None:
        return None
    with tempfile.TemporaryDirectory(prefix="glowc-flash-") as name:
        folder = Path(name)
        for file, content in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="\n")
        sources = [path for path in (folder / inside).glob("*.c") if path.stem not in apart]
        with ThreadPoolExecutor(2) as pool:
            objects = list(pool.map(partial(_compiled, cc, board, opt), sources))
        rows = _called([str(size), *map(str, objects)]).splitlines()[1:]
    return sum(int(row.split()[0]) + int(row.split()[1]) for row in rows)  # text with constants, data


def _compiled(cc: Path, board: Board, opt: str, source: Path) -> Path:
    out, flag = source.with_suffix(".o"), "-Os" if opt == "size" else "-O2"
    _called(compile_argv(cc, board, source, out, include_dirs=[source.parent], opt=flag, extra_flags=["-std=c11"]))
    return out


def _called(argv: list[str]) -> str:
    done = run_tool(argv)
    if done.returncode != 0:
        raise ToolError(f"{Path(argv[0]).name} fails on the code of the model", details=done.stderr.splitlines()[:20])
    return done.stdout

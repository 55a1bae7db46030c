"""Ways to compile and run one network that all give the same codes: targets, options, parts in steps and by cores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from glowc.board import Board, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle
from glowc.errors import BoardError, GlowcError, InputError, InternalError, LimitError
from glowc.machine.execute import execute, load_bundle
from tests.fuzz.check import BUG, C_DIFFERS, EQUAL, EXPLAINED, Finding
from tests.fuzz.dice import Dice

LEAST_STEP = 1000  # cycles
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Target:
    """A board and a CPU to compile for, and the board that runs it where that is another one."""

    board: str
    cpu: str | None = None
    runs_on: str = ""

    @property
    def made_for(self) -> Board:
        """The board that the bundle is for."""
        return load_board(self.board, self.cpu)

    @property
    def machine(self) -> Board:
        """The board that runs it."""
        return load_board(self.runs_on) if self.runs_on else self.made_for


TARGETS = (
    Target("mps2-an386"), Target("mps2-an500"), Target("mps2-an505"), Target("mps3-an547"), Target("mps2-an385"),
    Target("rpi-pico", None, "mps2-an385"), Target("linux-aarch64"), Target("linux-aarch64", "cortex-a76"),
    Target("linux-armhf"), Target("host"), Target("musca-b1"), Target("linux-aarch64", "armv8.6-i8mm"),
    Target("mps2-an386", "cortex-m4-soft"), Target("mps2-an521"), Target("host", "x86-64"),
    Target("linux-aarch64", "armv9-sve2"),
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """A target and options, and the limits that are the least for the network.

    `steps`: how many of the shortest steps --slice allows at once, 0: no --slice. `least`: ram or flash, limited to
    what the error of a limit that is too low says.
    """

    target: Target
    options: CompileOptions
    steps: int = 0
    least: str = ""

    def __str__(self) -> str:
        more = {
            f"--cpu {self.target.cpu}": self.target.cpu, f"--slice {self.steps} x shortest": self.steps,
            f"--{self.least}-limit least": self.least,
        }  # fmt: skip
        return " ".join(["--board", self.target.board, *(k for k, v in more.items() if v), self.options.text()])


def draw_way(dice: Dice) -> Way:
    """Return a way, mostly in parts: in steps, by cores or both."""
    target, steps = dice.pick(TARGETS), dice.pick([0, 1, 1, 2, 5])
    cores = dice.pick([1, 1, 2, 4, 3]) if steps else dice.pick([1, 2, 2, 4, 7])
    options = CompileOptions(
        name="net", opt=dice.pick(["balanced", "size", "speed"]), cores=cores,
        io_layout="nhwc" if dice.chance(4) else "exported", io_type="float" if dice.chance(8) else "model",
        align=32 if dice.chance(8) else None, plan=dice.pick(["auto", "auto", "plain", "overlap"]),
    )  # fmt: skip
    if cores == 1 and not steps:
        options = replace(options, **dice.pick(_ALONE))
    return Way(target, options, steps, dice.pick(["", "", "", "ram", "flash"]))


_ALONE: tuple[dict[str, str | bool], ...] = (
    {"input_stream": "rows", "plan": "auto"}, {"io_buffers": "caller"}, {"guard": True, "plan": "plain"},
    {"plan": "stream"},
)  # fmt: skip


def compiled(path: Path, way: Way) -> Compiled:
    """Compile a model in a way. Raises InputError, BoardError and LimitError where that is none for it."""
    options, board = way.options, way.target.made_for
    if way.steps:
        options = replace(options, slice=str(way.steps * _least(path, board, replace(options, slice=str(LEAST_STEP)))))
    if way.least == "ram":
        options = replace(options, ram_limit=_least(path, board, replace(options, ram_limit=1)))
    elif way.least == "flash":
        options = replace(options, flash_limit=_least(path, board, replace(options, flash_limit=1)))
    return compile_model(path, board, options)


def _least(path: Path, board: Board, options: CompileOptions) -> int:
    """Return the least that an option may be, as the error says of one that is too low; the step that is not."""
    try:
        compile_model(path, board, options)
    except LimitError as error:
        if error.need_bytes is not None:
            return error.need_bytes
        found = re.search(r"(?:needs|give a step) ([0-9]+)", f"{error.message} {error.hint}")
        assert found is not None
        return int(found[1])
    return LEAST_STEP


def check_way(path: Path, way: Way, samples: Arrays, want: Arrays, work: Path) -> Finding:
    """Compile, build and run a model in a way; `want` are its codes. EXPLAINED is a refusal of the options."""
    try:
        made = compiled(path, way)
    except InternalError as error:
        return Finding(BUG, f"{way}: {error}")
    except (InputError, BoardError) as error:
        return Finding(EXPLAINED, f"{type(error).__name__}: {error.message}")
    try:
        write_bundle(made, work)
        info = load_bundle(work)
        given = {p.name: p.to_bundle(samples[p.name]) for p in info.inputs}
        outputs = execute(info, way.target.machine, given).outputs
    except GlowcError as error:
        return Finding(C_DIFFERS, f"{way}: {error}")
    found = {port.name: port.to_exported(outputs[port.name]) for port in info.outputs}
    wrong = [name for name, codes in found.items() if not np.array_equal(codes, want[name])]
    return Finding(C_DIFFERS, f"{way}: other codes: {', '.join(wrong)}") if wrong else Finding(EQUAL)

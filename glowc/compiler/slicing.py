"""--slice: the longest time that a step of an inference may take, as cycles; --cores; what they do not go with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf

from glowc.board import Board, default_chip, load_chip
from glowc.compiler.options import CompileOptions
from glowc.compiler.report import CoresReport, SlicesReport
from glowc.errors import BoardError, InputError, LimitError
from glowc.place.planning import Planned, Request
from glowc.place.slices import Long, Sliced, shared, sliced
from glowc.program.ir import Program
from glowc.select.choose import Selection

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_AIM_PERCENT, _MOST_PERCENT = 90, 110  # of a step, as predictions are off by some
_LEAST_CYCLES = 1000
_TRIES = 4  # of layers of fewer outputs
_MORE_PERCENT = 105  # of a whole inference, for layers that lose less when they are divided
_FORK_CYCLES = {"cortex-m": 500, "": 2000}  # that a stage of several cores takes besides what they compute


def slice_cycles(options: CompileOptions, board: Board) -> int:
    """Return the cycles that a step may take. Raises InputError for what is no time, BoardError without a clock."""
    text = options.slice or ""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise InputError(f"--slice {text!r} is no time and no number of cycles", hint="--slice 1ms, 250us or 50000")
    number, unit = float(found[1]), found[2]
    if unit is None:
        cycles = number
    else:
        chip = load_chip(options.chip) if options.chip is not None else default_chip(board)
        if chip is None:
            raise BoardError(
                f"--slice {text} needs a clock, and board {board.name} stands for no chip",
                hint="name one with --chip (`glowc chips` lists them), or give cycles: --slice 50000",
            )
        if chip.cpu != board.cpu.name:
            raise BoardError(
                f'chip "{chip.name}" runs code for {chip.cpu}, board {board.name} has {board.cpu.name}',
                hint="`glowc chips` lists the chips and their CPUs",
            )
        cycles = number * _SECONDS[unit] * chip.clock_mhz * 1e6
    if cycles < _LEAST_CYCLES:
        raise InputError(f"--slice {text} is {cycles:.0f} cycles; a step needs {_LEAST_CYCLES} or more")
    return round(cycles)


def check_sliced(options: CompileOptions) -> None:
    """Raise InputError that names all options which do not go with --slice or --cores."""
    if options.slice is None and options.chip is not None:
        raise InputError("--chip says what the time of --slice is in cycles", hint="add --slice 1ms")
    others = {
        "--input-stream rows": options.input_stream == "rows", "--plan stream": options.plan == "stream",
        "--io-buffers caller": options.io_buffers == "caller",
        "--guard": options.guard, "--arena-split": options.arena_split, "--region": len(options.regions) > 1,
    }  # fmt: skip
    given = [name for name, asked in (("--slice", options.slice), ("--cores", options.cores > 1)) if asked]
    wrong = [f"{name} does not go with {asked}" for asked in given for name, there in others.items() if there]
    if wrong:
        raise InputError("an inference in parts keeps all in one arena", details=wrong, hint="leave them out")


def fork_cycles(board: Board) -> int:
    """Return the cycles that several cores take to begin a stage together and to wait for each other, roughly."""
    return next(cycles for family, cycles in _FORK_CYCLES.items() if board.cpu.name.startswith(family))


def sharing(selection: Selection, request: Request, cores: int, fork: int) -> Request:
    """Return the request whose plan has layers that cores share, where a `selection` says that it pays."""

    def divide(program: Program) -> Program:
        return shared(program, cores, [cost.cycles for cost in selection.estimates(program)], fork)

    return replace(request, divide=divide) if cores > 1 else request


def _layers(count: int) -> str:
    return "a layer" if count == 1 else f"{count} layers"


Plan = Callable[[Collection[str], Mapping[str, int]], tuple[Selection, Planned]]
"""Plans the memory of a graph: takes the names of layers that want variants with units of their own, and into how many
layers others are divided, by the names of nodes.
"""


def divisible(plan: Plan, options: CompileOptions, board: Board) -> tuple[Selection, Planned]:
    """Return a plan whose layers can be divided into steps at little cost.

    Layers want variants with units of their own of which parts are less than a row: they read their weights again for
    each part. Layers become several that cannot be divided.
    """
    done = plan((), {})
    if options.slice is None:
        return done
    aim = slice_cycles(options, board) * _AIM_PERCENT / 100
    long = _long_products(done, options, board)
    parts = {layer.name.rpartition(".")[0]: math.ceil(layer.cycles / aim) for layer in long}
    for _ in range(_TRIES):  # some outputs can take longer than others
        if not long:
            break
        done = plan((), parts)
        long = _long_products(done, options, board)
        parts = {name: 2 * count for name, count in parts.items()} if long else parts
    names = {i.name for i in _in_slices(*done, options, board)[0].planned.program.instrs if i.columns}
    if not names:
        return done
    other = plan(names, parts)
    before, after = (sum(cost.cycles for cost in s.estimates(p.program)) for s, p in (done, other))
    return other if after <= _MORE_PERCENT / 100 * before else done


def _long_products(done: tuple[Selection, Planned], options: CompileOptions, board: Board) -> list[Long]:
    """Return the fully connected layers of a plan that are too long."""
    found = {instr.name for instr in done[1].program.instrs if instr.kernel.startswith("fc_")}
    return [layer for layer in _in_slices(*done, options, board)[0].long if layer.name in found]


def _in_slices(
    selection: Selection, planned: Planned, options: CompileOptions, board: Board
) -> tuple[Sliced, int]:  # fmt: skip
    """Return the plan in steps, and the cycles that one may take, 0 where one step is all."""
    costs = [cost.cycles for cost in selection.estimates(planned.program)]
    if options.slice is None:
        return sliced(planned, costs, inf, inf, options.cores), 0
    bound = slice_cycles(options, board)
    aim, most = bound * _AIM_PERCENT / 100, bound * _MOST_PERCENT / 100
    return sliced(planned, costs, aim, most, options.cores), bound


def slice_plan(
    selection: Selection, planned: Planned, options: CompileOptions, board: Board
) -> tuple[Planned, SlicesReport | None, CoresReport | None]:  # fmt: skip
    """Return the plan in steps of --slice and for so many --cores, and what the report says of them.

    Raises LimitError that names all layers whose smallest part takes longer, InputError where there are no layers.
    """
    if not planned.program.instrs:
        raise InputError("there is nothing to divide: the model has no layer", hint="leave out --slice and --cores")
    found, bound = _in_slices(selection, planned, options, board)
    if found.long:
        longest = max(layer.cycles for layer in found.long)
        raise LimitError(
            f"--slice {options.slice} is {bound:,} cycles, which {_layers(len(found.long))} cannot keep",
            details=[f"{layer.name}: its smallest part takes about {layer.cycles:,.0f} cycles" for layer in found.long],
            hint=f"give a step {-(-round(longest) // 1000) * 1000} cycles",
        )
    slices = found.planned.program.slices
    assert slices is not None
    steps: SlicesReport | None = None
    if bound:
        parts = [sum(map(len, step)) for step in slices.steps]
        steps = {"limit_cycles": bound, "longest_cycles_estimate": round(found.longest), "step_parts": parts}
    cores: CoresReport | None = None
    if options.cores > 1:
        names = {part.index for stage in slices.stages if len(stage) > 1 for part in stage}
        cores = {
            "count": options.cores, "stage_parts": [len(stage) for stage in slices.stages],
            "shared_layers": len(names), "fork_cycles": fork_cycles(board),
        }  # fmt: skip
    return found.planned, steps, cores

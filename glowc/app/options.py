"""The options that commands share: their types and texts, and the ones that say how a model is compiled."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glowc.errors import InputError

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions


class Opt(StrEnum):
    """Code size against speed."""

    SIZE = "size"
    BALANCED = "balanced"
    SPEED = "speed"


class IoType(StrEnum):
    """Element type at the network's edge."""

    MODEL = "model"
    INT8 = "int8"
    FLOAT = "float"


class Plan(StrEnum):
    """How the arena is planned."""

    AUTO = "auto"
    PLAIN = "plain"
    OVERLAP = "overlap"
    STREAM = "stream"


class InputStream(StrEnum):
    """How the input arrives."""

    WHOLE = "whole"
    ROWS = "rows"
    TIME = "time"


class IoBuffers(StrEnum):
    """Where inputs and outputs are."""

    ARENA = "arena"
    CALLER = "caller"


class Weights(StrEnum):
    """Where the constants are."""

    ARRAY = "array"
    BLOB = "blob"


class IoLayout(StrEnum):
    """Order of image data at the network's edge."""

    EXPORTED = "exported"
    NHWC = "nhwc"


ModelsArg = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL", help="a model file, ONNX or TensorFlow Lite; several with --chain", show_default=False
    ),
]
ModelArg = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a model file, ONNX or TensorFlow Lite", show_default=False)
]
FloatArg = Annotated[Path, typer.Argument(metavar="MODEL", help="a float model, ONNX", show_default=False)]
SourceArg = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="a model file, or a folder written by `glowc compile`", show_default=False),
]


def _boards() -> list[str]:
    from glowc.board import board_names

    return list(board_names())


def _cpus() -> list[str]:
    from glowc.board import cpu_names

    return list(cpu_names())


def chips() -> list[str]:
    """Return the names that complete --chip."""
    from glowc.board import chip_names

    return list(chip_names())


BoardOpt = Annotated[
    str,
    typer.Option("--board", "-b", autocompletion=_boards, help="a name from `glowc boards`, or a board folder"),
]
RunBoardOpt = Annotated[
    str | None,
    typer.Option(
        "--board",
        "-b",
        autocompletion=_boards,
        help="a name from `glowc boards`, or a board folder (default: the bundle's; host)",
    ),
]
CpuOpt = Annotated[str | None, typer.Option("--cpu", autocompletion=_cpus, help="another CPU of the board's family")]
OutOpt = Annotated[Path, typer.Option("--output", "-o", help="folder for the generated sources")]
NameOpt = Annotated[str | None, typer.Option("--name", help="model name: prefix of files and C symbols")]
EntryOpt = Annotated[str | None, typer.Option("--entry-name", help="C name of the inference function")]
BatchOpt = Annotated[int | None, typer.Option("--batch-size", min=1, help="value of a symbolic first dimension")]
SymbolOpt = Annotated[
    list[str] | None,
    typer.Option("--define-symbol", metavar="S=N", help="value of a symbolic dimension; repeatable"),
]
ShapeOpt = Annotated[
    list[str] | None,
    typer.Option("--input-shape", metavar="NAME=1x3x96x96", help="whole shape of one input; repeatable"),
]
SetOpt = Annotated[
    list[str] | None,
    typer.Option("--set-input", metavar="NAME=VALUE", help="make an input a constant and fold it; repeatable"),
]
StateOpt = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="INPUT=OUTPUT", help="keep an input: this output of the call before; repeatable"),
]
OptOpt = Annotated[Opt, typer.Option("--opt", help="size: shared functions; speed: one per layer shape")]
IoTypeOpt = Annotated[IoType, typer.Option("--io-type", help="element type of inputs and outputs")]
IoLayoutOpt = Annotated[IoLayout, typer.Option("--io-layout", help="nhwc: interleaved pixels, as cameras deliver them")]


def size_option(text: str) -> int:
    """Return a size in bytes; typer's own error for what is none."""
    from glowc.board.sizes import parse_size

    try:
        return parse_size(text)
    except InputError as error:
        raise typer.BadParameter(f"{error.message}; {error.hint}") from None


RamOpt = Annotated[
    int | None,
    typer.Option("--ram-limit", parser=size_option, metavar="BYTES", help="fail when the arena needs more: 8192, 8K"),
]
FlashOpt = Annotated[
    int | None,
    typer.Option(
        "--flash-limit", parser=size_option, metavar="BYTES", help="fail when constants and code need more: 64K, 1M"
    ),
]
PassesOpt = Annotated[str | None, typer.Option("--passes", help="edit the pipeline: +name,-name,name{limit=2}")]
PlanOpt = Annotated[
    Plan, typer.Option("--plan", help="overlap: outputs over used-up inputs; stream: least RAM, row by row")
]
TunedOpt = Annotated[
    Path | None, typer.Option("--tuned", help="measured kernel choices: a file written by `glowc tune`")
]
PluginOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="a Python file with operators of your own (docs/PLUGINS.md); repeatable"
    ),
]


def _targets() -> list[str]:
    from glowc.compiler.targets import target_names

    return list(target_names())


TargetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        autocompletion=_targets,
        help="a target of an installed package: kernels or back ends of your own (docs/PLUGINS.md); repeatable",
    ),
]
SplitOpt = Annotated[bool, typer.Option("--arena-split", help="split the arena among the board's arena_regions")]
RegionOpt = Annotated[
    list[str] | None,
    typer.Option("--region", metavar="NAME=BYTES", help="a memory region for the arena, the fastest first; repeatable"),
]
GuardOpt = Annotated[
    bool,
    typer.Option("--guard", help="watch the bytes around tensors: a status names the layer that writes there"),
]
AlignOpt = Annotated[
    int | None,
    typer.Option(
        "--align", metavar="BYTES", help="inputs and outputs begin at multiples: cache lines, DMA (Cortex-M7: 32)"
    ),
]
CodeSectionOpt = Annotated[
    str | None,
    typer.Option("--code-section", metavar="NAME", help="section of the kernels' code: RAM that needs no waiting"),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]
InputOpt = Annotated[Path, typer.Option("--input", "-i", help=".npz: one array per input, leading sample axis")]


def parse_symbols(pairs: list[str] | None) -> dict[str, int]:
    """Return the values of --define-symbol; InputError that lists every wrong one."""
    symbols, wrong = {}, []
    for pair in pairs or []:
        key, _, value = pair.partition("=")
        if key and value.isdigit() and int(value) > 0:
            symbols[key] = int(value)
        else:
            wrong.append(f"--define-symbol {pair}")
    if wrong:
        raise InputError("a symbol is defined as NAME=NUMBER", details=wrong, hint="--define-symbol N=1")
    return symbols


def parse_shapes(pairs: list[str] | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of --input-shape; InputError that lists every wrong one."""
    shapes: dict[str, tuple[int, ...]] = {}
    wrong = []
    for pair in pairs or []:
        name, _, text = pair.rpartition("=")
        sizes = [int(t) if t.isdecimal() else 0 for t in text.split("x")]
        if name and min(sizes) > 0:
            shapes[name] = tuple(sizes)
        else:
            wrong.append(f"--input-shape {pair}")
    if wrong:
        raise InputError("a shape is NAME=SIZExSIZE...", details=wrong, hint="--input-shape image=1x3x96x96")
    return shapes


def parse_values(pairs: list[str] | None) -> dict[str, tuple[int | float, ...]]:
    """Return the values of --set-input; InputError that lists every wrong one."""
    values: dict[str, tuple[int | float, ...]] = {}
    wrong = []
    for pair in pairs or []:
        name, _, text = pair.rpartition("=")
        numbers = [_number(t.strip()) for t in text.split(",")]
        found = tuple(n for n in numbers if n is not None)
        if name and len(found) == len(numbers):
            values[name] = found
        else:
            wrong.append(f"--set-input {pair}")
    if wrong:
        hint = "--set-input sr=16000, or --set-input state=0 (every element), or --set-input sizes=1,2,3"
        raise InputError("a value is NAME=NUMBER or NAME=NUMBER,NUMBER...", details=wrong, hint=hint)
    return values


def parse_states(pairs: list[str] | None) -> dict[str, str]:
    """Return the inputs of --state with their outputs; InputError that lists every wrong one."""
    states: dict[str, str] = {}
    wrong = []
    for pair in pairs or []:
        name, _, out = pair.partition("=")
        if name and out and name not in states:
            states[name] = out
        else:
            wrong.append(f"--state {pair}")
    if wrong:
        raise InputError("a state is INPUT=OUTPUT, each input once", details=wrong, hint="--state h=h_next")
    return states


PortOpt = Annotated[
    str | None, typer.Option("--port", help="the board is on this serial port, with firmware of `glowc build --wire`")
]
BaudOpt = Annotated[int | None, typer.Option("--baud", min=1, help="speed of --port (default: 115200)")]


def parse_section(name: str | None) -> str | None:
    """Return the section of --code-section; InputError where no section can have that name."""
    if name is not None and not re.fullmatch(r"[A-Za-z_.$][A-Za-z0-9_.$]*", name):
        raise InputError(
            f"--code-section {name!r} is no name of a section",
            hint="letters, digits, dots, underscores: one of your linker script, as --code-section .itcm",
        )
    return name


def _number(text: str) -> int | float | None:
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def compile_options(
    batch_size: BatchOpt = None,
    define_symbol: SymbolOpt = None,
    input_shape: ShapeOpt = None,
    set_input: SetOpt = None,
    state: StateOpt = None,
    opt: OptOpt = Opt.BALANCED,
    io_type: IoTypeOpt = IoType.MODEL,
    io_layout: IoLayoutOpt = IoLayout.EXPORTED,
    ram_limit: RamOpt = None,
    flash_limit: FlashOpt = None,
    passes: PassesOpt = None,
    plan: PlanOpt = Plan.AUTO,
    arena_split: SplitOpt = False,
    region: RegionOpt = None,
    tuned: TunedOpt = None,
    plugin: PluginOpt = None,
    target: TargetOpt = None,
    guard: GuardOpt = False,
    code_section: CodeSectionOpt = None,
    align: AlignOpt = None,
) -> CompileOptions:
    """Return what the options of all commands that compile say."""
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.targets import target_files
    from glowc.place.regions import parse_regions

    return CompileOptions(
        batch_size=batch_size, symbols=parse_symbols(define_symbol), input_shapes=parse_shapes(input_shape),
        set_inputs=parse_values(set_input), states=parse_states(state), opt=opt.value, io_type=io_type.value,
        io_layout=io_layout.value, ram_limit=ram_limit, flash_limit=flash_limit, passes=passes, plan=plan.value,
        arena_split=arena_split, regions=parse_regions(region), tuned=tuned, guard=guard,
        plugins=(*target_files(target or ()), *(plugin or ())), code_section=parse_section(code_section), align=align,
    )  # fmt: skip


def compiles(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how a model is compiled; it takes what they say as `options`."""
    shared, own = _parameters(compile_options), _parameters(command)

    @wraps(command)
    def run(**values: Any) -> None:
        how = {p.name: values.pop(p.name) for p in shared}
        command(**values, options=compile_options(**how))

    first = [p for p in own if p.default is p.empty or p.name in ("board", "cpu")]
    parameters = [*first, *shared, *(p for p in own if p not in first)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def parsed_options(words: Sequence[str]) -> CompileOptions:
    """Return what words of a command line say to `compile_options`; others are skipped. Raises click.UsageError."""
    found: list[CompileOptions] = []

    def command(**values: Any) -> None:
        found.append(compile_options(**values))

    parameters = _parameters(compile_options)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    app = typer.Typer(add_completion=False)
    app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(command)
    typer.main.get_command(app).main(list(words), standalone_mode=False)
    return found[0]


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters but `options`, with what their annotations stand for; its type is known to mypy alone."""
    names = function.__globals__
    return [
        p.replace(kind=p.KEYWORD_ONLY, annotation=eval(p.annotation, names))
        for p in inspect.signature(function).parameters.values()
        if p.name != "options"
    ]


GoldenOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--golden",
        metavar="FILE",
        help=".npz of inputs: adds NAME_golden.c, test vectors for firmware; NAME=FILE for one of several models",
    ),
]


def one_golden(files: list[str] | None) -> Path | None:
    """Return the file of --golden for a model. Raises InputError for several."""
    if files is not None and len(files) > 1:
        raise InputError(f"--golden {' --golden '.join(files)}: one file for one model", hint="--golden in.npz")
    return Path(files[0]) if files else None


def golden_by_model(files: list[str] | None) -> dict[str, Path]:
    """Return the files of --golden NAME=FILE. InputError names all that are none."""
    pairs = [(text, *text.partition("=")[::2]) for text in files or ()]
    if wrong := [f"--golden {text}" for text, name, file in pairs if not name or not file]:
        raise InputError("test vectors of several models are NAME=FILE", details=wrong, hint="--golden kws=in.npz")
    return {name: Path(file) for _, name, file in pairs}


def is_group(models: list[Path], chain: bool, sharing: bool) -> bool:
    """Return whether several models make one bundle without being chained; InputError for what is no such request."""
    if not sharing:
        return False
    if chain or len(models) < 2:
        what = "--chain makes one model of several" if chain else "one model has nothing to share with"
        raise InputError(f"--share-arena and --share-weights are for several models: {what}",
                         hint="glowc compile kws.onnx vww.onnx --share-arena --share-weights -o build/app")  # fmt: skip
    return True


def chain_first(models: list[Path], chain: bool, quantize_data: list[Path] | None) -> Path:
    """Return the first of the models to compile; InputError where several are given without --chain, or it with one."""
    if len(models) > 1 and not chain:
        hint = "each fed by the one before: add --chain; beside each other: add --share-arena --share-weights"
        raise InputError(f"{len(models)} models: {', '.join(map(str, models))}", hint=hint)
    if len(models) == 1 and chain:
        raise InputError("--chain needs at least two models", hint="glowc compile pre.tflite net.tflite --chain")
    if chain and quantize_data:
        raise InputError("--quantize-data is for one model", hint="quantise each with glowc quantize, then chain them")
    return models[0]

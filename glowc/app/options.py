"""The options that commands share: their types and texts, and the ones that say how a model is compiled."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from glowc.board.checked import Bytes, OneOf, Within, flags
from glowc.compiler.options import CompileOptions
from glowc.errors import InputError

ModelsArg = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL", help="a model: .onnx, .tflite, .pt2 or .keras; several with --chain", show_default=False
    ),
]
ModelArg = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a model: .onnx, .tflite, .pt2 or .keras", show_default=False)
]
FloatArg = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a float model: .onnx, .pt2 or .keras", show_default=False)
]
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
    typer.Option(
        "--board", "-b", metavar="BOARD", autocompletion=_boards, help="a name from `glowc boards`, or a board folder"
    ),
]
RunBoardOpt = Annotated[
    str | None,
    typer.Option(
        "--board",
        "-b",
        metavar="BOARD",
        autocompletion=_boards,
        help="a name from `glowc boards`, or a board folder (default: the bundle's; host)",
    ),
]
CpuOpt = Annotated[
    str | None, typer.Option("--cpu", metavar="CPU", autocompletion=_cpus, help="another CPU of the board's family")
]
OutOpt = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="folder for the generated sources")]
NameOpt = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="model name: prefix of files and C symbols")
]


def size_option(text: str) -> int:
    """Return a size in bytes; typer's own error for what is none."""
    from glowc.board.sizes import parse_size

    try:
        return parse_size(text)
    except InputError as error:
        raise typer.BadParameter(f"{error.message}; {error.hint}") from None


def _targets() -> list[str]:
    from glowc.compiler.targets import target_names

    return list(target_names())


TargetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        autocompletion=_targets,
        help="a target of an installed package: your own kernels or back ends (docs/PLUGINS.md); repeatable",
    ),
]
PerHourOpt = Annotated[
    float | None, typer.Option("--per-hour", metavar="N", help="days of a battery: so many inferences an hour")
]
BatteryOpt = Annotated[str, typer.Option("--battery", metavar="mAh,V", help="its capacity and voltage")]
SleepOpt = Annotated[
    float, typer.Option("--sleep-ua", metavar="N", help="microamperes that the chip takes between inferences")
]
DEFAULT_BATTERY = "220mAh,3V"  # what makers of a CR2032 state
DEFAULT_SLEEP_UA = 5.0  # with RAM kept
JsonOpt = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]
InputOpt = Annotated[
    Path, typer.Option("--input", "-i", metavar="FILE", help=".npz: one array per input, leading sample axis")
]


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
    str | None,
    typer.Option(
        "--port", metavar="PORT", help="the board is on this serial port, with firmware of `glowc build --wire`"
    ),
]
BaudOpt = Annotated[int | None, typer.Option("--baud", metavar="N", min=1, help="speed of --port (default: 115200)")]


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


def compile_options(values: Mapping[str, Any]) -> CompileOptions:
    """Return what options of the command line say, by field; `target` names packages with plugins."""
    from glowc.compiler.targets import target_files
    from glowc.place.regions import parse_regions

    parsers: Mapping[str, Callable[[Any], object]] = {
        "symbols": parse_symbols, "input_shapes": parse_shapes, "set_inputs": parse_values, "states": parse_states,
        "regions": parse_regions, "code_section": parse_section,
    }  # fmt: skip
    said: dict[str, Any] = {name: parsers[name](v) if name in parsers else v for name, v in values.items()}
    plugins = (*target_files(said.pop("target") or ()), *(said.pop("plugins") or ()))
    return CompileOptions(**said, plugins=plugins)


_WORDS: Mapping[object, str] = {str: "TEXT", Path: "FILE", int: "N", float: "N"}  # how the help says a type


def declared(kind: type, *, shared: bool = True) -> list[inspect.Parameter]:
    """Return the parameters of a command that fields of options declare: those of all commands, or the others."""
    plain, found = kind(), []
    for name, (hint, flag) in flags(kind).items():
        if flag.shared == shared:
            annotation, how = _said(hint)
            default = None if get_origin(annotation) is UnionType else annotation(getattr(plain, name))
            word = how.get("metavar") or _WORDS.get((get_args(annotation) or (annotation,))[0])
            option = typer.Option(flag.option(name), help=flag.help, **{**how, "metavar": flag.metavar or word})
            found.append(_keyword(name, default, Annotated[annotation, option]))
            found += [_keyword("target", None, TargetOpt)] if name == "plugins" else []
    return found


def _keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _said(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Return what the command line takes for a field of this type: typer's type and arguments of its option."""
    if get_origin(hint) is Annotated:
        for mark in hint.__metadata__:
            if isinstance(mark, OneOf):
                return StrEnum("Word", {word.upper(): word for word in mark.words}), {}
            if isinstance(mark, Bytes):
                return int, {"parser": size_option, "metavar": "BYTES"}
            if isinstance(mark, Within):
                most = {} if mark.most is None else {"max": mark.most}
                return hint.__origin__, {"min": mark.least, **most}
        return _said(hint.__origin__)
    if get_origin(hint) in (Union, UnionType):
        kind, how = _said(get_args(hint)[0])
        return kind | None, how
    if get_origin(hint) is None:
        return hint, {}
    return list[Path] | None if Path in get_args(hint) else list[str] | None, {}


def compiles(command: Callable[..., None], *, whole: bool = False) -> Callable[..., None]:
    """Give a command the options that say how a model is compiled; it takes what they say as `options`.

    `whole`: those of `glowc compile` alone, too.
    """
    own = _parameters(command)
    said = [p for shared in (True, False)[: 1 + whole] for p in declared(CompileOptions, shared=shared)]

    @wraps(command)
    def run(**values: Any) -> None:
        how = {p.name: values.pop(p.name) for p in said}
        command(**values, options=compile_options(how))

    return _with_signature(run, [*own, *said])


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that classes of its parameters declare; it takes what they say as one value each."""
    own = _parameters(command)
    kinds: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    said = {name: declared(kind) for name, kind in kinds.items()}

    @wraps(command)
    def run(**values: Any) -> None:
        groups = {name: kinds[name](**{p.name: values.pop(p.name) for p in group}) for name, group in said.items()}
        command(**values, **groups)

    return _with_signature(run, [option for p in own for option in said.get(p.name, [p])])


def _with_signature(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def parsed_options(words: Sequence[str]) -> CompileOptions:
    """Return what words of a command line say to all commands that compile; others are skipped. click.UsageError."""
    found: list[CompileOptions] = []

    def command(**values: Any) -> None:
        found.append(compile_options(values))

    app = typer.Typer(add_completion=False)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(context_settings=settings)(_with_signature(command, declared(CompileOptions, shared=True)))
    typer.main.get_command(app).main(list(words), standalone_mode=False)
    return found[0]


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters but `options`, with what their annotations stand for; its type is known to mypy alone."""
    names = function.__globals__
    return [
        p.replace(
            kind=p.KEYWORD_ONLY, annotation=eval(p.annotation, names) if isinstance(p.annotation, str) else p.annotation
        )
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
        raise InputError("--quantize-data is for one model", hint="quantize each with glowc quantize, then chain them")
    return models[0]

"""The command line: parse, call the driver, print.

Imports of the compiler happen inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glowc.app.compare import register as register_compare
from glowc.app.debug import register as register_debug
from glowc.app.evaluate import register as register_evaluate
from glowc.app.export import Format, FormatOpt, PackageOpt, parse_package
from glowc.app.export import register as register_export
from glowc.app.firmware import register as register_firmware
from glowc.app.group import Sharing, compile_together, compile_weights
from glowc.app.help import WIDEST, use_own_help
from glowc.app.kit import register as register_kit
from glowc.app.lists import register as register_lists
from glowc.app.lists import register_docs
from glowc.app.matrix import register as register_matrix
from glowc.app.measure import register as register_measure
from glowc.app.options import (
    BoardOpt,
    CpuOpt,
    GoldenOpt,
    JsonOpt,
    ModelsArg,
    OutOpt,
    chain_first,
    compiles,
    golden_by_model,
    grouped,
    is_group,
    one_golden,
)
from glowc.app.quantize import int8_source
from glowc.app.quantize import register as register_quantize
from glowc.app.quantize_options import Images
from glowc.app.quantize_summary import int8_saving
from glowc.app.report import register as register_report
from glowc.app.sound import register as register_sound
from glowc.app.terminal import (
    Verbosity,
    accept_any_text,
    progress_line,
    say,
    say_error,
    say_json,
    set_verbosity,
    tell,
    usage_error,
    with_common_first,
)
from glowc.errors import FileError, GlowcError, InputError, InternalError, reason_of

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions
    from glowc.compiler.pipeline import Compiled

app = typer.Typer(
    name="glowc",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Compile ONNX and TensorFlow Lite models to portable C for Cortex-M and Cortex-A.\n\n"
    "Example: glowc compile kws.onnx --board mps2-an386 -o build/kws",
)
_debug = False


def _version(value: bool) -> None:
    if value:
        from glowc.paths import commit, full_version

        known = commit()
        say(f"glowc {full_version()}" + (f" (commit {known[:12]})" if known else ""))
        raise typer.Exit


@app.callback()
def _global(
    debug: Annotated[bool, typer.Option("--debug", help="show a traceback with an error")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="results and errors alone")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="each step and when it began")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print it")] = False,
) -> None:
    global _debug
    _debug = debug
    if quiet and verbose:
        raise InputError("--quiet and --verbose say opposite things", hint="give one of them")
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)


@app.command(
    "compile",
    help="Write C sources for a model.\n\nExample: glowc compile kws.onnx --board mps2-an386 -o build/kws",
)
@partial(compiles, whole=True)
@grouped
def compile_(
    *,
    model: ModelsArg,
    out: OutOpt,
    options: CompileOptions,
    board: BoardOpt = "host",
    cpu: CpuOpt = None,
    quantize_data: Annotated[
        list[Path] | None,
        typer.Option(
            "--quantize-data",
            metavar="FILE",
            help="sample data: quantize a float model first, as `glowc quantize`; repeatable",
        ),
    ] = None,
    images: Images,
    golden: GoldenOpt = None,
    _: Annotated[
        bool, typer.Option("--verify-plan", hidden=True, help="as always: the plan is executed first")
    ] = False,
    weights_for: Annotated[
        Path | None,
        typer.Option("--weights-for", metavar="BUNDLE", help="the new NAME_weights.bin alone, if it fits this bundle"),
    ] = None,
    chain: Annotated[
        bool, typer.Option("--chain", help="several models, each fed by the one before, as one bundle")
    ] = False,
    share_arena: Annotated[
        bool, typer.Option("--share-arena", help="several models share one arena: one runs at a time")
    ] = False,
    share_weights: Annotated[
        bool, typer.Option("--share-weights", help="several models: store equal constants once")
    ] = False,
    group_name: Annotated[
        str, typer.Option("--group-name", metavar="NAME", help="of several models: prefix of the whole")
    ] = "models",
    format_: FormatOpt = Format.FOLDER,
    package: PackageOpt = None,
    force: Annotated[
        bool, typer.Option("--force", help="write also into a folder that holds files of others, and over them")
    ] = False,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="also list the plans with less RAM and what they cost in instructions")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Compile a model."""
    from dataclasses import replace

    from glowc.board import load_board
    from glowc.compiler.bundle_folder import check_folder
    from glowc.compiler.pipeline import compile_model, write_bundle
    from glowc.place.regions import map_text

    together = is_group(model, chain, share_arena or share_weights)
    source_model = model[0] if together else chain_first(model, chain, quantize_data)
    options = replace(
        options, chain=tuple(model[1:]), golden=None if together else one_golden(golden), form=format_.value,
        package=parse_package(package),
    )  # fmt: skip
    if together:
        alone = (("--quantize-data", quantize_data), ("--pareto", pareto), ("--format", format_ is not Format.FOLDER))
        single = [flag for flag, given in alone if given]
        sharing = Sharing(group_name, share_arena, share_weights, as_json, force, golden_by_model(golden))
        compile_together(model, load_board(board, cpu), replace(options, chain=()), sharing, out, single)
        return
    if options.stop_after is not None:
        _stop_after(source_model, options)
        return
    if weights_for is not None:
        compile_weights(source_model, weights_for, options, out, as_json)
        return
    check_folder(out, force=force)
    pixels, sizes = images.format() if quantize_data else None, options
    if quantize_data:  # the int8 file has them
        options = replace(options, input_shapes={}, symbols={}, batch_size=None)
    with (
        int8_source(source_model, quantize_data, pixels, quiet=as_json, sizes=sizes) as source,
        progress_line(as_json) as progress,
    ):
        compiled = compile_model(source, load_board(board, cpu), options, progress)
        write_bundle(compiled, out, force=force)
    if as_json:
        say_json({**compiled.report, **({"pareto": _frontier(compiled)} if pareto else {})})
        return
    from glowc.app.compile_summary import compile_summary

    tell(compile_summary(compiled, out))
    if (saving := int8_saving(compiled, source_model)) is not None:
        tell(saving)
    if pareto:
        say("plans, the cheapest first (instructions besides the layers' own, estimated):")
        for entry in _frontier(compiled):
            say(f"  {entry['arena_bytes']:>10,} bytes  {entry['extra_insns']:>+10,}  {entry['plan']}")
    if options.memory_map:
        say(map_text(compiled.planned), nl=False)


def _frontier(compiled: Compiled) -> list[dict[str, Any]]:
    from glowc.compiler.pipeline import plans_of

    return [
        {"plan": p.title, "arena_bytes": p.plan.arena_bytes, "extra_insns": p.extra_insns} for p in plans_of(compiled)
    ]


def _stop_after(model: Path, options: CompileOptions) -> None:
    from glowc.compiler.pipeline import optimise
    from glowc.graph.text import dump

    say(dump(optimise(model, options)), nl=False)


register_measure(app)
register_compare(app)
register_lists(app)
register_quantize(app)
register_evaluate(app)
register_kit(app)
register_debug(app)
register_report(app)
register_export(app)
register_sound(app)
register_firmware(app)
register_matrix(app)
register_docs(app)
use_own_help(app)
_GARBAGE = 1_000_000  # objects before it is collected: a command makes little of it, and what there is is gone soon
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def main() -> None:
    """Run the command line; docs/OUTPUT.md lists the exit statuses, docs/ERRORS.md the kinds of errors."""
    gc.set_threshold(_GARBAGE)
    accept_any_text()
    sys.argv = with_common_first(sys.argv)
    sys.exit(_status())


def _status() -> int:
    """Run a command and say what went wrong."""
    try:
        status = app(standalone_mode=False) or 0
    except KeyboardInterrupt:  # a second one, while the first one was cleaned up after
        status = INTERRUPTED
    except typer.Abort:
        return _failed(InputError("nobody answered", hint="run it in a terminal"))
    except Exception as error:
        if (wrong := usage_error(error)) is not None:
            return _failed(wrong)
        if _debug:
            raise
        return _failed(_told(error))
    if status == INTERRUPTED:
        say("interrupted", err=True)
    return int(status)


def _failed(error: GlowcError) -> int:
    """Print an error, with --json also as JSON, and return the exit status."""
    say_error(error)
    if "--json" in sys.argv:
        say_json({"error": error.as_json()})
    return error.exit_status


def _told(error: Exception) -> GlowcError:
    """Return what is said of an exception."""
    if isinstance(error, GlowcError):
        return error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return FileError(f"{where}{reason_of(error)}", hint="look at the file, its folder and the disk")
    plugins = sys.modules.get("glowc.compiler.plugins")
    plugin = plugins.plugin_in(error) if plugins is not None else None  # that it comes from
    hint = f"this is a bug in plugin {plugin}; run again with `glowc --debug ...` to see where"
    if plugin is None:
        hint = f"this is a bug in glowc; run again with `glowc --debug ...` and report what it prints{_issues()}"
    return InternalError(f"{type(error).__name__}: {error}", hint=hint)


def _issues() -> str:
    """Return where the metadata of the package says that issues go (project.urls of pyproject.toml), if it does."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        entries = metadata("glowc").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((f" to {text.partition(', ')[2]}" for text in entries if text.startswith("Issues, ")), "")

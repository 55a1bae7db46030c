"""The commands `profile` and `quantize`, and quantisation as the first step of `compile`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.options import FloatArg, JsonOpt, grouped
from glowc.app.quantize_options import How, Images, Limited, Narrow, Sizes, Target, check_edges
from glowc.app.quantize_summary import summary, summary_text, tuned_data
from glowc.app.terminal import is_quiet, say, say_json, tell, visible
from glowc.compiler.options import CompileOptions
from glowc.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from glowc.app.frontier import Room
    from glowc.quant.data import ImageFormat
    from glowc.quant.engine import Engine
    from glowc.quant.frontier import Found
    from glowc.quant.net import Net
    from glowc.quant.profile import Profile
    from glowc.quant.quantizer import Gathered, Quantized, QuantizeOptions
    from glowc.quant.tune import Target as Goal
    from glowc.quant.tune import Tuned


DataOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", "-d", metavar="FILE", help=".npz .npy .png .jpg .wav .csv .raw, or a folder of these; repeatable"
    ),
]


@contextmanager
def steps_bar(quiet: bool, total: int | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a step, and moves a bar, on a terminal's standard error."""
    if quiet or is_quiet() or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=total)
        yield lambda text: progress.update(task, description=visible(text)[:60], advance=1)


def _gather(net: Net, gathered: Gathered, data: list[Path], images: ImageFormat, quiet: bool) -> None:
    """Profile all samples; at an interrupt, what was profiled is kept."""
    from glowc.quant.data import count_samples, read_samples

    with steps_bar(quiet, count_samples(data, net.inputs)) as progress:
        for sample in read_samples(data, net.inputs, images):
            gathered.add(sample)
            progress(f"profiled {gathered.profiler.samples} samples")


@grouped
def profile(
    *,
    model: FloatArg,
    data: DataOpt = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the profile, YAML")] = Path(
        "profile.yaml"
    ),
    sizes: Sizes,
    images: Images,
    as_json: JsonOpt = False,
) -> None:
    """Profile a float model."""
    from glowc.compiler.files import check_output, write_file
    from glowc.quant.engine import Engine
    from glowc.quant.load import load_float
    from glowc.quant.profile import Profiler, profile_text
    from glowc.quant.quantizer import Gathered

    check_output(output)
    engine = Engine()
    options = sizes.options()
    net = load_float(model, _shapes(model, given_data(data), options), options.states)
    gathered = Gathered(Profiler(net, engine), [])
    stopped = False
    try:
        _gather(net, gathered, given_data(data), images.format(), as_json)
    except KeyboardInterrupt:
        if not gathered.profiler.samples:
            raise
        stopped = True
    found = gathered.profiler.profile()
    write_file(output, lambda file: file.write(profile_text(found).encode()))
    if stopped:
        say(f"interrupted: {output} holds the {found.samples} samples until then", err=True)
        raise typer.Exit(130)
    _say_profile(found, output, as_json)


def _say_profile(found: Profile, output: Path, as_json: bool) -> None:
    if as_json:
        say_json({"samples": found.samples, "tensors": len(found.tensors), "graph_hash": found.graph_hash,
                        "output": str(output)})  # fmt: skip
    else:
        tell(f"{found.samples} samples, {len(found.tensors)} tensors: {output}")


def given_data(data: list[Path] | None) -> list[Path]:
    if not data:
        raise InputError("no data is given", hint="--data FILE_OR_FOLDER, e.g. --data inputs.npz")
    return data


@grouped
def quantize(
    *,
    model: FloatArg,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the int8 ONNX file")],
    data: DataOpt = None,
    profile_: Annotated[
        Path | None, typer.Option("--profile", metavar="FILE", help="a file written by `glowc profile`")
    ] = None,
    sizes: Sizes,
    how: How,
    images: Images,
    target: Target,
    narrow: Narrow,
    limited: Limited,
    as_json: JsonOpt = False,
) -> None:
    """Quantise a float model."""
    from glowc.app.frontier import frontier_data, frontier_lines, pareto_svg
    from glowc.compiler.files import check_output, write_file
    from glowc.quant.limits import Limits
    from glowc.quant.tune import trial_lines

    check_output(output)
    room, accuracy = limited.room(), target.target_accuracy
    if how.like is not None and (room is not None or accuracy is not None):
        raise InputError("--like keeps what a search would choose", hint="leave out limits and --target-accuracy")
    options = how.options(narrow, limited=room is not None and room.limits != Limits())
    pixels, open_sizes = images.format(), sizes.options()
    if accuracy is not None and room is not None:
        raise InputError("--target-accuracy keeps layers float, limits make them smaller", hint="one of them")
    if narrow.weights != "int8" and room is not None:
        what = f"--weights {narrow.weights}: limits and --pareto choose the weights of layers"
        raise InputError(what, hint="--weights-of")
    wanted = None
    if accuracy is not None or (room is not None and target.said):
        wanted = replace(target, test_data=target.test_data or given_data(data))
    elif target.said:
        raise InputError(
            "labels are of no use without a target", hint="--target-accuracy 0.5, --flash-limit 32K, or glowc eval"
        )
    if room is not None:
        found = within_limits(
            model, data, profile_, options, pixels, quiet=as_json, wanted=wanted, room=room, sizes=open_sizes
        )
        done, search = found.done, None
    else:
        found = None
        done, search = quantized(
            model, data, profile_, options[0], pixels, quiet=as_json, wanted=wanted, sizes=open_sizes
        )
    check_edges(done.model, how.io_type)
    write_file(output, lambda file: file.write(done.model.SerializeToString(deterministic=True)))
    if found is not None and limited.pareto:
        picture = pareto_svg(found, model.stem).encode()
        write_file(output.with_name(f"{output.stem}_pareto.svg"), lambda file: file.write(picture))
    if as_json:
        say_json({**summary(done, output), **tuned_data(search), **(frontier_data(found) if found else {})})
        return
    tell(summary_text(done, output))
    if search is not None:
        tell("\n".join([f"  float: {100 * search.float_score:.2f} %", *(f"  {t}" for t in trial_lines(search.trials))]))
    if found is not None:
        tell("\n".join(frontier_lines(found, plot=limited.pareto)))


def quantized(
    model: Path, data: list[Path] | None, profile_file: Path | None, options: QuantizeOptions, images: ImageFormat,
    *, quiet: bool, wanted: Target | None = None, sizes: CompileOptions,
) -> tuple[Quantized, Tuned | None]:  # fmt: skip
    """Return a quantised model: by data, by a profile, or by the ranges of a profile and the samples of data.

    With `wanted`, it is searched for, and the second result is what was tried.
    """
    from glowc.quant.quantizer import quantize_net, steps_of
    from glowc.quant.tune import tuned

    net, engine, found, gathered = profiled(model, data, profile_file, images, quiet=quiet, sizes=sizes)
    if wanted is None:
        with steps_bar(quiet, steps_of(net, options)) as progress:
            return gathered.judged(quantize_net(net, engine, found, gathered.kept, options, progress)), None
    target = target_of(wanted, net, images)
    with steps_bar(quiet, None) as progress:
        search = tuned(net, engine, found, gathered.kept, options, target, progress)
    return gathered.judged(search.done), search


def within_limits(
    model: Path, data: list[Path] | None, profile_file: Path | None, options: list[QuantizeOptions],
    images: ImageFormat, *, quiet: bool, wanted: Target | None, room: Room, sizes: CompileOptions,
) -> Found:  # fmt: skip
    """Return a model with some layers in fewer bits, as the limits and --pareto want it: the best of the options."""
    from glowc.app.frontier import searched, size_on
    from glowc.quant.frontier import Search

    given_data(data)
    net, engine, profile, gathered = profiled(model, data, profile_file, images, quiet=quiet, sizes=sizes)
    target = target_of(wanted, net, images) if wanted is not None else None
    with steps_bar(quiet, None) as progress:
        size = size_on(room.board, room.limits)
        kept = gathered.kept
        return searched([Search(net, engine, profile, kept, one, size, target, progress) for one in options], room)


def _shapes(model: Path, data: list[Path] | None, sizes: CompileOptions) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs whose sizes the model leaves open: as options say, else as the data has them."""
    from glowc.quant.data import open_shapes_of, wanted_shapes
    from glowc.quant.load import read_inputs

    inputs = read_inputs(model, None, sizes.states)
    seen = open_shapes_of(data or [], inputs)
    return wanted_shapes(inputs, seen, sizes.input_shapes, sizes.symbols, sizes.batch_size)


def profiled(
    model: Path, data: list[Path] | None, profile_file: Path | None, images: ImageFormat, *, quiet: bool,
    sizes: CompileOptions,
) -> tuple[Net, Engine, Profile, Gathered]:  # fmt: skip
    """Return a float network, what runs it, its profile and what the data leaves."""
    from glowc.quant.engine import Engine
    from glowc.quant.load import load_float
    from glowc.quant.profile import Profiler, check_profile, read_profile
    from glowc.quant.quantizer import Gathered

    if profile_file is None:
        given_data(data)
    engine = Engine()
    net = load_float(model, _shapes(model, data, sizes), sizes.states)
    known = read_profile(profile_file) if profile_file is not None else None
    if known is not None and profile_file is not None:
        check_profile(known, net, profile_file)
    gathered = Gathered(Profiler(net, engine), [])
    if data:
        _gather(net, gathered, data, images, quiet)
    return net, engine, known or gathered.profiler.profile(), gathered


def target_of(wanted: Target, net: Net, images: ImageFormat) -> Goal:
    """Return the labelled samples and the score of outputs. Raises InputError where there are no labels."""
    from glowc.quant.labels import read_classes, read_set
    from glowc.quant.metrics import check_classes, load_metric, top
    from glowc.quant.tune import Target as Goal

    if net.states:
        raise InputError("labels of a model with states: its steps are not scored one by one", hint="glowc eval")
    names = read_classes(wanted.classes) if wanted.classes is not None else ()
    found = read_set(given_data(wanted.test_data), net.inputs, wanted.labels, names, images)
    labels, own = found.labels, load_metric(wanted.metric) if wanted.metric is not None else None
    if labels is None or not (labels.classes or own):
        raise InputError(
            "accuracy needs the class of each sample", hint="--labels FILE, or data in folders named by class"
        )

    def score(outputs: np.ndarray) -> float:
        if own is not None:
            return own(outputs, labels.values)
        check_classes(labels, outputs)
        return top(outputs, labels.values)

    return Goal(wanted.target_accuracy or 0.0, found.samples(), score)


@contextmanager
def int8_source(
    model: Path, data: list[Path] | None, images: ImageFormat | None, *, quiet: bool, sizes: CompileOptions
) -> Iterator[Path]:  # fmt: skip
    """Yield the model; with data, an int8 file made of it, called like it, in a temporary folder."""
    if not data:
        yield model
        return
    import tempfile

    from glowc.quant.data import ImageFormat
    from glowc.quant.quantizer import QuantizeOptions

    done, _ = quantized(model, data, None, QuantizeOptions(), images or ImageFormat(), quiet=quiet, sizes=sizes)
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        path = Path(folder) / f"{model.stem}.onnx"
        path.write_bytes(done.model.SerializeToString(deterministic=True))
        if not quiet:
            tell(summary_text(done, Path(model.name)))
        yield path


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        help="Write ranges and histograms of a float model's values.\n\n"
        "Example: glowc profile kws_fp32.onnx --data in.npz -o kws.yaml"
    )(profile)
    app.command(
        help="Make an int8 ONNX file of a float one, by data or a profile.\n\n"
        "Example: glowc quantize kws_fp32.onnx --data in.npz -o kws.onnx"
    )(quantize)

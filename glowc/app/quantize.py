"""The commands `profile` and `quantize`, and quantisation as the first step of `compile`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.options import (
    BatchOpt,
    FloatArg,
    JsonOpt,
    ShapeOpt,
    SymbolOpt,
    parse_shapes,
    parse_symbols,
    size_option,
)
from glowc.app.quantize_options import (
    activations_of,
    calibration_of,
    check_edges,
    float_edge,
    image_format,
    precision_of,
    schema_of,
)
from glowc.app.quantize_summary import summary, summary_text, tuned_data
from glowc.app.terminal import is_quiet, say, tell, visible
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
    from glowc.quant.quantizer import Gathered, Quantized, QuantizeOptions, Sample
    from glowc.quant.tune import Target, Tuned


DataOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", "-d", metavar="FILE", help=".npz .npy .png .jpg .wav .csv .raw, or a folder of such; repeatable"
    ),
]
MeanOpt = Annotated[
    str, typer.Option("--mean", help="of images: subtracted from pixels 0..255; one, or per channel: 124,116,104")
]
StdOpt = Annotated[str, typer.Option("--std", help="of images: pixels are divided by it")]
LayoutOpt = Annotated[str | None, typer.Option("--layout", help="of images: nchw or nhwc (default: what fits)")]
ChannelsOpt = Annotated[str, typer.Option("--channels", help="of images: rgb or bgr")]
LabelsOpt = Annotated[
    Path | None,
    typer.Option("--labels", help=".npy .npz .csv, or text with one a line (default: the folders of the data)"),
]
ClassesOpt = Annotated[
    Path | None, typer.Option("--classes", help="names of the classes, one a line, in the order of the outputs")
]
_WEIGHTS = "of layers that gain by fewer bits: int8, int4, int2, or codes of a palette, palette4 or palette2"
WeightsOpt = Annotated[str, typer.Option("--weights", help=_WEIGHTS)]
WeightsOfOpt = Annotated[
    list[str] | None,
    typer.Option("--weights-of", metavar="NODE=TYPE", help="of one layer, or a kind of operator; repeatable"),
]
ActivationsOfOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--activations-of", metavar="NODE=TYPE", help="int16 or int8 of one layer, or a kind of operator; repeatable"
    ),
]
FlashLimitOpt = Annotated[
    int | None,
    typer.Option(
        "--flash-limit",
        parser=size_option,
        metavar="BYTES",
        help="weights of 4 and 2 bits until constants and code fit, as in `glowc compile`: 32K or 2M",
    ),
]
RamLimitOpt = Annotated[
    int | None,
    typer.Option("--ram-limit", parser=size_option, metavar="BYTES", help="the arena has at most so many: 8192, 8K"),
]
MaxInsnsOpt = Annotated[
    int | None, typer.Option("--max-insns", min=1, metavar="N", help="at most so many instructions, as predicted")
]
ParetoOpt = Annotated[
    bool,
    typer.Option("--pareto", help="measure bytes and error with more and more layers in fewer bits; NAME_pareto.svg"),
]
BoardOpt = Annotated[str, typer.Option("--board", help="whose sizes and instructions the limits and --pareto count")]
MetricOpt = Annotated[
    str | None,
    typer.Option("--metric", metavar="FILE:FUNCTION", help="f(outputs, labels), samples first; more is better"),
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


def profile(
    model: FloatArg,
    data: DataOpt = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="the profile, YAML")] = Path("profile.yaml"),
    input_shape: ShapeOpt = None,
    define_symbol: SymbolOpt = None,
    batch_size: BatchOpt = None,
    mean: MeanOpt = "0",
    std: StdOpt = "255",
    layout: LayoutOpt = None,
    channels: ChannelsOpt = "rgb",
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
    sizes = Sizes(parse_shapes(input_shape), parse_symbols(define_symbol), batch_size)
    net = load_float(model, _shapes(model, given_data(data), sizes))
    gathered = Gathered(Profiler(net, engine), [])
    stopped = False
    try:
        _gather(net, gathered, given_data(data), image_format(mean, std, layout, channels), as_json)
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
        say(json.dumps({"samples": found.samples, "tensors": len(found.tensors), "graph_hash": found.graph_hash,
                        "output": str(output)}))  # fmt: skip
    else:
        tell(f"{found.samples} samples, {len(found.tensors)} tensors: {output}")


def given_data(data: list[Path] | None) -> list[Path]:
    if not data:
        raise InputError("no data is given", hint="--data FILE_OR_FOLDER, e.g. --data inputs.npz")
    return data


def quantize(
    model: FloatArg,
    output: Annotated[Path, typer.Option("--output", "-o", help="the int8 ONNX file")],
    data: DataOpt = None,
    profile_: Annotated[Path | None, typer.Option("--profile", help="a file written by `glowc profile`")] = None,
    input_shape: ShapeOpt = None,
    define_symbol: SymbolOpt = None,
    batch_size: BatchOpt = None,
    schema: Annotated[
        str,
        typer.Option("--schema", help="asymmetric, symmetric, symmetric_with_uint8, symmetric_with_power2_scale"),
    ] = "asymmetric",
    calibration: Annotated[
        str, typer.Option("--calibration", help="auto (by measured error), minmax, percentile, entropy, mse")
    ] = "auto",
    activations: Annotated[
        str,
        typer.Option("--activations", help="int8, or int16: finer, twice the arena, slower; auto: what limits allow"),
    ] = "int8",
    io_type: Annotated[
        str | None, typer.Option("--io-type", help="of inputs and outputs: float, or as --activations (default)")
    ] = None,
    keep_float: Annotated[
        list[str] | None,
        typer.Option("--keep-float", metavar="NODE", help="a node, its result, or a kind of operator; repeatable"),
    ] = None,
    equalise: Annotated[bool, typer.Option("--equalise/--no-equalise", help="make channels equally large")] = True,
    bias: Annotated[bool, typer.Option("--bias-correction/--no-bias-correction", help="fit biases to the data")] = True,
    rounding: Annotated[bool, typer.Option("--rounding/--no-rounding", help="fit the rounding of weights")] = True,
    split: Annotated[
        float,
        typer.Option(
            "--split-channels", min=0, max=1, metavar="SHARE", help="copies of large channels, at most this share"
        ),
    ] = 0.0,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", metavar="OLD", help="keep scales and zero points of this quantised file: new weights fit"
        ),
    ] = None,
    mean: MeanOpt = "0",
    std: StdOpt = "255",
    layout: LayoutOpt = None,
    channels: ChannelsOpt = "rgb",
    target_accuracy: Annotated[
        float | None,
        typer.Option(
            "--target-accuracy", min=0, metavar="POINTS", help="layers on int16 or float until it is so near float"
        ),
    ] = None,
    labels: LabelsOpt = None,
    classes: ClassesOpt = None,
    metric: MetricOpt = None,
    test_data: Annotated[
        list[Path] | None,
        typer.Option("--test-data", metavar="FILE", help="what --labels belong to (default: --data); repeatable"),
    ] = None,
    weights: WeightsOpt = "int8",
    weights_of: WeightsOfOpt = None,
    codes_of: ActivationsOfOpt = None,
    flash_limit: FlashLimitOpt = None,
    ram_limit: RamLimitOpt = None,
    max_insns: MaxInsnsOpt = None,
    pareto: ParetoOpt = False,
    board: BoardOpt = "mps2-an386",
    as_json: JsonOpt = False,
) -> None:
    """Quantise a float model."""
    from glowc.app.frontier import Room, frontier_data, frontier_lines, pareto_svg
    from glowc.compiler.files import check_output, write_file
    from glowc.quant.like import read_like
    from glowc.quant.limits import Limits
    from glowc.quant.quantizer import QuantizeOptions
    from glowc.quant.tune import trial_lines

    check_output(output)
    limits = Limits(flash_limit, ram_limit, max_insns)
    room = Room(limits, pareto, board) if pareto or limits != Limits() else None
    if like is not None and (room is not None or target_accuracy is not None):
        raise InputError("--like keeps what a search would choose", hint="leave out limits and --target-accuracy")
    earlier = read_like(like) if like is not None else None
    options = [
        QuantizeOptions(
            schema_of(schema),
            calibration_of(calibration),
            tuple(keep_float or ()),
            float_edge(io_type, activations),
            equalise,
            bias,
            rounding,
            kind,
            precision=precision_of(weights, weights_of, codes_of),
            split=split,
            like=earlier,
        )
        for kind in activations_of(activations, limited=limits != Limits())
    ]
    images, sizes = (
        image_format(mean, std, layout, channels),
        Sizes(parse_shapes(input_shape), parse_symbols(define_symbol), batch_size),
    )
    if target_accuracy is not None and room is not None:
        raise InputError("--target-accuracy keeps layers float, limits make them smaller", hint="one of them")
    if weights != "int8" and room is not None:
        raise InputError(f"--weights {weights}: limits and --pareto choose the weights of layers", hint="--weights-of")
    wanted = None
    if target_accuracy is not None or (room is not None and (labels or classes or metric or test_data)):
        wanted = Wanted(target_accuracy or 0.0, test_data or given_data(data), labels, classes, metric)
    elif labels or classes or metric or test_data:
        raise InputError(
            "labels are of no use without a target", hint="--target-accuracy 0.5, --flash-limit 32K, or glowc eval"
        )
    if room is not None:
        found = within_limits(
            model, data, profile_, options, images, quiet=as_json, wanted=wanted, room=room, sizes=sizes
        )
        done, search = found.done, None
    else:
        found = None
        done, search = quantized(model, data, profile_, options[0], images, quiet=as_json, wanted=wanted, sizes=sizes)
    check_edges(done.model, io_type)
    write_file(output, lambda file: file.write(done.model.SerializeToString(deterministic=True)))
    if found is not None and pareto:
        picture = pareto_svg(found, model.stem).encode()
        write_file(output.with_name(f"{output.stem}_pareto.svg"), lambda file: file.write(picture))
    if as_json:
        say(json.dumps({**summary(done, output), **tuned_data(search), **(frontier_data(found) if found else {})}))
        return
    tell(summary_text(done, output))
    if search is not None:
        tell("\n".join([f"  float: {100 * search.float_score:.2f} %", *(f"  {t}" for t in trial_lines(search.trials))]))
    if found is not None:
        tell("\n".join(frontier_lines(found, plot=pareto)))


@dataclass(frozen=True, slots=True)
class Sizes:
    """What options say of sizes that a model leaves open: shapes of inputs, values of symbols, the first axis."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None


def quantized(
    model: Path, data: list[Path] | None, profile_file: Path | None, options: QuantizeOptions, images: ImageFormat,
    *, quiet: bool, wanted: Wanted | None = None, sizes: Sizes = Sizes(),
) -> tuple[Quantized, Tuned | None]:  # fmt: skip
    """Return a quantised model: by data, by a profile, or by the ranges of a profile and the samples of data.

    With `wanted`, it is searched for, and the second result is what was tried.
    """
    from glowc.quant.quantizer import quantize_net, steps_of
    from glowc.quant.tune import tuned

    net, engine, found, kept = profiled(model, data, profile_file, images, quiet=quiet, sizes=sizes)
    if wanted is None:
        with steps_bar(quiet, steps_of(net, options)) as progress:
            return quantize_net(net, engine, found, kept, options, progress), None
    target = target_of(wanted, net, images)
    with steps_bar(quiet, None) as progress:
        search = tuned(net, engine, found, kept, options, target, progress)
    return search.done, search


def within_limits(
    model: Path, data: list[Path] | None, profile_file: Path | None, options: list[QuantizeOptions],
    images: ImageFormat, *, quiet: bool, wanted: Wanted | None, room: Room, sizes: Sizes,
) -> Found:  # fmt: skip
    """Return a model with some layers in fewer bits, as the limits and --pareto want it: the best of the options."""
    from glowc.app.frontier import searched, size_on
    from glowc.quant.frontier import Search

    given_data(data)
    net, engine, profile, kept = profiled(model, data, profile_file, images, quiet=quiet, sizes=sizes)
    target = target_of(wanted, net, images) if wanted is not None else None
    with steps_bar(quiet, None) as progress:
        size = size_on(room.board, room.limits)
        return searched([Search(net, engine, profile, kept, one, size, target, progress) for one in options], room)


def _shapes(model: Path, data: list[Path] | None, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs whose sizes the model leaves open: as options say, else as the data has them."""
    from glowc.quant.data import open_shapes_of, wanted_shapes
    from glowc.quant.load import read_inputs

    inputs = read_inputs(model)
    seen = open_shapes_of(data or [], inputs)
    return wanted_shapes(inputs, seen, sizes.shapes, sizes.symbols, sizes.batch)


def profiled(
    model: Path, data: list[Path] | None, profile_file: Path | None, images: ImageFormat, *, quiet: bool,
    sizes: Sizes = Sizes(),
) -> tuple[Net, Engine, Profile, list[Sample]]:  # fmt: skip
    """Return a float network, what runs it, its profile and the samples that are kept."""
    from glowc.quant.engine import Engine
    from glowc.quant.load import load_float
    from glowc.quant.profile import Profiler, check_profile, read_profile
    from glowc.quant.quantizer import Gathered

    if profile_file is None:
        given_data(data)
    engine = Engine()
    net = load_float(model, _shapes(model, data, sizes))
    known = read_profile(profile_file) if profile_file is not None else None
    if known is not None and profile_file is not None:
        check_profile(known, net, profile_file)
    gathered = Gathered(Profiler(net, engine), [])
    if data:
        _gather(net, gathered, data, images, quiet)
    return net, engine, known or gathered.profiler.profile(), gathered.kept


@dataclass(frozen=True, slots=True)
class Wanted:
    """What --target-accuracy and its companions say."""

    points: float
    data: list[Path]
    labels: Path | None
    classes: Path | None
    metric: str | None


def target_of(wanted: Wanted, net: Net, images: ImageFormat) -> Target:
    """Return the labelled samples and the score of outputs. Raises InputError where there are no labels."""
    from glowc.quant.labels import read_classes, read_set
    from glowc.quant.metrics import check_classes, load_metric, top
    from glowc.quant.tune import Target

    names = read_classes(wanted.classes) if wanted.classes is not None else ()
    found = read_set(wanted.data, net.inputs, wanted.labels, names, images)
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

    return Target(wanted.points, found.samples(), score)


@contextmanager
def int8_source(
    model: Path, data: list[Path] | None, images: ImageFormat | None = None, *, quiet: bool, sizes: Sizes = Sizes()
) -> Iterator[Path]:  # fmt: skip
    """Yield the model; with data, an int8 file made of it, with the same name in a temporary folder."""
    if not data:
        yield model
        return
    import tempfile

    from glowc.quant.data import ImageFormat
    from glowc.quant.quantizer import QuantizeOptions

    done, _ = quantized(model, data, None, QuantizeOptions(), images or ImageFormat(), quiet=quiet, sizes=sizes)
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        path = Path(folder) / model.name
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

"""The command `eval`: how good a quantised model is on labeled data, on every machine, and which layer loses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glowc.app.options import JsonOpt, ModelArg, compiles, grouped
from glowc.app.quantize import DataOpt, given_data, steps_bar
from glowc.app.quantize_options import Images, Scoring
from glowc.app.terminal import say_json

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions
    from glowc.machine.evaluate import Evaluation, Score
    from glowc.machine.layer_error import LayerError

_LAYERS = 16  # that a person is shown: those that lose most
_MATRIX = 20  # most classes of a confusion matrix that a person is shown


@compiles
@grouped
def evaluate(
    *,
    model: ModelArg,
    options: CompileOptions,
    data: DataOpt = None,
    scoring: Scoring,
    float_model: Annotated[
        Path | None,
        typer.Option(
            "--float", metavar="FILE", help="the float model that MODEL was made of; the data is its own then"
        ),
    ] = None,
    board: Annotated[
        str | None, typer.Option("--board", "-b", metavar="BOARD", help="also run a part of the data there")
    ] = None,
    cpu: Annotated[str | None, typer.Option("--cpu", metavar="CPU", help="of the board")] = None,
    board_samples: Annotated[
        int, typer.Option("--board-samples", metavar="N", min=1, help="how many of them there")
    ] = 16,
    images: Images,
    as_json: JsonOpt = False,
) -> None:
    """Evaluate a model."""
    from glowc.board import load_board
    from glowc.machine.evaluate import EvalOptions
    from glowc.machine.evaluate import evaluate as measure
    from glowc.quant.labels import read_classes
    from glowc.quant.metrics import load_metric

    how = EvalOptions(
        float_model=float_model, board=load_board(board, cpu) if board is not None else None,
        board_samples=board_samples, compile=options,
        metric=load_metric(scoring.metric) if scoring.metric is not None else None,
    )  # fmt: skip
    names = read_classes(scoring.classes) if scoring.classes is not None else ()
    data, pixels = given_data(data), images.format()
    with steps_bar(as_json, None) as progress:
        found = measure(model, data, scoring.labels, names, pixels, how, progress)
    say_json(found) if as_json else evaluation_tables(found)


def evaluation_tables(found: Evaluation) -> None:
    """Print an evaluation for people."""
    from glowc.app.show import plain_console, plain_table

    console = plain_console()
    console.print(_scores(found["scores"], plain_table))
    if found["drop_points"] is not None:
        console.print(f"the C loses {found['drop_points']:.2f} points against {found['scores'][0]['machine']}")
    if found["confusion"] is not None and len(found["confusion"]) <= _MATRIX:
        console.print(_matrix(found["confusion"], found["classes"], plain_table))
    if found["worst"]:
        columns = ("sample", "file", "label", "reference", "C", "RMSE/largest")
        table = plain_table(*columns, title="worst samples", numbers=("sample", "RMSE/largest"))
        for row in found["worst"]:
            table.add_row(str(row["index"]), row["file"], row["label"] or "-", row["reference"], row["predicted"],
                          f"{row['rmse_over_largest']:.4f}")  # fmt: skip
        console.print(table)
    if found["layers"]:
        console.print(_layers(found["layers"], plain_table))


def _scores(scores: list[Score], plain_table: Any) -> Any:
    columns = ("samples", "top-1", "top-5", "AUC", "metric", "as the first", "RMSE/largest", "cosine")
    table = plain_table("", *columns, numbers=columns)
    for s in scores:
        shares = (_percent(s["top1"]), _percent(s["top5"]), _number(s["auc"], 4), _number(s["metric"], 4))
        errors = (_percent(s["agree"]), _number(s["rmse_over_largest"], 5), _number(s["cosine"], 6))
        table.add_row(s["machine"], f"{s['samples']:,}", *shares, *errors)
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _matrix(counts: list[list[int]], names: list[str], plain_table: Any) -> Any:
    heads = [names[i] if i < len(names) else str(i) for i in range(len(counts))]
    table = plain_table("right \\ C", *heads, title="confusion matrix", numbers=tuple(heads))
    for head, row in zip(heads, counts, strict=True):
        table.add_row(head, *(str(c) if c else "." for c in row))
    return table


def _layers(layers: list[LayerError], plain_table: Any) -> Any:
    """Return the layers that lose most, in the order in which they are computed."""
    most = sorted(layers, key=lambda row: -row["lost_db"])[:_LAYERS]
    left = len(layers) - len(most)
    title = "layers against float" + (f" ({left} that lose less are in --json)" if left else "")
    columns = ("SQNR dB", "lost here dB", "cosine", "RMSE/largest", "max/largest")
    table = plain_table("node", "operator", *columns, title=title, numbers=columns)
    for row in (r for r in layers if r in most):
        table.add_row(row["node"], row["op"], f"{row['sqnr_db']:.1f}", f"{row['lost_db']:.1f}", f"{row['cosine']:.6f}",
                      f"{row['rmse_over_largest']:.5f}", f"{row['max_over_largest']:.5f}")  # fmt: skip
    return table


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "eval",
        help="Compare float model, int8 model and its C on labeled data.\n\n"
        "Example: glowc eval kws.onnx --float kws_fp32.onnx --data test.npz --labels labels.npy",
    )(evaluate)

"""The command `log-mel`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glowc.app.options import JsonOpt, grouped
from glowc.app.terminal import tell_written
from glowc.compiler.log_mel import LogMel


@grouped
def features(
    how: LogMel,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the ONNX file")],
    codes_of: Annotated[
        Path | None, typer.Option("--codes-of", metavar="NET", help="int8 features for the input of this network")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Write a front end for sound."""
    from glowc.api.sound import codes_for, log_mel

    log_mel(output, how, codes=codes_for(codes_of) if codes_of is not None else None)
    what = f"{output}: {how.bins} features of {how.window} samples of {how.sample_rate} Hz"
    tell_written(output, what, as_json)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "log-mel",
        help="Write a front end for sound: samples to mel bands, as ONNX.\n\n"
        "Example: glowc log-mel -o log_mel.onnx --codes-of kws.tflite, then\n"
        "glowc compile log_mel.onnx kws.tflite --chain --input-stream samples --hop 512 -o build/kws",
    )(features)

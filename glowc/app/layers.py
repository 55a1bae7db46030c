"""Layers of a model or a bundle on a board, for `debug` and `validate --layers`; the options of a bundle."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from glowc.app.options import parsed_options
from glowc.app.terminal import usage_error
from glowc.errors import BundleError

if TYPE_CHECKING:
    from glowc.board import Board
    from glowc.compiler.options import CompileOptions
    from glowc.machine.debug import Debugged
    from glowc.machine.taps import Progress


def debugged(
    source: Path, model: Path | None, boards: tuple[Board, Board], options: CompileOptions, inputs: Path, count: int,
    progress: Progress,
) -> Debugged:  # fmt: skip
    """Look at the layers of a model compiled for the first of `boards`, or of a bundle as it is, on the second one."""
    from glowc.machine.debug import debug_bundle, debug_model
    from glowc.machine.execute import is_bundle, load_bundle

    target, machine = boards
    if not is_bundle(source):
        return debug_model(source, target, machine, options, inputs, count, progress)
    info = load_bundle(source)
    return debug_bundle(info, model, machine, options_of(info.report["options"], options), inputs, count, progress)


def options_of(text: str, given: CompileOptions) -> CompileOptions:
    """Return the options that a bundle says it was compiled with, which its `text` is.

    What the text has not, files and limits, is as `given`. Raises BundleError where this glowc does not know an option.
    """
    from dataclasses import replace

    words = shlex.split(text)
    try:
        made = parsed_options(words)
    except Exception as error:
        if (wrong := usage_error(error)) is None:
            raise
        raise BundleError(f"the bundle was compiled with {text}: {wrong.message}") from error
    following = dict(pairwise(words))
    hop, axis = following.get("--hop"), following.get("--time-axis")
    return replace(
        made, tuned=given.tuned, plugins=given.plugins, ram_limit=given.ram_limit, flash_limit=given.flash_limit,
        entry_name=following.get("--entry-name"), io_buffers=following.get("--io-buffers", "arena"),
        stateful="--stateful" in words,
        hop=None if hop is None else int(hop), time_axis=None if axis is None else int(axis),
        input_stream=following.get("--input-stream", "whole"),
    )  # fmt: skip

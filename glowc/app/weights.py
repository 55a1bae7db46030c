"""`glowc compile --weights-for BUNDLE`: the constants of a model that was trained again, if they fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from glowc.app.layers import options_of
from glowc.app.terminal import progress_line, say, tell

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions


def compile_weights(model: Path, folder: Path, options: CompileOptions, out: Path, as_json: bool) -> None:
    """Write the blob of a model for a bundle into the folder `out`; everything else is as in the bundle.

    Raises LimitError that names what does not fit.
    """
    from glowc.compiler.files import write_file
    from glowc.compiler.pipeline import compile_model
    from glowc.compiler.weights_for import blob_for, check_blob
    from glowc.machine.execute import bundle_board, load_bundle, read_blob

    info = load_bundle(folder)
    check_blob(info.folder, info.report)
    how = replace(options_of(info.report["options"], options), name=info.name, weights="blob",
                  form=info.report.get("format", "folder"))  # fmt: skip
    with progress_line(as_json) as progress:
        compiled = compile_model(model, bundle_board(info), how, progress)
    name, blob = blob_for(compiled, info.report, read_blob(info))
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / name, lambda file: file.write(blob))
    if as_json:
        say(json.dumps({"fits": True, "weights_blob": str(out / name), "bytes": len(blob)}))
    else:
        tell(f"the weights of {model} fit the code of {folder}: {out / name}, {len(blob):,} bytes")

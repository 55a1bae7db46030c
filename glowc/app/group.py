"""What `glowc compile` does besides a model by itself: several beside each other, and, with `--weights-for BUNDLE`, the
constants of a model that was trained again, if they fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glowc.app.layers import options_of
from glowc.app.terminal import progress_line, say_json, tell
from glowc.errors import InputError

if TYPE_CHECKING:
    from glowc.board import Board
    from glowc.compiler.group import GroupReport
    from glowc.compiler.options import CompileOptions


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the models share, what the whole is called, and how the command talks and writes."""

    name: str
    arena: bool
    weights: bool
    as_json: bool
    force: bool
    golden: Mapping[str, Path]


def compile_together(
    models: Sequence[Path], board: Board, options: CompileOptions, sharing: Sharing, out: Path, single: Sequence[str]
) -> None:
    """Compile models into one bundle and say what that saves; `single` are given flags that are for one model."""
    from glowc.codegen.group import GroupSpec
    from glowc.compiler.bundle_folder import check_folder
    from glowc.compiler.group import compile_group, write_group

    if single:
        raise InputError(f"{', '.join(single)} is for one model", hint="do that with each by itself")
    check_folder(out, force=sharing.force)
    spec = GroupSpec(sharing.name, sharing.arena, sharing.weights)
    with progress_line(sharing.as_json) as progress:
        done = compile_group([str(model) for model in models], board, options, spec, progress, sharing.golden)
        write_group(done, out, force=sharing.force)
    if sharing.as_json:
        say_json(done.report)
    else:
        tell(group_summary(done.report, out))


def group_summary(report: GroupReport, out: Path) -> str:
    """Return what the command says: each model, and the whole beside the sum of its parts."""
    rows = [(m["model"], len(m["layers"]), m["arena_bytes"], m["weights_bytes"]) for m in report["models"]]
    wide = max(len(name) for name, *_ in rows)
    arena = "one for all" if report["share_arena"] else "one for each"
    weights = "equal ones once" if report["share_weights"] else "each its own"
    return "\n".join([
        f"{report['model']}: {len(rows)} models, {report['functions']} functions",
        *(f"  {name:{wide}}  {layers} layers, {ram:,} bytes of arena, {flash:,} of constants"
          for name, layers, ram, flash in rows),
        f"  RAM        {report['arena_bytes']:>10,} bytes of arena ({arena}; apart {report['separate_arena_bytes']:,})",
        f"  constants  {report['weights_bytes']:>10,} bytes ({weights}; apart {report['separate_weights_bytes']:,})",
        f"  written to {out}",
    ])  # fmt: skip


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
    how = replace(options_of(info.report["options"], options), name=info.name,
                  weights="file" if "--weights file" in info.report["options"] else "blob",
                  form=info.report.get("format", "folder"))  # fmt: skip
    with progress_line(as_json) as progress:
        compiled = compile_model(model, bundle_board(info), how, progress)
    name, blob = blob_for(compiled, info.report, read_blob(info))
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / name, lambda file: file.write(blob))
    if as_json:
        say_json({"fits": True, "weights_blob": str(out / name), "bytes": len(blob)})
    else:
        tell(f"the weights of {model} fit the code of {folder}: {out / name}, {len(blob):,} bytes")

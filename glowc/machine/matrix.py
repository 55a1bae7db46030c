"""Many models on many boards with many options: one cell is one model compiled, compared and measured.

A cell is self-contained and can be pickled, so that it runs in this process, in another one, or on another machine that
sees the same files. What goes wrong in a cell is its result; nothing of it stops the others.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from glowc.board import default_chip, emulated, load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, model_hash, write_bundle
from glowc.compiler.report import BenchReport
from glowc.errors import GlowcError, InputError, ToolError
from glowc.frontend.reader import ENDINGS
from glowc.graph.graph import Graph
from glowc.machine.cycles.measure import add_cycles
from glowc.machine.execute import add_emulated, bench, load_bundle, read_inputs
from glowc.machine.page import page_of, render_page
from glowc.machine.validate import validate_bundle
from glowc.paths import package_hash

DONE, DIFFERENT, REFUSED, FAILED = "done", "different", "refused", "failed"
STEPS = ("validate", "bench")
FIGURES = ("arena_bytes", "weights_bytes", "text_bytes", "rodata_bytes", "stack_bytes", "stack_bound_bytes", "macs",
           "insns", "cycles", "ms")  # fmt: skip
_RANDOM_SAMPLES = 2
_FOLDER = f"--models names a folder with {', '.join(ENDINGS)} files"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell is: `name` is the model's for people, `data` its samples, "" for random ones.

    `page` is where the page of `glowc report` goes, "" for nowhere.
    """

    name: str
    model: str
    model_hash: str
    board: str
    opt: str
    steps: tuple[str, ...]
    data: str = ""
    data_hash: str = ""
    page: str = ""

    @property
    def key(self) -> str:
        """What a result is found by again: all that it depends on, and not where the files lie."""
        parts = {**asdict(self), "model": "", "data": "", "glowc": package_hash()}
        del parts["page"]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class Result(TypedDict):
    """What became of a cell: a status of this module, what there is to say, and figures, null if not measured."""

    key: str
    name: str
    board: str
    opt: str
    status: str
    message: str
    seconds: float
    reference: str | None
    equal_share: float | None
    figures: dict[str, float | None]


def find_models(folder: Path) -> dict[str, Path]:
    """Return the model files below a folder by a short name: the file's, or the folder's of one called `model`.

    Raises InputError when there is none, or no folder.
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}", hint=_FOLDER)
    paths = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    if not paths:
        raise InputError(f"no model below {folder}", hint=_FOLDER)
    names: dict[str, Path] = {}
    for path in paths:
        relative = path.relative_to(folder).with_suffix("")
        parts = relative.parts[:-1] if relative.name == "model" and len(relative.parts) > 1 else relative.parts
        name = "/".join(parts)
        names[name if name not in names else path.relative_to(folder).as_posix()] = path
    return names


def cells_of(
    models: dict[str, Path], boards: Sequence[str], opts: Sequence[str], steps: Sequence[str], data: str | None
) -> list[Cell]:
    """Return the cells in the order model, board, option. `data` names the file of samples in each model's folder.

    Without it that is NAME.npz beside NAME.onnx. Raises BoardError for a board that is unknown.
    """
    for board in boards:
        load_board(board)
    return [
        Cell(name, str(path.resolve()), model_hash(path), board, opt, tuple(steps), *_data(path, data))
        for name, path in models.items()
        for board in boards
        for opt in opts
    ]


def _data(model: Path, name: str | None) -> tuple[str, str]:
    path = model.parent / name if name is not None else model.with_suffix(".npz")
    if not path.is_file():
        return "", ""
    return str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def run_cell(cell: Cell) -> Result:
    """Return what a cell gives; whatever goes wrong is in it."""
    start = time.perf_counter()
    result: Result = {
        "key": cell.key, "name": cell.name, "board": cell.board, "opt": cell.opt, "status": DONE, "message": "",
        "seconds": 0.0, "reference": None, "equal_share": None, "figures": dict.fromkeys(FIGURES),
    }  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(prefix="glowc-cell-") as folder:
            _run(cell, Path(folder), result)
    except ToolError as error:
        result["status"], result["message"] = FAILED, error.message
    except GlowcError as error:
        result["status"], result["message"] = REFUSED, error.message
    except Exception as error:
        result["status"], result["message"] = FAILED, f"{type(error).__name__}: {error}"
    result["seconds"] = round(time.perf_counter() - start, 3)
    return result


def _run(cell: Cell, folder: Path, result: Result) -> None:
    model, board, options = Path(cell.model), load_board(cell.board), CompileOptions(opt=cell.opt)
    bundle = folder / "bundle"
    compiled = compile_model(model, board, options)
    write_bundle(compiled, bundle)
    report: BenchReport = {**compiled.report}  # type: ignore[typeddict-item]
    machine = emulated(board)
    if "validate" in cell.steps and machine is not None:
        samples = Path(cell.data) if cell.data else _random_samples(compiled.imported, folder / "in.npz")
        found = validate_bundle(bundle, machine, options, samples, model=model)
        result["reference"] = found["reference"]
        result["equal_share"] = min((row["equal_share"] for row in found["outputs"]), default=1.0)
        result["status"] = DONE if found["ok"] else DIFFERENT
    if "bench" in cell.steps:
        info = load_bundle(bundle)
        inputs = read_inputs(info, Path(cell.data)) if cell.data else None
        report = bench(info, board, inputs)
        said = add_emulated(report, info, board, inputs)
        result["message"] = said or add_cycles(report, info, board, default_chip(board), inputs, required=False)
    result["figures"] = dict(_figures(report))
    if cell.page:
        Path(cell.page).write_text(render_page(page_of(report)), encoding="utf-8", newline="\n")


def _figures(report: BenchReport) -> Iterator[tuple[str, float | None]]:
    for name in FIGURES:
        value = report.get(name)
        yield name, value if isinstance(value, int | float) else None


def _random_samples(graph: Graph, path: Path) -> Path:
    """Write reproducible samples that cover the range of each input's type; integers wider than a byte stay small."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name in graph.inputs:
        dtype, shape = graph.types[name].dtype, (_RANDOM_SAMPLES, *graph.types[name].shape)
        low, high = (dtype.qmin, dtype.qmax + 1) if dtype.is_integer and dtype.bytes == 1 else (0, 2)
        values = rng.standard_normal(shape) if dtype.is_float else rng.integers(low, high, shape)
        arrays[name] = values.astype(dtype.numpy)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path

"""Pretrained models that Python packages ship, compiled for the host and compared with onnxruntime; prints a table.

    python scripts/real_models.py [--filter TEXT] [--samples N]

The packages are downloaded by name, without their dependencies, into build/real (`make test-real`). A model must be
compiled and answer within its tolerance; the status is 1 when one does not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.board import load_board  # noqa: E402
from glowc.compiler.pipeline import CompileOptions  # noqa: E402
from glowc.errors import GlowcError  # noqa: E402
from glowc.machine.validate import validate_model  # noqa: E402

SMALLEST = 1e-2  # an output of probabilities that are all next to 0 has no digits to compare
CACHE = ROOT / "build" / "real"
Arrays = dict[str, np.ndarray]
Inputs = Callable[[np.random.Generator, int], Arrays]


@dataclass(frozen=True)
class RealModel:
    """A file of a package, what the user would say about its inputs, what to feed it, and how near it must be."""

    package: str
    file: str
    inputs: Inputs
    options: Mapping[str, Any] = field(default_factory=dict)
    relative: float = 1e-4
    """Largest difference allowed, as a part of the largest magnitude of the output (at least `SMALLEST`)."""


def images(name: str, *shape: int) -> Inputs:
    """Smooth random pictures from -1 to 1: a few waves and some noise."""

    def make(rng: np.random.Generator, count: int) -> Arrays:
        channels, height, width = shape
        y, x = np.mgrid[0:height, 0:width].astype(np.float32) / 32
        waves = rng.uniform(0.2, 3, (count, channels, 2, 1, 1)), rng.uniform(0, 6, (count, channels, 1, 1))
        picture = np.sin(waves[0][:, :, 0] * x + waves[0][:, :, 1] * y + waves[1])
        noisy = picture * 0.8 + rng.uniform(-0.2, 0.2, picture.shape)
        return {name: noisy.astype(np.float32)[:, None]}

    return make


LETTERS = (
    "*...**...*******...**...*",
    "******....****.*....*****",
    "*****..*....*....*....*..",
    "*....*....*....*....*****",
)


def lines_of_text(name: str, *shape: int) -> Inputs:
    """Rows of the letters H, E, T and L, dark on a bright page, from -1 to 1."""
    glyphs = [np.asarray([c == "*" for c in text]).reshape(5, 5).repeat(4, 0).repeat(3, 1) for text in LETTERS]

    def make(rng: np.random.Generator, count: int) -> Arrays:
        pages = rng.uniform(0.6, 1.0, (count, *shape)).astype(np.float32)
        for page in pages:
            for top in range(int(rng.integers(6, 14)), shape[1] - 20, 32):
                for left in range(int(rng.integers(4, 20)), shape[2] - 20, 18):
                    page[:, top : top + 20, left : left + 15] -= 1.5 * glyphs[rng.integers(4)]
        return {name: pages[:, None]}

    return make


def speech(**more: tuple[int, ...]) -> Inputs:
    """Random sound of 576 samples at 16 kHz, and states that an earlier call might have left."""

    def make(rng: np.random.Generator, count: int) -> Arrays:
        t = np.arange(576) / 16000
        tones = rng.uniform(80, 3000, (count, 1, 1)), rng.uniform(0, 0.8, (count, 1, 1))
        sound = np.sin(2 * np.pi * tones[0] * t) * tones[1] + rng.normal(0, 0.02, (count, 1, 576))
        states = {name: rng.normal(0, 0.3, (count, *shape)).astype(np.float32) for name, shape in more.items()}
        return {"input": sound.astype(np.float32), **states}

    return make


def file_bytes(rng: np.random.Generator, count: int) -> Arrays:
    """Beginnings and ends of files, as numbers; 256 stands for nothing."""
    given = rng.integers(0, 257, (count, 1, 2048)).astype(np.int32)
    given[::2] = np.frombuffer((Path(__file__).read_bytes() * 2)[:2048], np.uint8)
    return {"bytes": given}


SILERO, OCR, OLD = "silero-vad", "rapidocr-onnxruntime", "ddddocr"
STATE = {"state": (2, 1, 128)}
SOUND = {"input_shapes": {"input": (1, 576), "state": (2, 1, 128)}}
RATE = {**SOUND, "set_inputs": {"sr": (16000,)}}


# Layers that choose their scales while they run: a last bit of Sigmoid moves codes, see docs/ARITHMETIC.md.
DYNAMIC = 0.2


def _page(package: str, file: str, name: str, *shape: int, relative: float = 1e-4) -> RealModel:
    """A reader of pages, which have symbolic sizes in the file."""
    return RealModel(package, file, lines_of_text(name, *shape), {"input_shapes": {name: (1, *shape)}}, relative)


MODELS = (
    RealModel(SILERO, "silero_vad.onnx", speech(**STATE), RATE),
    RealModel(SILERO, "silero_vad_16k_op15.onnx", speech(**STATE), RATE),
    RealModel(SILERO, "silero_vad_16k_sequence.onnx", speech(h=(1, 1, 128), c=(1, 1, 128))),
    RealModel(SILERO, "silero_vad_half.onnx", speech(**STATE), SOUND),
    RealModel(SILERO, "silero_vad_op18_ifless.onnx", speech(**STATE), RATE),
    RealModel(SILERO, "silero_vad_openvino_16k.onnx", speech(**STATE)),
    RealModel("magika", "model.onnx", file_bytes),
    _page(OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", "x", 3, 48, 192),
    _page(OCR, "ch_PP-OCRv4_rec_infer.onnx", "x", 3, 48, 160),
    _page(OCR, "ch_PP-OCRv4_det_infer.onnx", "x", 3, 96, 160),
    _page(OLD, "common_old.onnx", "input1", 1, 64, 160, relative=DYNAMIC),
    _page(OLD, "common.onnx", "input1", 1, 64, 160),
    RealModel(OLD, "common_det.onnx", images("images", 3, 416, 416)),
)


def fetch(package: str) -> Path:
    """Return the folder of a package's ONNX files, downloaded once."""
    folder = CACHE / package
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=_made(CACHE)) as work:
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "--dest", work, package]
            subprocess.run(pip, check=True)
            unpacked = Path(work) / "files"
            for wheel in Path(work).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if name.endswith(".onnx"):
                            archive.extract(name, unpacked)
            unpacked.rename(folder)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compare(model: RealModel, count: int) -> dict[str, Any]:
    """Return the difference of the compiled model from onnxruntime, or why there is none."""
    row: dict[str, Any] = {"package": model.package, "file": model.file, "allowed": model.relative}
    path = next(fetch(model.package).rglob(model.file))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "in.npz"
        np.savez(samples, **model.inputs(np.random.default_rng(1), count))
        try:
            done = validate_model(path, load_board("host"), CompileOptions(name="net", **model.options), samples)
        except GlowcError as error:
            return row | {"ok": False, "refused": str(error)}
    outputs = done["outputs"]
    worst = max(o["max_abs"] / max(o["largest"], SMALLEST) for o in outputs)
    agree = min(o["argmax_agree"] for o in outputs)
    return row | {
        "ok": worst <= model.relative, "worst": worst, "cosine": min(o["cosine"] for o in outputs), "samples": count,
        "agree": agree, "reference": done["reference"], "seconds": time.monotonic() - start,
    }  # fmt: skip


def main() -> int:
    """Compare, print, and fail when a model is refused or too far off."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--filter", default="", help="part of the name of a package or file")
    parser.add_argument("--samples", type=int, default=6)
    options = parser.parse_args()
    chosen = [m for m in MODELS if options.filter in f"{m.package}/{m.file}"]
    print(f"{'package':22}{'file':38}{'off by':>10}{'allowed':>9}  argmax  seconds")
    bad = 0
    for model in chosen:
        row = compare(model, options.samples)
        bad += not row["ok"]
        head = f"{row['package']:22}{row['file']:38}"
        if "refused" in row:
            print(f"{head}refused: {row['refused']}", flush=True)
            continue
        argmax = f"{row['agree']}/{row['samples']}"
        numbers = f"{row['worst']:10.1e}{row['allowed']:9.0e}{argmax:>8}{row['seconds']:9.0f}"
        print(head + numbers + ("" if row["ok"] else "  TOO FAR"), flush=True)
        if not row["reference"].startswith("onnxruntime"):
            print(f"    judged by {row['reference']}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

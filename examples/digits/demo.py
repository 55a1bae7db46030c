"""The program of `make demo`: digits.onnx -> C -> an emulated Cortex-M4 that reads handwriting.

It uses glowc as a firmware developer would, through its command line: `compile` writes the C, `run`
builds it and feeds every test image to the board under QEMU, `bench` counts. Exit status 1 when fewer
than 95 % of the digits are right or when one output byte differs from onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = Path.cwd()
MODEL = HERE / "digits.onnx"
TEST_SET = HERE / "digits_test.npz"
MIN_ACCURACY = 0.95
SHADES = " .:-=+*#%@"  # from paper to ink
INK_MAX = 16
SHOWN = 6

console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


class DemoError(Exception):
    """A glowc command failed or its answer cannot be read; the message is for the person watching."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the board answered, against the labels and against onnxruntime's stored bytes."""

    images: int
    correct: int
    same_argmax: int
    same_bytes: int
    all_bytes: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.images

    @property
    def passed(self) -> bool:
        return self.accuracy >= MIN_ACCURACY and self.same_bytes == self.all_bytes


def judge(logits: np.ndarray, golden: np.ndarray, labels: np.ndarray) -> Verdict:
    """Compare the board's logits [N,1,10] with onnxruntime's and with the labels."""
    if logits.shape != golden.shape or logits.dtype != golden.dtype:
        found, expected = f"{logits.dtype}{list(logits.shape)}", f"{golden.dtype}{list(golden.shape)}"
        raise DemoError(f"the board answered {found}; expected {expected}")
    on_board, on_host = logits[:, 0].argmax(axis=1), golden[:, 0].argmax(axis=1)
    return Verdict(
        images=len(labels),
        correct=int((on_board == labels).sum()),
        same_argmax=int((on_board == on_host).sum()),
        same_bytes=int((logits == golden).sum()),
        all_bytes=golden.size,
    )


def picture(image: np.ndarray) -> list[str]:
    """Draw one 8x8 image, two characters a pixel, so that it looks square in a terminal."""
    shade = image.reshape(8, 8).astype(int) * (len(SHADES) - 1) // INK_MAX
    return ["".join(SHADES[level] * 2 for level in row) for row in shade]


def gallery(images: np.ndarray, predicted: np.ndarray, labels: np.ndarray) -> str:
    """Draw images side by side over the class that the board read and the one that a person wrote."""
    columns = [
        [*picture(image), f"read {guess}, is {label}".center(16)]
        for image, guess, label in zip(images, predicted, labels, strict=True)
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def worth_showing(predicted: np.ndarray, labels: np.ndarray) -> list[int]:
    """Choose images of different classes, and one that the network got wrong, if there is one."""
    first = [int(np.flatnonzero(labels == digit)[0]) for digit in np.unique(labels)]
    wrong = [int(i) for i in np.flatnonzero(predicted != labels)[:1]]
    right = [i for i in first if i not in wrong]
    return right[: SHOWN - len(wrong)] + wrong


def number(value: Any, unit: str = "") -> str:
    return "not measured" if value is None else f"{value:,}{unit}"


def totals_table(report: Mapping[str, Any]) -> Table:
    """Show what a firmware developer asks first: RAM, flash, stack, work."""
    flash = [report.get(key) for key in ("text_bytes", "rodata_bytes", "data_bytes")]
    flash_bytes = None if None in flash else sum(part for part in flash if part is not None)
    macs, insns = report.get("macs"), report.get("insns")
    per_mac = f" ({insns / macs:.2f} per MAC)" if insns and macs else ""
    title = f"{report['model']} on {report['board']} ({report['cpu']})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("what")
    table.add_column("one inference", justify="right")
    table.add_row("arena (RAM)", number(report.get("arena_bytes"), " bytes"))
    table.add_row("  lower bound of any plan", number(report.get("arena_lower_bound_bytes"), " bytes"))
    table.add_row("stack (RAM)", number(report.get("stack_bytes"), " bytes"))
    table.add_row("flash", number(flash_bytes, " bytes"))
    table.add_row("  of it weights", number(report.get("weights_bytes"), " bytes"))
    table.add_row("multiply-accumulates", number(macs))
    table.add_row("instructions", number(insns) + per_mac)
    return table


def layers_table(layers: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="layer by layer", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("layer", "operator", "kernel"):
        table.add_column(heading, no_wrap=heading == "layer", overflow="fold")
    for heading in ("MACs", "instructions", "per MAC", "live bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for layer in layers:
        macs, insns = layer.get("macs"), layer.get("insns")
        table.add_row(
            str(layer.get("name")),
            str(layer.get("op")),
            str(layer.get("kernel")),
            number(macs),
            number(insns),
            f"{insns / macs:.2f}" if macs and insns is not None else "",
            number(layer.get("arena_live_bytes")),
        )
    return table


def shown(path: Path) -> str:
    """Name a path as the person typed or would type it: from the checkout, where it is inside it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def glowc(*arguments: str, capture: bool = False) -> str:
    """Run one glowc command and return what it printed; its progress stays on the terminal."""
    console.print(f"[dim]$[/] [bold]glowc {shlex.join(arguments)}[/]", soft_wrap=True)
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "glowc", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE if capture else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DemoError(f"`glowc {arguments[0]}` failed with exit status {done.returncode}")
    console.print(f"[dim]  {time.monotonic() - start_s:.1f} s[/]")
    return done.stdout or ""


def run_on_board(bundle: Path, board: str, images: np.ndarray, folder: Path) -> np.ndarray:
    """Feed every image to the board and return its logits."""
    fed, answered = folder / "in.npz", folder / "out.npz"
    np.savez(fed, image=images)
    answered.unlink(missing_ok=True)
    files = ("--input", shown(fed), "--output", shown(answered))
    glowc("run", shown(bundle), "--board", board, *files)
    with np.load(answered) as outputs:
        if "logits" not in outputs:
            raise DemoError(f"no array `logits` in {shown(answered)}, only {', '.join(outputs.files)}")
        return np.asarray(outputs["logits"])


def bench(bundle: Path, board: str) -> dict[str, Any]:
    text = glowc("bench", shown(bundle), "--board", board, "--json", capture=True)
    try:
        report: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise DemoError(f"`glowc bench --json` printed no JSON: {error}") from error
    return report


def demo(board: str, folder: Path) -> Verdict:
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(TEST_SET) as data:
        images, labels, golden = data["image"], data["label"], data["golden"]
    bundle = folder / "digits"
    glowc("compile", shown(MODEL), "--board", board, "-o", shown(bundle))
    logits = run_on_board(bundle, board, images, folder)
    verdict = judge(logits, golden, labels)
    predicted = logits[:, 0].argmax(axis=1)
    chosen = worth_showing(predicted, labels)
    console.print(f"\nWhat {board} read in QEMU:\n")
    console.print(gallery(images[chosen], predicted[chosen], labels[chosen]), markup=False, soft_wrap=True)
    console.print(f"\n{summary(verdict)}\n")
    report = bench(bundle, board)
    console.print(layers_table(report["layers"]))
    console.print(totals_table(report))
    return verdict


def summary(verdict: Verdict) -> str:
    images, all_bytes = verdict.images, verdict.all_bytes
    return "\n".join(
        (
            f"accuracy on the device   {verdict.correct} of {images} digits ({verdict.accuracy:.2%})",
            f"same as onnxruntime      {verdict.same_argmax} of {images} digits, "
            f"{verdict.same_bytes} of {all_bytes} output bytes ({verdict.same_bytes / all_bytes:.2%})",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile digits.onnx and read handwriting on a board.")
    parser.add_argument("--board", default="mps2-an386", help="default: %(default)s (Cortex-M4F in QEMU)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "demo", help="working folder")
    options = parser.parse_args()
    try:
        verdict = demo(options.board, options.output.resolve())
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if not verdict.passed:
        floor = f"at least {MIN_ACCURACY:.0%} right and every byte equal"
        print(f"demo: FAILED, expected {floor}", file=sys.stderr)
        return 1
    console.print(f"[green]passed[/]; the generated C is in {shown(options.output.resolve() / 'digits')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

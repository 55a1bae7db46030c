"""The program of `make demo-wake-word`: sound -> features -> a streaming network -> "okay nabu", on emulated boards.

The network is microWakeWord's of the package pymicro-wakeword. `glowc compile` makes C of it and of the features (a
model that frontend.py writes); main.c joins them to a firmware, which QEMU runs while a plugin counts its instructions.
Exit status 1 when the wake word is not heard where it is spoken, or heard where it is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontend
import numpy as np
import tflite
from speech import SpeechError, read_wav, spoken

from glowc.board import load_board
from glowc.errors import GlowcError
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.paths import data_dir

HERE = Path(__file__).resolve().parent
ROOT = Path.cwd()
BOARDS = ("mps2-an386", "mps3-an547")
STEPS, STEP_MS = 3, 30  # hops of the features for each answer of the network
SAID = "okay nabu"
OTHER = "alexa"
_BARS = " ▁▂▃▄▅▆▇█"


class DemoError(Exception):
    """Something that the person watching can read and mend."""


@dataclass(frozen=True)
class Network:
    """The network's file, and what its manifest says about using it."""

    path: Path
    wake_word: str
    cutoff: float
    window: int

    def input_quantisation(self) -> tuple[float, int]:
        """Return scale and zero point of what the network reads."""
        graph = tflite.Model.GetRootAs(self.path.read_bytes(), 0).Subgraphs(0)
        quant = graph.Tensors(graph.Inputs(0)).Quantization()
        return float(quant.Scale(0)), int(quant.ZeroPoint(0))


@dataclass(frozen=True)
class Heard:
    """What the firmware made of some sound."""

    board: str
    features: np.ndarray
    codes: np.ndarray
    text: str
    frame_insns: int
    step_insns: int

    def means(self, window: int) -> np.ndarray:
        """Return the mean of the last probabilities at each step; 0 before there are enough."""
        sums = np.convolve(self.codes / 256, np.ones(window))[: len(self.codes)] / window
        return np.where(np.arange(len(sums)) < window - 1, 0.0, sums)

    @property
    def insns(self) -> int:
        """Instructions of 30 ms: the features of three hops and the network."""
        return STEPS * self.frame_insns + self.step_insns


def network(name: str = "okay_nabu") -> Network:
    """Return a network of the package pymicro-wakeword."""
    found = importlib.util.find_spec("pymicro_wakeword")
    if found is None or not found.submodule_search_locations:
        raise DemoError("the network comes with a package: pip install pymicro-wakeword")
    folder = Path(found.submodule_search_locations[0]) / "models"
    manifest = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    micro = manifest["micro"]
    return Network(
        folder / manifest["model"], manifest["wake_word"], micro["probability_cutoff"], micro["sliding_window_size"]
    )


def glowc(*arguments: object) -> str:
    """Run a command of glowc; returns what it printed."""
    argv = [sys.executable, "-m", "glowc", *map(str, arguments)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"glowc {shlex.join(argv[3:])}\n{done.stdout}{done.stderr}")
    return done.stdout


def firmware(net: Network, board: str, folder: Path) -> Path:
    """Compile both models and the firmware for a board; returns its image."""
    folder.mkdir(parents=True, exist_ok=True)
    features = folder / "features.tflite"
    frontend.write(features, *net.input_quantisation())
    for name, model in (("features", features), ("wake_word", net.path)):
        glowc("compile", model, "--name", name, "--board", board, "-o", folder / name)
    names = ("features", "wake_word")
    sources = [HERE / "main.c", *(folder / n / f"{n}{end}.c" for n in names for end in ("", "_weights"))]
    image = folder / "firmware.elf"
    build_elf(
        sources, load_board(board), image,
        include_dirs=[folder / "features", folder / "wake_word", data_dir("runtime_c") / "io"],
        defines=[f"WINDOW={net.window}u", f"CUTOFF_PERCENT={round(100 * net.cutoff)}u"],
        extra_flags=["-std=c11", "-Wall", "-Wextra"],
    )  # fmt: skip
    return image


def listen(image: Path, board: str, samples: np.ndarray) -> Heard:
    """Let the firmware hear samples."""
    samples.astype("<i2").tofile(image.parent / "audio.pcm")
    result = run_elf(image, load_board(board), cwd=image.parent, marks=True)
    features = np.fromfile(image.parent / "features.bin", "<i2").reshape(-1, frontend.CHANNELS)
    codes = np.fromfile(image.parent / "probabilities.bin", np.uint8)
    frames, steps = _spans(result.marks, len(features))
    return Heard(board, features, codes, result.stdout, frames, steps)


def _spans(marks: Sequence[int], frames: int) -> tuple[int, int]:
    """Return the most instructions that features and network took, less those of a mark itself."""
    spans = np.diff(np.array(marks)).tolist()
    own, spans = spans[0], spans[2::2]
    kinds: list[list[int]] = [[], []]
    position = 0
    for frame in range(1, frames + 1):
        kinds[0].append(spans[position] - own)
        position += 1
        if frame % STEPS == 0:
            kinds[1].append(spans[position] - own)
            position += 1
    return max(kinds[0]), max(kinds[1])


def cycles(folder: Path, board: str) -> int | None:
    """Return the modelled cycles of 30 ms on the chip that the board stands for; None where there is no model."""
    reports = [
        json.loads(glowc("bench", folder / name, "--board", board, "--json")) for name in ("features", "wake_word")
    ]
    found = [report.get("cycles") for report in reports]
    return None if None in found else STEPS * found[0] + found[1]


def terminal_plot(means: np.ndarray, cutoff: float, width: int = 76) -> str:
    """Draw the probability over time in three lines of text, and the steps above the cutoff."""
    groups = np.array_split(means, min(width, len(means)))
    tops = np.array([group.max() for group in groups])
    lines = []
    for row in (2, 1, 0):
        filled = np.clip(np.round((tops * 3 - row) * 8), 0, 8).astype(int)
        lines.append("".join(_BARS[n] for n in filled))
    lines.append("".join("^" if top > cutoff else "-" for top in tops))
    return "\n".join(f"  |{line}" for line in lines)


def svg_plot(means: np.ndarray, cutoff: float, title: str) -> str:
    """Return the probability over time as a picture."""
    width, height, left, bottom = 720, 200, 40, 30
    span = max(len(means) - 1, 1)
    points = " ".join(
        f"{left + (width - left - 10) * i / span:.1f},{10 + (height - bottom - 10) * (1 - p):.1f}"
        for i, p in enumerate(means)
    )
    line = 10 + (height - bottom - 10) * (1 - cutoff)
    seconds = "".join(
        f'<text x="{left + (width - left - 10) * 1000 * s / STEP_MS / span:.1f}" y="{height - 10}">{s} s</text>'
        for s in range(int(span * STEP_MS / 1000) + 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">'
        f'<title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<line x1="{left}" x2="{width - 10}" y1="{line:.1f}" y2="{line:.1f}" stroke="red" stroke-dasharray="4"/>'
        f'<text x="5" y="{line + 4:.1f}" fill="red">{cutoff}</text>{seconds}'
        f'<polyline points="{points}" fill="none" stroke="black" stroke-width="1.5"/></svg>\n'
    )


def show(heard: Heard, net: Network, title: str, folder: Path) -> bool:
    """Print and draw what was heard; says whether it was the wake word."""
    means = heard.means(net.window)
    picture = folder / f"{title.replace(' ', '_')}.svg"
    picture.write_text(svg_plot(means, net.cutoff, f"{title} on {heard.board}"), encoding="utf-8", newline="\n")
    found = bool((means > net.cutoff).any())
    print(
        f'\n{heard.board} hears "{title}" ({len(means) * STEP_MS / 1000:.1f} s): highest probability {means.max():.2f}'
    )
    print(terminal_plot(means, net.cutoff))
    print(f"  {heard.text.strip() or 'no wake word'}; {picture}")
    return found


def costs(heard: Heard, folder: Path) -> str:
    """Return what 30 ms of sound take on a board."""
    text = (
        f"{heard.board}: {heard.insns:,} instructions for {STEP_MS} ms of sound "
        f"({STEPS} x {heard.frame_insns:,} features, {heard.step_insns:,} network)"
    )
    taken = cycles(folder, heard.board)
    if taken is None:
        return f"{text}: {heard.insns / STEP_MS / 1000:.1f} million a second"
    return f"{text}; {taken:,} modelled cycles: keeps up from {taken / STEP_MS / 1000:.1f} MHz on"


def demo(boards: Sequence[str], sounds: Sequence[tuple[str, np.ndarray, bool | None]], folder: Path) -> bool:
    """Run every sound on every board; says whether what was expected was heard."""
    net, right = network(), True
    print(f'network "{net.wake_word}" ({net.path.name}): mean of {net.window} probabilities above {net.cutoff}')
    for board in boards:
        image = firmware(net, board, folder / board)
        heard = [listen(image, board, samples) for _, samples, _ in sounds]
        for (title, _, wanted), answer in zip(sounds, heard, strict=True):
            found = show(answer, net, title, folder / board)
            right = right and wanted in (None, found)
        print(f"\n{costs(heard[0], folder / board)}")
    return right


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description="Hear a wake word on emulated boards.")
    parser.add_argument("wav", type=Path, nargs="*", help="WAV files of 16 bits instead of synthesised speech")
    parser.add_argument("--board", action="append", help=f"default: {' and '.join(BOARDS)}")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "wake-word", help="working folder")
    options = parser.parse_args(arguments)
    try:
        sounds: list[tuple[str, np.ndarray, Any]] = [(path.stem, read_wav(path), None) for path in options.wav]
        sounds = sounds or [(text, spoken(text), text == SAID) for text in (SAID, OTHER)]
        right = demo(options.board or BOARDS, sounds, options.output.resolve())
    except (DemoError, SpeechError, GlowcError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if not right:
        print(f'demo: FAILED: "{SAID}" was not heard, or something else was', file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

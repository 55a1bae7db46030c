"""The program of `make demo-wake-word`: sound -> front end -> network -> a wake word, on emulated boards.

Each word is a front end and networks that `glowc compile --chain --input-stream samples` joins to one bundle; main.c
pushes sound into it. "okay nabu" is microWakeWord's, of the package pymicro-wakeword; "hey jarvis" is openWakeWord's,
of pyopen-wakeword; "marvin" is MLPerf Tiny's streaming wake word, whose file no package has (--marvin FILE).
Exit status 1 when a wake word is not heard where it is spoken, or heard where it is not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontend
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from speech import SpeechError, read_wav, spoken

from glowc.api.sound import codes_for, log_mel
from glowc.board import load_board
from glowc.errors import GlowcError
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.paths import data_dir

HERE = Path(__file__).resolve().parent
ROOT = Path.cwd()
OTHER = "alexa"
_BARS = " ▁▂▃▄▅▆▇█"


class DemoError(Exception):
    """Something that the person watching can read and mend."""


@dataclass(frozen=True)
class Word:
    """A wake word: `models` writes what is not there yet to a folder and returns the files in their order.

    A run takes `hop` samples, or several times as many; element `answer` of the last output is the word's probability.
    It is heard where the mean of the last `window` ones is above `cutoff`.
    """

    said: str
    models: Callable[[Path], Sequence[Path]]
    hop: int
    window: int
    cutoff: float
    boards: Sequence[str]
    answer: int = 0
    options: Sequence[str] = ()


@dataclass(frozen=True)
class Firmware:
    """An image, and how many milliseconds of sound a run of its bundle takes."""

    image: Path
    run_ms: float


@dataclass(frozen=True)
class Heard:
    """What the firmware made of some sound."""

    board: str
    answers: np.ndarray
    text: str

    def means(self, window: int) -> np.ndarray:
        """Return the mean of the last probabilities at each run; 0 before there are enough."""
        sums = np.convolve(self.answers, np.ones(window))[: len(self.answers)] / window
        return np.where(np.arange(len(sums)) < window - 1, 0.0, sums)


def _folder(package: str) -> Path:
    """Return where a package has its models."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise DemoError(f"the network comes with a package: pip install {package.replace('_', '-')}")
    return Path(found.submodule_search_locations[0]) / "models"


def okay_nabu() -> Word:
    """Return microWakeWord's word; cutoff and window are those of its manifest."""
    folder = _folder("pymicro_wakeword")
    manifest = json.loads((folder / "okay_nabu.json").read_text(encoding="utf-8"))
    net, micro = folder / manifest["model"], manifest["micro"]

    def models(work: Path) -> list[Path]:
        codes = codes_for(net)
        frontend.write(work / "features.tflite", *codes.scalar)
        return [work / "features.tflite", net]

    return Word("okay nabu", models, 160, micro["sliding_window_size"], micro["probability_cutoff"],
                ("mps2-an386", "mps3-an547"))  # fmt: skip


def hey_jarvis() -> Word:
    """Return openWakeWord's word: a mel spectrogram, an embedding of 76 lines every 8, and a word of 16 embeddings."""
    folder = _folder("pyopen_wakeword")

    def models(work: Path) -> list[Path]:
        write_levels(work / "levels.onnx")
        nets = (folder / f"{name}.tflite" for name in ("embedding_model", "hey_jarvis"))
        return [folder / "melspectrogram.tflite", work / "levels.onnx", *nets]

    return Word("hey jarvis", models, 1280, 1, 0.5, ("linux-aarch64",), options=("--input-shape", "input=1x1760"))


def marvin(net: Path) -> Word:
    """Return MLPerf Tiny's streaming wake word: a front end as `glowc log-mel` writes it, and the network."""
    if not net.is_file():
        raise DemoError(f"{net} is not there: take str_ww_ref_model.tflite from mlcommons/tiny")

    def models(work: Path) -> list[Path]:
        log_mel(work / "log_mel.onnx", codes=codes_for(net))
        return [work / "log_mel.onnx", net]

    return Word("marvin", models, 512, 3, 0.9, ("mps2-an386", "mps2-an505"))


def write_levels(path: Path) -> None:
    """Write what openWakeWord computes between spectrogram and embedding: x / 10 + 2."""
    nodes = [
        helper.make_node("Mul", ["mels", "tenth"], ["tenths"]),
        helper.make_node("Add", ["tenths", "two"], ["levels"]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 8, 32]) for name in ("mels", "levels")]
    consts = [numpy_helper.from_array(np.float32(value), name) for name, value in (("tenth", 0.1), ("two", 2))]
    graph = helper.make_graph(nodes, "levels", ports[:1], ports[1:], consts)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def glowc(*arguments: object) -> str:
    """Run a command of glowc; returns what it printed."""
    argv = [sys.executable, "-m", "glowc", *map(str, arguments)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"glowc {shlex.join(argv[3:])}\n{done.stdout}{done.stderr}")
    return done.stdout


def firmware(word: Word, board: str, folder: Path) -> Firmware:
    """Compile a word's models to one bundle, and the firmware, for a board."""
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / "word"
    glowc("compile", *word.models(folder), "--chain", "--input-stream", "samples", "--hop", word.hop, *word.options,
          "--name", "word", "--board", board, "-o", bundle)  # fmt: skip
    report = json.loads((bundle / "report.json").read_text(encoding="utf-8"))
    output, several = report["outputs"][-1], len(report["outputs"]) > 1
    defines = {
        "ANSWER": f"word_output_{output['name']}" if several else "word_output", "CLASS": f"{word.answer}u",
        "SCALE": f"{output['scale'] or 1.0!r}f", "ZERO_POINT": f"{output['zero_point'] or 0}.0f",
        "WINDOW": f"{word.window}u", "CUTOFF": f"{word.cutoff!r}f",
    }  # fmt: skip
    image = folder / "firmware.elf"
    build_elf(
        [HERE / "main.c", *bundle.glob("*.c"), *bundle.glob("*.S")], load_board(board), image,
        include_dirs=[bundle, data_dir("runtime_c") / "io"], defines=[f"{k}={v}" for k, v in defines.items()],
        extra_flags=["-std=c11", "-Wall", "-Wextra"],
    )  # fmt: skip
    return Firmware(image, report["inputs"][0]["shape"][-1] / frontend.SAMPLE_HZ * 1000)


def listen(image: Path, board: str, samples: np.ndarray) -> Heard:
    """Let the firmware hear samples."""
    samples.astype("<i2").tofile(image.parent / "audio.pcm")
    result = run_elf(image, load_board(board), cwd=image.parent)
    return Heard(board, np.fromfile(image.parent / "answers.bin", "<f4"), result.stdout)


def costs(bundle: Path, run_ms: float) -> str:
    """Return what a run takes on a board."""
    report = json.loads(glowc("bench", bundle, "--json"))
    text = f"{report['insns']:,} instructions for {run_ms:g} ms of sound, {report['arena_bytes']:,} bytes of arena"
    cycles = report.get("cycles")
    if cycles is None:
        return f"{text}: {report['insns'] / run_ms / 1000:.1f} million a second"
    return f"{text}; {cycles:,} modeled cycles: keeps up from {cycles / run_ms / 1000:.1f} MHz on"


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


def svg_plot(means: np.ndarray, cutoff: float, run_ms: float, title: str) -> str:
    """Return the probability over time as a picture."""
    width, height, left, bottom = 720, 200, 40, 30
    span = max(len(means) - 1, 1)
    points = " ".join(
        f"{left + (width - left - 10) * i / span:.1f},{10 + (height - bottom - 10) * (1 - p):.1f}"
        for i, p in enumerate(means)
    )
    line = 10 + (height - bottom - 10) * (1 - cutoff)
    seconds = "".join(
        f'<text x="{left + (width - left - 10) * 1000 * s / run_ms / span:.1f}" y="{height - 10}">{s} s</text>'
        for s in range(int(span * run_ms / 1000) + 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12">'
        f'<title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<line x1="{left}" x2="{width - 10}" y1="{line:.1f}" y2="{line:.1f}" stroke="red" stroke-dasharray="4"/>'
        f'<text x="5" y="{line + 4:.1f}" fill="red">{cutoff}</text>{seconds}'
        f'<polyline points="{points}" fill="none" stroke="black" stroke-width="1.5"/></svg>\n'
    )


def show(heard: Heard, word: Word, run_ms: float, title: str, folder: Path) -> bool:
    """Print and draw what was heard; says whether it was the wake word."""
    means = heard.means(word.window)
    picture = folder / f"{title.replace(' ', '_')}.svg"
    drawing = svg_plot(means, word.cutoff, run_ms, f"{title} on {heard.board}")
    picture.write_text(drawing, encoding="utf-8", newline="\n")
    print(
        f'\n{heard.board} hears "{title}" ({len(means) * run_ms / 1000:.1f} s): highest probability {means.max():.2f}'
    )
    print(terminal_plot(means, word.cutoff))
    print(f"  {heard.text.strip() or 'no wake word'}; {picture}")
    return bool((means > word.cutoff).any())


def demo(
    word: Word, boards: Sequence[str], sounds: Sequence[tuple[str, np.ndarray, bool | None]], folder: Path
) -> bool:
    """Run every sound on every board; says whether what was expected was heard."""
    print(f'\n"{word.said}": mean of {word.window} probabilities above {word.cutoff}')
    right = True
    for board in boards:
        work = folder / word.said.replace(" ", "_") / board
        made = firmware(word, board, work)
        for title, samples, wanted in sounds:
            found = show(listen(made.image, board, samples), word, made.run_ms, title, work)
            right = right and wanted in (None, found)
        print(f"\n{board}: {costs(work / 'word', made.run_ms)}")
    return right


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description="Hear wake words on emulated boards.")
    parser.add_argument("wav", type=Path, nargs="*", help="WAV files of 16 bits instead of synthesized speech")
    parser.add_argument("--word", choices=("okay_nabu", "hey_jarvis", "marvin"), action="append", help="default: all")
    parser.add_argument("--marvin", type=Path, help="MLPerf Tiny's str_ww_ref_model.tflite")
    parser.add_argument("--board", action="append", help="default: those of each word")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "wake-word", help="working folder")
    options = parser.parse_args(arguments)
    wrong = []
    try:
        for word in chosen(options.word, options.marvin):
            sounds: list[tuple[str, np.ndarray, Any]] = [(path.stem, read_wav(path), None) for path in options.wav]
            sounds = sounds or [(text, spoken(text), text == word.said) for text in (word.said, OTHER)]
            if not demo(word, options.board or word.boards, sounds, options.output.resolve()):
                wrong.append(word.said)
    except (DemoError, SpeechError, GlowcError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    for said in wrong:
        print(f'demo: FAILED: "{said}" was not heard, or something else was', file=sys.stderr)
    return 1 if wrong else 0


def chosen(names: Sequence[str] | None, net: Path | None) -> list[Word]:
    """Return the words that were asked for; "marvin" needs its file."""
    every = {"okay_nabu": okay_nabu, "hey_jarvis": hey_jarvis, **({"marvin": lambda: marvin(net)} if net else {})}
    if names and (missing := set(names) - every.keys()):
        raise DemoError(f"--word {' '.join(missing)} needs its network: --marvin str_ww_ref_model.tflite")
    return [make() for name, make in every.items() if not names or name in names]


if __name__ == "__main__":
    sys.exit(main())

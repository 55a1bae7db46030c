"""Speaks words in voices that the network was not trained with, and prints what an emulated Cortex-M4 hears.

    python demo.py [WORD ...] [--board mps2-an386]

`glowc quantize` makes the int8 file, `glowc compile` its C, `glowc run` builds it and feeds it under QEMU.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from features import features
from speech import CLASSES, SYNTHESISER, UNHEARD_VOICES, WORDS, second, spoken

HERE = Path(__file__).resolve().parent
SAID = (*WORDS, "zero", "sheila", "")


def glowc(*arguments: object) -> None:
    """Run one glowc command; what it prints goes to the terminal."""
    subprocess.run([sys.executable, "-m", "glowc", *map(str, arguments)], check=True)


def codes(found: np.ndarray) -> np.ndarray:
    """Return features as the int8 network takes them: scale 1, zero point -128."""
    return (found.astype(np.int16) - 128).astype(np.int8)[None, None]


def hear(sounds: list[np.ndarray], board: str, folder: Path) -> np.ndarray:
    """Return the class of each second of sound, as the board names it."""
    folder.mkdir(parents=True, exist_ok=True)
    model, bundle = folder / "keyword.onnx", folder / "keyword"
    if not model.exists():
        glowc("quantize", HERE / "keyword_fp32.onnx", "--data", HERE / "keyword_calibration.npz", "-o", model)
    glowc("compile", model, "--board", board, "-o", bundle)
    fed, answered = folder / "in.npz", folder / "out.npz"
    np.savez(fed, features=np.stack([codes(features(s)) for s in sounds]))
    glowc("run", bundle, "--board", board, "--input", fed, "--output", answered)
    with np.load(answered) as outputs:
        return np.array(CLASSES)[outputs["logits"][:, 0].argmax(axis=1)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Speak words, and print what a board hears.")
    parser.add_argument("word", nargs="*", default=SAID, help="default: the words it knows, and some others")
    parser.add_argument("--board", default="mps2-an386", help="default: %(default)s (Cortex-M4F in QEMU)")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/keyword"), help="working folder")
    options = parser.parse_args()
    if shutil.which(SYNTHESISER) is None:
        print(f"demo: {SYNTHESISER} is not installed: apt-get install {SYNTHESISER}", file=sys.stderr)
        return 1
    rng = np.random.default_rng()
    words = [spoken(word, UNHEARD_VOICES, rng) if word else np.zeros(0) for word in options.word]
    try:
        heard = hear([second(word, rng) for word in words], options.board, options.output)
    except subprocess.CalledProcessError as error:
        return error.returncode
    print(f"\n{'said':10}  {options.board} heard")
    for said, found in zip(options.word, heard, strict=True):
        print(f"{said or '(nothing)':10}  {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

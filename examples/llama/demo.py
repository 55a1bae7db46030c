# SPDX-License-Identifier: MIT-0
"""A language model of 260,000 parameters on an emulated board: the model, its tokenizer, the firmware, and its text."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import make_tokenizer
import numpy as np
import onnx
from make_model import Sizes, llama

from glowc.board import load_board
from glowc.errors import GlowcError
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf
from glowc.paths import data_dir

HERE = Path(__file__).resolve().parent
GROUP = 16  # tokens of a prompt that are computed together


class DemoError(Exception):
    """Something that the person watching can read and mend."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen, and how many."""

    steps: int = 64
    temperature: float = 0.0
    top_p: float = 0.9
    seed: int = 1

    @property
    def defines(self) -> list[str]:
        """Macros of main.c."""
        return [
            f"STEPS={self.steps}", f"TEMPERATURE={self.temperature!r}f", f"TOP_P={self.top_p!r}f", f"SEED={self.seed}",
        ]  # fmt: skip


def firmware(sizes: Sizes, board: str, folder: Path, sampling: Sampling, vocabulary: Path | None = None) -> Path:
    """Compile the model and the firmware for a board; returns its image."""
    folder.mkdir(parents=True, exist_ok=True)
    model, bundle = folder / "llama.onnx", folder / "llama"
    onnx.save(llama(sizes), model)
    pieces = (
        make_tokenizer.read(vocabulary)
        if vocabulary
        else make_tokenizer.trained((HERE / "README.md").read_text(encoding="utf-8"), sizes.vocab)
    )
    (folder / "tokens.h").write_text(make_tokenizer.header(pieces), encoding="utf-8", newline="\n")
    options = [f"--define-symbol={name}:sequence={n}" for name, n in (("prompt", GROUP), ("step", 1))]
    options += [f"--define-symbol={name}:past={sizes.most - n}" for name, n in (("prompt", GROUP), ("step", 1))]
    options += ["--state", "past_*=present_*", "--share-arena", "--share-weights", "--group-name", "llama"]
    glowc("compile", f"prompt={model}", f"step={model}", *options, "--board", board, "-o", bundle, "--force")
    sources = [HERE / f"{name}.c" for name in ("main", "tokenizer", "sampler")]
    sources += [bundle / f"llama{end}.c" for end in ("", "_weights")]
    image = folder / "firmware.elf"
    build_elf(
        sources, load_board(board), image, include_dirs=[folder, bundle, HERE, data_dir("runtime_c") / "io"],
        defines=sampling.defines, extra_flags=["-std=c11", "-Wall", "-Wextra"],
    )  # fmt: skip
    return image


def glowc(*arguments: object) -> str:
    """Run a command of glowc; returns what it printed."""
    argv = [sys.executable, "-m", "glowc", *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"glowc {shlex.join(argv[3:])}\n{done.stdout}{done.stderr}")
    return done.stdout


def written(image: Path, board: str, prompt: str) -> tuple[str, np.ndarray]:
    """Return the text that the firmware writes, and all tokens, those of the prompt first."""
    (image.parent / "prompt.txt").write_text(prompt, encoding="utf-8", newline="\n")
    done = run_elf(image, load_board(board), cwd=image.parent)
    return done.stdout, np.fromfile(image.parent / "tokens.bin", np.int64)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", nargs="?", default="A language model")
    parser.add_argument("--board", default="mps3-an547", help="mps2-an505, mps3-an547, host ...")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--top-p", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", type=Path, help="a .vocab file of SentencePiece")
    given = parser.parse_args()
    sampling = Sampling(given.steps, given.temperature, given.top_p, given.seed)
    try:
        image = firmware(Sizes(), given.board, Path("build/llama") / given.board, sampling, given.tokenizer)
        text, tokens = written(image, given.board, given.prompt)
    except (DemoError, GlowcError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{given.prompt}{text}{len(tokens) - given.steps} tokens of the prompt, {given.steps} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())

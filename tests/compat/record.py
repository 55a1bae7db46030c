"""Records what this version writes into tests/compat/VERSION, once, before a release: `python tests/compat/record.py`.

Later versions must use these files, or refuse them and say what to do (test_compat.py). Nothing there changes any more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from glowc import __version__  # noqa: E402
from tests.golden.nets import float_mlp  # noqa: E402

SINE = ROOT / "examples/tflite/sine.tflite"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def command_lines() -> list[str]:
    """Return the command lines of glowc in the documentation."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            found += re.findall(r"^glowc [^\n]*", block.replace("\\\n", " "), re.M)
    return sorted({re.sub(r"\s+", " ", line.partition(" #")[0]).strip() for line in found})


def main() -> None:
    folder = Path(__file__).parent / __version__
    folder.mkdir()

    def glowc(text: str, to: str = "") -> None:
        argv = [sys.executable, "-m", "glowc", *text.split()]
        out = subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        if to:
            (folder / to).write_bytes(out)

    (folder / "net.onnx").write_bytes(float_mlp().SerializeToString())
    np.save(folder / "x.npy", np.random.default_rng(0).random((8, 6), np.float32))
    shutil.copy(SINE, folder / "sine.tflite")
    glowc("profile net.onnx --data x.npy -o profile.yaml")
    glowc("quantize net.onnx --profile profile.yaml -o int8.onnx")
    glowc("compile sine.tflite -o bundle --name sine")
    glowc("tune int8.onnx --board mps2-an386 -o tune.json")
    glowc("bench int8.onnx --chip stm32l4r5 --history history.jsonl --json", to="bench.json")
    glowc("eval int8.onnx --float net.onnx --data x.npy --json", to="eval.json")
    (folder / "commands.txt").write_text("".join(f"{line}\n" for line in command_lines()), encoding="utf-8")


if __name__ == "__main__":
    main()

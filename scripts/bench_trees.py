#!/usr/bin/env python3
"""What a random forest of int8 features takes on a Cortex-M4: glowc, and emlearn and m2cgen where they are installed.
Runs as `make trees-bench`.

    scripts/bench_trees.py
    scripts/bench_trees.py --depth 8 --trees 20 --data digits --opt -Os

Flash are code and constants of the whole image less those of an image that predicts nothing; instructions are those of
a call, the mean over the samples, counted under QEMU (mps2-an386). All take the same trees and the same integers, each
in the kind and at the place that it reads them from (int8, int16, double), and return the class. `hard`: each tree
votes for one class, which is what emlearn does by default; `soft`: probabilities are added up, which emlearn rounds to
8 bits.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import glowc
from glowc.api.build import compile as compile_bundle
from glowc.board import load_board
from glowc.machine.link import build_elf
from glowc.machine.qemu import run_elf

SAMPLES = 100
MAIN = """#include <stdint.h>
#include "glow_io.h"
void give(const %s *x);
int predict(void);
static const %s samples[] = {%s};
int main(void) {
  uint8_t found[%d];
  glow_mark();
  glow_mark();
  for (int i = 0; i < %d; i++) {
    give(samples + i * %d);
    glow_mark();
    found[i] = (uint8_t)predict();
    glow_mark();
  }
  const int h = glow_io_open_write("found.bin");
  glow_io_write(h, found, sizeof found);
  glow_io_close(h);
  return 0;
}
"""
CALL = """#include <stdint.h>
#include <string.h>
#include "%s"
static const %s *x;
void give(const %s *given) {
  x = given;
  %s
}
int predict(void) {
  %s
}
"""


def _call(header: str, kind: str, call: str, given: str = "") -> str:
    """Return the C around a form: what takes a sample, and what predicts."""
    return CALL % (header, kind, kind, given, call)


GIVE = "memcpy(model_input(), x, MODEL_INPUT_BYTES);"
RUN = "(void)model_run(); return (int)*model_output();"
NOTHING = _call("stdint.h", "int8_t", "return x[0];")


@dataclass(frozen=True, slots=True)
class Taken:
    """What a form takes, and the classes that it found."""

    flash: int
    insns: float
    found: np.ndarray


@dataclass(frozen=True, slots=True)
class Bench:
    """Where programs are built, and what they are given."""

    folder: Path
    samples: np.ndarray
    opt: str

    def run(self, name: str, sources: Sequence[Path], includes: Sequence[Path] = (), kind: str = "int8_t") -> Taken:
        """Build and run a program around a form that takes features of a kind; flash is that of the whole image."""
        board, count = load_board("mps2-an386"), len(self.samples)
        main = self.folder / f"{name}_main.c"
        numbers = ",".join(map(str, self.samples.reshape(-1).tolist()))
        main.write_text(MAIN % (kind, kind, numbers, count, count, self.samples.shape[1]), encoding="utf-8")
        elf = build_elf([main, *sources], board, self.folder / f"{name}.elf", include_dirs=includes, opt=self.opt,
                        extra_flags=("-w",))  # fmt: skip
        marks = np.diff(run_elf(elf.path, board, cwd=self.folder, marks=True).marks)
        own = marks[2::2] - marks[0]
        return Taken(
            elf.text + elf.rodata + elf.data, float(own.mean()), np.fromfile(self.folder / "found.bin", np.uint8)
        )

    def write(self, name: str, text: str) -> Path:
        """Write a source file in a folder of its own."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.c"
        path.write_text(text, encoding="utf-8")
        return path


def of_glowc(bench: Bench, model: RandomForestClassifier) -> Iterator[tuple[str, Taken]]:
    """Yield the forms of glowc: tables, and trees that are code."""
    onnx_model = glowc.from_sklearn(model, features="int8")
    del onnx_model.graph.output[1:]
    for opt in ("balanced", "speed"):
        out = bench.folder / f"glowc_{opt}"
        compile_bundle(onnx_model, out, board="mps2-an386", options=glowc.CompileOptions(opt=opt), force=True)
        text = _call("model.h", "int8_t", RUN, GIVE)
        sources = [*sorted(out.glob("*.c")), bench.write(f"call_{opt}", text)]
        yield f"glowc --opt {opt}", bench.run(f"glowc_{opt}", sources, [out])


def of_emlearn(bench: Bench, model: RandomForestClassifier, soft: bool) -> Iterator[tuple[str, Taken]]:
    """Yield the forms of emlearn; its features are int16, which what calls it has as such."""
    import emlearn

    place = Path(emlearn.__file__).parent
    count = bench.samples.shape[1]
    for method in ("inline", "loadable"):
        made = emlearn.convert(model, method=method, dtype="int16_t", leaf_bits=8 if soft else 0)
        folder = bench.folder / f"emlearn_{method}"
        folder.mkdir(exist_ok=True)
        text = made.save(name="forest", include_proba=False)
        (folder / "model.inc").write_text(text, encoding="utf-8")
        body = _call("model.inc", "int16_t", f"return forest_predict(x, {count});")
        path = folder / f"emlearn_{method}.c"
        path.write_text(body, encoding="utf-8")
        yield f"emlearn {method}", bench.run(f"emlearn_{method}", [path], [folder, place], "int16_t")


def of_m2cgen(bench: Bench, model: RandomForestClassifier) -> Iterator[tuple[str, Taken]]:
    """Yield the form of m2cgen, which computes in double."""
    import m2cgen

    folder, classes = bench.folder / "m2cgen", len(model.classes_)
    folder.mkdir(exist_ok=True)
    (folder / "model.inc").write_text(m2cgen.export_to_c(model), encoding="utf-8")
    call = (f"double y[{classes}]; score((double *)x, y); int best = 0;"
            f" for (int i = 1; i < {classes}; i++) if (y[i] > y[best]) best = i; return best;")  # fmt: skip
    path = folder / "m2cgen.c"
    path.write_text(_call("model.inc", "double", call), encoding="utf-8")
    yield "m2cgen", bench.run("m2cgen", [path], [folder], "double")


def voting(model: RandomForestClassifier) -> None:
    """Let each leaf of a forest be sure of its first most likely class."""
    for tree in model.estimators_:
        value = tree.tree_.value
        best = value.argmax(axis=2)[..., None]
        value[...] = np.arange(value.shape[2]) == best


def forms(bench: Bench, model: RandomForestClassifier, soft: bool, console: Console) -> Iterator[tuple[str, Taken]]:
    """Yield all forms that can be had."""
    yield from of_glowc(bench, model)
    for package in ("emlearn", "m2cgen"):
        if find_spec(package) is None:
            console.print(f"{package} is not installed: pip install {package}")
        elif package == "emlearn":
            yield from of_emlearn(bench, model, soft)
        else:
            yield from of_m2cgen(bench, model)


def fitted(args: argparse.Namespace, soft: bool) -> tuple[RandomForestClassifier, np.ndarray]:
    """Return a forest and the samples it is measured with, whole numbers in int8."""
    data: Any = getattr(sklearn.datasets, f"load_{args.data}")()
    span = np.ptp(data.data, axis=0)
    x = np.rint((data.data - data.data.min(axis=0)) / np.where(span > 0, span, 1) * 255 - 128)
    model = RandomForestClassifier(args.trees, max_depth=args.depth, random_state=args.seed).fit(x, data.target)
    if not soft:
        voting(model)
    return model, x[:: max(1, len(x) // SAMPLES)][:SAMPLES].astype(np.int8)


def main() -> int:
    """Print a table of each kind of vote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", choices=("digits", "breast_cancer", "wine", "iris"))
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opt", default="-O2")
    args, console = parser.parse_args(), Console()
    for soft in (False, True):
        model, samples = fitted(args, soft)
        wanted = model.predict(samples.astype(float)).astype(np.uint8)
        splits = sum(int((t.tree_.feature >= 0).sum()) for t in model.estimators_)
        title = f"{args.data}, {args.trees} trees, depth {args.depth}, {splits} splits, {'soft' if soft else 'hard'}"
        table = Table("form", "flash bytes", "instructions", "equal classes", title=f"{title}, {args.opt}")
        with tempfile.TemporaryDirectory(prefix="glowc-trees-") as folder:
            bench = Bench(Path(folder), samples, args.opt)
            nothing = bench.run("nothing", [bench.write("none", NOTHING)])
            for name, taken in forms(bench, model, soft, console):
                same = f"{(taken.found == wanted).sum()} of {len(wanted)}"
                table.add_row(name, f"{taken.flash - nothing.flash:,}", f"{taken.insns:,.0f}", same)
        console.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

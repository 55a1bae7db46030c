"""Writes the generated pages of docs/: OPERATORS.md from the operator registry, BOARDS.md from boards/,
GALLERY.md from README.md, rooms.svg.

`make docs` runs it; `--check` writes nothing and fails, naming the pages, when one is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from draw_rooms import rooms_svg

from glowc.app.show import boards_data, ops_data
from glowc.board import load_board
from glowc.frontend.control import MOST_NODES
from glowc.frontend.importer import LARGEST_CONSTANT_ELEMENTS, MOST_EXPANDED_NODES, MOST_LEVELS
from glowc.frontend.schema import LARGEST_EXTENT
from glowc.frontend.tflite.known import known_operators
from glowc.graph.types import LARGEST_TENSOR_BYTES
from glowc.kernels.registry import variants_of
from glowc.ops.registry import all_ops
from glowc.ops.strided import LARGEST_TABLE_AXIS
from glowc.program.kernel import all_kernels

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS.parent / "tests" / "onnx_backend" / "results.json"
NOTE = "<!-- written by `make docs`; do not edit -->\n"


def operators_page() -> str:
    """Return docs/OPERATORS.md."""
    data = ops_data()
    lines = [
        "# Operators",
        "",
        NOTE,
        f"{len(data['operators'])} operators lower to {data['instruction_kinds']} instruction kinds. Every CPU has"
        " reference kernels for these; a new CPU needs fast variants only for the kinds that matter to it.",
        "",
        "Integers: int8 and uint8, per tensor, or per channel for weights. The exact rounding is in"
        " [ARITHMETIC.md](ARITHMETIC.md). Every operator works in float32 as well, unless its text says otherwise.",
        "",
        "| operator | integers | newest opset known | meaning |",
        "|---|---|---|---|",
    ]
    for op in all_ops().values():
        name = f"{op.domain}.{op.name}" if op.domain else op.name
        opset = str(op.max_version) if op.max_version else "internal"
        lines.append(f"| {name} | {'yes' if op.int8 else ''} | {opset} | {op.doc.replace('|', chr(92) + '|')} |")
    lines += ["", "## Kernels", "", "| instruction | variants | meaning |", "|---|---|---|"]
    for kernel in all_kernels().values():
        variants = ", ".join(v.name for v in variants_of(kernel.name))
        lines.append(f"| {kernel.name} | {variants} | {kernel.doc.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, *limits(), *tflite_operators(), *node_tests(), ""])


def tflite_operators() -> list[str]:
    """Return the section about operators of TensorFlow Lite files."""
    operators = known_operators()
    lines = [
        "",
        "## Operators of TensorFlow Lite",
        "",
        f"{len(operators)} operators of `.tflite` files, with the newest version whose options are read and the types"
        " of their data (`glowc ops --format tflite`). Integer results are those of TensorFlow Lite Micro; `make"
        " tflite-cases` compares random models of each with its runtime.",
        "",
        "| operator | version | types | left out, or needed |",
        "|---|---|---|---|",
    ]
    return [*lines, *(f"| {n} | {op.version} | {' '.join(op.types)} | {op.note} |" for n, op in operators.items())]


def limits() -> list[str]:
    """Return the section about sizes and depths beyond which a model is refused."""
    rows = {
        "bytes of one tensor, and of the arena": LARGEST_TENSOR_BYTES,
        "elements of a constant that is computed from smaller ones": LARGEST_CONSTANT_ELEMENTS,
        "elements along an axis that Pad or Resize writes": LARGEST_TABLE_AXIS,
        "size, stride, dilation and padding of a window": LARGEST_EXTENT,
        "operators that functions, branches and loops expand to": MOST_EXPANDED_NODES,
        "levels of functions, branches and loops in each other": MOST_LEVELS,
        "operators of one unrolled loop": MOST_NODES,
    }
    head = ["", "## Limits", "", "A model beyond one of these is refused with the name of the node.", ""]
    return [*head, "| limit of | at most |", "|---|---|", *(f"| {what} | {most:,} |" for what, most in rows.items())]


def node_tests() -> list[str]:
    """Return the section about ONNX's own tests, from the recorded results of `make onnx-backend`."""
    if not RESULTS.exists():
        return []
    data = json.loads(RESULTS.read_text())
    groups = data["counts"]
    lines = [
        "",
        "## ONNX's own node tests",
        "",
        f"onnx {data['onnx']} carries {groups['all']['tests']} node tests. `make onnx-backend` compiles each of them to"
        " C, with the project's warnings as errors, runs it and compares with the expected arrays (integers exactly,"
        " floats within the tolerances of ONNX's runner). A wrong answer fails the build. Many of these models take"
        " axes or shapes as graph inputs. Where glowc needs them at compile time, the test is compiled with"
        " those inputs as initializers, as exporters write them, and counted separately."
        " float16 and bfloat16 are float32 in the C; a result is rounded to what the file says before it is compared."
        " Each element of a sequence is an input or output.",
        "",
        "| types | tests | passed | as they are | with parameters as constants | with weights as constants too |",
        "|---|---|---|---|---|---|",
    ]
    names = {
        "ordinary": "floats, integers, bool",
        "quantised": "quantized, 2- and 4-bit",
        "small-floats": "floats of 16, 8 and 4 bits",
        "sequences": "sequences, optionals",
        "all": "all",
    }
    for group, what in names.items():
        row = groups[group]
        levels = [str(n) for key, n in row.items() if key.startswith("passed ")]
        lines.append(f"| {what} | {row['tests']} | {row['passed']} | {' | '.join(levels)} |")
    lines += [
        "",
        f"{groups['all'].get('other answer', 0)} more expect another answer than glowc's. Resize to aligned corners"
        " with a length that is no whole number (2): ONNX's text, onnxruntime and PyTorch agree on what glowc gives."
        " Attention in float16 and bfloat16: the expected arrays round after every step; glowc computes in float32, and"
        " gives what ONNX's reference evaluator gives for float32.",
        "",
        "| refused because of | tests |",
        "|---|---|",
    ]
    lines += [f"| {reason} | {count} |" for reason, count in sorted(data["refused"].items(), key=lambda x: -x[1])]
    lines += ["", "| operator | passed | of | not passed |", "|---|---|---|---|"]
    for op, row in data["operators"].items():
        why = ", ".join(f"{reason} {count}" for reason, count in data["reasons"].get(op, {}).items())
        lines.append(f"| {op} | {row['passed']} | {row['tests']} | {why} |")
    return lines


def boards_page() -> str:
    """Return docs/BOARDS.md."""
    lines = ["# Boards", "", NOTE, "| board | chip | CPUs | RAM | flash | runs here |", "|---|---|---|---|---|---|"]
    for row in boards_data():
        board = load_board(row["name"])
        sizes = (f"{row[k] >> 10:,} KB" if row[k] else "" for k in ("ram_bytes", "flash_bytes"))
        runs = "yes" if board.runs else "builds only"
        cpus = ", ".join(row["cpus"])
        what = f"[{row['summary']}]({board.url})"
        lines.append(f"| {row['name']} | {what} | {cpus} | {' | '.join(sizes)} | {runs} |")
    lines += [
        "",
        "`glowc build MODEL --board B -o app.elf` makes firmware for any of them:",
        "",
        "* For a board that runs here: the program of `glowc run`.",
        "* For other boards, and with `--golden in.npz`: a program that runs these test vectors (or one inference on"
        " zeros), leaves the result in `glow_result` for a debugger, and ends.",
        "* With `--wire`: firmware for a serial line ([WIRE.md](WIRE.md)).",
        "",
        "`glowc flash app.elf --board B` prints the commands that put it on the board; `--run` runs them.",
        "",
        "Memory maps are those of the vendors' manuals. The tests run programs on boards that run here, and build them"
        " for the others.",
        "",
        "A board is a folder with a `board.toml`. `--board path/to/folder` takes one from anywhere. `glowc board"
        " new my-board --from nucleo-f446re` writes one to edit ([ADDING.md](ADDING.md)).",
        "",
    ]
    return "\n".join(lines)


def gallery_page() -> str:
    """Return docs/GALLERY.md: the measured tables of README.md, and the examples."""
    readme = (DOCS.parent / "README.md").read_text()
    measured = readme[readme.index("The int8 models of MLPerf Tiny:") : readme.index("## In your firmware")]
    lines = [
        "# Gallery",
        "",
        NOTE,
        measured.replace("[docs/", "[").replace("](docs/", "](").strip(),
        "",
        "## Examples",
        "",
    ]
    lines += ["| | |", "|---|---|"]
    for path in sorted((DOCS.parent / "examples").glob("*/README.md")):
        title = path.read_text().splitlines()[0].removeprefix("# ")
        lines.append(f"| [{path.parent.name}](../examples/{path.parent.name}/README.md) | {title} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Write or check the pages."""
    pages = {"OPERATORS.md": operators_page(), "BOARDS.md": boards_page(), "GALLERY.md": gallery_page(),
             "rooms.svg": rooms_svg()}  # fmt: skip
    if "--check" in sys.argv[1:]:
        stale = [n for n, text in pages.items() if not (DOCS / n).exists() or (DOCS / n).read_text() != text]
        if stale:
            print(f"stale: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name, text in pages.items():
        (DOCS / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Public networks for microcontrollers in glowc's C, next to what is known of others: `make bench-products`.

    python scripts/products.py [--only TEXT] [--write]

Products are those of scripts/products.toml whose files are there; the others are left out, by name. `--write` puts the
table into docs/PRODUCTS.md, where tests/e2e/test_products.py holds glowc to it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "wake-word"))

import demo  # noqa: E402  # of that folder

from glowc.app.options import parsed_options  # noqa: E402
from glowc.board import load_chip, machine_of  # noqa: E402
from glowc.compiler.options import CompileOptions  # noqa: E402
from glowc.compiler.pipeline import Compiled, compile_model, write_bundle  # noqa: E402
from glowc.compiler.report import BenchReport  # noqa: E402
from glowc.machine.cycles.measure import add_cycles  # noqa: E402
from glowc.machine.execute import bench, load_bundle  # noqa: E402

FILE = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs" / "PRODUCTS.md"
HEAD = "| product | chip | RAM | code | constants | ms | uJ | source |"
_MARVIN = ROOT.parent / "shared" / "tflite3" / "sww" / "model.tflite"


@dataclass(frozen=True)
class Product:
    """A network and its chip; `theirs` are figures of another engine by the names of the columns."""

    title: str
    chip: str
    model: str = ""
    word: str = ""
    theirs: Mapping[str, float | str] = field(default_factory=dict)

    @contextmanager
    def compiled(self) -> Iterator[Compiled]:
        """Yield the network, compiled for the chip's board. Raises FileNotFoundError, naming what is missing."""
        board = machine_of(load_chip(self.chip))
        with tempfile.TemporaryDirectory(prefix="glowc-product-") as folder:
            first, options = self._word(Path(folder)) if self.word else (self._file(), CompileOptions(name="net"))
            yield compile_model(first, board, options)

    def _file(self) -> Path:
        return _there(ROOT.parent / self.model)

    def _word(self, folder: Path) -> tuple[Path, CompileOptions]:
        makers = {"marvin": lambda: demo.marvin(_there(_MARVIN)), "okay_nabu": demo.okay_nabu,
                  "hey_jarvis": demo.hey_jarvis}  # fmt: skip
        try:
            word = makers[self.word]()
        except demo.DemoError as error:
            raise FileNotFoundError(str(error)) from error
        first, *others = word.models(folder)
        options = parsed_options(word.options)
        return first, replace(options, name="net", chain=tuple(others), input_stream="samples", hop=word.hop)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def products() -> list[Product]:
    """Return the products of the list."""
    return [Product(**row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["product"]]


def measured(product: Product) -> BenchReport:
    """Return what `glowc bench --chip` says. Raises FileNotFoundError."""
    chip = load_chip(product.chip)
    board = machine_of(chip)
    with product.compiled() as compiled, tempfile.TemporaryDirectory() as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        report = bench(info, board)
        add_cycles(report, info, board, chip, None, required=True)
    return report


def row_of(product: Product, report: BenchReport) -> str:
    """Return the line of a product, with figures of others in brackets."""
    code = report["text_bytes"] + report["rodata_bytes"] - report["weights_bytes"]
    theirs = product.theirs
    cells = (
        _cell(f"{report['arena_bytes']:,}", theirs.get("ram_bytes")), f"{code:,}",
        _cell(f"{report['weights_bytes']:,}", theirs.get("flash_bytes"), "flash "),
        _cell(f"{report['ms']:.3g}", theirs.get("ms")),
        _cell(f"{report['uj']:,.0f}" if "uj" in report else "-", theirs.get("uj")),
    )  # fmt: skip
    return f"| {product.title} | {product.chip} | {' | '.join(cells)} | {theirs.get('by', '')} |"


def _cell(ours: str, theirs: float | str | None, what: str = "") -> str:
    return ours if theirs is None else f"{ours} ({what}{theirs:,})"


def rows(page: str) -> Mapping[str, Sequence[str]]:
    """Return the cells of the page's table by product."""
    lines = page.partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    return {cells[0]: cells[1:] for cells in ([c.strip() for c in line.strip("|").split("|")] for line in lines)}


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="products whose title has this")
    parser.add_argument("--write", action="store_true", help="put the table into docs/PRODUCTS.md")
    options = parser.parse_args()
    lines = [HEAD, "|---|---|---|---|---|---|---|---|"]
    for product in products():
        if options.only in product.title:
            try:
                lines.append(row_of(product, measured(product)))
                print(lines[-1], flush=True)
            except FileNotFoundError as error:
                print(f"left out: {product.title}: {error}", file=sys.stderr)
    if options.write:
        before, _, after = PAGE.read_text(encoding="utf-8").partition(HEAD)
        PAGE.write_text(before + "\n".join(lines) + "\n\n" + after.partition("\n\n")[2], encoding="utf-8")


if __name__ == "__main__":
    main()

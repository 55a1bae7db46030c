"""Tables for people: benches, comparisons, boards, operators, tools. Data first, printing by rich last."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from glowc.app.terminal import visible

if TYPE_CHECKING:
    from glowc.compiler.report import BenchReport, LayerReport
    from glowc.machine.tflm import EngineComparison
    from glowc.machine.tune import Choice
    from glowc.machine.validate import Comparison, OutputComparison

_MISSING = "-"


class ChipRow(TypedDict):
    """A chip as `glowc chips --json` says it; `error_percent` is how far its cycles may be off, `energy_source` why
    there is no `pj_per_cycle`, or where it comes from.
    """

    name: str
    summary: str
    cpu: str
    core: str
    clock_mhz: int
    error_percent: int | None
    pj_per_cycle: float | None
    energy_source: str
    measured: str | None
    assumed: str | None


class BoardRow(TypedDict):
    """A board as `glowc boards --json` says it."""

    name: str
    summary: str
    cpus: list[str]
    ram_bytes: int | None
    flash_bytes: int | None
    runs: bool
    runner_installed: bool


class _Plain(Console):
    """A console on which text is only text: whatever a name holds, it is neither markup nor an escape sequence."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, width=width)

    def render_str(self, text: str, **how: Any) -> Text:
        """Return the text of a cell, a title or a line."""
        return super().render_str(visible(text), **how)


def plain_console() -> Console:
    console = _Plain()
    return console if console.is_terminal else _Plain(width=160)


def plain_table(*columns: str, title: str = "", numbers: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the short names in columns of `whole` stay in one line on narrow terminals."""
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(
            column, justify="right" if column in numbers else "left", overflow="fold", no_wrap=column in whole
        )
    return table


def _count(value: Any) -> str:
    return _MISSING if value is None else f"{value:,}"


def bench_tables(report: BenchReport) -> None:
    """Print one bench: totals, then a line per layer."""
    console = plain_console()
    counted = f", instructions and stack counted on {report['emulated_on']}" if "emulated_on" in report else ""
    totals = plain_table(
        "", "bytes", title=f"{report['model']} on {report['board']} ({report['run_cpu']}){counted}", numbers=("bytes",)
    )
    for label, key in (
        ("arena (RAM)", "arena_bytes"), ("stack high-water mark", "stack_bytes"),
        ("stack, worst case", "stack_bound_bytes"), ("code", "text_bytes"),
        ("constants of the model", "weights_bytes"), ("all read-only data", "rodata_bytes"),
        ("initialized data", "data_bytes"),
    ):  # fmt: skip
        totals.add_row(label, _count(report.get(key)))
        for region in report.get("regions", []) if key == "arena_bytes" else []:
            totals.add_row(f"  in {region['name']}", _count(region["arena_bytes"]))
    console.print(totals)
    names = (
        "insns",
        "estimate",
        *(("cycles", "ms") if "chip" in report else ()),
        *(("uJ",) if "uj" in report else ()),
        "MACs",
        "insns/MAC",
        "live bytes",
    )
    table = plain_table("#", "layer", "op", "kernel", *names, numbers=("#", *names))
    for index, layer in enumerate(report["layers"]):
        table.add_row(
            str(index),
            layer["name"],
            layer["op"],
            layer["kernel"],
            *_cost(layer),
            _count(layer["arena_live_bytes"]),
        )
    table.add_section()
    table.add_row("", "whole inference", "", "", *_cost(report), _count(report["arena_bytes"]))
    console.print(table)
    console.print("live bytes: what a layer needs at once; tensors may overlap, so the arena can be smaller")
    if "chip" in report:
        console.print(*_chip_lines(report), sep="\n")
    if report["insns"] is None:
        where = " on Linux and macOS" if sys.platform == "win32" else ""
        console.print(f"{report['board']} does not count instructions; boards under QEMU do{where}")


def _cost(entry: LayerReport | BenchReport) -> tuple[str, ...]:
    insns, macs = entry["insns"], entry["macs"]
    ratio = f"{insns / macs:.2f}" if insns is not None and macs else _MISSING
    cycles = (_count(entry["cycles"]), f"{entry['ms']:,.3f}") if "cycles" in entry else ()
    energy = (f"{entry['uj']:,.2f}",) if "uj" in entry else ()
    return _count(insns), _count(entry.get("insns_estimate")), *cycles, *energy, _count(macs), ratio


def _chip_lines(report: BenchReport) -> list[str]:
    """Return what the cycles of an inference are made of, and how far they are to be trusted."""
    chip, cycles = report["chip"], report["cycles"]
    causes = ", ".join(f"{k} {100 * n / cycles:.1f} %" for k, n in report["cycles_by_cause"].items() if n)
    misses = f"{_count(report['fetch_misses'])} of fetches, {_count(report['data_misses'])} of reads"
    if "memory_misses" in report:
        misses += f" ({_count(report['memory_misses'])} of both caches)"
    times = report["weights_read_bytes"] / report["weights_bytes"] if report["weights_bytes"] else 0
    read, arena = _count(report["weights_read_bytes"]), _count(report["arena_read_bytes"])
    head = f"{chip['name']}, {chip['core']} at {chip['clock_mhz']} MHz (modeled)"
    trust = f"within {chip['error_percent']} %: {chip['checked']}" if chip["error_percent"] else chip["checked"]
    return [
        f"{head}: {cycles:,} cycles, {report['ms']:,.3f} ms",
        f"  cycles     {causes}",
        f"  misses     {misses}",
        f"  constants  {read} bytes read, {times:.1f} times the {_count(report['weights_bytes'])} that there are",
        f"  arena      {arena} bytes read, {_count(report['arena_written_bytes'])} written",
        f"  trust      {trust}",
        *(f"  {key:10} {chip[key]}" for key in ("measured", "assumed") if chip.get(key)),
        f"  energy     {_energy(report)}",
        *_battery(report),
        *_longest_step(report),
        *_of_cores(report),
    ]


def _energy(report: BenchReport) -> str:
    energy = report["chip"]["energy"]
    if "uj" not in report:
        return energy["source"]
    each = f"{energy['pj_per_cycle']:g} pJ a cycle, within {energy['error_percent']} % of what was measured"
    return f"{report['uj']:,.2f} uJ, {report['uj'] / report['ms']:,.2f} mW ({each})"


def _battery(report: BenchReport) -> list[str]:
    """Return a line about how long a battery lasts, where the duty of the chip was given."""
    if (b := report.get("battery")) is None:
        return []
    duty = f"{b['per_hour']:,g} inferences an hour, {b['sleep_ua']:g} uA between them"
    return [f"  battery    {b['days']:,.1f} days of {b['capacity_mah']:g} mAh at {b['volts']:g} V: {duty}"]


def _longest_step(report: BenchReport) -> list[str]:
    """Return a line about the steps of an inference in slices."""
    slices = report.get("slices")
    if slices is None or "longest_cycles" not in slices:
        return []
    steps, most = len(slices["step_parts"]), f"{slices['longest_cycles']:,} cycles, {slices['longest_ms']:,.3f} ms"
    return [f"  steps      {steps}, the longest takes {most}; {slices['limit_cycles']:,} were asked for"]


def _of_cores(report: BenchReport) -> list[str]:
    """Return a line about the cores that share layers."""
    cores = report.get("cores")
    if cores is None or "longest_cycles" not in cores:
        return []
    cycles, times = cores["longest_cycles"], f"{report['cycles'] / cores['longest_cycles']:.2f} times as fast as one"
    return [f"  cores      {cores['count']}: {cycles:,} cycles, {cores['longest_ms']:,.3f} ms, {times}"]


def tuned_table(choices: Sequence[Choice], path: Path) -> None:
    """Print the measured layers: what was chosen, and what the other variants need."""
    console = plain_console()
    unit = "cycles" if any(c.cycles for c in choices) else "insns"
    table = plain_table("layer", "kernel", "chosen", unit, "other variants", "", numbers=(unit,))
    for c in choices:
        taken = c.cycles or c.insns
        others = ", ".join(f"{name} {count:,}" for name, count in taken.items() if name != c.chosen)
        table.add_row(c.layer, c.kernel, c.chosen, _count(taken[c.chosen]), others, "" if c.measured else "known")
    console.print(table)
    console.print(f"{len(choices)} layers with a choice; use them by `glowc compile --tuned {path}`")


def validation_table(result: Comparison) -> None:
    """Print one comparison."""
    console = plain_console()
    columns = ("output", "equal", "max diff", "RMSE", "cosine", "argmax agrees", "allowed")
    table = plain_table(
        *columns,
        title=f"{result['model']} on {result['board']} against {result['reference']}",
        numbers=columns[1:],
    )
    for row in result["outputs"]:
        step = f" ({row['max_steps']:g} steps)" if row["max_steps"] is not None else ""
        table.add_row(
            row["name"], f"{100 * row['equal_share']:.3f} %", f"{row['max_abs']:.4g}{step}", f"{row['rmse']:.3g}",
            f"{row['cosine']:.6f}", f"{row['argmax_agree']} of {row['samples']}", row["allowed"],
        )  # fmt: skip
    console.print(table)
    if result.get("first_difference"):
        console.print(f"first instruction that differs: {result['first_difference']}")
    console.print("equal within what is allowed" if result["ok"] else "NOT equal")


def engines_table(result: EngineComparison) -> None:
    """Print a comparison with TensorFlow Lite Micro: figures, then outputs."""
    console, engines = plain_console(), result["engines"]
    chip = f", milliseconds modeled on {result['chip']}" if result["chip"] else ""
    table = plain_table("", *(e["name"] for e in engines), title=f"{result['model']} on {result['board']}{chip}",
                        numbers=tuple(e["name"] for e in engines))  # fmt: skip
    table.add_row("measured on", *(e["on"] for e in engines))
    table.add_row("instructions", *(_count(e["insns"]) for e in engines))
    table.add_row("ms", *(_MISSING if e["ms"] is None else f"{e['ms']:,.3f}" for e in engines))
    table.add_row("arena, bytes", *(_count(e["arena_bytes"]) for e in engines))
    table.add_row("flash of the whole program, bytes", *(_count(e["flash_bytes"]) for e in engines))
    console.print(table)
    for engine in engines:
        for row in engine["outputs"]:
            console.print(f"output {row['name']}, glowc and {engine['name']} on {engine['on']}: {_difference(row)}")
    console.print("operators: " + ", ".join(f"{count} {code}" for code, count in result["operators"].items()))
    console.print("The arena of TFLM on this machine has pointers of 64 bits and room for its records.")


def _difference(row: OutputComparison) -> str:
    if row["max_abs"] == 0:
        return f"{row['samples']} of {row['samples']} samples equal"
    allowed = "" if row["allowed"] == "equal" else f", {row['allowed']} allowed"
    return f"{100 * row['equal_share']:.3f} % equal, at most {row['max_abs']:.4g} apart{allowed}"


def boards_data() -> list[BoardRow]:
    """Return every board: name, CPUs, memory in bytes, whether it runs here."""
    from glowc.board import board_names, find_tool, load_board

    rows: list[BoardRow] = []
    for name in board_names():
        board = load_board(name)
        tool = board.run_argv[0] if board.run_argv else None
        rows.append(
            {"name": name, "summary": board.summary, "cpus": list(board.cpus),
             "ram_bytes": board.bytes_of("ram") or None, "flash_bytes": board.bytes_of("flash") or None,
             "runs": board.runs, "runner_installed": bool(tool and (tool == "{elf}" or find_tool(tool)))}
        )  # fmt: skip
    return rows


def chips_data() -> list[ChipRow]:
    """Return every chip: name, CPU, clock in MHz, how far its cycles may be off and what is assumed."""
    from glowc.board import chip_names, load_chip
    from glowc.machine.cycles.measure import ENERGY_NOT_KNOWN
    from glowc.machine.cycles.pipeline import TRUST, UNCHECKED

    return [
        {"name": chip.name, "summary": chip.summary, "cpu": chip.cpu, "core": chip.core, "clock_mhz": chip.clock_mhz,
         "error_percent": TRUST.get(chip.core, UNCHECKED).percent,
         "pj_per_cycle": chip.energy.pj_per_cycle if chip.energy else None,
         "energy_source": chip.energy.source if chip.energy else ENERGY_NOT_KNOWN,
         "measured": chip.measured or None, "assumed": chip.assumed or None}
        for chip in map(load_chip, chip_names())
    ]  # fmt: skip


def chip_table(rows: list[ChipRow]) -> None:
    """Print the chips."""
    table = plain_table("chip", "what", "CPU", "trust", "pJ a cycle", "assumed", whole=("chip",))
    for row in rows:
        trust = f"±{row['error_percent']} %" if row["error_percent"] else "not checked"
        energy = f"{row['pj_per_cycle']:g}" if row["pj_per_cycle"] else "not known"
        table.add_row(row["name"], row["summary"], row["cpu"], trust, energy, row["assumed"] or "")
    plain_console().print(table)


def board_table(rows: list[BoardRow]) -> None:
    """Print the boards."""
    table = plain_table("board", "what", "CPUs", "RAM", "flash", "run", numbers=("RAM", "flash"), whole=("board",))
    for row in rows:
        run = "yes" if row["runner_installed"] else ("QEMU missing" if row["runs"] else "flash it yourself")
        table.add_row(
            row["name"],
            row["summary"],
            ", ".join(row["cpus"]),
            _size(row["ram_bytes"]),
            _size(row["flash_bytes"]),
            run,
        )
    plain_console().print(table)


def _size(value: int | None) -> str:
    if value is None:
        return _MISSING
    return f"{value >> 10:,} KB"


def ops_data() -> dict[str, Any]:
    """Return operators, and instruction kinds with their variants."""
    from glowc.kernels.registry import variants_of
    from glowc.ops.registry import all_ops
    from glowc.program.kernel import all_kernels

    operators = [
        {
            "name": op.name,
            "domain": op.domain,
            "int8": op.int8,
            "opset": op.max_version or None,
            "doc": op.doc,
        }
        for op in all_ops().values()
    ]
    kernels = [{"name": k.name, "variants": [v.name for v in variants_of(k.name)]} for k in all_kernels().values()]
    families = {k.template or k.name for k in all_kernels().values()}
    return {"operators": operators, "kernels": kernels, "instruction_kinds": len(families)}


def tflite_ops_data() -> dict[str, Any]:
    """Return TensorFlow Lite's operators with the newest version known, kinds of elements and what is left out."""
    from glowc.frontend.tflite.known import known_operators

    return {"operators": [{"name": name, **asdict(op)} for name, op in known_operators().items()]}


def tflite_ops_table() -> None:
    """Print TensorFlow Lite's operators."""
    from glowc.frontend.tflite.known import known_operators

    operators, console = known_operators(), plain_console()
    table = plain_table("operator", "newest version known", "types", "", numbers=("newest version known",))
    for name, op in operators.items():
        table.add_row(name, str(op.version), " ".join(op.types), op.note)
    console.print(table)
    console.print(f"{len(operators)} operators")


def ops_tables(data: dict[str, Any]) -> None:
    """Print operators and the number of instruction kinds."""
    console = plain_console()
    table = plain_table("operator", "integers", "newest opset known", "", numbers=("newest opset known",))
    for op in data["operators"]:
        name = f"{op['domain']}.{op['name']}" if op["domain"] else op["name"]
        table.add_row(name, "yes" if op["int8"] else "", str(op["opset"] or ""), op["doc"])
    console.print(table)
    variants = sum(len(k["variants"]) for k in data["kernels"])
    console.print(
        f"{len(data['operators'])} operators lower to {data['instruction_kinds']} instruction kinds "
        f"({len(data['kernels'])} with element types, {variants} variants)"
    )


_PACKAGES = (
    ("onnx", "onnx", "glowc"), ("numpy", "numpy", "glowc"), ("jinja2", "jinja2", "glowc"),
    ("onnxruntime", "onnxruntime", "validate; faster profile and quantize"), ("pillow", "PIL", "images as data"),
)  # fmt: skip
"""Python packages: name, module, what for."""


def doctor_data() -> dict[str, Any]:
    """Return what is installed, what is missing, and the command that installs it."""
    from importlib.util import find_spec

    from glowc.board import install_command, tool_status
    from glowc.paths import commit, full_version

    tools = [
        {"name": s.tool.name, "purpose": s.tool.purpose, "path": str(s.path) if s.path else None,
         "optional": not s.tool.required, "runs_here": bool(s.tool.package)}
        for s in tool_status()
    ]  # fmt: skip
    packages = [
        {"name": n, "purpose": p, "optional": p != "glowc", "installed": find_spec(m) is not None}
        for n, m, p in _PACKAGES
    ]
    missing = [t["name"] for t in tools if t["path"] is None and not t["optional"]]
    return {
        "glowc": full_version(), "commit": commit(), "python": platform.python_version(), "tools": tools,
        "packages": packages, "missing": missing,
        "install": install_command(str(m) for m in missing) if missing else None,
    }  # fmt: skip


def doctor_table(data: dict[str, Any]) -> None:
    """Print the installation."""
    console = plain_console()
    table = plain_table(
        "tool", "for", "found", title=f"glowc {data['glowc']}, Python {data['python']}", whole=("tool",)
    )
    for tool in data["tools"]:
        absent = "missing" if not tool["optional"] else "missing (optional)" if tool["runs_here"] else "Linux only"
        table.add_row(tool["name"], tool["purpose"], tool["path"] or absent)
    for package in data["packages"]:
        absent = "missing (optional: pip install 'glowc[quantize]')" if package["optional"] else "missing"
        table.add_row(f"python: {package['name']}", package["purpose"], "yes" if package["installed"] else absent)
    console.print(table)
    missing = f"to install what is missing:\n  {data['install']}" if data["install"] else "nothing is missing"
    console.print(missing, soft_wrap=True)  # one line, to be copied

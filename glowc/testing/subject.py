"""What a test does with a model on a board: run it, compare it, hold it to a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from glowc.board import Board
from glowc.compiler.options import CompileOptions
from glowc.compiler.report import BenchReport
from glowc.compiler.samples import read_arrays
from glowc.errors import ArraysError, InputError
from glowc.machine.execute import BundleInfo, bench, execute, read_inputs
from glowc.machine.validate import OutputComparison, compare, validate_model

Arrays = Mapping[str, np.ndarray]
MEASURED = ("arena_bytes", "weights_bytes", "text_bytes", "rodata_bytes", "bss_bytes", "stack_bytes",
            "stack_bound_bytes", "insns", "macs")  # fmt: skip


@dataclass
class OnBoard:
    """A model on a board. Arrays are in the form of the model's file, with a leading axis of samples.

    A check that fails raises AssertionError and says by how much; what is wrong with the test itself raises GlowcError.
    """

    source: Path
    board: Board
    options: CompileOptions
    info: BundleInfo
    update: bool = field(default=False)
    """Whether `check` records outputs instead of comparing with those recorded."""

    def run(self, inputs: str | Path | Arrays) -> dict[str, np.ndarray]:
        """Return the outputs of every sample of an .npz, or of arrays by the names of inputs."""
        done = execute(self.info, self.board, self._given(inputs))
        return {port.name: port.to_exported(done.outputs[port.name]) for port in self.info.outputs}

    def check(self, inputs: str | Path, golden: str | Path | None = None) -> None:
        """Compare outputs with those recorded in `golden`, an .npz; without, with onnxruntime or the interpreter.

        Integers are to be equal, floats within the tolerance of `glowc validate`. With `--glowc-update` the outputs
        are recorded in `golden`.
        """
        if golden is None:
            self._check_reference(Path(inputs))
            return
        path, outputs = Path(golden), self.run(inputs)
        if self.update:
            np.savez(path, **outputs)  # type: ignore[arg-type]
            return
        wanted = {p.name: (p.exported_shape, p.exported_dtype.numpy) for p in self.info.outputs}
        expected = read_arrays(path, wanted, {p.name: p.alias for p in self.info.outputs})
        counts = {len(array) for array in (*outputs.values(), *expected.values())}
        if len(counts) > 1:
            raise ArraysError(f"{path} holds another number of samples than the inputs",
                             hint="pytest --glowc-update records the outputs anew")  # fmt: skip
        relative = float(self.info.report.get("float_tolerance", 0.0))
        self._judge([compare(name, outputs[name], expected[name], relative) for name in outputs], str(path), None)

    def _check_reference(self, inputs: Path) -> None:
        result = validate_model(self.source, self.board, self.options, inputs, find_layer=True)
        self._judge(result["outputs"], result["reference"], result.get("first_difference"))

    def _judge(self, rows: list[OutputComparison], reference: str, layer: str | None) -> None:
        wrong = [_shown(row) for row in rows if not row["ok"]]
        if wrong:
            where = [f"the first layer that differs: {layer}"] if layer else []
            lines = [f"{self.info.name} on {self.board.name} differs from {reference}", *wrong, *where]
            raise AssertionError("\n  ".join(lines))

    @cached_property
    def measured(self) -> BenchReport:
        """What `glowc bench --json` prints: sizes and stack in bytes, instructions in all and of each layer."""
        return bench(self.info, self.board)

    def within(self, **limits: int) -> None:
        """Hold what was measured to limits: `within(insns=3_000_000, arena_bytes=40_000)`; MEASURED has the names.

        Raises AssertionError naming each that is exceeded, InputError for names and boards that measure no such thing.
        """
        if unknown := [name for name in limits if name not in MEASURED]:
            raise InputError(f"nothing is measured as {', '.join(unknown)}", hint=f"known: {', '.join(MEASURED)}")
        found = {name: self.measured.get(name) for name in limits}
        if missing := [name for name, value in found.items() if value is None]:
            raise InputError(f"board {self.board.name} does not measure {', '.join(missing)}",
                             hint="an emulated Cortex-M board measures all, see `glowc boards`")  # fmt: skip
        over = [
            f"{name}: {value:,} of at most {limits[name]:,} ({100 * (value / max(limits[name], 1) - 1):+.1f} %)"
            for name, value in found.items()
            if isinstance(value, int) and value > limits[name]
        ]
        if over:
            raise AssertionError("\n  ".join([f"{self.info.name} on {self.board.name} exceeds its budget", *over]))

    def _given(self, inputs: str | Path | Arrays) -> dict[str, np.ndarray]:
        if isinstance(inputs, str | Path):
            return read_inputs(self.info, Path(inputs))
        wanted = {port.name: list(port.exported_shape) for port in self.info.inputs}
        if set(inputs) != set(wanted) or any(list(inputs[n].shape[1:]) != shape for n, shape in wanted.items()):
            seen = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
            takes = ", ".join(f"{name} [samples, {', '.join(map(str, shape))}]" for name, shape in wanted.items())
            raise ArraysError(f"the arrays do not fit the model: {seen}", hint=f"it takes {takes}")
        return {port.name: port.to_bundle(inputs[port.name]) for port in self.info.inputs}


def _shown(row: OutputComparison) -> str:
    steps = f" ({row['max_steps']:g} steps)" if row["max_steps"] is not None else ""
    return (
        f"{row['name']}: {100 * row['equal_share']:.2f} % equal, largest difference {row['max_abs']:g}{steps}, "
        f"allowed: {row['allowed']}"
    )

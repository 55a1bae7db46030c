"""Samples through a model on a board: is it this model, and what does it answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from glowc.compiler.report import Measured
from glowc.errors import InputError
from glowc.machine.execute import BundleInfo, random_inputs
from glowc.machine.wire.client import Hello, Inference, LostStateError, Patience, Wire, WireError
from glowc.machine.wire.port import open_port

_RESTARTS = 100
_SAMPLES = 10
IDENTITY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Line:
    """The port that a board is on, and its speed; None: the usual one."""

    port: str
    baud: int | None = None
    patience: Patience | None = None


@dataclass(frozen=True, slots=True)
class WireRun:
    """Outputs by name (bundle form, leading sample axis), and the counts of the board's counter."""

    outputs: dict[str, np.ndarray]
    counts: tuple[int, ...]
    counter: str
    asked_again: int

    @property
    def typical(self) -> int | None:
        """The median of the counts; None when the board has no counter."""
        return median_low(self.counts) if self.counter != "none" and self.counts else None


def identity_of(info: BundleInfo) -> bytes:
    """Return what firmware and host compare: model, options, CPU, inputs and outputs, as 8 bytes."""
    keys = ("model", "model_hash", "options", "cpu", "inputs", "outputs", "io_buffers", "input_stream")
    text = json.dumps([info.report.get(key) for key in keys], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()[:IDENTITY_BYTES]


def run_on_wire(info: BundleInfo, line: Line, inputs: Mapping[str, np.ndarray]) -> WireRun:
    """Run every sample of `inputs` (bundle form) on the board.

    Raises InputError when the board has another model, WireError when it does not answer, ToolError when the port
    cannot be opened.
    """
    count = len(next(iter(inputs.values()))) if inputs else 1
    samples = [b"".join(np.ascontiguousarray(inputs[p.name][i]).tobytes() for p in info.inputs) for i in range(count)]
    with closing(open_port(line.port, line.baud)) as port:
        wire = Wire(port, line.patience)
        about = wire.hello()
        if about.identity != identity_of(info):
            raise InputError(
                f"the board on {line.port} runs another model than {info.name}, or one compiled in another way",
                hint="glowc build MODEL --wire with the same options, then glowc flash",
            )
        done = _all(wire, about, samples)
    outputs = _arrays(info, [inference.outputs for inference in done])
    return WireRun(outputs, tuple(inference.count for inference in done), about.counter, wire.asked_again)


def measured_on_wire(info: BundleInfo, line: Line, inputs: Mapping[str, np.ndarray] | None) -> Measured:
    """Return what the board's counter says of the inferences of samples, random ones where there are none."""
    done = run_on_wire(info, line, inputs or random_inputs(info, _SAMPLES))
    known = done.counts if done.counter != "none" else ()
    return {"inferences": len(done.counts), "counter": done.counter, "cycles_median": done.typical,
            "cycles_least": min(known, default=None), "cycles_most": max(known, default=None)}  # fmt: skip


def _all(wire: Wire, about: Hello, samples: list[bytes]) -> list[Inference]:
    """Return the inferences in order; those of a model with state begin anew when the board has lost it."""
    for _ in range(_RESTARTS):
        try:
            if about.stateful:
                wire.reset()
            return [wire.infer(sample, about, step) for step, sample in enumerate(samples)]
        except LostStateError:
            continue
    raise WireError(f"the board was reset in each of {_RESTARTS} runs of a model with state")


def _arrays(info: BundleInfo, outputs: list[bytes]) -> dict[str, np.ndarray]:
    result, position = {}, 0
    for port in info.outputs:
        size = int(np.prod(port.shape, dtype=np.int64)) * port.dtype.bytes
        raw = b"".join(data[position : position + size] for data in outputs)
        result[port.name] = np.frombuffer(raw, port.dtype.numpy).reshape(len(outputs), *port.shape)
        position += size
    return result

"""What the user asked for besides the model and the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from glowc.board.checked import Checked, Count, OneOf, PowerOfTwo, Size
from glowc.codegen.export import FOLDER, FORMS


@dataclass(frozen=True, slots=True, repr=False)
class CompileOptions(Checked):
    """What the user asked for besides the model and the board; the fields are the options of the command.

    Raises InputError that names every value which is none. Sizes may be strings, such as "8K", and paths, too.
    """

    name: str | None = None
    entry_name: str | None = None
    batch_size: Count | None = None
    symbols: Mapping[str, Count] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)
    set_inputs: Mapping[str, tuple[int | float | bool, ...]] = field(default_factory=dict)
    opt: Annotated[str, OneOf(("size", "balanced", "speed"))] = "balanced"
    io_type: Annotated[str, OneOf(("model", "int8", "float"))] = "model"
    io_layout: Annotated[str, OneOf(("exported", "nhwc"))] = "exported"
    ram_limit: Size | None = None
    flash_limit: Size | None = None
    passes: str | None = None
    stop_after: str | None = None
    dump_dir: Path | None = None
    dump_onnx: Path | None = None
    golden: Path | None = None
    stateful: bool = False
    require_int8: bool = False
    plan: Annotated[str, OneOf(("auto", "plain", "overlap", "stream"))] = "auto"
    input_stream: Annotated[str, OneOf(("whole", "rows", "time"))] = "whole"
    io_buffers: Annotated[str, OneOf(("arena", "caller"))] = "arena"
    memory_map: bool = False
    tuned: Path | None = None
    arena_split: bool = False
    regions: tuple[tuple[str, Size | None], ...] = ()
    hop: Count | None = None
    time_axis: int | None = None
    guard: bool = False
    align: Annotated[int, PowerOfTwo(4096)] | None = None
    plugins: tuple[Path, ...] = ()
    code_section: str | None = None
    chain: tuple[Path, ...] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    weights: Annotated[str, OneOf(("array", "blob"))] = "array"
    package: Mapping[str, str] = field(default_factory=dict)
    form: Annotated[str, OneOf((FOLDER, *FORMS))] = FOLDER

    @property
    def edge_layout(self) -> str:
        """Layout of images at the network's edge: rows arrive as interleaved pixels."""
        return "nhwc" if self.input_stream == "rows" else self.io_layout

    def text(self) -> str:
        """Return the options that change the generated code, as they stand in its header."""
        parts = [f"--opt {self.opt}"]
        for flag, value, default in (
            ("--entry-name", self.entry_name, None), ("--batch-size", self.batch_size, None),
            ("--io-type", self.io_type, "model"), ("--io-layout", self.io_layout, "exported"),
            ("--passes", self.passes, None), ("--plan", self.plan, "auto"),
            ("--input-stream", self.input_stream, "whole"), ("--io-buffers", self.io_buffers, "arena"),
            ("--align", self.align, None), ("--hop", self.hop, None), ("--time-axis", self.time_axis, None),
            ("--code-section", self.code_section, None), ("--weights", self.weights, "array"),
        ):  # fmt: skip
            if value != default:
                parts.append(f"{flag} {value}")
        parts += ["--stateful"] if self.stateful else []
        parts += ["--guard"] if self.guard else []
        parts += [f"--tuned {self.tuned.name}"] if self.tuned is not None else []
        parts += ["--arena-split"] if self.arena_split else []
        if self.arena_split or len(self.regions) > 1:  # one region alone changes nothing in the generated code
            parts += [f"--region {name}" + (f"={size}" if size else "") for name, size in self.regions]
        parts += [f"--chain {' '.join(path.name for path in self.chain)}"] if self.chain else []
        parts += [f"--state {name}={out}" for name, out in self.states.items()]
        parts += [f"--define-symbol {key}={value}" for key, value in sorted(self.symbols.items())]
        parts += [f"--input-shape {key}={'x'.join(map(str, s))}" for key, s in sorted(self.input_shapes.items())]
        parts += [f"--set-input {key}={','.join(map(str, v))}" for key, v in sorted(self.set_inputs.items())]
        return " ".join(parts)

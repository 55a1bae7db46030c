"""What the user asked for besides the model and the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from glowc.board.checked import Checked, Count, Flag, OneOf, PowerOfTwo, Size
from glowc.codegen.export import FOLDER, FORMS

OPTS = ("size", "balanced", "speed")
Opt = Annotated[str, OneOf(OPTS)]
IoType = Annotated[str, OneOf(("model", "int8", "float"))]
IoLayout = Annotated[str, OneOf(("exported", "nhwc"))]
Plan = Annotated[str, OneOf(("auto", "plain", "overlap", "stream"))]
InputStream = Annotated[str, OneOf(("whole", "rows", "time"))]
IoBuffers = Annotated[str, OneOf(("arena", "caller"))]
Weights = Annotated[str, OneOf(("array", "blob"))]
_SYMBOL = Flag("value of a symbolic dimension; repeatable", "--define-symbol", "S=N")
_SHAPE = Flag("whole shape of one input; repeatable", "--input-shape", "NAME=1x3x96x96")
_VALUE = Flag("make an input a constant and fold it; repeatable", "--set-input", "NAME=VALUE")
_STATE = Flag("keep an input: this output of the call before; repeatable", "--state", "INPUT=OUTPUT")
_REGION = Flag("a memory region for the arena, the fastest first; repeatable", "--region", "NAME=BYTES")
_PLUGIN = Flag("a Python file with operators of your own (docs/PLUGINS.md); repeatable", "--plugin", "FILE")
_SECTION = Flag("section of the kernels' code: RAM that needs no waiting", metavar="NAME")
_ALIGN = Flag("inputs and outputs begin at multiples: cache lines, DMA (Cortex-M7: 32)", metavar="BYTES")
_STATEFUL = Flag("keep the state of LSTM, GRU, RNN between calls; reset by NAME_reset()", shared=False)
_REQUIRE = Flag("fail when a layer between quantised parts would compute in float", shared=False)
_STREAM = Flag("rows: by NAME_push_rows(); time: the next steps at each call", shared=False)
_WEIGHTS = Flag("blob: NAME_weights.bin, which firmware replaces without linking again", shared=False)

_IN_CODE = (
    "entry_name", "batch_size", "io_type", "io_layout", "passes", "plan", "input_stream", "io_buffers", "align", "hop",
    "time_axis", "code_section", "weights", "stateful", "guard",
)  # fmt: skip
"""Fields that are in the header of the generated code as they are."""


@dataclass(frozen=True, slots=True, repr=False)
class CompileOptions(Checked):
    """What the user asked for besides the model and the board; the fields are the options of the command.

    Raises InputError that names every value which is none. Sizes may be strings, such as "8K", and paths, too.
    """

    name: Annotated[str | None, Flag("model name: prefix of files and C symbols", shared=False)] = None
    entry_name: Annotated[str | None, Flag("C name of the inference function", shared=False)] = None
    batch_size: Annotated[Count | None, Flag("value of a symbolic first dimension")] = None
    symbols: Annotated[Mapping[str, Count], _SYMBOL] = field(default_factory=dict)
    input_shapes: Annotated[Mapping[str, tuple[Count, ...]], _SHAPE] = field(default_factory=dict)
    set_inputs: Annotated[Mapping[str, tuple[int | float | bool, ...]], _VALUE] = field(default_factory=dict)
    states: Annotated[Mapping[str, str], _STATE] = field(default_factory=dict)
    opt: Annotated[Opt, Flag("size: shared functions; speed: one per layer shape")] = "balanced"
    io_type: Annotated[IoType, Flag("element type of inputs and outputs")] = "model"
    io_layout: Annotated[IoLayout, Flag("nhwc: interleaved pixels, as cameras deliver them")] = "exported"
    ram_limit: Annotated[Size | None, Flag("fail when the arena needs more: 8192, 8K")] = None
    flash_limit: Annotated[Size | None, Flag("fail when constants and code need more: 64K, 1M")] = None
    passes: Annotated[str | None, Flag("edit the pipeline: +name,-name,name{limit=2}")] = None
    plan: Annotated[Plan, Flag("overlap: outputs over used-up inputs; stream: least RAM, row by row")] = "auto"
    arena_split: Annotated[bool, Flag("split the arena among the board's arena_regions")] = False
    regions: Annotated[tuple[tuple[str, Size | None], ...], _REGION] = ()
    tuned: Annotated[Path | None, Flag("measured kernel choices: a file written by `glowc tune`")] = None
    plugins: Annotated[tuple[Path, ...], _PLUGIN] = ()
    guard: Annotated[bool, Flag("watch the bytes around tensors: a status names the layer that writes there")] = False
    code_section: Annotated[str | None, _SECTION] = None
    align: Annotated[Annotated[int, PowerOfTwo(4096)] | None, _ALIGN] = None
    dump_dir: Annotated[Path | None, Flag("folder for the IR after each pass", "--dump-ir", shared=False)] = None
    dump_onnx: Annotated[Path | None, Flag("the graph after the passes, for Netron", metavar="FILE", shared=False)] = (
        None
    )
    stop_after: Annotated[str | None, Flag("end after this graph pass", shared=False)] = None
    stateful: Annotated[bool, _STATEFUL] = False
    require_int8: Annotated[bool, _REQUIRE] = False
    input_stream: Annotated[InputStream, _STREAM] = "whole"
    hop: Annotated[Count | None, Flag("new time steps of each call", shared=False)] = None
    time_axis: Annotated[int | None, Flag("axis of the input (default: what fits)", shared=False)] = None
    io_buffers: Annotated[IoBuffers, Flag("caller: inputs and outputs stay in your own buffers", shared=False)] = (
        "arena"
    )
    weights: Annotated[Weights, _WEIGHTS] = "array"
    memory_map: Annotated[
        bool, Flag("draw the arena over time: in the terminal, and NAME_memory.svg", shared=False)
    ] = False
    golden: Path | None = None
    chain: tuple[Path, ...] = ()
    package: Mapping[str, str] = field(default_factory=dict)
    form: Annotated[str, OneOf((FOLDER, *FORMS))] = FOLDER

    @property
    def edge_layout(self) -> str:
        """Layout of images at the network's edge: rows arrive as interleaved pixels."""
        return "nhwc" if self.input_stream == "rows" else self.io_layout

    def text(self) -> str:
        """Return the options that change the generated code, as they stand in its header."""
        parts = [f"--opt {self.opt}"]
        plain = CompileOptions()
        for name in _IN_CODE:
            value = getattr(self, name)
            if value != getattr(plain, name):
                flag = f"--{name.replace('_', '-')}"
                parts.append(flag if value is True else f"{flag} {value}")
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

"""What the user asked for besides the model and the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from glowc.board.checked import Checked, Count, Flag, OneOf, PowerOfTwo, Size, Within, flags
from glowc.codegen.export import FOLDER, FORMS, WEIGHTS

OPTS = ("size", "balanced", "speed")
Opt = Annotated[str, OneOf(OPTS)]
IoType = Annotated[str, OneOf(("model", "int8", "float"))]
IoLayout = Annotated[str, OneOf(("exported", "nhwc"))]
Plan = Annotated[str, OneOf(("auto", "plain", "overlap", "stream"))]
InputStream = Annotated[str, OneOf(("whole", "rows", "time", "samples"))]
IoBuffers = Annotated[str, OneOf(("arena", "caller"))]
Weights = Annotated[str, OneOf(("auto", *WEIGHTS, "array"))]
_ENTRY = Flag("C name of the inference function", shared=False, in_code=True)
BATCH = Flag("value of a symbolic first dimension", in_code=True)
SYMBOL = Flag("value of a symbolic dimension; repeatable", "--define-symbol", "S=N")
SHAPE = Flag("whole shape of one input; repeatable", "--input-shape", "NAME=1x3x96x96")
_VALUE = Flag("make an input a constant and fold it; repeatable", "--set-input", "NAME=VALUE")
STATE = Flag("keep an input: this output of the call before; repeatable", "--state", "INPUT=OUTPUT")
_IO_LAYOUT = Flag("nhwc: interleaved pixels, as cameras deliver them", in_code=True)
_PLAN = Flag("overlap: outputs over used-up inputs; stream: least RAM, row by row", in_code=True)
_REGION = Flag("a memory region for the arena, the fastest first; repeatable", "--region", "NAME=BYTES")
_PLUGIN = Flag("a Python file with your operators (docs/PLUGINS.md); repeatable", "--plugin", "FILE")
_DUMP_ONNX = Flag("the graph after the passes, for Netron", metavar="FILE", shared=False)
_STREAM = Flag(
    "rows: by NAME_push_rows(); time: the next steps at each call; samples: sound, by NAME_push()",
    shared=False,
    in_code=True,
)
_BUFFERS = Flag("caller: inputs and outputs stay in your own buffers", shared=False, in_code=True)
_ALIGN = Flag("inputs and outputs begin at multiples: cache lines, DMA (Cortex-M7: 32)", metavar="BYTES", in_code=True)
_TIME_AXIS = Flag("axis of the input (default: what fits)", shared=False, in_code=True)
_SECTION = Flag("section of the kernels' code: RAM that needs no waiting", metavar="NAME", in_code=True)
_WEIGHTS = Flag(
    "constants as C, asm or object (fast builds), or blob or file: replaced without linking again",
    shared=False,
    in_code=True,
)
_STATEFUL = Flag("keep the state of LSTM, GRU, RNN between calls; reset by NAME_reset()", shared=False, in_code=True)
_GUARD = Flag("watch the bytes around tensors: a status names the layer that writes there", in_code=True)
_REQUIRE = Flag("fail when a layer between quantized parts would compute in float", shared=False)
_SLICE = Flag("NAME_step() takes about so long: 1ms, or cycles: 50000", "--slice", "TIME", shared=False, in_code=True)
_CHIP = Flag("whose clock --slice counts by (default: the board's)", "--chip", "NAME", shared=False)
_CORES = Flag("so many cores share layers, by functions that firmware gives (docs/RTOS.md)", shared=False, in_code=True)
_MAP = Flag("draw the arena over time: in the terminal, and NAME_memory.svg", shared=False)

_AS_EVER = (("weights", "c"), ("weights", "array"))  # what a small model has without being asked for


@dataclass(frozen=True, slots=True, repr=False)
class CompileOptions(Checked):
    """What the user asked for besides the model and the board; the fields are the options of the command.

    Raises InputError that names every value which is none. Sizes may be strings, such as "8K", and paths, too.
    """

    name: Annotated[str | None, Flag("model name: prefix of files and C symbols", shared=False)] = None
    entry_name: Annotated[str | None, _ENTRY] = None
    batch_size: Annotated[Count | None, BATCH] = None
    symbols: Annotated[Mapping[str, Count], SYMBOL] = field(default_factory=dict)
    input_shapes: Annotated[Mapping[str, tuple[Count, ...]], SHAPE] = field(default_factory=dict)
    set_inputs: Annotated[Mapping[str, tuple[int | float | bool, ...]], _VALUE] = field(default_factory=dict)
    states: Annotated[Mapping[str, str], STATE] = field(default_factory=dict)
    opt: Annotated[Opt, Flag("size: shared functions; speed: one per layer shape")] = "balanced"
    io_type: Annotated[IoType, Flag("element type of inputs and outputs", in_code=True)] = "model"
    io_layout: Annotated[IoLayout, _IO_LAYOUT] = "exported"
    ram_limit: Annotated[Size | None, Flag("fail when the arena needs more: 8192, 8K")] = None
    flash_limit: Annotated[Size | None, Flag("fail when constants and code need more: 64K, 1M")] = None
    passes: Annotated[str | None, Flag("edit the pipeline: +name,-name,name{limit=2}", in_code=True)] = None
    plan: Annotated[Plan, _PLAN] = "auto"
    arena_split: Annotated[bool, Flag("split the arena among the board's arena_regions")] = False
    regions: Annotated[tuple[tuple[str, Size | None], ...], _REGION] = ()
    tuned: Annotated[Path | None, Flag("measured kernel choices, written by `glowc tune`", metavar="FILE")] = None
    plugins: Annotated[tuple[Path, ...], _PLUGIN] = ()
    dump_dir: Annotated[Path | None, Flag("for the IR after each pass", "--dump-ir", metavar="DIR", shared=False)] = (
        None
    )
    dump_onnx: Annotated[Path | None, _DUMP_ONNX] = None
    stop_after: Annotated[str | None, Flag("end after this graph pass", shared=False)] = None
    input_stream: Annotated[InputStream, _STREAM] = "whole"
    io_buffers: Annotated[IoBuffers, _BUFFERS] = "arena"
    align: Annotated[Annotated[int, PowerOfTwo(4096)] | None, _ALIGN] = None
    hop: Annotated[Count | None, Flag("new time steps, or samples, of each call", shared=False, in_code=True)] = None
    time_axis: Annotated[int | None, _TIME_AXIS] = None
    code_section: Annotated[str | None, _SECTION] = None
    weights: Annotated[Weights, _WEIGHTS] = "auto"
    stateful: Annotated[bool, _STATEFUL] = False
    guard: Annotated[bool, _GUARD] = False
    require_int8: Annotated[bool, _REQUIRE] = False
    memory_map: Annotated[bool, _MAP] = False
    slice: Annotated[str | None, _SLICE] = None
    chip: Annotated[str | None, _CHIP] = None
    cores: Annotated[Annotated[int, Within(1, 8)], _CORES] = 1
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
        for name, (_, flag) in flags(CompileOptions).items():
            value = getattr(self, name)
            if flag.in_code and value != getattr(plain, name) and (name, value) not in _AS_EVER:
                parts.append(flag.option(name) if value is True else f"{flag.option(name)} {value}")
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

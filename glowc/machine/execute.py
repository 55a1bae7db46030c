"""A bundle on a machine: build it with a small main program, feed it with samples, count and measure."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from glowc.board import ARENA_SECTION, CODE_SECTION, WEIGHTS_SECTION, Board, Cpu, emulated, load_board, load_cpu
from glowc.codegen.blob import assembly
from glowc.codegen.bundle import CORES_SOURCE
from glowc.codegen.elf_object import machine_of
from glowc.codegen.export import FOLDER, FORMS, LINKED, SINGLE
from glowc.codegen.mains import Calls, render_main
from glowc.codegen.names import c_ident
from glowc.compiler.report import BenchReport, Report, StackReport, TensorReport
from glowc.compiler.report_check import check_schema, wrong_fields
from glowc.compiler.samples import read_arrays
from glowc.errors import BoardError, BundleError, InputError, ToolError
from glowc.graph.numerics import dequantize, quantize
from glowc.graph.types import DType, QuantParams
from glowc.machine.elf import Sizes
from glowc.machine.link import Elf, build_elf
from glowc.machine.qemu import PLUGINS, RunResult, require_runnable, run_elf
from glowc.machine.stack import UnboundedError, stack_bounds

_TO_NHWC, _TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True, slots=True, repr=False)
class Port:
    """One input or output of a bundle, as report.json describes it."""

    name: str
    ident: str
    dtype: DType
    shape: tuple[int, ...]
    exported_shape: tuple[int, ...]
    exported_dtype: DType
    layout: str
    quant: QuantParams | None
    alias: str = ""

    def __repr__(self) -> str:
        scale = self.quant is not None and f", real = {self.quant.scale[0]:.9g} * (q - {self.quant.zero_point[0]})"
        return f"<{self.name}: {self.dtype.numpy.name}{list(self.shape)}{scale or ''}>"

    def to_bundle(self, samples: np.ndarray) -> np.ndarray:
        """Return exported samples (leading sample axis) as the bundle takes them."""
        if samples.dtype != self.dtype.numpy and self.quant is not None:
            samples = (
                quantize(samples, self.quant, self.dtype) if self.dtype.is_integer else dequantize(samples, self.quant)
            )
        if self.layout == "nhwc" and samples.shape[1:] == self.exported_shape:
            samples = samples.transpose(0, *(i + 1 for i in _TO_NHWC))
        return np.ascontiguousarray(samples)

    def to_exported(self, samples: np.ndarray) -> np.ndarray:
        """Return bundle samples in the exported layout and type."""
        if self.layout == "nhwc":
            samples = samples.transpose(0, *(i + 1 for i in _TO_NCHW))
        if self.dtype is not self.exported_dtype and self.quant is not None:
            to_int = self.exported_dtype.is_integer
            samples = quantize(samples, self.quant, self.exported_dtype) if to_int else dequantize(samples, self.quant)
        return np.ascontiguousarray(samples)


@dataclass(frozen=True, slots=True)
class BundleInfo:
    """A bundle on disk."""

    folder: Path
    report: Report = field(repr=False)
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def name(self) -> str:
        """The model's name, which its files start with."""
        return str(self.report["model"])

    @property
    def include_dir(self) -> Path:
        """Where its C files are."""
        form = FORMS.get(self.report.get("format", FOLDER))
        return self.folder / form.sources if form is not None else self.folder

    @property
    def sources(self) -> list[Path]:
        """The files to compile, test vectors aside, and objects."""
        constants = [] if self.report.get("format") == SINGLE else [self.weights_source]
        own = self.report.get("sources") or [f"{self.name}.c", *constants]
        return [self.include_dir / name for name in (*own, *self.report.get("extern_sources", []))]

    @property
    def weights_source(self) -> str:
        """The file with the constants, or with what finds them: C, assembly or an object."""
        names = [f"{self.name}_weights{end}" for end in LINKED.values()]
        return next((name for name in names if name in self.report["files"]), f"{self.name}_weights.c")

    @property
    def optimisation(self) -> str:
        """The flag of the C compiler that goes with how the model was compiled."""
        return "-Os" if self.report.get("opt") == "size" else "-O2"


def is_bundle(path: Path) -> bool:
    """Say whether a path is a bundle's folder, or such a folder and the name of one of its models: `build/app/kws`."""
    return path.is_dir() or (not path.exists() and (path.parent / "report.json").is_file())


def load_bundle(folder: Path) -> BundleInfo:
    """Read report.json of a bundle. Raises InputError when the folder holds none, or `is_bundle` names no model."""
    model = None
    if is_bundle(folder) and not folder.is_dir():
        folder, model = folder.parent, folder.name
    path = folder / "report.json"
    try:
        report = _one_of(json.loads(path.read_text(encoding="utf-8")), folder, model)
        _check(report, path)
        ports = {kind: tuple(_port(entry) for entry in report[kind]) for kind in ("inputs", "outputs")}
    except FileNotFoundError:
        raise BundleError(
            f"{folder} is not a bundle: it has no report.json",
            hint="write one with `glowc compile MODEL.onnx -o DIR`",
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{path} cannot be read: {error}", hint="compile the model again") from error
    return BundleInfo(folder, report, ports["inputs"], ports["outputs"])


def _check(report: Any, path: Path) -> None:
    check_schema(report, path)
    wrong = wrong_fields(report)
    if wrong:
        raise BundleError(
            f"{path} cannot be read: it is not as glowc wrote it",
            details=[f"missing or wrong: {', '.join(wrong)}"],
            hint="compile the model again",
        )


def _one_of(report: Any, folder: Path, model: str | None) -> Any:
    """Return the report of one of several models."""
    if "models" not in report:
        if model is not None:
            raise BundleError(f"{folder / model} does not exist", hint=f"{folder} is a bundle of one model")
        return report
    named = {str(one["model"]): one for one in report["models"]}
    if model not in named:
        raise BundleError(f"{folder} holds several models: {', '.join(named)}",
                         hint=f"name one of them: {folder / next(iter(named))}")  # fmt: skip
    return named[model]


def bundle_board(info: BundleInfo, cpu: str | None = None) -> Board:
    """Return the board that a bundle was made for, with its CPU or `cpu`. Raises BoardError when it is unknown."""
    name = str(info.report.get("board", "host"))
    try:
        board = load_board(name)
    except BoardError as error:
        raise BoardError(
            f"{info.folder} was made for board {name!r}, which glowc does not know",
            hint="name the folder of that board, or another board, with --board",
        ) from error
    wanted = cpu or info.report.get("cpu")
    return load_board(name, wanted) if wanted in board.cpus or cpu is not None else board


def _port(entry: TensorReport) -> Port:
    scale, zero_point = entry["scale"], entry["zero_point"]
    quant = None if scale is None or zero_point is None else QuantParams((float(scale),), (int(zero_point),))
    return Port(
        entry["name"], entry["ident"], DType(entry["dtype"]), tuple(entry["shape"]), tuple(entry["exported_shape"]),
        DType(entry["exported_dtype"]), entry["layout"], quant, entry.get("alias", ""),
    )  # fmt: skip


def read_inputs(info: BundleInfo, path: Path) -> dict[str, np.ndarray]:
    """Return a bundle's inputs, as it takes them, from an .npz in the exported form.

    Raises InputError naming every array that is missing or does not fit.
    """
    aliases = {p.name: p.alias for p in info.inputs}
    try:
        wanted = {p.name: (p.exported_shape, p.exported_dtype.numpy) for p in info.inputs}
        samples = read_arrays(path, wanted, aliases)
    except InputError:
        wanted = {p.name: (p.exported_shape, p.dtype.numpy) for p in info.inputs}
        if all(p.dtype is p.exported_dtype for p in info.inputs):
            raise
        samples = read_arrays(path, wanted, aliases)
    return {p.name: p.to_bundle(samples[p.name]) for p in info.inputs}


def random_inputs(info: BundleInfo, samples: int = 1) -> dict[str, np.ndarray]:
    """Return reproducible inputs that cover each element type's range (indices stay small)."""
    rng = np.random.default_rng(0)
    result = {}
    for port in info.inputs:
        shape = (samples, *port.shape)
        if port.dtype.is_float:
            result[port.name] = rng.standard_normal(shape).astype(port.dtype.numpy)
        elif port.dtype in (DType.S8, DType.U8):
            result[port.name] = rng.integers(port.dtype.qmin, port.dtype.qmax + 1, shape).astype(port.dtype.numpy)
        else:
            result[port.name] = rng.integers(0, 2, shape).astype(port.dtype.numpy)
    return result


@dataclass(frozen=True, slots=True)
class Execution:
    """Outputs by name (bundle form, leading sample axis), stack high-water mark, and marks when counted."""

    outputs: dict[str, np.ndarray]
    stack_bytes: int
    marks: tuple[int, ...]
    elf: Elf


def execute(
    info: BundleInfo,
    board: Board,
    inputs: Mapping[str, np.ndarray],
    *,
    marks: bool = False,
    profile: bool = False,
    timeout_s: int | None = None,
    keep: Path | None = None,
    extra_flags: Sequence[str] = (),
) -> Execution:
    """Build the bundle for `board`, run it on every sample of `inputs` and return what it gave.

    What was built stays in the folder `keep`.

    Raises ToolError when a compiler or QEMU is missing or fails, BoardError when the board cannot run.
    """
    require_runnable(board, marks=marks)
    with tempfile.TemporaryDirectory(prefix="glowc-run-") as folder:
        work = keep or Path(folder)
        elf = build_bundle(info, board, work, profile=profile, in_order=marks, extra_flags=extra_flags)
        count = len(next(iter(inputs.values()))) if inputs else 1
        write_samples(work / "in.bin", info, inputs, count)
        result: RunResult = run_elf(elf.path, board, cwd=work, marks=marks, timeout_s=timeout_s)
        outputs = read_samples(work / "out.bin", info, count)
        stack_bytes = int(np.fromfile(work / "status.bin", np.uint32)[0])
    return Execution(outputs, stack_bytes, result.marks, elf)


def build_bundle(
    info: BundleInfo, board: Board, work: Path, *, profile: bool = False, in_order: bool = False, link: bool = True,
    extra_flags: Sequence[str] = (),
) -> Elf:  # fmt: skip
    """Compile the bundle with its sample-feeding main program into `work`/model.elf.

    One core does the work of all where layers are marked, for a `profile`, or it is to be done `in_order`.
    """
    check_object(info, board.cpu)
    main = work / "main_run.c"
    blob = read_blob(info)
    main.write_text(render_main(calls_of(info, len(blob))), encoding="utf-8", newline="\n")
    defines = [*(["GLOW_PROFILE"] if profile else []), *bundle_defines(info, board, in_order=in_order or profile)]
    sources = [main, *info.sources, *([blob_source(info, blob, work)] if blob else [])]
    flags = ["-std=c11", *extra_flags]
    return build_elf(
        sources,
        board,
        work / "model.elf",
        include_dirs=[info.include_dir],
        defines=defines,
        opt=info.optimisation,
        extra_flags=flags,
        link=link,
    )


def check_object(info: BundleInfo, cpu: Cpu) -> None:
    """Raise InputError where the constants of a bundle are an object for cores of another kind."""
    if not info.weights_source.endswith(".o"):
        return
    made = load_cpu(str(info.report["cpu"]))
    if machine_of(made.features) != machine_of(cpu.features):
        raise InputError(f"the constants of {info.folder} are an object for {made.name}, not for {cpu.name}",
                         hint="compile it with --weights asm, or for that board")  # fmt: skip


def calls_of(info: BundleInfo, blob_bytes: int = 0) -> Calls:
    """Return how a program calls a bundle, whose constants are `blob_bytes` in a file of their own."""
    mode = "rows" if info.report.get("input_stream") == "rows" else info.report.get("io_buffers") or "arena"
    inputs, outputs = ([port.ident for port in ports] for ports in (info.inputs, info.outputs))
    entry = info.report.get("entry_name") or ""
    return Calls(info.name, inputs, outputs, mode, entry, blob_bytes=blob_bytes)


def read_blob(info: BundleInfo) -> bytes:
    """Return the constants of a bundle that has them in a file of their own, else nothing."""
    name = info.report.get("weights_blob")
    return (info.folder / name).read_bytes() if name else b""


def blob_source(info: BundleInfo, blob: bytes, work: Path) -> Path:
    """Write the constants as an array, as firmware would find them in its flash."""
    path, array = work / f"{info.name}_blob.S", f"{c_ident(info.name).lower()}_blob"
    file = (info.folder / info.report["weights_blob"]).resolve().as_posix()
    text = assembly(array, file, blob, 64, "The constants, as firmware finds them in its flash.")
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def data_names(info: BundleInfo) -> list[str]:
    """Return the names that arenas, constants and macros begin with: the model's, and of several models the whole's."""
    whole = [Path(name).stem for name in info.report.get("sources", [])[:1]]
    return list(dict.fromkeys([info.name, *whole]))


def bundle_defines(info: BundleInfo, board: Board, *, in_order: bool = False) -> list[str]:
    """Return the macros that place a bundle in a board's memories and make it fit another core than its own.

    One core does the work of all where a board has no others, or layers are to be seen `in_order`.
    """
    macros = [c_ident(name).upper() for name in data_names(info)]
    defines = [] if board.cpu.name == info.report.get("cpu") else ["GLOW_ANY_CORE"]
    if info.report.get("cores") and (in_order or not _starts_cores(info, board)):
        defines += ["GLOW_CORES_SERIAL"]
    if not board.bare_metal:
        return defines
    if info.report.get("code_section"):
        defines += [f'{macro}_HOT_ATTR=__attribute__((section("{CODE_SECTION}")))' for macro in macros]
    if info.report.get("format") == SINGLE:  # else the linker script knows them by the name of their file
        defines += [f'{macro}_WEIGHTS_ATTR=__attribute__((section("{WEIGHTS_SECTION}")))' for macro in macros]
    return [*defines, *(define for macro in macros for define in _arena_sections(macro, info, board))]


def _starts_cores(info: BundleInfo, board: Board) -> bool:
    """Say whether the bundle is made for how the board's cores are started."""
    own = info.include_dir / CORES_SOURCE
    return board.cores_source is not None and own.is_file() and own.read_bytes() == board.cores_source.read_bytes()


def _arena_sections(macro: str, info: BundleInfo, board: Board) -> list[str]:
    """Return the defines that place the arena, or each part of it, in the sections of the board's linker script."""
    regions = [entry["name"] for entry in info.report.get("regions", [])]
    placed = [name for name in regions if name in board.arena_rooms]
    sections = {f"_{name.upper()}": f"{ARENA_SECTION}.{name}" if name in placed else ARENA_SECTION for name in regions}
    if len(regions) < 2:
        sections = {"": f"{ARENA_SECTION}.{placed[0]}" if placed else ARENA_SECTION}
    return [f'{macro}_ARENA{name}_ATTR=__attribute__((section("{section}")))' for name, section in sections.items()]


def write_samples(path: Path, info: BundleInfo, inputs: Mapping[str, np.ndarray], count: int) -> None:
    """Write the file that a sample-feeding program reads, from inputs in the form of the bundle."""
    with path.open("wb") as file:
        file.write(np.uint32(count).tobytes())
        for i in range(count):
            for port in info.inputs:
                file.write(np.ascontiguousarray(inputs[port.name][i]).tobytes())


def read_samples(path: Path, info: BundleInfo, count: int) -> dict[str, np.ndarray]:
    """Return the outputs, in the form of the bundle, that a sample-feeding program wrote."""
    data, position = path.read_bytes(), 0
    outputs: dict[str, list[np.ndarray]] = {p.name: [] for p in info.outputs}
    for _ in range(count):
        for port in info.outputs:
            size = int(np.prod(port.shape, dtype=np.int64)) * port.dtype.bytes
            raw = np.frombuffer(data[position : position + size], port.dtype.numpy)
            outputs[port.name].append(raw.reshape(port.shape))
            position += size
    return {name: np.stack(arrays) for name, arrays in outputs.items()}


def bench(info: BundleInfo, board: Board, inputs: Mapping[str, np.ndarray] | None = None) -> BenchReport:
    """Return the bundle's report with everything measured on `board`: sizes, stack, instructions per layer.

    What the board cannot measure stays null. Instructions are exact: a plugin of QEMU counts them between
    markers, and what a marker costs is calibrated away.
    """
    report: BenchReport = json.loads(json.dumps(info.report))
    report["board"], report["run_cpu"] = board.name, board.cpu.name
    one = {name: a[:1] for name, a in (inputs or random_inputs(info)).items()}
    with tempfile.TemporaryDirectory(prefix="glowc-bench-") as folder:
        work, flags = Path(folder), _kept_entries(info, board)
        if not board.runs:
            elf = build_bundle(info, board, work, extra_flags=flags)
            _add_sizes(report, elf, info)
            _add_stack(report, stack_report(info, board, elf))
            return report
        counts = board.counts_insns and PLUGINS
        plain = execute(info, board, one, marks=counts, keep=work, extra_flags=flags)
        _add_sizes(report, plain.elf, info)
        report["stack_bytes"] = plain.stack_bytes
        _add_stack(report, stack_report(info, board, plain.elf))
    if counts:
        marks = plain.marks
        cost = marks[1] - marks[0]
        report["insns"] = marks[3] - marks[2] - cost
        for layer, insns in zip(report["layers"], count_layers(info, board, one), strict=True):
            layer["insns"] = insns
    return report


def add_emulated(
    report: BenchReport, info: BundleInfo, board: Board, inputs: Mapping[str, np.ndarray] | None = None
) -> str:
    """Add what an emulated board of the same core counts to the report of a board that does not run from here.

    Returns why there is nothing to add.
    """
    machine = emulated(board)
    if board.runs or machine is None:
        return "" if board.runs else f"no emulated board runs code for {board.cpu.name}: nothing is counted"
    try:
        counted = bench(info, machine, inputs)
    except ToolError as error:
        return f"nothing is counted on {machine.name}: {error.message}"
    report["emulated_on"] = machine.name
    report["insns"], report["stack_bytes"] = counted["insns"], counted["stack_bytes"]
    for layer, found in zip(report["layers"], counted["layers"], strict=True):
        layer["insns"] = found["insns"]
    return ""


def entry_points(info: BundleInfo) -> tuple[str, ...]:
    """Return the names of the functions that firmware may call to compute; a bundle has some of them."""
    prefix = c_ident(info.name).lower()
    entry = info.report.get("entry_name") or f"{prefix}_invoke"
    names = (entry, *(f"{prefix}_{what}" for what in ("run", "begin", "step", "abort", "push_rows", "reset")))
    return tuple(name + end for name in names for end in ("", "_in"))


def _kept_entries(info: BundleInfo, board: Board) -> list[str]:
    """Return the flags that keep entry points in the image which the sample-feeding program does not call."""
    return [f"-Wl,-u,{name}" for name in entry_points(info)] if board.cpu.family == "cortex-m" else []


def bundle_entry(info: BundleInfo) -> str:
    """Return the name of the function that the sample-feeding program calls to compute."""
    prefix = c_ident(info.name).lower()
    if info.report.get("input_stream") == "rows":
        return f"{prefix}_push_rows"
    if info.report.get("io_buffers") == "caller":
        return str(info.report.get("entry_name") or f"{prefix}_invoke")
    return f"{prefix}_run"


def stack_report(info: BundleInfo, board: Board, elf: Elf) -> StackReport:
    """Return the worst stack of any entry point, and of each; null where none can be computed."""
    found: dict[str, int] = {}
    if board.cpu.family == "cortex-m":
        with suppress(UnboundedError):
            found = stack_bounds(elf.path, board, entry_points(info))
    return {
        "stack_bound_bytes": max(found.values(), default=None),
        "entry_points": [{"name": name, "stack_bound_bytes": bound} for name, bound in found.items()],
    }


def _add_stack(report: BenchReport, stack: StackReport) -> None:
    report["stack_bound_bytes"], report["entry_points"] = stack["stack_bound_bytes"], stack["entry_points"]


def count_layers(
    info: BundleInfo, board: Board, inputs: Mapping[str, np.ndarray], keep: Path | None = None
) -> list[int]:
    """Return the instructions of each layer of a bundle in one inference; for a board that counts them."""
    counted = execute(info, board, inputs, marks=True, profile=True, keep=keep).marks
    cost, count = counted[1] - counted[0], len(info.report["layers"])
    order = info.report.get("profile_order") or range(count)
    inner = counted[3 : 3 + 2 * len(order)]
    totals = [0] * count
    for index, begin, end in zip(order, inner[::2], inner[1::2], strict=True):
        totals[index] += end - begin - cost
    return totals


def _add_sizes(report: BenchReport, elf: Elf, info: BundleInfo) -> None:
    stems = tuple(path.stem for path in info.sources)
    own = [sizes for name, sizes in elf.object_sizes.items() if name.startswith((info.name, *stems))]
    if own and own == [Sizes()] * len(own):  # a program of Windows or macOS
        return
    report["text_bytes"], report["rodata_bytes"] = sum(s.text for s in own), sum(s.rodata for s in own)
    report["data_bytes"], report["bss_bytes"] = sum(s.data for s in own), sum(s.bss for s in own)

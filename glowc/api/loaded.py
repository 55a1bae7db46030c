"""The C of a bundle, compiled for this machine and called in this process: numpy arrays in and out."""

from __future__ import annotations

import ctypes
import tempfile
import threading
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from glowc.api.build import CompiledModel, Model, compile
from glowc.board.flags import native_cpu
from glowc.codegen.names import c_ident
from glowc.errors import ArraysError, InputError
from glowc.graph.types import QuantParams
from glowc.machine.execute import BundleInfo, Port, load_bundle
from glowc.machine.shared import require_one_arena, shared_library

_ALIGN_BYTES = 64
_Entry = Callable[..., int]


class LoadedModel:
    """A model whose C runs in this process, without the interpreter's lock while it does.

    Called with one array per input, each of the shape and dtype that the C function takes (`inputs` lists them), it
    returns a new array per output: one, or a tuple. Threads may call one model at the same time: each has an arena of
    its own. A model with states has one arena, and calls follow each other; `another()` begins another sequence.
    """

    def __init__(self, info: BundleInfo, library: ctypes.CDLL) -> None:
        prefix = c_ident(info.name).lower()
        self.info = info
        self.inputs: tuple[Port, ...] = info.inputs
        self.outputs: tuple[Port, ...] = info.outputs
        self.arena_bytes = int(info.report["arena_bytes"])
        self._library = library
        pointers = [ctypes.c_void_p] * (len(self.inputs) + len(self.outputs))
        name = info.report.get("entry_name") or f"{prefix}_invoke"
        self._invoke: _Entry = _function(library, f"{name}_in", pointers)
        self._takes = [(port.shape, port.dtype.numpy) for port in self.inputs]
        self._gives = [(port.shape, port.dtype.numpy) for port in self.outputs]
        self._threads = threading.local()
        self._reset: _Entry | None = None
        self._turn: threading.Lock | None = None
        if getattr(library, f"{prefix}_reset_in", None) is not None:
            self._reset, self._turn = _function(library, f"{prefix}_reset_in", []), threading.Lock()
            self._arena = self._new_arena()
            self.reset()

    @property
    def has_state(self) -> bool:
        """Whether a call depends on the calls before it."""
        return self._reset is not None

    def reset(self) -> None:
        """Begin a new sequence: states are what they were before the first call."""
        if self._reset is not None and self._turn is not None:
            with self._turn:
                self._reset(*self._arena[:2])

    def another(self) -> LoadedModel:
        """Return the model again, on the same code, with states of its own."""
        return LoadedModel(self.info, self._library)

    def __repr__(self) -> str:
        return f"<LoadedModel {self.info.name}: {ports_text(self.inputs)} -> {ports_text(self.outputs)}>"

    def __call__(self, *arrays: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run one inference. Raises InputError, naming each array that does not fit."""
        try:
            fits = [(a.shape, a.dtype) for a in arrays] == self._takes
        except AttributeError:
            fits = False
        if not fits:
            raise _wrong(self.inputs, arrays)
        given = [np.ascontiguousarray(a) for a in arrays]
        results = tuple(np.empty(shape, dtype) for shape, dtype in self._gives)
        pointers = [a.ctypes.data for a in (*given, *results)]
        if self._turn is None:
            self._invoke(*self._own_arena()[:2], *pointers)
        else:
            with self._turn:
                self._invoke(*self._arena[:2], *pointers)
        return results if len(results) != 1 else results[0]

    def _own_arena(self) -> tuple[int, int, np.ndarray]:
        """Return address, bytes and memory of the calling thread's arena."""
        try:
            arena: tuple[int, int, np.ndarray] = self._threads.arena
        except AttributeError:
            arena = self._threads.arena = self._new_arena()
        return arena

    def _new_arena(self) -> tuple[int, int, np.ndarray]:
        memory = np.zeros(self.arena_bytes + _ALIGN_BYTES, np.uint8)
        address = memory.ctypes.data
        return address + -address % _ALIGN_BYTES, self.arena_bytes, memory


def ports_text(ports: Sequence[Port]) -> str:
    """Return inputs or outputs in a line: name, element type and shape."""
    return ", ".join(f"{port.name} {port.dtype.numpy.name}{list(port.shape)}" for port in ports)


def load(source: Model | CompiledModel) -> LoadedModel:
    """Return the C of a bundle as a function of this process; a model is compiled for the host first, in a folder that
    is gone afterwards.

    Needs a C compiler; what it builds is removed when the process has it. Raises InputError for a folder that holds no
    bundle or one that takes its input by rows, ToolError when the compiler is missing or refuses the sources.
    """
    if isinstance(source, CompiledModel):
        return _loaded(source.folder)
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        return _loaded(Path(source))
    with tempfile.TemporaryDirectory(prefix="glowc-load-") as folder:
        return _loaded(compile(source, Path(folder) / "bundle", cpu=native_cpu()).folder)


def _loaded(folder: Path) -> LoadedModel:
    info = load_bundle(folder)
    require_one_arena(info)
    return LoadedModel(info, shared_library(info))


def _function(library: ctypes.CDLL, name: str, pointers: Sequence[type[ctypes.c_void_p]]) -> _Entry:
    function = getattr(library, name)
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *pointers]
    function.restype = ctypes.c_int
    entry: _Entry = function
    return entry


def _wrong(ports: Sequence[Port], arrays: Sequence[np.ndarray]) -> InputError:
    wanted = [f"{p.name}: {p.dtype.numpy.name} {list(p.shape)}" for p in ports]
    pairs = zip(ports, arrays, strict=False)
    codes = next((h for p, a in pairs if (h := codes_hint(p.quant, p.dtype.numpy, a, p.ident))), None)
    seen = [f"{a.dtype.name} {list(a.shape)}" if isinstance(a, np.ndarray) else type(a).__name__ for a in arrays]
    return ArraysError("the arrays do not fit the model",
                      details=[f"it takes {', '.join(wanted)}", f"given: {', '.join(seen) or 'nothing'}"],
                      hint=codes or "glowc.InferenceSession takes inputs in the form of the model's file")  # fmt: skip


def codes_hint(quant: QuantParams | None, wanted: np.dtype[Any], array: object, name: str) -> str | None:
    """Return how real values become the codes that were wanted, or the other way round; None where it is not that."""
    given = getattr(array, "dtype", None)
    if quant is None or given is None or len(quant.scale) != 1:
        return None
    scale, zero = f"{quant.scale[0]:.9g}", quant.zero_point[0]
    if np.issubdtype(wanted, np.integer) and np.issubdtype(given, np.floating):
        low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
        codes = f"np.clip(np.rint({name} / {scale}) + {zero}, {low}, {high})"
        return f"codes of real values are {codes}.astype(np.{wanted.name})"
    if np.issubdtype(wanted, np.floating) and np.issubdtype(given, np.integer):
        return f"real values of codes are {scale} * ({name}.astype(np.{wanted.name}) - {zero})"
    return None

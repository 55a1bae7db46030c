"""Compares a model on a board with onnxruntime's integer kernels, stored outputs, or the interpreter."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from glowc.board import Board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model, import_graph, model_hash, write_bundle
from glowc.compiler.samples import load_samples, read_arrays
from glowc.errors import ArraysError, BundleError
from glowc.frontend import given_arrays, tflite_bytes
from glowc.frontend.reader import load
from glowc.graph.graph import Graph
from glowc.graph.scope import know_only, scoped
from glowc.machine.execute import BundleInfo, Port, execute, load_bundle
from glowc.ops.interp import run_graph
from glowc.place.places import schedule
from glowc.program.interp import Memory, run_instr
from glowc.program.lifetimes import strip_markers

Arrays = dict[str, np.ndarray]
Runner = Callable[[BundleInfo, Board, Arrays], Arrays]
"""Runs a bundle on samples, both in the bundle's form."""


def run_here(info: BundleInfo, board: Board, inputs: Arrays) -> Arrays:
    """Build a bundle and run it by the board's emulator, or natively."""
    return execute(info, board, inputs).outputs


class OutputComparison(TypedDict):
    """How one output differs from what is expected: shares, in its own units, in steps of its scale."""

    name: str
    samples: int
    equal_share: float
    max_abs: float
    largest: float
    max_steps: float | None
    rmse: float
    cosine: float
    argmax_agree: int
    allowed: str
    ok: bool


class Comparison(TypedDict):
    """All outputs of a model against a reference; `ok`: each lies within what is allowed."""

    model: str
    board: str
    reference: str
    outputs: list[OutputComparison]
    ok: bool
    first_difference: NotRequired[str | None]


@scoped
def validate_model(
    model: Path,
    board: Board,
    options: CompileOptions,
    input_path: Path,
    golden: Path | None = None,
    *,
    find_layer: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    runner: Runner = run_here,
) -> Comparison:
    """Return the comparison of every output; `ok` says that all lie within what is allowed.

    Allowed: integer outputs equal byte for byte; float outputs of a quantised model within one part in 1,000
    of the largest magnitude, of a float model within 1e-5 of it (the sums of C and of the reference run in
    different orders), of a float16 model within 1e-2 (the reference rounds every step, C computes in float32).
    """
    compiled = compile_model(model, board, options, progress)
    know_only(compiled.known)
    samples = load_samples(input_path, compiled.imported)
    progress("computing the reference")
    expected, reference = reference_outputs(model, compiled.imported, options, samples, golden)
    progress(f"building and running on {board.name}")
    with tempfile.TemporaryDirectory(prefix="glowc-") as folder:
        write_bundle(compiled, Path(folder))
        info = load_bundle(Path(folder))
        result = _compared(info, board, samples, expected, reference, runner)
    if find_layer and not result["ok"]:
        result["first_difference"] = first_difference(compiled, {n: a[0] for n, a in samples.items()})
    return result


@scoped
def validate_bundle(
    folder: Path,
    board: Board,
    options: CompileOptions,
    input_path: Path,
    golden: Path | None = None,
    model: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
    runner: Runner = run_here,
) -> Comparison:
    """Compare a bundle as it is with stored outputs, or with its model; what is allowed as in `validate_model`.

    Raises InputError when neither is given, or the model is not the one that the bundle was compiled from.
    """
    info = load_bundle(folder)
    if golden is None and model is None:
        raise BundleError(
            f"{folder} is a bundle: it holds no model to compare with",
            hint="add --golden OUTPUTS.npz, or --model MODEL.onnx",
        )
    if model is None:
        assert golden is not None
        samples = _exported(info.inputs, input_path)
        expected, reference = _exported(info.outputs, golden), str(golden)
        _check_counts(golden, expected, samples)
    else:
        if model_hash(model) != info.report.get("model_hash"):
            raise BundleError(f"{folder} was not compiled from {model}", hint="compile the model again")
        graph = import_graph(model, options)
        samples = load_samples(input_path, graph)
        progress("computing the reference")
        expected, reference = reference_outputs(model, graph, options, samples, golden)
    progress(f"building and running on {board.name}")
    return _compared(info, board, samples, expected, reference, runner)


def _exported(ports: Sequence[Port], path: Path) -> Arrays:
    """Return arrays from a file in the form in which the model was exported."""
    wanted = {p.name: (p.exported_shape, p.exported_dtype.numpy) for p in ports}
    return read_arrays(path, wanted, {p.name: p.alias for p in ports})


def _compared(
    info: BundleInfo, board: Board, samples: Arrays, expected: Arrays, reference: str, runner: Runner
) -> Comparison:
    """Run a bundle and return the comparison with the expected outputs."""
    outputs = runner(info, board, {p.name: p.to_bundle(samples[p.name]) for p in info.inputs})
    relative = float(info.report.get("float_tolerance", 0.0))
    rows = [compare(p.name, p.to_exported(outputs[p.name]), expected[p.name], relative) for p in info.outputs]
    return {
        "model": info.name, "board": board.name, "reference": reference, "outputs": rows,
        "ok": all(row["ok"] for row in rows),
    }  # fmt: skip


def _check_counts(golden: Path, expected: Arrays, samples: Arrays) -> None:
    if any(len(a) != len(next(iter(samples.values()))) for a in expected.values()):
        raise ArraysError(f"{golden} holds another number of samples than the inputs")


@np.errstate(all="ignore")
def compare(name: str, got: np.ndarray, want: np.ndarray, relative: float) -> OutputComparison:
    """Return exact share, largest difference, RMSE, cosine and argmax agreement of one output.

    Floats may differ by `relative` of the largest magnitude.
    """
    a, b = got.astype(np.float64), want.astype(np.float64)
    difference = np.abs(a - b)
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    flat_a, flat_b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    is_float = np.issubdtype(want.dtype, np.floating)
    largest = float(np.abs(b).max(initial=0.0))
    bound = relative * largest if is_float else 0.0
    max_abs = float(difference.max(initial=0.0))
    return {
        "name": name, "samples": len(a), "equal_share": float((got == want).mean()) if got.size else 1.0,
        "max_abs": max_abs, "largest": largest, "max_steps": None if is_float else max_abs,
        "rmse": float(np.sqrt((difference**2).mean())) if got.size else 0.0,
        "cosine": float((a * b).sum() / norm) if norm else 1.0,
        "argmax_agree": int((flat_a.argmax(1) == flat_b.argmax(1)).sum()),
        "allowed": "equal" if bound == 0.0 else f"{bound:.3g}", "ok": max_abs <= bound,
    }  # fmt: skip


def reference_outputs(
    model: Path, graph: Graph, how: CompileOptions, samples: Arrays, golden: Path | None = None
) -> tuple[Arrays, str]:
    """Return the outputs of a model on samples, and whose they are: stored ones, onnxruntime's, the interpreter's."""
    if golden is not None:
        wanted = {n: (graph.types[n].shape, graph.types[n].dtype.numpy) for n in graph.outputs}
        arrays = read_arrays(golden, wanted, graph.aliases)
        _check_counts(golden, arrays, samples)
        return arrays, str(golden)
    if tflite_bytes(model) is not None:
        return _interpret(graph, samples), "the interpreter, TensorFlow Lite's arithmetic"
    try:
        import onnxruntime
    except ImportError:
        return _interpret(graph, samples), "the interpreter (onnxruntime is not installed)"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    # onnxruntime would round the activations of weight-only products to int8; 1 asks for float32
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    try:
        data = load(model).proto.SerializeToString()
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        fixed = given_arrays(model, how.input_shapes, how.set_inputs)
        half = {i.name for i in session.get_inputs() if i.type == "tensor(float16)"}

        kept = {state.value: state.initial for state in graph.states}
        names = [*graph.outputs, *(state.next for state in graph.states)]

        def run(feed: Arrays) -> Arrays:
            arrays = {**feed, **fixed, **kept}
            given = {name: a.astype(np.float16) if name in half else a for name, a in arrays.items()}
            found = dict(zip(names, session.run(names, given), strict=True))
            kept.update((state.value, found.pop(state.next)) for state in graph.states)
            return found

        outputs = _per_sample(samples, run)
    except Exception as error:
        reason = str(error).splitlines()[0]
        return _interpret(graph, samples), f"the interpreter (onnxruntime cannot run the model: {reason})"
    return outputs, f"onnxruntime {onnxruntime.__version__}, integer kernels"


def _interpret(graph: Graph, samples: Arrays) -> Arrays:
    """Return the outputs of every sample in order; states are kept from one to the next, as the board does."""
    states: dict[str, np.ndarray] = {}
    return _per_sample(samples, lambda feed: run_graph(graph, feed, states=states))


def _per_sample(samples: Arrays, run: Callable[[Arrays], Mapping[str, np.ndarray]]) -> Arrays:
    count = len(next(iter(samples.values())))
    results = [run({name: a[i] for name, a in samples.items()}) for i in range(count)]
    return {name: np.stack([np.asarray(r[name]) for r in results]) for name in results[0]}


def first_difference(compiled: Compiled, sample: Arrays) -> str | None:
    """Return the first instruction whose interpreted result differs from the graph's own value.

    Compares the instruction interpreter with the graph interpreter value by value, on one sample.
    """
    graph, program = compiled.graph, strip_markers(compiled.program)
    if program.segments:  # whole tensors exist only where layers do not run row by row
        program = schedule(compiled.selection.lower(lambda _: False))
    feed = {n: compiled.edge.to_bundle(n, a) for n, a in sample.items()}
    values = run_graph(graph, feed, keep_all=True)
    memory = Memory(program, None, 0)
    for operand in program.inputs:
        memory.array(operand)[...] = feed[operand.role]
    for instr in program.instrs:
        run_instr(instr, memory)
        for operand in instr.operands:
            expected = values.get(operand.buffer)
            if not operand.access.writes or expected is None or expected.shape != operand.type.shape:
                continue
            if not np.array_equal(memory.array(operand), expected):
                return f'{instr.op} "{", ".join(instr.origin)}" ({instr.kernel}__{instr.variant})'
    return None

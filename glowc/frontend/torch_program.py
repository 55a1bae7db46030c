"""An exported PyTorch program (`torch.export.save`, .pt2) -> ONNX, by PyTorch's own exporter and decompositions.

Buffers that the program changes become inputs and outputs, noted as states in the model's metadata. The operators of
PT2E quantization become QuantizeLinear and DequantizeLinear. Source: the documentation of torch.export and torch.onnx.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import onnx

from glowc.errors import MissingToolError, ModelError, ModelFileError, UnsupportedError
from glowc.frontend.kept import Kept, note_states

_INSTALL = "pip install 'glowc[torch]'"
_OPSET = 21  # the first whose QuantizeLinear has 16-bit codes


def load_program(data: bytes, label: str) -> onnx.ModelProto:
    """Return the program in a .pt2 file as an ONNX model.

    `torch.export.load` unpickles parts of the file: it may run code of whoever wrote it. Raises MissingToolError
    without PyTorch, ModelFileError for a file that PyTorch cannot load, and what `program_to_onnx` raises.
    """
    torch = _torch(label)
    try:
        with _quiet():
            program = torch.export.load(io.BytesIO(data))
    except Exception as error:  # the loader raises what it likes
        raise ModelFileError(
            f"PyTorch {torch.__version__} cannot load {label}", details=[_first_line(error)],
            hint="save it again with torch.export.save, in this version of PyTorch",
        ) from error  # fmt: skip
    return program_to_onnx(program, label)


def _torch(label: str) -> Any:
    """Return PyTorch, with the operators of PT2E quantization registered. Raises MissingToolError."""
    try:
        import torch.ao.quantization.fx._decomposed

        import_module("onnxscript")  # which the exporter needs
    except ImportError as error:
        missing = (error.name or "torch").partition(".")[0]
        raise MissingToolError(f"{label} is a PyTorch program, and {missing} is not installed", hint=_INSTALL) from None
    return torch


def program_to_onnx(program: Any, label: str) -> onnx.ModelProto:
    """Return a torch.export.ExportedProgram as an ONNX model.

    Inputs have the names of the program's arguments; the output is `output`, several are `output_0`, `output_1` ... A
    buffer `h` that the program changes is the input `h` and the output `h_next`, noted as a state; such a program has
    the sizes of its example. Raises UnsupportedError that names the operator and the module which PyTorch cannot
    express in ONNX, ModelError for all else that its exporter refuses.
    """
    torch = _torch(label)
    try:
        with _quiet():
            return _exported(torch, program)
    except Exception as error:  # the exporter raises what it likes
        raise _problem(program, label, error) from error


def _exported(torch: Any, program: Any) -> onnx.ModelProto:
    signature = program.graph_signature
    inputs, results = _named(signature.user_inputs), _named(signature.user_outputs)
    outputs = ["output"] if len(results) == 1 else [f"output_{i}" for i in range(len(results))]
    buffers = _changed_buffers(program)
    states = [Kept(name, _fresh(f"{name}_next", inputs), np.array(x.detach())) for name, x in buffers.items()]
    if states:
        program = _with_open_states(torch, program, buffers)
    model: onnx.ModelProto = torch.onnx.export(
        program, (), None, dynamo=True, verbose=False, opset_version=_OPSET,
        input_names=[*inputs, *(state.input for state in states)],
        output_names=[*outputs, *(state.output for state in states)],
        custom_translation_table=_quantizing(torch),
    ).model_proto  # fmt: skip
    note_states(model, states)
    return model


def _named(values: Sequence[object]) -> list[str]:
    """Return names of tensors; arguments and results that are constants have none."""
    return [value for value in values if isinstance(value, str)]


def _fresh(name: str, taken: Sequence[str]) -> str:
    return _fresh(f"{name}_", taken) if name in taken else name


def _changed_buffers(program: Any) -> dict[str, Any]:
    """Return the buffers that an inference changes, by their names, with their first values."""
    names = program.run_decompositions({}).graph_signature.buffers_to_mutate.values()
    buffers = dict(program.named_buffers())
    return {name: buffers[name] for name in dict.fromkeys(names)}


def _with_open_states(torch: Any, program: Any, buffers: Mapping[str, Any]) -> Any:
    """Return a program that takes its buffers after its arguments, and returns them after its results."""

    class Open(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.program = program.module()

        def forward(self, args: Any, kwargs: Any, states: Sequence[Any]) -> Any:
            kept = {name: x.clone() for name, x in zip(buffers, states, strict=True)}
            return torch.func.functional_call(self.program, kept, args, kwargs), tuple(kept.values())

    args, kwargs = program.example_inputs
    return torch.export.export(Open(), (args, kwargs, tuple(buffers.values())), strict=False)


def _quantizing(torch: Any) -> dict[Any, Callable[..., Any]]:
    """Return how the exporter writes the operators of PT2E quantization."""
    ops = torch.ops.quantized_decomposed
    return {
        ops.quantize_per_tensor.default: _quantize,
        ops.quantize_per_tensor.tensor: _quantize,
        ops.quantize_per_channel.default: _quantize_per_channel,
        ops.dequantize_per_tensor.default: _dequantize,
        ops.dequantize_per_tensor.tensor: _dequantize,
        ops.dequantize_per_channel.default: _dequantize_per_channel,
    }


def _quantize(x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: int) -> Any:
    return _quantize_per_channel(x, scale, zero_point, 0, quant_min, quant_max, dtype)


def _quantize_per_channel(
    x: Any, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: int
) -> Any:  # fmt: skip
    from onnxscript import opset21 as op

    codes = op.QuantizeLinear(x, _scale(op, scales), _zero_point(op, zero_points, dtype), axis=axis)
    kind = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    if (quant_min, quant_max) == (kind.min, kind.max):
        return codes
    return op.Clip(codes, *(op.Cast(op.Constant(value_int=bound), to=dtype) for bound in (quant_min, quant_max)))


def _dequantize(
    codes: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: int, out_dtype: int | None = None
) -> Any:  # fmt: skip
    return _dequantize_per_channel(codes, scale, zero_point, 0, quant_min, quant_max, dtype, out_dtype)


def _dequantize_per_channel(
    codes: Any, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: int,
    out_dtype: int | None = None,
) -> Any:  # fmt: skip
    from onnxscript import opset21 as op

    return op.DequantizeLinear(codes, _scale(op, scales), _zero_point(op, zero_points, dtype), axis=axis)


def _scale(op: Any, value: Any) -> Any:
    """Return scales as float32: a tensor, or a number of the program."""
    return op.Constant(value_float=value) if isinstance(value, float) else op.Cast(value, to=onnx.TensorProto.FLOAT)


def _zero_point(op: Any, value: Any, dtype: int) -> Any:
    return op.Cast(op.Constant(value_int=value) if isinstance(value, int) else value, to=dtype)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what PyTorch says of its own ways from the user."""
    loggers = [logging.getLogger("torch.onnx"), logging.getLogger("torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _problem(program: Any, label: str, error: BaseException) -> ModelError:
    """Return what the exporter found, in the words of the program."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    found = re.search(r"node %(\w+) .*?target=(?:torch\.ops\.)?([\w.]+)", str(causes[-2:][0]))
    if found is None:
        return ModelError(f"PyTorch cannot export {label} to ONNX: {_first_line(causes[-1])}")
    node, op = found.groups()
    where = _module_of(program, node)
    return UnsupportedError(
        f"PyTorch has no ONNX form of {op}" + (f", used in module {where}" if where else f" (node {node})"),
        details=[_first_line(causes[-1])],
        hint="write that part with other operators, or end the program before it",
    )


def _module_of(program: Any, name: str) -> str:
    """Return the path of the module that a node comes from; a decomposition may have given it a shorter name."""
    nodes = [node for node in program.graph.nodes if node.name.endswith(name)]
    nodes.sort(key=lambda node: len(node.name))
    paths = [path for node in nodes[:1] for path, _ in node.meta.get("nn_module_stack", {}).values()]
    return re.sub(r"^L\['self'\]\.?", "", paths[-1]) if paths else ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""PyTorch modules through glowc: exported, quantised where data is given, compiled to C, and back as a module.

`import glowc.torch` needs PyTorch; the extra `torch` of this package installs it with what its exporter takes.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import onnx

from glowc.api.build import Data, quantize
from glowc.api.build import compile as compile_bundle
from glowc.api.session import InferenceSession
from glowc.compiler.options import CompileOptions
from glowc.errors import MissingToolError, ModelError, SizesError
from glowc.frontend.kept import Kept, note_states, noted_states
from glowc.frontend.torch_program import program_to_onnx
from glowc.quant.quantizer import QuantizeOptions

try:
    import torch
except ImportError as error:
    raise MissingToolError("PyTorch is not installed", hint="pip install 'glowc[torch]'") from error

__all__ = ["GlowcModule", "compile", "export"]

_HANDLES = count(1)
_SESSIONS: dict[int, InferenceSession] = {}
"""What the operator computes with, by handle: schemas of operators hold numbers and tensors alone."""


@torch.library.custom_op("glowc::invoke", mutates_args=())
def invoke(inputs: list[torch.Tensor], handle: int) -> list[torch.Tensor]:
    """Run the C of a compiled module: tensors of the model's shapes on the CPU, in and out."""
    session = _SESSIONS[handle]
    feed = {arg.name: x.detach().cpu().numpy() for arg, x in zip(session.get_inputs(), inputs, strict=True)}
    return [torch.from_numpy(np.array(result)) for result in session.run(None, feed)]


@invoke.register_fake
def _(inputs: list[torch.Tensor], handle: int) -> list[torch.Tensor]:
    batch = inputs[0].shape[0] if inputs and inputs[0].ndim else 1
    return [
        torch.empty([batch, *arg.shape[1:]] if arg.shape[:1] == [1] else arg.shape, dtype=_dtype_of(arg.type))
        for arg in _SESSIONS[handle].get_outputs()
    ]


def _dtype_of(kind: str) -> torch.dtype:
    name = kind.removeprefix("tensor(").removesuffix(")")
    found: torch.dtype = getattr(torch, {"float": "float32", "double": "float64"}.get(name, name))
    return found


class GlowcModule(torch.nn.Module):
    """A module that computes with glowc's C; `model` is the ONNX model that it was compiled from.

    The forward pass is the operator `glowc::invoke`, which torch.compile and torch.export keep as it is. It has no
    gradient. The first axis may be a batch where the example's was 1.
    """

    def __init__(self, model: onnx.ModelProto, session: InferenceSession) -> None:
        super().__init__()
        self.model = model
        self.handle = next(_HANDLES)
        _SESSIONS[self.handle] = session
        weakref.finalize(self, _SESSIONS.pop, self.handle)

    def extra_repr(self) -> str:
        """Return what `repr` says of it besides its name."""
        return repr(_SESSIONS[self.handle])

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Return what the module that was compiled returns."""
        results = torch.ops.glowc.invoke(list(inputs), self.handle)
        return results[0] if len(results) == 1 else tuple(results)

    def reset(self) -> None:
        """Let states begin again as they did at first."""
        _SESSIONS[self.handle].reset()


def export(
    module: torch.nn.Module, example: torch.Tensor | Sequence[torch.Tensor], *, states: Mapping[str, str] | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """Return a module as an ONNX model of the example's shapes.

    Inputs are called like the arguments of `forward`; the output is `output`, several are `output_0`, `output_1` ...
    Buffers that the module changes are states of the model: they begin as they are now. `states` names further ones,
    an argument and the output that it is at the next call; those begin as zero.
    Raises ModelError where PyTorch cannot export the module, SizesError for states that it does not have.
    """
    arguments = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    name = type(module).__name__
    try:
        with _evaluating(module), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's own ways
            program = torch.export.export(module, arguments, strict=False)
    except Exception as error:  # the exporters raise what they like
        raise ModelError(f"PyTorch cannot export {name}: {error}") from error
    model = program_to_onnx(program, name)
    _add_states(model, states or {})
    return model


def _add_states(model: onnx.ModelProto, states: Mapping[str, str]) -> None:
    inputs, outputs = ([value.name for value in side] for side in (model.graph.input, model.graph.output))
    wrong = [f"{n}={out}" for n, out in states.items() if n not in inputs or out not in outputs]
    if wrong:
        hint = f"arguments: {', '.join(inputs)}; outputs: {', '.join(outputs)}"
        raise SizesError("states name an argument and the output that it is at the next call", details=wrong, hint=hint)
    note_states(model, [Kept(name, out, np.zeros(1)) for name, out in states.items()])


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Let a module evaluate; every part of it is in the mode that it had before when this ends."""
    training = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in training:
            part.training = mode


def _check_stateless(model: onnx.ModelProto) -> None:
    if states := noted_states(model):
        pairs = " ".join(f"--state {name}={out}" for name, out in states.items())
        hint = f"glowc quantize --io-type float with samples of inputs and states, then glowc compile {pairs}"
        raise ModelError("a module with states cannot be quantized here", hint=hint)


def compile(
    module: torch.nn.Module, example: torch.Tensor | Sequence[torch.Tensor], *, data: Data | torch.Tensor | None = None,
    out: str | Path | None = None, board: str = "host", options: CompileOptions | None = None,
    states: Mapping[str, str] | None = None,
) -> GlowcModule:  # fmt: skip
    """Export a module, quantise it to int8 when samples are given, compile it, and return it as a module of glowc's C.

    `example` has the shapes that the C takes; `data` is what `glowc.quantize` takes, or a tensor of samples. With `out`
    the bundle for `board` is written there, too; the module itself runs C for this machine, with equal integer results.
    `states` is that of `export`; a module with states takes no `data`.
    Raises ModelError, InputError, ToolError.
    """
    model = export(module, example, states=states)
    if data is not None:
        _check_stateless(model)
        samples = data.numpy() if isinstance(data, torch.Tensor) else data
        model = quantize(model, samples, options=QuantizeOptions(float_edge=True))
    if out is not None:
        compile_bundle(model, out, board=board, options=options)
    return GlowcModule(model, InferenceSession(model))

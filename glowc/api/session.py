"""A bundle in the form of onnxruntime's InferenceSession, so that a script that evaluates a model runs on its C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowc.api.build import CompiledModel, Model
from glowc.api.loaded import LoadedModel, codes_hint, load
from glowc.errors import ArraysError
from glowc.machine.execute import Port

_KINDS = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output as the model's file has it; `type` is onnxruntime's word: tensor(float)."""

    name: str
    type: str
    shape: list[int]


class InferenceSession:
    """Runs the C of a bundle, or of a model compiled for this machine, with the calls of onnxruntime's class.

    Arrays have the shape, layout and element type of the model's file. An input whose first axis is 1 takes a batch,
    too: inferences follow each other, also in states. `providers` and other options are accepted and mean nothing.
    Raises what `glowc.load` raises.
    """

    def __init__(self, source: Model | CompiledModel, *_: object, **__: object) -> None:
        self._model: LoadedModel = load(source)

    def __repr__(self) -> str:
        sides = (
            ", ".join(f"{a.name} {a.type}{a.shape}" for a in side) for side in (self.get_inputs(), self.get_outputs())
        )
        return f"<InferenceSession {self._model.info.name}: {' -> '.join(sides)}>"

    def get_inputs(self) -> list[NodeArg]:
        """Return the model's inputs."""
        return [_node_arg(port) for port in self._model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Return the model's outputs."""
        return [_node_arg(port) for port in self._model.outputs]

    def get_providers(self) -> list[str]:
        """Return who computes."""
        return ["GlowcExecutionProvider"]

    def reset(self) -> None:
        """Begin a new sequence of a model with states."""
        self._model.reset()

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, np.ndarray], run_options: object = None
    ) -> list[np.ndarray]:
        """Return the named outputs (None or none: all) for arrays by the names of inputs. Raises InputError."""
        known = [port.name for port in self._model.outputs]
        names = list(output_names or known)
        if unknown := [name for name in names if name not in known]:
            raise ArraysError(f"no output {', '.join(unknown)}", hint=f"the model has {', '.join(known)}")
        batches = self._batches(input_feed)
        results = [self._one([column[i] for column in batches]) for i in range(len(batches[0]) if batches else 1)]
        by_name = {p.name: self._joined(p, [r[i] for r in results]) for i, p in enumerate(self._model.outputs)}
        return [by_name[name] for name in names]

    def _batches(self, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return each input as the C takes it, behind a leading axis of inferences."""
        ports = self._model.inputs
        names = {p.alias: p.name for p in ports if p.alias and p.name not in feed}
        feed = {names.get(name, name): array for name, array in feed.items()}
        wrong = [f"no array for {p.name}" for p in ports if p.name not in feed]
        wrong += [f"no input {name}" for name in feed if name not in {p.name for p in ports}]
        arrays = {p.name: np.asarray(feed[p.name]) for p in ports if p.name in feed}
        wrong += [w for p in ports if p.name in arrays and (w := _misfit(p, arrays[p.name]))]
        columns = [] if wrong else [p.to_bundle(arrays[p.name].reshape(-1, *p.exported_shape)) for p in ports]
        if len({len(column) for column in columns}) > 1:
            wrong.append(
                "inputs have batches of "
                + ", ".join(f"{len(c)} ({p.name})" for p, c in zip(ports, columns, strict=True))
            )
        if wrong:
            shown = ", ".join(f"{a.name}: {a.type} {a.shape}" for a in self.get_inputs())
            kinds = ((p, arrays[p.name]) for p in ports if p.name in arrays)
            codes = [h for p, a in kinds if (h := codes_hint(p.quant, p.exported_dtype.numpy, a, p.ident))]
            hint = "; ".join([f"it takes {shown}", *codes[:1]])
            raise ArraysError("the arrays do not fit the model", details=wrong, hint=hint)
        return columns

    def _one(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        results = self._model(*arrays)
        return results if isinstance(results, tuple) else (results,)

    @staticmethod
    def _joined(port: Port, results: Sequence[np.ndarray]) -> np.ndarray:
        samples = port.to_exported(np.stack(results))
        if len(samples) == 1 or port.exported_shape[:1] != (1,):
            return samples[0] if len(samples) == 1 else samples
        return np.concatenate(list(samples))


def _node_arg(port: Port) -> NodeArg:
    kind = port.exported_dtype.numpy.name
    return NodeArg(port.name, f"tensor({_KINDS.get(kind, kind)})", [*port.exported_shape])


def _misfit(port: Port, array: np.ndarray) -> str:
    """Return why an array is no input, or no batch of inputs; empty when it is one."""
    shape = port.exported_shape
    batch = shape[:1] == (1,) and array.shape[1:] == shape[1:] and len(array) > 0 if array.ndim else False
    if (array.shape == shape or batch) and array.dtype == port.exported_dtype.numpy:
        return ""
    return f"{port.name} is {array.dtype.name} {list(array.shape)}"

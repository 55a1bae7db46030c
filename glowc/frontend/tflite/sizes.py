"""What the user says about shapes of inputs (`--batch-size`, `--input-shape`) -> the shape of each input tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glowc.errors import SizesError
from glowc.frontend.tflite.reader import Subgraph, Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of the first axis where the file leaves it open; whole shapes by the names of inputs."""

    batch: int | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)


def input_shapes(graph: Subgraph, called: Mapping[int, str], sizes: Sizes) -> dict[int, Shape]:
    """Return the shape of each input; `called` is how the model names them, the file's own names count as well.

    Raises InputError for a size that does not fit.
    """
    names = {graph.tensors[i].name: i for i in graph.inputs} | {called[i]: i for i in graph.inputs}
    found = {i: graph.tensors[i].shape for i in graph.inputs} | _batched(graph, sizes.batch)
    for name, shape in sizes.shapes.items():
        if name not in names:
            have = ", ".join(called[i] for i in graph.inputs)
            raise SizesError(f'--input-shape: no input "{name}"', hint=f"its inputs: {have}")
        tensor = graph.tensors[names[name]]
        if len(shape) != len(tensor.shape):
            raise SizesError(f"--input-shape {name}: {len(shape)} axes, the model's input has {len(tensor.shape)}")
        if min(shape, default=1) < 1:
            raise SizesError(f"--input-shape {name}: every size must be at least 1")
        found[tensor.index] = shape
    return found


def _batched(graph: Subgraph, batch: int | None) -> dict[int, Shape]:
    """Return the shapes of the inputs whose first size is open."""
    if batch is None:
        return {}
    if batch < 1:
        raise SizesError(f"batch size {batch}: must be at least 1")
    tensors = [graph.tensors[i] for i in graph.inputs]
    first = [t.shape[0] for t in tensors if t.shape]
    if not any(map(_is_free, tensors)) and first and batch not in first:
        text = f"batch size {batch}: the model's inputs have the fixed batch size {first[0]}"
        raise SizesError(text, hint="--input-shape NAME=SHAPE gives an input another shape than the file's")
    return {t.index: (batch, *t.shape[1:]) for t in tensors if _is_free(t)}


def _is_free(tensor: Tensor) -> bool:
    return tensor.signature[:1] == (-1,)

"""Sparse constants: every order of levels and blocks gives the dense tensor; damaged ones are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from glowc.errors import ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite
from tests.tflite.compare import lowered
from tests.tflite.writer import Build, Tensor

require_tflite()
LISTS = {"Uint8Vector": np.uint8, "Uint16Vector": np.uint16, "Int32Vector": np.int32}
ORDERS = [
    ((0, 1), ()),
    ((1, 0), ()),
    ((0, 1, 2), (1,)),
    ((1, 0, 2), (1,)),
    ((0, 1, 2, 3), (0, 1)),
    ((0, 1, 3, 2), (0, 1)),
]


def compressed(
    w: np.ndarray, order: Sequence[int], blocks: Sequence[int], block: int, dense: Sequence[bool]
) -> tuple[np.ndarray, list[tuple[int, list[int], list[int]]]]:
    """Return the stored elements, and of each level its size or its segments and indices."""
    shape = [n // block if i in blocks else n for i, n in enumerate(w.shape)]
    split = w.reshape([m for i, n in enumerate(shape) for m in ([n, block] if i in blocks else [n])])
    axes = list(np.cumsum([0, *(2 if i in blocks else 1 for i in range(w.ndim - 1))]))
    tree = split.transpose([*axes, *(axes[i] + 1 for i in blocks)]).transpose(order)
    nodes, levels = [tree], []
    for whole in dense:
        size = nodes[0].shape[0] if nodes else 0
        if whole:
            levels.append((size, [], []))
            nodes = [node[i] for node in nodes for i in range(size)]
            continue
        segments, indices, kept = [0], [], []
        for node in nodes:
            found = [i for i in range(size) if np.any(node[i])]
            indices += found
            kept += [node[i] for i in found]
            segments.append(len(indices))
        levels.append((0, segments, indices))
        nodes = kept
    return np.asarray(nodes, w.dtype), levels


def model_of(w: np.ndarray, order: Sequence[int], blocks: Sequence[int], block: int, dense: Sequence[bool],
             kind: str = "Uint8Vector", spoil: Callable[[Any], None] = lambda _: None) -> bytes:  # fmt: skip
    """Return a layer with sparse weights."""
    import flatbuffers  # type: ignore[import-untyped]
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    values, levels = compressed(w, order, blocks, block, dense)
    build = Build()
    build.op("FULLY_CONNECTED", [build.input((1, w.shape[1]), "float32"), build.const(values)],
             Tensor((1, w.shape[0]), "float32"))  # fmt: skip
    made = schema.ModelT.InitFromPackedBuf(build.bytes(), 0)
    weights = made.subgraphs[0].tensors[1]
    weights.shape, about = list(w.shape), schema.SparsityParametersT()
    about.traversalOrder, about.blockMap, about.dimMetadata = list(order), list(blocks), []
    for size, segments, indices in levels:
        level = schema.DimensionMetadataT()
        level.format, level.denseSize = int(size == 0), size
        if size == 0:
            for name, given in (("arraySegments", segments), ("arrayIndices", indices)):
                table = getattr(schema, f"{kind}T")()
                table.values = np.asarray(given, LISTS[kind])
                setattr(level, name, table)
                setattr(level, f"{name}Type", getattr(schema.SparseIndexVector, kind))
        about.dimMetadata.append(level)
    weights.sparsity = about
    spoil(about)
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def weights_of(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(4, 8)) * (rng.uniform(size=(4, 8)) < 0.4)).astype(np.float32)


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(("order", "blocks"), ORDERS)
def test_sparse_weights_are_what_they_were(order: tuple[int, ...], blocks: tuple[int, ...], kind: str) -> None:
    w, x = weights_of(len(order)), np.random.default_rng(1).normal(size=(1, 8)).astype(np.float32)
    for which in range(2):
        dense = [i != which for i in range(len(order))]
        got = lowered(model_of(w, order, blocks, 2, dense, kind), [(x,)])[0][0]
        np.testing.assert_allclose(got, x @ w.T, rtol=1e-5, atol=1e-6)


def _segments(values: Sequence[int]) -> Callable[[Any], None]:
    def spoil(about: Any) -> None:
        about.dimMetadata[1].arraySegments.values = np.asarray(values, np.uint8)

    return spoil


def _indices(about: Any) -> None:
    about.dimMetadata[1].arrayIndices.values = np.full(20, 200, np.uint8)


def _size(about: Any) -> None:
    about.dimMetadata[0].denseSize = 1 << 30


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_segments([0, 1]), "segments do not fit its levels"),
        (_segments([5, 1, 2, 3, 4]), "segments do not fit its levels"),
        (_segments([0, 1, 2, 3, 250]), "segments do not fit its indices"),
        (_indices, "outside of its shape"),
        (_size, "more elements than its shape"),
        (lambda about: setattr(about, "traversalOrder", [0, 0]), "do not fit the shape"),
    ],
)
def test_damaged_trees_are_told(spoil: Callable[[Any], None], says: str) -> None:
    with pytest.raises(ModelError, match=rf"is sparse, but .*{says}"):
        import_model(model_of(weights_of(3), (0, 1), (), 1, (True, False), spoil=spoil))

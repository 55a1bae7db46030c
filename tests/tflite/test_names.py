"""Names of inputs and outputs: those of the signature; arrays under the tensors' names or by position count as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.compiler.samples import load_samples
from glowc.errors import InputError
from glowc.frontend import import_model
from glowc.graph.graph import Graph
from tests.conftest import require_tflite
from tests.tflite.writer import Build, Tensor

require_tflite()


@pytest.fixture(scope="module")
def graph() -> Graph:
    """A network of two inputs, which a signature calls other than their tensors are called."""
    build = Build()
    first, second = (build.add(Tensor((2,), "float32", name=f"serving_default_{n}:0")) for n in ("a", "b"))
    build.inputs = [first, second]
    build.op("SUB", [first, second], Tensor((2,), "float32", name="StatefulPartitionedCall:0"))
    return import_model(build.bytes({"a": first, "b": second}, {"y": build.outputs[0]}))


@pytest.mark.parametrize(
    "names", [("a", "b"), ("serving_default_a:0", "serving_default_b:0"), ("arr_0", "arr_1"), ("0", "1"), ("b", "a")]
)
def test_arrays_are_found_by_each_of_their_names(names: tuple[str, str], graph: Graph, tmp_path: Path) -> None:
    assert (graph.inputs, graph.outputs) == (("a", "b"), ("y",))
    np.savez(tmp_path / "in.npz", **{name: np.full((3, 2), i, np.float32) for i, name in enumerate(names)})
    found = load_samples(tmp_path / "in.npz", graph)
    wanted = (1, 0) if names == ("b", "a") else (0, 1)
    assert [int(found[name][0, 0]) for name in ("a", "b")] == list(wanted)


def test_arrays_of_other_names_are_refused(graph: Graph, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=np.zeros((1, 2), np.float32), c=np.zeros((1, 2), np.float32))
    with pytest.raises(InputError, match="does not fit the model"):
        load_samples(tmp_path / "in.npz", graph)

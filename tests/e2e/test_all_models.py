"""Every model beside the repository on three machines, against onnxruntime's stored outputs.

Integer outputs are equal byte for byte; float outputs of quantised models lie within 1e-3 of the largest magnitude or
one step of the last quantisation; float models within 1e-5 of it (the sums of C run in another order than
onnxruntime's). The largest output is the same one in every sample.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import SHARED_MODELS
from tests.e2e.models import compiled, outputs_on, sample

MODELS = sorted(path.parent.name for path in SHARED_MODELS.glob("*/model.onnx"))
MACHINES = ("host", "mps2-an386", "linux-aarch64")
QUANTISED = ("qdq", "qop", "dyn", "qoperator", "deeploy")

pytestmark = [pytest.mark.qemu, pytest.mark.shared]


def step(name: str, output: str) -> float:
    """Return the step of the quantisation that a float output comes from, 0 for a float network."""
    graph = compiled(name, "host").graph
    node = graph.producers().get(output)
    source = graph.types[node.inputs[0]] if node is not None and node.inputs else None
    return source.quant.scale[0] if source is not None and source.quant is not None else 0.0


@pytest.mark.parametrize("board", MACHINES)
@pytest.mark.parametrize("name", MODELS)
def test_model_gives_the_stored_outputs(name: str, board: str) -> None:
    data = sample(name)
    count = None if board == "host" else 3
    inputs = {key: array[:count] for key, array in data.inputs.items()}
    got = outputs_on(compiled(name, board), inputs)
    for output, array in got.items():
        want = data.golden[output][:count]
        if array.dtype.kind in "iu":
            np.testing.assert_array_equal(array, want)
            continue
        quantised = any(word in name for word in QUANTISED)
        bound = (1e-3 if quantised else 1e-5) * float(np.abs(want).max())
        allowed = max(bound, step(name, output) * 1.001 if quantised else 0.0)
        assert float(np.abs(array - want).max()) <= allowed
        flat, expected = array.reshape(len(array), -1), want.reshape(len(want), -1)
        np.testing.assert_array_equal(flat.argmax(axis=1), expected.argmax(axis=1))


def test_all_models_are_tried() -> None:
    assert not MODELS or len(MODELS) >= 39

"""Constants of sample models on every CPU: weights, biases, five bytes per output channel and one percent.

Computed from the graph: of IC, KWS and AD of MLPerf Tiny as the models have it, of VWW of the channels that are left
when those that nothing reads are gone. Others, and weights that are hard to pack, by scripts/constants.py, which `make
constants` runs for all models and CPUs.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

import pytest

from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import optimise
from glowc.graph.graph import Graph
from tests.conftest import ROOT
from tests.e2e.models import MLPERF, compiled, model_path

TARGETS = (
    ("mps2-an385", None),
    ("mps2-an386", None),
    ("mps2-an500", None),
    ("mps2-an505", None),
    ("mps3-an547", None),
    ("linux-aarch64", "cortex-a53"),
    ("linux-aarch64", "cortex-a76"),
    ("linux-aarch64", "armv8.6-i8mm"),
    ("linux-armhf", "cortex-a7"),
    ("linux-armhf", "cortex-a9"),
)
SMALL_BOARD = "microbit"  # Cortex-M0: AD's weights are more than its flash, VWW's image more than its RAM
BIAS_BYTES, PER_CHANNEL, SPARE = 4, 5, 0.01
AT_BALANCED = 1.2  # of the bound, where less would cost more than a tenth of the cycles for a kilobyte


def products_bytes(graph: Graph) -> int:
    """Return the bytes of weights, of biases and five per output channel of all layers of products."""
    total = 0
    for node in graph.nodes:
        if node.op in ("Conv", "FullyConnected"):
            weights = graph.consts[node.inputs[1]]
            total += weights.size + (BIAS_BYTES + PER_CHANNEL) * len(weights)
    return total


@cache
def bound_bytes(name: str, passes: str | None = None) -> int:
    """Return the bytes that the constants of a model may take."""
    return int(products_bytes(optimise(model_path(name), CompileOptions(passes=passes))) * (1 + SPARE))


@pytest.mark.shared
@pytest.mark.parametrize(("name", "bound"), list(zip(MLPERF, (81_278, 27_581, 39_034, 282_032), strict=True)))
def test_bounds_are_those_of_the_models(name: str, bound: int) -> None:
    assert bound_bytes(name) == bound


@pytest.mark.shared
@pytest.mark.parametrize("name", [n for n in MLPERF if "vww" not in n])
def test_no_channel_of_these_models_is_removed(name: str) -> None:
    assert bound_bytes(name, "-dead-channels") == bound_bytes(name)


@pytest.mark.shared
@pytest.mark.parametrize(("board", "cpu"), TARGETS, ids=lambda part: part or "")
@pytest.mark.parametrize("name", MLPERF)
def test_constants_hold_the_bound(name: str, board: str, cpu: str | None) -> None:
    assert compiled(name, board, cpu).bundle.weights_bytes <= bound_bytes(name)


@pytest.mark.shared
@pytest.mark.parametrize("name", [n for n in MLPERF if "ic_" in n or "kws" in n])
def test_constants_hold_the_bound_on_the_smallest_board(name: str) -> None:
    assert compiled(name, SMALL_BOARD).bundle.weights_bytes <= bound_bytes(name)


@pytest.mark.shared
@pytest.mark.parametrize(("board", "cpu"), TARGETS, ids=lambda part: part or "")
def test_live_channels_take_a_fifth_of_the_models_own_weights(board: str, cpu: str | None) -> None:
    name = "mlperf_vww_mobilenetv1"
    assert compiled(name, board, cpu).bundle.weights_bytes < bound_bytes(name, "-dead-channels") / 5


HARD = (
    "torch_simplecnn_qdq",
    "torch_resnet_tiny_qdq_u8",
    "mlperf_kws_dscnn",
    "tinymaix_mnist_dw",
    "deeploy_mlperf_kws",
)


@cache
def script() -> ModuleType:
    """scripts/constants.py as a module."""
    spec = importlib.util.spec_from_file_location("constants_script", ROOT / "scripts" / "constants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def graph_of(name: str) -> Graph:
    """Return the graph of a model after the passes."""
    return optimise(model_path(name), CompileOptions())


@pytest.mark.shared
@pytest.mark.parametrize("kind", ["", "least", "large"])
@pytest.mark.parametrize("name", HARD)
def test_constants_hold_the_bound_whatever_the_weights_are(name: str, kind: str) -> None:
    graph = script().mutated(graph_of(name), kind) if kind else graph_of(name)
    for cpu in ("cortex-m0", "cortex-m4", "cortex-m55", "cortex-a53"):
        size, bound = script().measured(graph, cpu, "size")
        assert size <= bound, cpu
        if kind != "least":
            size, _ = script().measured(graph, cpu, "balanced")
            assert size <= AT_BALANCED * bound, cpu


@pytest.mark.shared
def test_channels_that_nothing_reads_do_not_double_the_constants() -> None:
    graph = optimise(model_path("mlperf_vww_mobilenetv1"), CompileOptions(passes="-dead-channels"))
    size, bound = script().measured(graph, "cortex-m4", "balanced")
    assert size <= bound

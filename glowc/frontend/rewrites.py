"""The table of rewrites: an operator -> simpler ONNX nodes of the same meaning, imported in its place.

Each `rewrites_*` module defines `REWRITES`: (domain, operator) -> function(node, builder) -> nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from glowc.frontend import (
    half,
    rewrites_blocks,
    rewrites_dynamic,
    rewrites_fused,
    rewrites_math,
    rewrites_qoperator,
    rewrites_signal,
    rewrites_transformer,
)
from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode

Rewrite = Callable[[OnnxNode, Builder], list[OnnxNode]]

REWRITES: Mapping[tuple[str, str], Rewrite] = {
    **rewrites_math.REWRITES,
    **rewrites_qoperator.REWRITES,
    **rewrites_dynamic.REWRITES,
    **rewrites_blocks.REWRITES,
    **rewrites_transformer.REWRITES,
    **rewrites_fused.REWRITES,
    **rewrites_signal.REWRITES,
    **half.REWRITES,
}

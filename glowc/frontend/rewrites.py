"""The table of rewrites: an operator -> simpler ONNX nodes of the same meaning, imported in its place.

Each `rewrites_*` module defines `REWRITES`: (domain, operator) -> function(node, builder) -> nodes.
"""

from __future__ import annotations

from glowc.frontend import (
    half,
    rewrites_fused,
    rewrites_math,
    rewrites_ml,
    rewrites_places,
    rewrites_quant,
    rewrites_signal,
    rewrites_svm,
    rewrites_transformer,
    rewrites_trees,
)
from glowc.frontend.chain import Rewrites

REWRITES: Rewrites = {
    **rewrites_math.REWRITES,
    **rewrites_places.REWRITES,
    **rewrites_quant.REWRITES,
    **rewrites_transformer.REWRITES,
    **rewrites_fused.REWRITES,
    **rewrites_signal.REWRITES,
    **half.REWRITES,
    **rewrites_trees.REWRITES,
    **rewrites_ml.REWRITES,
    **rewrites_svm.REWRITES,
}

"""What onnxruntime's optimiser leaves in the models that it saves: FusedConv, FusedGemm, FusedMatMul.

Each becomes ONNX's own operators, whose float weights stay floats (`FLOAT_WEIGHTS`). Source: onnxruntime's
ContribOperators.md; tests/unit/test_real_exports_fused.py
compares with onnxruntime 1.31.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glowc.frontend.builder import Builder
from glowc.frontend.onnx_model import OnnxNode
from glowc.frontend.problems import NodeError
from glowc.frontend.rewrites_transformer import MICROSOFT, Chain

_PARAMETERS = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Elu": ("alpha",), "Softplus": (), "Softsign": (), "HardSwish": (),
}  # fmt: skip


def _activate(chain: Chain, x: str, parameters: Sequence[float]) -> None:
    """Add the activation of attribute `activation` after x."""
    name, out = chain.node.str_("activation", ""), chain.node.outputs[0]
    if name == "Clip" and len(parameters) > 1:
        chain.add("Clip", x, chain.const(parameters[0]), chain.const(parameters[1]), out=out)
        return
    keys = _PARAMETERS.get(name)
    if name and keys is None:
        raise NodeError(f"activation {name!r} is not supported ({', '.join(_PARAMETERS)} and Clip are)")
    attrs: dict[str, Any] = dict(zip(keys or (), parameters, strict=False))
    chain.add(name or "Identity", x, out=out, **attrs)


def _own(node: OnnxNode) -> dict[str, Any]:
    """Return the attributes of the operator that stands before the activation."""
    return {key: value for key, value in node.attrs.items() if not key.startswith("activation")}


def fused_conv(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedConv(X, W, B, Z): activation(Conv(X, W, B) + Z)."""
    chain = Chain(node, b)
    y = chain.add("Conv", *filter(None, node.inputs[:3]), **_own(node), float_weights=1)
    y = chain.add("Add", y, node.inputs[3]) if node.input(3) else y
    _activate(chain, y, tuple(map(float, node.attrs.get("activation_params", ()))))
    return chain.nodes


def fused_gemm(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedGemm(A, B, C): activation(Gemm(A, B, C))."""
    chain = Chain(node, b)
    y = chain.add("Gemm", *filter(None, node.inputs), **_own(node), float_weights=1)
    keys = [key for key in ("activation_alpha", "activation_beta", "activation_gamma") if key in node.attrs]
    _activate(chain, y, [node.float_(key, 0.0) for key in keys])
    return chain.nodes


def fused_matmul(node: OnnxNode, b: Builder) -> list[OnnxNode]:
    """FusedMatMul(A, B): alpha * A' B'; transBatch moves axis 0 after the batch axes, trans swaps the last two."""
    chain = Chain(node, b)
    factors = [_arranged(chain, name, letter) for name, letter in zip(node.inputs[:2], "AB", strict=True)]
    alpha, out = node.float_("alpha", 1.0), node.outputs[0]
    product = chain.add("MatMul", *factors, out=out if alpha == 1.0 else "", float_weights=1)
    if alpha != 1.0:
        chain.add("Mul", product, chain.const(alpha), out=out)
    return chain.nodes


def _arranged(chain: Chain, name: str, letter: str) -> str:
    rank = chain.b.type(name).rank
    perm = list(range(rank))
    if chain.node.int_(f"transBatch{letter}", 0):
        perm = [*perm[1:-1], 0, perm[-1]]
    if chain.node.int_(f"trans{letter}", 0) and rank > 1:
        perm[-2:] = perm[:-3:-1]
    return name if perm == list(range(rank)) else chain.add("Transpose", name, perm=tuple(perm))


Rewrite = Callable[[OnnxNode, Builder], list[OnnxNode]]

REWRITES: Mapping[tuple[str, str], Rewrite] = {
    (MICROSOFT, "FusedConv"): fused_conv,
    (MICROSOFT, "FusedGemm"): fused_gemm,
    (MICROSOFT, "FusedMatMul"): fused_matmul,
}

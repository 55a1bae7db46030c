"""Classes of operators that several passes treat alike."""

from __future__ import annotations

from glowc.graph.graph import Node
from glowc.ops.registry import find_op


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNARY = _words(
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
    "HardSwish Identity LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus "
    "Softsign Sqrt Swish Tan Tanh ThresholdedRelu "
    "QuantizeLinear DequantizeLinear Requantize FlipSign AssignQuant ShiftCodes"
)
"""One value in, one value out, element by element."""

NARY = _words(
    "Add And Div Equal FloorDiv Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow "
    "Sub Sum Where Xor"
)
"""Element by element with numpy broadcasting."""

REDUCE = _words(
    "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"
)
"""Attributes `axes` and `keepdims`."""

ALONG_AXIS = _words("Split Softmax LogSoftmax Hardmax")
"""Attribute `axis`."""

CLAMPS = frozenset(("Relu", "Clip"))

CLAMPED = frozenset(("Conv", "ConvTranspose", "FullyConnected", "Add", "Sub", "Mul", "MatMul", "AveragePool"))
"""Operators that clamp their result to the attributes `act_min` and `act_max`, where no definition says so."""

_MOVING: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        _words(
            "Reshape Flatten Squeeze Unsqueeze Transpose MaxPool Slice Pad Gather Expand Tile Split Resize "
            "DepthToSpace SpaceToDepth Identity ReduceMax ReduceMin GatherElements GatherND ReverseSequence"
        ),
        (0,),
    ),
    "Concat": None,
    "Where": (1, 2),
}


def moved_inputs(node: Node) -> tuple[int, ...]:
    """Return which inputs of `node` are data that it moves, or picks from, without computing; () for none.

    Such an operator gives the same result on real numbers and on their integer codes.
    """
    if node.op not in _MOVING or not _only_moves(node):
        return ()
    chosen = _MOVING[node.op]
    return tuple(range(len(node.inputs))) if chosen is None else chosen


def clamps(op: str) -> bool:
    """Say whether `op` computes and can clamp its result."""
    known = find_op(op)
    can = op in CLAMPED if known is None else "act_min" in known.attrs
    return can and op not in _MOVING  # what only moves is easier to exchange with DequantizeLinear unclamped


def _only_moves(node: Node) -> bool:
    if node.op == "Resize":
        return node.str_("mode") == "nearest"
    if node.op == "MaxPool":
        return not any(node.outputs[1:])  # not with the positions of the largest elements
    return True

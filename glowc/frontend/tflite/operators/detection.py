"""TFLite_Detection_PostProcess: corners of boxes and the suppression of those that overlap better ones."""

from __future__ import annotations

import math

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators.flexible import has_option, real_option, whole_option
from glowc.frontend.tflite.reader import Operator

_OF_A_CLASS = 100
_CLASSES = "max_classes_per_detection"


def detections(operator: Operator, net: Net) -> None:
    """Options are those that TensorFlow Lite Micro reads; boxes of a class are 100 where nothing is said.

    Where the file has no shape of the boxes, there is room for as many as TensorFlow Lite makes.
    """
    if (len(operator.inputs), len(operator.outputs)) != (3, 4):
        raise NodeError(f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs; it has 3 and 4")
    by_class = has_option(operator, "use_regular_nms") and whole_option(operator, "use_regular_nms", 0, 1)
    each = "detections_per_class" if by_class else _CLASSES
    known = not by_class or has_option(operator, each)
    iou = real_option(operator, "nms_iou_threshold")
    if not 0 < iou <= 1:
        raise NodeError(f"option nms_iou_threshold is {iou:g}, not above 0 and at most 1")
    shape = net.type(operator.outputs[0]).shape
    stored = math.prod(shape) > 1 and not net.is_open(operator.outputs[0])
    if stored and len(shape) != 3:
        raise NodeError(f"its boxes are {list(shape)}, not [1, n, 4]", "convert the network again")
    room = shape[1] if stored else whole_option(operator, "max_detections", 1) * whole_option(operator, _CLASSES, 1)
    net.emit_several("DetectionPostProcess", [_real(net, i) for i in operator.inputs], {
        "classes": whole_option(operator, "num_classes", 1), "room": room, "by_class": int(by_class),
        "each": whole_option(operator, each, 1) if known else _OF_A_CLASS,
        "most": whole_option(operator, "max_detections", 1),
        "score": real_option(operator, "nms_score_threshold"), "iou": iou,
        **{f"{axis}_scale": real_option(operator, f"{axis}_scale") for axis in "yxhw"},
    }, operator.outputs, follows=not stored)  # fmt: skip


def _real(net: Net, index: int) -> str:
    """Return an input as floats."""
    value = net.value(index)
    return value if net.type(index).quant is None else net.emit("DequantizeLinear", (value,))


HANDLERS = {"TFLite_Detection_PostProcess": detections}

"""ONNX or TensorFlow Lite bytes -> Graph: reading, shapes, constant folding, normal forms, quantisation as types.

What is fused, folded or laid out afterwards is decided by `glowc.passes`.
"""

from glowc.frontend.formats import given_arrays, import_model, is_half, tflite_bytes

__all__ = ["given_arrays", "import_model", "is_half", "tflite_bytes"]

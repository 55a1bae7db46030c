"""ONNX bytes -> Graph: reading, shapes, constant folding, normal forms, quantisation as types.

What is fused, folded or laid out afterwards is decided by `glowc.passes`.
"""

from glowc.frontend.given import given_arrays
from glowc.frontend.half import is_half
from glowc.frontend.importer import import_model

__all__ = ["given_arrays", "import_model", "is_half"]

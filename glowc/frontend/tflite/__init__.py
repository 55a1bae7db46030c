"""TensorFlow Lite bytes -> Graph: reading, operators with TensorFlow Lite's own integer arithmetic."""

from glowc.frontend.tflite.importer import import_tflite
from glowc.frontend.tflite.reader import is_tflite_file
from glowc.frontend.tflite.sizes import Sizes

__all__ = ["Sizes", "import_tflite", "is_tflite_file"]

"""TensorFlow Lite bytes -> Graph: reading, operators with TensorFlow Lite's own integer arithmetic."""

_MAGIC, _MAGIC_AT = b"TFL3", 4


def is_tflite_file(data: bytes) -> bool:
    """Say whether bytes are meant to be a TensorFlow Lite model."""
    return data[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] == _MAGIC

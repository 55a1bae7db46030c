"""glowc: ONNX and TensorFlow Lite models to portable C for Cortex-M and Cortex-A.

In Python: `glowc.compile` writes a bundle, `glowc.quantize` makes an int8 model of a float one, `glowc.load` runs a
bundle's C in this process, `glowc.InferenceSession` does so in the form of onnxruntime's (docs/PYTHON.md).
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_API = ("CompileOptions", "CompiledModel", "GlowcError", "ImageFormat", "InferenceSession", "LoadedModel", "LogMel",
        "Precision", "QuantizeOptions", "compile", "from_sklearn", "load", "log_mel", "quantize")  # fmt: skip
__all__ = ["__version__", *_API]


def __getattr__(name: str) -> object:
    """Import the compiler when it is first asked for: the command line's help does without."""
    if name in _API:
        return getattr(import_module("glowc.api"), name)
    raise AttributeError(f"module 'glowc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})

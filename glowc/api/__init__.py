"""glowc in Python: compile, quantise, and run the generated C in this process (docs/PYTHON.md)."""

from glowc.api.build import CompiledModel, compile, quantize
from glowc.api.loaded import LoadedModel, load
from glowc.api.session import InferenceSession, NodeArg
from glowc.compiler.options import CompileOptions
from glowc.errors import GlowcError
from glowc.quant.data import ImageFormat
from glowc.quant.precision import Precision
from glowc.quant.quantizer import QuantizeOptions

__all__ = ["CompileOptions", "CompiledModel", "GlowcError", "ImageFormat", "InferenceSession", "LoadedModel", "NodeArg",
           "Precision", "QuantizeOptions", "compile", "load", "quantize"]  # fmt: skip

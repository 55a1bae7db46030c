"""glowc in Python: compile, quantise, and run the generated C in this process (docs/PYTHON.md)."""

from glowc.api.build import CompiledModel, compile, quantize
from glowc.api.loaded import LoadedModel, load
from glowc.api.session import InferenceSession, NodeArg
from glowc.api.sklearn import from_sklearn
from glowc.api.sound import log_mel
from glowc.compiler.log_mel import LogMel
from glowc.compiler.options import CompileOptions
from glowc.errors import GlowcError
from glowc.quant.data import ImageFormat
from glowc.quant.precision import Precision
from glowc.quant.quantizer import QuantizeOptions

__all__ = ["CompileOptions", "CompiledModel", "GlowcError", "ImageFormat", "InferenceSession", "LoadedModel", "LogMel",
           "NodeArg", "Precision", "QuantizeOptions", "compile", "from_sklearn", "load", "log_mel",
           "quantize"]  # fmt: skip

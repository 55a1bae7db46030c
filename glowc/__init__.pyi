"""Types of what `glowc` passes on from `glowc.api` when it is asked for."""

from glowc.api import CompiledModel as CompiledModel
from glowc.api import CompileOptions as CompileOptions
from glowc.api import GlowcError as GlowcError
from glowc.api import ImageFormat as ImageFormat
from glowc.api import InferenceSession as InferenceSession
from glowc.api import LoadedModel as LoadedModel
from glowc.api import LogMel as LogMel
from glowc.api import Precision as Precision
from glowc.api import QuantizeOptions as QuantizeOptions
from glowc.api import compile as compile
from glowc.api import from_sklearn as from_sklearn
from glowc.api import load as load
from glowc.api import log_mel as log_mel
from glowc.api import quantize as quantize

__all__: list[str]
__version__: str

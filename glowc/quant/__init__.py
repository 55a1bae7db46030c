"""A float ONNX model and sample data -> an int8 ONNX file with QuantizeLinear and DequantizeLinear.

What the pairs mean on a machine is decided by `glowc.frontend` and `glowc.passes`, as for any other quantised model.
"""

from glowc.quant.calibrate import Calibration
from glowc.quant.precision import Precision
from glowc.quant.quantizer import Quantized, QuantizeOptions, quantize_model
from glowc.quant.scheme import Activations, Schema
from glowc.quant.weight_types import WeightType

__all__ = [
    "Activations", "Calibration", "Precision", "QuantizeOptions", "Quantized", "Schema", "WeightType", "quantize_model",
]  # fmt: skip

"""What is known of TensorFlow Lite's operators: the newest version whose options are read, and kinds of elements.

Kinds are those of the data, as TFLM has them; tests/tflite compares each with its runtime. Of uint8 old files are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """The newest version, kinds of elements, and what is left out."""

    version: int
    types: tuple[str, ...]
    note: str = ""


_ALL = ("float32", "int8", "int16", "int32", "int64", "bool", "uint8")


def _known(version: int, kinds: str, note: str = "") -> Known:
    return Known(version, tuple(_ALL if kinds == "*" else kinds.split()), note)


_CODES, _NUMBERS, _SMALL = "float32 int8 int16", "float32 int8 int16 int32", "float32 int8"
_COMPARED = "float32 int8 int32 int64"
_LAYER = "weights int8 or int4, one scale or one per channel; int16 with biases of 32 or 64 bits"
_LENGTHS = "lengths of twice a product of 2, 3 and 5"

KNOWN: Mapping[str, Known] = {
    "ABS": _known(5, _CODES), "ADD": _known(5, _NUMBERS), "ADD_N": _known(1, _SMALL),
    "ARG_MAX": _known(3, _SMALL, "constant axis"), "ARG_MIN": _known(3, _SMALL, "constant axis"),
    "ASSIGN_VARIABLE": _known(1, "*"), "ATAN2": _known(1, "float32"), "AVERAGE_POOL_2D": _known(3, f"{_CODES} uint8"),
    "BATCH_MATMUL": _known(4, _CODES), "BATCH_TO_SPACE_ND": _known(4, _SMALL, "constant block and crops"),
    "BROADCAST_ARGS": _known(1, "int32", "constant shapes"), "BROADCAST_TO": _known(3, "*"),
    "CALL_ONCE": _known(1, "*", "a subgraph that assigns constants"),
    "CIRCULAR_BUFFER": _known(1, "int8", "nothing after one that skips calls"),
    "CAST": _known(6, "float32 int8 int16 int32 uint32 bool"), "CEIL": _known(1, "float32"),
    "CONCATENATION": _known(4, "float32 int8 int16 int32 int64 bool", "other scales are rescaled first"),
    "CONV_2D": _known(8, _CODES, _LAYER),
    "CONV_3D": _known(1, "float32", "constant weights, no groups"),
    "Convolution2DTransposeBias": _known(1, "float32", "MediaPipe's TRANSPOSE_CONV with a bias"),
    "COMPLEX_ABS": _known(1, "float32", "of complex64"), "DENSIFY": _known(1, "float32 int8", "constants"),
    "IMAG": _known(1, "float32", "of complex64"), "REAL": _known(1, "float32", "of complex64"),
    "MaxPoolingWithArgmax2D": _known(1, "float32", "MediaPipe's, places in windows"),
    "MaxUnpooling2D": _known(1, "float32", "MediaPipe's, windows side by side"),
    "RFFT2D": _known(1, "float32", "constant lengths, products of 2, 3 and 5; columns of even lengths"),
    "COS": _known(1, "float32"),
    "CUMSUM": _known(1, _SMALL, "constant axis"), "DEPTHWISE_CONV_2D": _known(7, _CODES, _LAYER),
    "DEPTH_TO_SPACE": _known(2, _SMALL), "DEQUANTIZE": _known(6, "int8 int16 uint8", "float16 becomes float32"),
    "DIV": _known(2, "float32 int8 int32"), "DYNAMIC_UPDATE_SLICE": _known(3, _NUMBERS),
    "ELU": _known(1, _SMALL), "EMBEDDING_LOOKUP": _known(4, _SMALL),
    "EQUAL": _known(4, f"{_COMPARED} bool"), "EXP": _known(2, _SMALL), "EXPAND_DIMS": _known(1, _CODES),
    "FILL": _known(4, "float32 int8 int32", "constant shape"), "FLOOR": _known(1, "float32"),
    "FLOOR_DIV": _known(3, "float32"), "FLOOR_MOD": _known(2, "float32"),
    "FULLY_CONNECTED": _known(13, _CODES, _LAYER), "GATHER": _known(7, _SMALL), "GATHER_ND": _known(5, _SMALL),
    "GELU": _known(2, _SMALL),
    "GREATER": _known(2, _COMPARED), "GREATER_EQUAL": _known(3, _COMPARED), "HARD_SWISH": _known(1, _SMALL),
    "IF": _known(1, "*", "of a computed condition both branches run"), "L2_NORMALIZATION": _known(2, _SMALL),
    "L2_POOL_2D": _known(1, "float32"), "LEAKY_RELU": _known(2, _CODES), "LESS": _known(3, _COMPARED),
    "LESS_EQUAL": _known(2, _COMPARED), "LOG": _known(2, _SMALL), "LOGICAL_AND": _known(1, "bool"),
    "LOGICAL_NOT": _known(1, "bool"), "LOGICAL_OR": _known(1, "bool"), "LOGISTIC": _known(3, _CODES),
    "LOG_SOFTMAX": _known(2, _SMALL), "MAXIMUM": _known(4, "float32 int8 int16 int32 int64"),
    "MAX_POOL_2D": _known(3, _CODES), "MEAN": _known(3, _CODES, "constant axes"),
    "MINIMUM": _known(4, "float32 int8 int16 int32 int64"), "MIRROR_PAD": _known(3, _SMALL, "constant padding"),
    "MUL": _known(7, _NUMBERS), "NEG": _known(1, "float32"), "NOT_EQUAL": _known(3, f"{_COMPARED} bool"),
    "ONE_HOT": _known(1, "float32 int8 int32 int64 bool", "constant depth"),
    "PACK": _known(4, "float32 int8 int16 int32 int64"), "PAD": _known(4, _NUMBERS, "constant padding"),
    "PADV2": _known(4, _SMALL, "constant padding and value"), "POW": _known(1, "float32 int32"),
    "PRELU": _known(1, _SMALL), "RANGE": _known(2, "float32 int32 int64", "constants"), "RANK": _known(1, "*"),
    "REDUCE_ALL": _known(2, "bool", "constant axes"), "REDUCE_ANY": _known(2, "bool", "constant axes"),
    "REDUCE_PROD": _known(2, "float32 int32", "constant axes"), "RELU_0_TO_1": _known(1, _SMALL),
    "SCATTER_ND": _known(1, "float32 int32", "constant shape"),
    "SELECT": _known(4, _CODES), "SIGN": _known(2, "float32 int32"),
    "STABLEHLO_COMPOSITE": _known(1, "*", "by the subgraph that it names"),
    "TOPK_V2": _known(3, "float32 int8 int32", "constant k"),
    "QUANTIZE": _known(3, "float32 int8 int16 int32 uint8"), "READ_VARIABLE": _known(1, "*"),
    "REDUCE_MAX": _known(3, _SMALL, "constant axes"), "REDUCE_MIN": _known(3, _SMALL, "constant axes"),
    "RELU": _known(3, _CODES), "RELU6": _known(3, _CODES), "RELU_N1_TO_1": _known(3, _SMALL),
    "RESHAPE": _known(1, "*"), "RESIZE_BILINEAR": _known(4, _SMALL), "RESIZE_NEAREST_NEIGHBOR": _known(4, _CODES),
    "REVERSE_V2": _known(3, "*", "constant axes"), "ROUND": _known(1, "float32"), "RSQRT": _known(3, _CODES),
    "SELECT_V2": _known(2, _CODES), "SHAPE": _known(1, "*"), "SIN": _known(1, "float32"),
    "SLICE": _known(6, f"{_NUMBERS} bool", "constant begin and size"),
    "SOFTMAX": _known(3, _CODES, "int8 to int8 or int16"),
    "SPACE_TO_BATCH_ND": _known(4, _SMALL, "constant block and padding"), "SPACE_TO_DEPTH": _known(2, _SMALL),
    "SPLIT": _known(4, _NUMBERS), "SPLIT_V": _known(2, _NUMBERS), "SQRT": _known(1, "float32"),
    "SQUARE": _known(1, "float32"), "SQUARED_DIFFERENCE": _known(2, _NUMBERS), "SQUEEZE": _known(2, "*"),
    "STRIDED_SLICE": _known(8, f"{_NUMBERS} bool", "constant begin, end and strides"),
    "SUB": _known(5, _NUMBERS), "SUM": _known(2, _CODES, "constant axes"),
    "SVDF": _known(4, _SMALL, "state of int8 or int16"),
    "SignalDelay": _known(1, "int16"), "SignalEnergy": _known(1, "int16", "uint32 of complex int16"),
    "SignalFftAutoScale": _known(1, "int16"), "SignalFilterBank": _known(1, "uint32", "uint64 of uint32"),
    "SignalFilterBankLog": _known(1, "uint32", "int16 of uint32"),
    "SignalFilterBankSpectralSubtraction": _known(1, "uint32"),
    "SignalFilterBankSquareRoot": _known(1, "uint64", "uint32 of uint64"), "SignalFramer": _known(1, "int16"),
    "SignalIrfft": _known(1, "float32 int16 int32", _LENGTHS), "SignalOverlapAdd": _known(1, "float32 int16"),
    "SignalPCAN": _known(1, "uint32"), "SignalRfft": _known(1, "float32 int16 int32", _LENGTHS),
    "SignalStacker": _known(1, "int16"), "SignalWindow": _known(1, "int16"), "TANH": _known(3, _CODES),
    "TFLM_DECODE": _known(1, "float32 int8 int16 int32 int64 bool", "constants by table, Huffman code, or pruned"),
    "TFLite_Detection_PostProcess": _known(1, "float32"),
    "TILE": _known(3, "*", "constant repeats"), "TRANSPOSE": _known(6, _CODES, "constant permutation"),
    "TRANSPOSE_CONV": _known(5, _CODES, _LAYER),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _known(4, _CODES, "no peepholes, projection or layer normalization"),
    "UNPACK": _known(4, _NUMBERS), "VAR_HANDLE": _known(1, "*"),
    "WHILE": _known(1, "*", "as many turns as a known condition allows"),
    "ZEROS_LIKE": _known(1, "float32 int8 int32 int64"),
}  # fmt: skip
"""By the names of the schema."""


def known_operators() -> Mapping[str, Known]:
    """Return every operator that has a handler, by name."""
    from glowc.frontend.tflite.operators import HANDLERS

    return {name: KNOWN[name] for name in sorted(HANDLERS)}

"""Seeded one-operator models with inputs: for every operator, shapes, types, options, scales and zero points at random.

    case = make_case("CONV_2D", seed)      # the same case each time

Each maker draws what TFLM takes; what it refuses is a mistake of the maker, which a test shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

from tests.tflite.cases import binary, control, custom, layers, movement, pools, recurrent, shapes, unary
from tests.tflite.cases.draw import Arrays, Case, Maker

__all__ = ["LITERT", "MAKERS", "Arrays", "Case", "make_case"]

MAKERS: Mapping[str, Maker] = {
    **unary.MAKERS, **binary.MAKERS, **layers.MAKERS, **pools.MAKERS, **movement.MAKERS, **shapes.MAKERS,
    **recurrent.MAKERS, **control.MAKERS, **custom.MAKERS,
}  # fmt: skip
LITERT: Mapping[str, Maker] = binary.LITERT


def make_case(code: str, seed: int) -> Case:
    """Return the case of an operator that a seed stands for."""
    return (LITERT if code in LITERT else MAKERS)[code](np.random.default_rng([zlib.crc32(code.encode()), seed]))

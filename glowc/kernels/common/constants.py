"""Constants that variants share: what stands for biases and scales that lie in the stream of the weights."""

from __future__ import annotations

import numpy as np

EMPTY = {"bias": np.zeros(1, np.int32), "scale": np.zeros(1, np.float32)}

WEIGHTED = frozenset({"weights", "bias", "scale"})
"""The constants of a layer on codes."""
SHIFTED = frozenset({"weights", "mul", "offset"})
"""The constants of a layer that ends in a multiplication and a shift."""

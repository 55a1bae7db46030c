"""Constants that variants share: what stands for biases and scales that lie in the stream of the weights."""

from __future__ import annotations

import numpy as np

EMPTY = {"bias": np.zeros(1, np.int32), "scale": np.zeros(1, np.float32)}

#!/usr/bin/env python3
"""Quantise a float model with another project's quantiser, for `scripts/quant_bench.py --other`.

    quant_other.py nncf model.onnx samples.npz folder

Runs in the environment of that quantiser, which has no glowc. Writes a file per preset: int8, weights per output
channel, all else as it comes. samples.npz has an array per input, samples first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

Samples = list[dict[str, np.ndarray]]


def by_nncf(model: onnx.ModelProto, samples: Samples, preset: str) -> onnx.ModelProto:
    """Return the model as the Neural Network Compression Framework makes it: QDQ, biases corrected.

    Weights take all 8 bits: by default it leaves out one in a first layer, for processors whose sums would saturate.
    """
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix
    from nncf.quantization.range_estimator import RangeEstimatorParameters, RangeEstimatorParametersSet

    nncf.set_log_level("ERROR")
    kind, _, ends = preset.partition("-")
    ranges = RangeEstimatorParametersSet.MINMAX if ends else RangeEstimatorParameters()
    advanced = AdvancedQuantizationParameters(
        overflow_fix=OverflowFix.DISABLE, activations_range_estimator_params=ranges
    )  # fmt: skip
    done: onnx.ModelProto = nncf.quantize(
        model, nncf.Dataset(samples), preset=nncf.QuantizationPreset(kind), subset_size=len(samples),
        advanced_parameters=advanced,
    )  # fmt: skip
    return done


OTHERS: dict[str, tuple[Callable[[onnx.ModelProto, Samples, str], onnx.ModelProto], tuple[str, ...]]] = {
    "nncf": (by_nncf, ("performance", "mixed", "mixed-minmax")),  # activations symmetric, asymmetric, with whole ranges
}


def main() -> None:
    name, source, data, folder = sys.argv[1:]
    with np.load(data) as file:
        arrays = {n: file[n] for n in file.files}
    samples = [{n: a[i] for n, a in arrays.items()} for i in range(len(next(iter(arrays.values()))))]
    quantise, presets = OTHERS[name]
    for preset in presets:
        onnx.save(quantise(onnx.load(source), samples, preset), Path(folder) / f"{preset}.onnx")


if __name__ == "__main__":
    main()

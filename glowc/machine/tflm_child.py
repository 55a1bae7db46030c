"""A process of its own around the runtime of package `tflite-micro`, which a damaged model may end.

    python -m glowc.machine.tflm_child MODEL INPUTS OUTPUTS OUTPUT_COUNT

INPUTS is an .npz of arrays arr_0, arr_1 ... with leading sample axes; OUTPUTS becomes one. What the runtime says of its
arena is on standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

_ARENA_BYTES = 1 << 22  # and 20 times the file, for large models: too much costs nothing here


def main(model: str, inputs: str, outputs: str, count: str) -> None:
    """Run all samples in order on one interpreter."""
    from tflite_micro.python.tflite_micro import runtime

    data, given = Path(model).read_bytes(), np.load(inputs)
    arena_bytes = max(_ARENA_BYTES, 20 * len(data))
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=arena_bytes)
    found: list[list[np.ndarray]] = [[] for _ in range(int(count))]
    for sample in zip(*(given[key] for key in given.files), strict=True):
        for i, array in enumerate(sample):
            interpreter.set_input(np.ascontiguousarray(array), i)
        interpreter.invoke()
        for i, arrays in enumerate(found):
            arrays.append(np.array(interpreter.get_output(i)))
    np.savez(outputs, *map(np.stack, found))
    interpreter.print_allocations()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # whatever the runtime raises: it has printed why
        sys.exit(str(error))

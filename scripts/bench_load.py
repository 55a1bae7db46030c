"""What a call of `glowc.load` costs besides the inference: one through Python against one of many in a loop of C."""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import glowc
from glowc.codegen.names import c_ident

_TIMES, _REPEATS = 2000, 30
_LOOP = """
#include "{name}.h"
void many(void *arena, size_t bytes, {params}, unsigned n);
void many(void *arena, size_t bytes, {params}, unsigned n) {{
  while (n-- > 0u) {{ (void){prefix}_invoke_in(arena, bytes, {args}); }}
}}
"""


def fastest(call: Callable[[], object], times: int) -> float:
    """Return the seconds of one call in the fastest round of several."""
    return min(timeit.repeat(call, number=times, repeat=_REPEATS)) / times


def c_seconds(model: glowc.LoadedModel, arrays: Sequence[np.ndarray]) -> float:
    """Return the seconds of one inference in a loop of C."""
    info, prefix = model.info, c_ident(model.info.name).lower()
    results = [np.empty(port.shape, port.dtype.numpy) for port in model.outputs]
    names = [f"p{i}" for i in range(len(arrays) + len(results))]
    with tempfile.TemporaryDirectory() as folder:
        loop, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
        params = ", ".join(f"void *{name}" for name in names)
        loop.write_text(_LOOP.format(name=info.name, prefix=prefix, params=params, args=", ".join(names)))
        sources = [loop, *info.sources]
        argv = ["gcc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{info.folder}", *map(str, sources)]
        subprocess.run([*argv, "-o", str(library), "-lm"], check=True)
        many = ctypes.CDLL(str(library)).many
    arena = np.zeros(model.arena_bytes + 64, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *results)]
    fixed = (ctypes.c_void_p(start), ctypes.c_size_t(model.arena_bytes), *pointers)
    return fastest(lambda: many(*fixed, ctypes.c_uint(_TIMES)), 1) / _TIMES


def main() -> None:
    """Print microseconds a call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, default=Path("examples/digits/digits.onnx"))
    path = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder:
        model = glowc.load(glowc.compile(path, Path(folder) / "bundle"))
        arrays = [np.zeros(port.shape, port.dtype.numpy) for port in model.inputs]
        python, alone = fastest(lambda: model(*arrays), _TIMES), c_seconds(model, arrays)
    print(
        f"{path.name}: {1e6 * python:.1f} us a call, {1e6 * alone:.1f} us of C; {1e6 * (python - alone):.1f} us besides"
    )


if __name__ == "__main__":
    main()

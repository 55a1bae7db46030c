"""Random networks and layers, each compiled in several ways that give the same codes: `make fuzz-ways`.

A way is a target with options: steps (--slice), cores, limits, plans, layouts, streams. What is wrong is printed with
the seed and the way.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from glowc.errors import GlowcError  # noqa: E402
from glowc.frontend import import_model  # noqa: E402
from glowc.graph.graph import Graph  # noqa: E402
from glowc.ops.interp import run_graph  # noqa: E402
from glowc.passes.pipeline import run_pipeline  # noqa: E402
from scripts.drawn_layers import draw, model_bytes  # noqa: E402
from tests.fuzz.build import model_of  # noqa: E402
from tests.fuzz.check import UNEXPECTED, Finding  # noqa: E402
from tests.fuzz.dice import Dice  # noqa: E402
from tests.fuzz.strategy import seeded  # noqa: E402
from tests.fuzz.ways import check_way, draw_way  # noqa: E402

SAMPLES = 2


def main() -> int:
    """Fuzz; the exit status is 1 when a way gave other codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=None, help="first seed (default: the time)")
    parser.add_argument("--count", type=int, default=None, help="networks (default: as many as fit into --seconds)")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on without --count")
    parser.add_argument("--ways", type=int, default=3, help="of each network")
    options = parser.parse_args()
    seed = first = int(time.time()) * 1000 if options.first is None else options.first
    print(f"seeds from {first}")
    end, kinds = time.monotonic() + options.seconds, Counter[str]()
    while seed < first + options.count if options.count is not None else time.monotonic() < end:
        for way, finding in enumerate(run(seed, options.ways)):
            kinds[finding.kind] += 1
            if finding.kind in UNEXPECTED:
                print(f"seed {seed}, way {way}: {finding.kind}: {finding.text[-1500:]}", flush=True)
        seed += 1
    for kind, count in kinds.most_common():
        print(f"{count:8,} {kind}")
    return int(any(kind in UNEXPECTED for kind in kinds))


def run(seed: int, ways: int) -> Iterator[Finding]:
    """Yield what became of each way of the network of a seed; nothing where glowc has no answer to compare with."""
    with tempfile.TemporaryDirectory(prefix="glowc-ways-") as work:
        path = written(seed, Path(work))
        try:
            graph = import_model(path)
            passed = run_pipeline(graph)
        except GlowcError:
            return
        samples = codes_for(graph, seed)
        with np.errstate(all="ignore"):
            rows = [run_graph(passed, {name: a[n] for name, a in samples.items()}) for n in range(SAMPLES)]
        want = {name: np.stack([row[name] for row in rows]) for name in passed.outputs}
        for n in range(ways):
            way = draw_way(Dice(random.Random(seed * 100 + n).randint))
            yield check_way(path, way, samples, want, Path(work) / str(n))


def written(seed: int, folder: Path) -> Path:
    """Write the model of a seed: a random network, for odd seeds one layer that is larger."""
    if seed % 2 == 0:
        path = folder / "net.onnx"
        path.write_bytes(model_of(seeded(seed)[0]).SerializeToString())
        return path
    (layer,) = draw(np.random.default_rng(seed), 1)
    path = folder / f"net.{layer.form}"
    path.write_bytes(model_bytes(layer))
    return path


def codes_for(graph: Graph, seed: int) -> Mapping[str, np.ndarray]:
    """Return samples of a network's inputs: any codes, then only the ends of their range; floats around 0."""
    rng, found = np.random.default_rng(seed), {}
    for name in graph.inputs:
        kind, shape = graph.types[name].dtype, (SAMPLES, *graph.types[name].shape)
        if kind.is_float:
            found[name] = (8 * rng.standard_normal(shape)).astype(kind.numpy)
            continue
        codes = rng.integers(kind.qmin, kind.qmax, shape, endpoint=True)
        codes[1] = rng.choice([kind.qmin, kind.qmax], shape[1:])
        found[name] = codes.astype(kind.numpy)
    return found


if __name__ == "__main__":
    sys.exit(main())

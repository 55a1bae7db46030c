"""Coverage-guided fuzzing of the importer by bytes, with atheris: `make fuzz-bytes`.

A model is any sequence of bytes; everything that ends in another way than a graph or a message for the user is a crash,
which atheris reports with the bytes. The first inputs are the small models of the random networks.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["glowc.frontend"]):
    from glowc.errors import GlowcError, InternalError
    from glowc.frontend import import_model

from tests.fuzz.build import model_of  # noqa: E402
from tests.fuzz.strategy import seeded  # noqa: E402


def test_one_input(data: bytes) -> None:
    """Import bytes; a message for the user is a good end."""
    try:
        import_model(data, name="fuzzed")
    except InternalError:
        raise
    except GlowcError:
        pass


def main() -> None:
    """Run with libFuzzer's options, e.g. -max_total_time=600 -timeout=10 -rss_limit_mb=1500."""
    with tempfile.TemporaryDirectory(prefix="glowc-corpus-") as corpus:
        for seed in range(50):
            (Path(corpus) / str(seed)).write_bytes(model_of(seeded(seed)[0]).SerializeToString())
        atheris.Setup([*sys.argv, corpus], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Operators of the signal library against the TFLM runtime: every integer and every float equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pytest

from glowc.errors import GlowcError, ModelError
from glowc.frontend import import_model
from tests.conftest import require_tflite
from tests.tflite.cases import Arrays
from tests.tflite.compare import difference, lowered
from tests.tflite.runtime import Runtime
from tests.tflite.signal_cases import MAKERS, Signal, make_signal

CASES = 20


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    require_tflite()
    with Runtime() as found:
        yield found


def _compared(signal: Signal, got: Sequence[Arrays], want: Sequence[Arrays]) -> str:
    """Return what differs, of the calls whose outputs mean something."""
    for n, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if n < signal.first_call:
            continue
        whole = signal.valid < 0 or bool(theirs[signal.valid])
        outputs = range(len(theirs)) if whole else (signal.valid,)
        found = difference([tuple(ours[i] for i in outputs)], [tuple(theirs[i] for i in outputs)], 0.0)
        if found:
            return f"call {n}: {found}"
    return ""


@pytest.mark.parametrize("code", MAKERS)
def test_seeded_models_of_one_signal_operator_answer_as_the_runtime(code: str, runtime: Runtime) -> None:
    for seed in range(CASES):
        signal = make_signal(code, seed)
        want = runtime.run(signal.case.model, signal.case.calls)
        found = _compared(signal, lowered(signal.case.model, signal.case.calls), want)
        assert not found, f"seed {seed}, {signal.case.label}: {found}"


def test_mutated_files_are_refused_or_read() -> None:
    rng = np.random.default_rng(0)
    for code in MAKERS:
        data = make_signal(code, 1).case.model
        for _ in range(25):
            mutated = bytearray(data)
            for at in rng.integers(8, len(data), int(rng.integers(1, 6))):
                mutated[at] = int(rng.integers(256))
            with suppress(GlowcError):
                import_model(bytes(mutated))


def test_options_that_are_no_flexbuffer_are_told() -> None:
    model = bytearray(make_signal("SignalWindow", 0).case.model)
    at = bytes(model).index(b"shift")
    model[at : at + 5] = b"shaft"
    with pytest.raises(ModelError, match=r"operator 0 \(SignalWindow\): its options have no shift"):
        import_model(bytes(model))

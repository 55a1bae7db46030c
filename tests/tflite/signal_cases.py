"""Seeded models of one operator of TensorFlow Lite Micro's signal library, like those of tests/tflite/cases.py."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from tests.tflite.cases.draw import Arrays, Case, Rng, data_of, flag, pick, shape_of
from tests.tflite.writer import Build, Tensor, quant

_TYPES = {"float32": 0, "int32": 2, "int16": 7}


@dataclass(frozen=True)
class Signal:
    """A case; `valid` is the output that says whether a call's others are compared, which are from `first_call` on."""

    case: Case
    valid: int = -1
    first_call: int = 0


def _of(
    code: str,
    build: Build,
    outs: Sequence[Tensor],
    calls: Sequence[Arrays],
    options: Mapping[str, object],
    inputs: Sequence[int] = (),
    valid: int = -1,
    first_call: int = 0,
) -> Signal:  # fmt: skip
    build.op(code, inputs or build.inputs, list(outs), bytes(flexbuffers.Dumps(dict(options))))
    shown = " ".join(f"{t.kind}{list(t.shape)}" for t in build.tensors)
    return Signal(Case(f"{shown} {dict(options)}", build.bytes(), tuple(calls), rtol=0), valid, first_call)


def wide(rng: Rng, shape: tuple[int, ...], bits: int) -> np.ndarray:
    """Return unsigned numbers of all magnitudes."""
    whole = rng.integers(0, 1 << bits, shape, dtype=np.uint64)
    return (whole >> rng.integers(0, bits, shape).astype(np.uint64)).astype(f"uint{bits}")


def window(rng: Rng) -> Signal:
    """SignalWindow."""
    shape, build = shape_of(rng, int(rng.integers(1, 4)), 40), Build()
    x = build.input(shape, "int16")
    w = build.const(data_of(rng, shape[-1:], "int16"))
    calls = [(data_of(rng, shape, "int16"),)]
    return _of("SignalWindow", build, [Tensor(shape, "int16")], calls, {"shift": int(rng.integers(16))}, (x, w))


def transform(code: str) -> Callable[[Rng], Signal]:
    """SignalRfft and SignalIrfft of all kinds."""

    def make(rng: Rng) -> Signal:
        kind = str(pick(rng, *_TYPES))
        length = 2 * int(pick(rng, 2, 3, 4, 5, 6, 8, 15, 16, 20, 32, 45, 64, 128, 240, 256, 512))
        inverse = code == "SignalIrfft"
        width = length + 2 if inverse else int(pick(rng, length, int(rng.integers(1, length + 1))))
        x = rng.normal(0, 1, (width,))
        if kind != "float32":
            full = np.iinfo(kind).max
            x = np.round(x * full * 2.0 ** rng.uniform(-8, 0)).clip(-full - 1, full)
        build = Build()
        build.input((width,), kind)
        out = Tensor((length if inverse else length + 2,), kind)
        return _of(code, build, [out], [(x.astype(kind),)], {"T": _TYPES[kind], "fft_length": length})

    return make


def auto_scale(rng: Rng) -> Signal:
    """SignalFftAutoScale."""
    shape, build = shape_of(rng, 1, 60), Build()
    build.input(shape, "int16")
    top = int(pick(rng, 0, 1, 100, 32767, int(rng.integers(1, 32768))))
    calls = [(rng.integers(-top, top + 1, shape).astype(np.int16),)]
    return _of("SignalFftAutoScale", build, [Tensor(shape, "int16"), Tensor((), "int32")], calls, {})


def energy(rng: Rng) -> Signal:
    """SignalEnergy of all frequencies: the runtime leaves others unwritten."""
    n, build = int(rng.integers(1, 40)), Build()
    build.input((2 * n,), "int16")
    calls = [(data_of(rng, (2 * n,), "int16"),)]
    return _of("SignalEnergy", build, [Tensor((n,), "uint32")], calls, {"start_index": 0, "end_index": n})


def filter_bank(rng: Rng) -> Signal:
    """SignalFilterBank."""
    channels, energies, build = int(rng.integers(1, 12)), 60, Build()
    widths = rng.integers(0, 9, channels + 1).astype(np.int16)
    starts = rng.integers(0, energies - 8, channels + 1).astype(np.int16)
    weight_starts = np.concatenate(([0], np.cumsum(widths)[:-1])).astype(np.int16)
    total = int(max(widths.sum(), 1))
    x = build.input((energies,), "uint32")
    tables = [data_of(rng, (total,), "int16"), data_of(rng, (total,), "int16"), starts, weight_starts, widths]
    inputs = (x, *(build.const(t) for t in tables))
    calls = [(wide(rng, (energies,), 32),)]
    return _of("SignalFilterBank", build, [Tensor((channels,), "uint64")], calls, {"num_channels": channels}, inputs)


def square_root(rng: Rng) -> Signal:
    """SignalFilterBankSquareRoot."""
    n, build = int(rng.integers(1, 60)), Build()
    build.input((n,), "uint64")
    build.input((), "int32")
    x = wide(rng, (n,), 64)
    x[: n // 4] = wide(rng, (n // 4,), 32).astype(np.uint64) ** np.uint64(2) + np.uint64(1)
    calls = [(x, np.array(rng.integers(16), np.int32))]
    return _of("SignalFilterBankSquareRoot", build, [Tensor((n,), "uint32")], calls, {})


def spectral_subtraction(rng: Rng) -> Signal:
    """SignalFilterBankSpectralSubtraction over several calls."""
    n, build, bits = int(rng.integers(1, 20)), Build(), int(rng.integers(4, 16))
    one = 1 << bits
    smoothing, odd = (int(rng.integers(one + 1)) for _ in range(2))
    build.input((n,), "uint32")
    options = {
        "smoothing": smoothing, "one_minus_smoothing": one - smoothing, "alternate_smoothing": odd,
        "alternate_one_minus_smoothing": one - odd, "smoothing_bits": int(rng.integers(0, 12)),
        "min_signal_remaining": int(rng.integers(one)), "clamping": flag(rng), "num_channels": n,
        "spectral_subtraction_bits": bits,
    }  # fmt: skip
    calls = [(wide(rng, (n,), 32),) for _ in range(6)]
    return _of("SignalFilterBankSpectralSubtraction", build, [Tensor((n,), "uint32")] * 2, calls, options)


def pcan(rng: Rng) -> Signal:
    """SignalPCAN."""
    n, build = int(rng.integers(1, 80)), Build()
    inputs = (build.input((n,), "uint32"), build.input((n,), "uint32"), build.const(data_of(rng, (125,), "int16")))
    calls = [(wide(rng, (n,), 32), wide(rng, (n,), 32))]
    options = {"snr_shift": int(rng.integers(0, 24))}
    return _of("SignalPCAN", build, [Tensor((n,), "uint32")], calls, options, inputs)


def logarithm(rng: Rng) -> Signal:
    """SignalFilterBankLog."""
    n, build = int(rng.integers(1, 200)), Build()
    build.input((n,), "uint32")
    options = {
        "input_correction_bits": int(rng.integers(0, 8)), "output_scale": int(pick(rng, 64, 1, 1600, 65536, 3000)),
    }  # fmt: skip
    return _of("SignalFilterBankLog", build, [Tensor((n,), "int16")], [(wide(rng, (n,), 32),)], options)


def _several(rng: Rng, shape: tuple[int, ...], kind: str = "int16", calls: int = 7) -> list[Arrays]:
    return [(data_of(rng, shape, kind),) for _ in range(calls)]


def delay(rng: Rng) -> Signal:
    """SignalDelay."""
    shape, build = shape_of(rng, int(rng.integers(1, 3)), 6), Build()
    build.input(shape, "int16")
    options = {"delay_length": int(rng.integers(0, 15))}
    return _of("SignalDelay", build, [Tensor(shape, "int16")], _several(rng, shape), options)


def framer(rng: Rng) -> Signal:
    """SignalFramer."""
    step, count, build = int(rng.integers(1, 5)), int(rng.integers(1, 4)), Build()
    prefill = flag(rng)
    size = int(rng.integers(step if prefill else 1, 12)) + (1 if prefill else 0)
    shape = (*shape_of(rng, 1, 2), step * count) if flag(rng) else (step * count,)
    build.input(shape, "int16")
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    outs = [Tensor((*shape[:-1], count, size), "int16"), Tensor((), "bool")]
    return _of("SignalFramer", build, outs, _several(rng, shape, calls=14), options, valid=1)


def stacker(rng: Rng) -> Signal:
    """SignalStacker."""
    width, left, right, build = int(rng.integers(1, 5)), int(rng.integers(4)), int(rng.integers(4)), Build()
    build.input((width,), "int16")
    rows = left + right + 1
    options = {
        "num_channels": width, "stacker_left_context": left, "stacker_right_context": right,
        "stacker_step": int(rng.integers(1, rows + 1)),
    }  # fmt: skip
    outs = [Tensor((width * rows,), "int16"), Tensor((), "bool")]
    return _of("SignalStacker", build, outs, _several(rng, (width,), calls=14), options, valid=1)


def overlap_add(rng: Rng) -> Signal:
    """SignalOverlapAdd."""
    kind, build = str(pick(rng, "int16", "float32")), Build()
    step, count = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    size = step + int(rng.integers(0, 9))
    shape = (*(shape_of(rng, 1, 3) if flag(rng) else ()), count, size)
    build.input(shape, kind)
    options = {"frame_step": step, "T": _TYPES[kind]}
    out = Tensor((*shape[:-2], count * step), kind)
    return _of("SignalOverlapAdd", build, [out], _several(rng, shape, kind), options)


def circular_buffer(rng: Rng) -> Signal:
    """CIRCULAR_BUFFER: compared once it is full, as the runtime does not clear its memory."""
    depth, slots, build = int(rng.integers(1, 6)), int(rng.integers(2, 8)), Build()
    q = quant(0.1, int(rng.integers(-128, 128)))
    build.input((1, 1, 1, depth), "int8", q)
    calls = _several(rng, (1, 1, 1, depth), "int8", slots + 4)
    out = Tensor((1, slots, 1, depth), "int8", q)
    return _of("CIRCULAR_BUFFER", build, [out], calls, {"cycles_max": int(rng.integers(1, 3))}, first_call=slots)


MAKERS: Mapping[str, Callable[[Rng], Signal]] = {
    "SignalWindow": window, "SignalRfft": transform("SignalRfft"), "SignalIrfft": transform("SignalIrfft"),
    "SignalFftAutoScale": auto_scale, "SignalEnergy": energy, "SignalFilterBank": filter_bank,
    "SignalFilterBankSquareRoot": square_root, "SignalFilterBankSpectralSubtraction": spectral_subtraction,
    "SignalPCAN": pcan, "SignalFilterBankLog": logarithm, "SignalDelay": delay, "SignalFramer": framer,
    "SignalStacker": stacker, "SignalOverlapAdd": overlap_add, "CIRCULAR_BUFFER": circular_buffer,
}  # fmt: skip


def make_signal(code: str, seed: int) -> Signal:
    """Return the case of an operator that a seed stands for."""
    return MAKERS[code](np.random.default_rng([zlib.crc32(code.encode()), seed]))

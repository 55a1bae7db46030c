"""More layers for scripts/cost_layers.py: of first networks of small chips, and of sizes that few were measured of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cost_sample import LATER, PLAIN, SAME, Sample, conv

_MACS, _FLOAT_MACS = (400_000, 2_400_000), (60_000, 300_000)  # of a layer: all are measured, and one in _ONE_IN
_ONE_IN = 4


def small_chips() -> Iterator[Sample]:
    """Yield what the first networks of small chips have most of their time in, and what few sizes of were measured."""
    yield from _few_rows()
    yield from _first_layers()
    yield from _points()
    yield from _more_shifted()
    yield from _halving_pools()
    yield from _signed()
    yield from _sparse()
    yield from _averages()


def measured_on(features: Collection[str], samples: Sequence[Sample]) -> list[Sample]:
    """Return the layers that a CPU with these features is measured with: on a slow one few large layers.

    Without FPU a float layer takes a hundred times the instructions, with 16-bit instructions alone any layer several
    times; such chips have no cache that tells sizes apart. Which functions are part of others matters more there.
    """
    if "softfloat" not in features:
        return [sample for sample in samples if not (sample.signed or sample.sparse)]  # floats take the same time
    found, large = list[Sample](), 0
    for sample in samples:
        is_float = sample.kind.endswith("_f32")
        few, most = _FLOAT_MACS if is_float else _MACS
        if sample.macs <= few or not (is_float or "thumb1" in features):
            found.append(sample)
        elif sample.macs <= most:
            large += 1
            found += [sample] if large % _ONE_IN == 0 else []
    return sorted(found, key=lambda sample: sample.kind)  # as in networks, most layers of a program are of one kind


def measured_alone(features: Collection[str]) -> list[Sample]:
    """Return the layers that a CPU with these features is also measured with in a program of their own.

    Compilers make functions that are called once part of others, which may save a tenth of the cycles.
    """
    sizes = (
        (25, 5, 64, 1), (24, 24, 8, 1), (12, 12, 32, 1), (20, 20, 16, 1), (10, 10, 48, 1), (16, 16, 24, 2),
        (7, 7, 64, 1), (13, 5, 40, 1), (30, 6, 32, 1),
    )  # fmt: skip
    if "softfloat" not in features:
        return []
    windows = [
        Sample(kind, (h, w, c), c, (3, 3), stride, SAME if stride == 1 else LATER, planar=kind.endswith("rs"))
        for kind in ("dwconv", "dwconvrs") for h, w, c, stride in sizes
    ]  # fmt: skip
    dense = ((2700, 10), (1200, 12), (600, 8), (64, 10), (128, 32), (256, 10), (400, 20), (2000, 10), (3600, 10))
    return [*windows, *(Sample("fc", (n,), out_n) for n, out_n in dense)]


def _few_rows() -> Iterator[Sample]:
    """Yield products of one row or few, dense layers of few numbers, and long ones of few outputs."""
    for heads, m, k, n in (
        (4, 1, 16, 24), (4, 1, 24, 16), (2, 1, 24, 20), (1, 1, 64, 24), (8, 1, 8, 40), (2, 2, 16, 48), (1, 3, 40, 10),
        (4, 1, 48, 12), (1, 1, 96, 50), (2, 1, 30, 17), (3, 4, 20, 24), (2, 1, 32, 40),
    ):  # fmt: skip
        yield from (Sample(kind, (m, k, n), heads) for kind in ("matmul", "matmult", "matmul_f32"))
    for n, out_n in (
        (1, 8), (1, 10), (1, 32), (2, 12), (3, 8), (4, 16), (6, 6), (8, 16), (10, 20), (14, 14), (16, 8), (20, 12),
        (24, 16), (8, 1), (10, 1), (24, 1), (32, 1), (9, 3), (18, 2), (5, 4), (10, 16), (14, 16), (20, 1), (1, 20),
    ):  # fmt: skip
        yield from (Sample(kind, (n,), out_n) for kind in ("fc", "fc_f32"))
    for n, out_n in (
        (1500, 10), (2000, 10), (3000, 12), (1000, 6), (600, 10), (900, 3), (2500, 20), (350, 26), (1200, 40),
        (1152, 10), (500, 10), (2700, 10), (3300, 8),
    ):  # fmt: skip
        yield from (Sample("fc", (n,), out_n, wide=wide) for wide in (False, True))
    yield from (Sample("fc", shape[:1], shape[1]) for shape in ((160, 160), (200, 64), (320, 96), (64, 320), (48, 200)))


def _first_layers() -> Iterator[Sample]:
    """Yield convolutions of images of one or three channels, with narrow and wide weights."""
    for h, w, c, out_c, k, stride, pads in (
        (26, 26, 3, 16, (3, 3), 1, SAME), (30, 30, 3, 12, (3, 3), 2, LATER), (20, 24, 3, 24, (3, 3), 1, SAME),
        (26, 26, 1, 16, (3, 3), 1, SAME), (20, 20, 1, 12, (3, 3), 1, PLAIN), (24, 24, 1, 10, (5, 5), 1, PLAIN),
        (20, 20, 3, 20, (5, 5), 2, (1, 1, 2, 2)), (36, 36, 3, 8, (3, 3), 2, LATER),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads)
        yield from conv(h, w, c, out_c, k=k, stride=stride, pads=pads, planar=True)
    for h, w, out_c, k in ((40, 32, 12, (8, 8)), (30, 24, 16, (8, 8)), (32, 24, 8, (6, 6)), (40, 20, 24, (8, 6))):
        yield Sample("conv", (h, w, 1), out_c, k, 1, tuple((n - 1) // 2 for n in k) + tuple(n // 2 for n in k))


def _points() -> Iterator[Sample]:
    """Yield convolutions of pixels and windows with a stride, with narrow and wide weights."""
    for h, w, c, out_c, stride in (
        (16, 16, 24, 48, 2), (12, 12, 32, 64, 2), (20, 20, 16, 40, 1), (8, 8, 48, 32, 1), (10, 10, 64, 96, 2),
        (14, 14, 32, 20, 2), (6, 6, 96, 24, 1), (9, 9, 40, 30, 1), (24, 24, 16, 24, 2),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, stride=stride)
    for h, w, c, out_c, size, stride, pads in (
        (16, 16, 20, 20, 3, 1, SAME), (14, 14, 16, 24, 3, 2, LATER), (10, 10, 24, 40, 3, 1, SAME),
        (18, 18, 16, 32, 3, 2, LATER), (14, 14, 32, 24, 5, 2, (1, 1, 2, 2)), (10, 10, 24, 48, 5, 2, (1, 1, 2, 2)),
        (12, 12, 32, 32, 3, 2, SAME), (18, 18, 16, 16, 3, 1, SAME),
    ):  # fmt: skip
        yield from conv(h, w, c, out_c, k=(size, size), stride=stride, pads=pads)


def _more_shifted() -> Iterator[Sample]:
    """Yield more layers whose sums are multiplied by an integer and shifted, of images of one or three channels too."""
    for h, w, c, out_c, k, stride, pads in (
        (14, 14, 32, 32, 3, 1, SAME), (12, 12, 24, 24, 3, 1, SAME), (24, 24, 12, 16, 3, 1, SAME),
        (8, 8, 48, 64, 3, 1, SAME), (16, 16, 24, 48, 3, 2, SAME), (12, 12, 32, 64, 3, 2, SAME),
        (20, 20, 16, 24, 3, 2, SAME), (24, 24, 16, 32, 1, 2, PLAIN), (28, 28, 12, 24, 1, 2, PLAIN),
        (12, 12, 24, 48, 1, 2, PLAIN), (16, 16, 48, 64, 1, 2, PLAIN), (24, 6, 48, 64, 1, 1, PLAIN),
        (12, 12, 64, 64, 1, 1, PLAIN), (16, 10, 32, 48, 1, 1, PLAIN), (24, 24, 16, 16, 3, 1, SAME),
    ):  # fmt: skip
        yield Sample("convrs", (h, w, c), out_c, (k, k), stride, pads, planar=True)
    for h, w, c, stride in (
        (20, 6, 64, 1), (12, 12, 32, 1), (8, 8, 24, 2), (10, 10, 12, 1), (16, 16, 16, 2), (5, 5, 96, 1),
        (13, 5, 64, 1), (30, 6, 40, 1), (16, 4, 48, 1), (10, 3, 96, 1), (20, 8, 24, 1), (28, 5, 48, 1),
    ):  # fmt: skip
        yield Sample("dwconvrs", (h, w, c), c, (3, 3), stride, SAME, planar=True)
    for h, w, c, out_c in ((25, 4, 48, 64), (16, 5, 64, 48), (10, 10, 48, 32), (30, 5, 32, 64), (12, 6, 96, 64)):
        yield from (Sample("convrs", (h, w, c), out_c, planar=planar) for planar in (False, True))
    for h, w, c, out_c, k, stride, pads in (
        (28, 28, 3, 12, (3, 3), 1, SAME), (20, 20, 3, 24, (3, 3), 1, SAME), (24, 24, 3, 32, (3, 3), 2, SAME),
        (40, 12, 1, 48, (10, 4), 2, PLAIN), (30, 10, 1, 64, (8, 4), 2, PLAIN), (25, 20, 1, 40, (5, 5), 2, PLAIN),
        (32, 16, 1, 24, (8, 8), 2, PLAIN), (24, 24, 3, 16, (3, 3), 1, SAME),
    ):  # fmt: skip
        yield Sample("convrs", (h, w, c), out_c, k, stride, pads, planar=True)


def _halving_pools() -> Iterator[Sample]:
    """Yield pools of two by two, and of whole images."""
    for h, w, c in ((28, 28, 12), (20, 20, 16), (40, 32, 8), (16, 16, 24), (20, 16, 12), (14, 10, 16), (30, 20, 20)):
        yield from (Sample(kind, (h, w, c), 0, (2, 2), 2) for kind in ("max_pool", "avg_pool"))
    for h, w, c in ((10, 4, 64), (16, 8, 48), (8, 8, 32), (7, 5, 96), (12, 5, 64), (10, 10, 64)):
        yield from (Sample(kind, (h, w, c), 0, (h, w), h) for kind in ("max_pool", "avg_pool"))


def _signed() -> Iterator[Sample]:
    """Yield weighted layers of floats that no ReLU came before: functions of floats are slower for them."""
    for h, w, c, out_c, k, stride, pads in (
        (14, 14, 3, 8, (3, 3), 1, SAME), (20, 20, 3, 6, (3, 3), 2, LATER), (12, 10, 1, 12, (3, 3), 1, SAME),
        (8, 8, 16, 8, (1, 1), 1, PLAIN), (6, 6, 32, 16, (1, 1), 1, PLAIN), (1, 20, 10, 16, (1, 5), 1, (0, 2, 0, 2)),
        (10, 10, 8, 8, (3, 3), 1, SAME), (16, 12, 3, 16, (3, 3), 1, SAME), (14, 14, 1, 8, (5, 5), 1, PLAIN),
        (8, 8, 12, 20, (3, 3), 2, LATER),
    ):  # fmt: skip
        for planar in sorted({False, c == 3}):
            yield Sample("conv_f32", (h, w, c), out_c, k, stride, pads, planar=planar, signed=True)
    for h, w, c, out_c, k, stride, pads in (
        (20, 10, 1, 16, (10, 4), 2, (4, 1, 5, 1)), (12, 12, 3, 8, (3, 3), 1, SAME), (14, 14, 1, 8, (5, 5), 1, PLAIN),
        (8, 6, 16, 24, (1, 1), 1, PLAIN), (20, 8, 1, 24, (8, 4), 2, PLAIN), (8, 8, 8, 12, (3, 3), 1, SAME),
    ):  # fmt: skip
        yield Sample("convw8_f32", (h, w, c), out_c, k, stride, pads, signed=True)
    for h, w, c in ((10, 10, 8), (6, 6, 24), (8, 8, 16), (5, 5, 12)):
        yield Sample("dwconv_f32", (h, w, c), c, (3, 3), 1, SAME, signed=True)
    for hwc, out_n in (
        ((640,), 20), ((64,), 32), ((100,), 30), ((1,), 16), ((16,), 1), ((16,), 16), ((4, 64), 64), ((8, 64), 32),
        ((2, 128), 64), ((3, 200), 30), ((200,), 40), ((4, 32), 128), ((16, 32), 32), ((400,), 64),
    ):  # fmt: skip
        yield Sample("fc_f32", hwc, out_n, signed=True)


def _sparse() -> Iterator[Sample]:
    """Yield weighted layers of floats that are mostly zeros: functions of floats are faster at them."""
    for h, w, c, out_c, k, stride, pads in (
        (6, 6, 32, 24, (1, 1), 1, PLAIN), (10, 10, 16, 16, (1, 1), 1, PLAIN), (3, 3, 96, 40, (1, 1), 1, PLAIN),
        (8, 8, 16, 12, (3, 3), 1, SAME), (6, 6, 24, 32, (3, 3), 1, SAME), (12, 12, 8, 16, (3, 3), 2, LATER),
        (10, 8, 12, 8, (5, 5), 1, (2, 2, 2, 2)), (5, 5, 40, 20, (1, 1), 1, PLAIN), (1, 20, 16, 12, (1, 3), 1, PLAIN),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), out_c, k, stride, pads, sparse=True) for kind in ("conv_f32", "convw8_f32"))
    for h, w, c, stride in ((6, 6, 32, 1), (12, 12, 16, 2), (8, 8, 24, 1), (5, 5, 48, 1), (10, 14, 12, 1)):
        yield Sample("dwconv_f32", (h, w, c), c, (3, 3), stride, SAME if stride == 1 else LATER, sparse=True)
    for hwc, out_n in (((64,), 32), ((200,), 30), ((32,), 64), ((400,), 20), ((16,), 16), ((128,), 12), ((4, 64), 32)):
        yield Sample("fc_f32", hwc, out_n, sparse=True)


def _averages() -> Iterator[Sample]:
    """Yield averages whose codes have other scales than those that they are of."""
    for h, w, c, size, stride in (
        (24, 20, 12, 2, 2), (12, 10, 16, 2, 2), (16, 16, 8, 2, 2), (20, 20, 16, 2, 2), (14, 14, 24, 2, 2),
        (28, 20, 8, 2, 2), (10, 10, 32, 2, 2), (15, 15, 12, 3, 2), (10, 8, 24, 3, 1), (8, 8, 32, 8, 8),
        (25, 5, 32, 5, 5),
    ):  # fmt: skip
        yield from (Sample(kind, (h, w, c), 0, (size, size), stride) for kind in ("avg_pool_any", "avg_pool_low"))

"""How a convolution on Helium reads the inputs of a pixel, and what it keeps in the scratch."""

from __future__ import annotations

from dataclasses import dataclass

from glowc.kernels.common.constants import LayerPlan
from glowc.kernels.common.header_numbers import header_number
from glowc.kernels.common.windows import is_point
from glowc.kernels.mve.dot_tile import Dot
from glowc.kernels.mve.pair_tile import Run, Unrolled
from glowc.kernels.mve.shared import GROUP, in_blocks, is_clamped
from glowc.kernels.mve.stream import VECTOR, end_bytes
from glowc.kernels.shapes import Conv
from glowc.program.ir import Instr

_PADDING = 128  # bytes of zeros that a layer may spend on whole vectors
_GATHERED = 256  # inputs of a pixel that a table of offsets serves
_RUN_INPUTS = (8, 16, 32)  # of a pixel in place, which a Run takes
_RUN_PIXELS = 8  # fewer in a row are not worth the start of glow_mve_run
_UNROLLED_INPUTS = range(36, 117, 4)  # words, in reach of the offsets of loads
_SEGMENT = 128  # inputs, in reach of the offsets of loads
_PIECES, _WHOLE_PIECES = 12, 6  # for which code is printed: of rows, of rows of whole vectors
_UNROLLED_WORTH, _WINDOW_WORTH = 400, 200  # pairs of pixels times groups of channels for which code is printed
_MOST_PIXELS = 32  # that are gathered before they are multiplied
_PACKED_PIXELS = 6  # fewer are multiplied faster as pairs


def _step_bytes() -> int:
    """Return the bytes of glow_mve_step_t."""
    return header_number("glow_mve_dot.h", "GLOW_MVE_STEP_BYTES")


def _segments() -> int:
    """Return the most kernel rows that are read in place."""
    return header_number("glow_mve_dot.h", "GLOW_MVE_SEGMENTS")


def _runs() -> range:
    """Return the inputs of a gathered pixel which code multiplies; of the fewest it is for others."""
    fewest, most = (header_number("glow_mve_run.h", f"GLOW_MVE_RUN_{name}") for name in ("FEWEST", "MOST"))
    return range(2 * fewest, most + 1, fewest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(LayerPlan):
    """How a convolution reads the inputs of a pixel. Biases and scales are in the stream of weights.

    `end`: by which functions sums become codes (`stream.end_of`); `run`, `code`: what multiplies, if it is printed.
    With `reads_weights_once` some output channels of all pixels are computed before the next ones, where no output lies
    over an input.
    """

    end: str
    run: Run | None = None
    code: Unrolled | None = None
    reads_weights_once: bool = False

    @property
    def ends_bytes(self) -> int:
        """The bytes of biases and ends of four output channels."""
        return end_bytes(self.end)

    @property
    def dots(self) -> tuple[Dot, Dot]:
        """The functions for two pixels and for one that follow a list of steps."""
        return Dot(2, self.end), Dot(1, self.end)

    def scratch_bytes(self, _: Conv) -> int:
        """Return the bytes of scratch."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan(ConvPlan):
    """A pixel's inputs in place, by `run` for all pixels of a row, per group of outputs.

    `merged`: rows are one, whose pixels are adjacent; as many at once as have outputs apart from their inputs.
    """

    path: str = "run"
    merged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPlan(ConvPlan):
    """A pixel's inputs in place, for all outputs of two pixels; `merged`: rows are one, whose pixels are adjacent."""

    path: str = "point"
    merged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrolledPlan(ConvPlan):
    """As PointPlan, by `code` for the number of inputs."""

    path: str = "unrolled"
    merged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan(ConvPlan):
    """Rows of a window in place, by `code`; at the edges of the image through the scratch."""

    path: str = "window"

    def scratch_bytes(self, shape: Conv) -> int:
        """Return the bytes of two pixels."""
        return 2 * _vectors(shape.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsPlan(ConvPlan):
    """Two pixels of inputs in the scratch, which a list of `steps` steps reads, the last `two` those of both.

    `listed`: the steps are after them in the scratch, else on the stack.
    """

    steps: int
    two: int
    listed: bool

    @property
    def lists_steps(self) -> bool:
        """True when the steps are in the scratch."""
        return self.listed

    @property
    def lead(self) -> int:
        """Steps before those of copied pixels."""
        return self.steps - self.two

    @property
    def step_bytes(self) -> int:
        """Bytes of steps in the scratch."""
        return _step_bytes() * self.steps if self.listed else 0

    @property
    def table_bytes(self) -> int:
        """Bytes of a table in the scratch, between the pixels and the steps."""
        return 0

    def scratch_bytes(self, shape: Conv) -> int:
        """Return the bytes of two pixels, of a table and of steps."""
        return 2 * _vectors(shape.inputs) + self.table_bytes + self.step_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRowsPlan(StepsPlan):
    """Rows of a window in place; at the edges of the image through the scratch."""

    path: str = "rows"

    @property
    def reads_in_place(self) -> bool:
        """True: only the edges go through the scratch."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesPlan(StepsPlan):
    """The inputs of two pixels are copied byte by byte, or by the `tap` bytes of a pixel."""

    path: str = "any"
    tap: int = 0


def _groups(taps: int) -> int:
    return -(-taps // 8)


def table_bytes(taps: int) -> int:
    """Return the bytes of a table of offsets, rows and columns of so many inputs."""
    return 32 * _groups(taps)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherPlan(StepsPlan):
    """The `taps` inputs of two pixels are gathered by a table of offsets; `held` are multiplied, zeros after them.

    The table is in the scratch (`table_in_scratch`), or a constant, in the operand `biases`.
    """

    path: str = "gather"
    taps: int
    held: int
    table_in_scratch: bool

    @property
    def table_bytes(self) -> int:
        """Bytes of a table in the scratch, between the pixels and the steps."""
        return table_bytes(self.taps) if self.table_in_scratch else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPlan(ConvPlan):
    """The `taps` inputs of `pixels` pixels, `pitch` bytes apart, are gathered, then multiplied by `run`, or `code`.

    Of each pixel `held` are multiplied, zeros after the others. The table of offsets is in the scratch after the
    pixels (`table_in_scratch`), or a constant, in the operand `biases`.
    """

    path: str = "packed"
    taps: int
    held: int
    pitch: int
    pixels: int
    table_in_scratch: bool

    @property
    def groups(self) -> int:
        """Eight inputs each, which are gathered together."""
        return _groups(self.taps)

    @property
    def pixel_bytes(self) -> int:
        """Bytes of the pixels."""
        return self.pixels * self.pitch

    def scratch_bytes(self, _: Conv) -> int:
        """Return the bytes of pixels and of a table."""
        return self.pixel_bytes + (table_bytes(self.taps) if self.table_in_scratch else 0)


def choose_plan(instr: Instr, end: str) -> ConvPlan:
    """Choose how the inputs of a pixel are read."""
    shape = Conv.of(instr)
    dense = shape.in_ch == 1 and shape.in_col == shape.in_c and (shape.dil_w == 1 or shape.k_w == 1)
    clamped = is_clamped(instr)
    if dense and shape.k_h <= _segments() and (shape.k_w * shape.in_c >= VECTOR or shape.k_h == 1):
        if is_point(shape):
            return _in_place(shape, end, clamped=clamped)
        return _window(shape, end, clamped=clamped) or _rows(shape, end)
    if not _has_table(shape):
        tap = shape.in_c if shape.in_ch == 1 and shape.in_c >= VECTOR // 2 else 0
        return BytesPlan(end=end, steps=4, two=4, listed=_fits(shape, 4), tap=tap)
    return _packed(shape, end, clamped=clamped) or _gathered(shape, end)


def _in_place(shape: Conv, end: str, *, clamped: bool) -> ConvPlan:
    adjacent = shape.stride_h == shape.stride_w == 1
    if adjacent and shape.in_c in _RUN_INPUTS and shape.out_w >= _RUN_PIXELS:
        run = Run(inputs=shape.in_c, end=end, clamped=clamped)
        return RunPlan(end=end, run=run, merged=rows_are_one(shape))
    if code := _unrolled(shape, end, clamped=clamped):
        return UnrolledPlan(end=end, code=code, merged=rows_are_one(shape))
    return PointPlan(end=end, merged=rows_are_one(shape), reads_weights_once=_once(shape, end))


def _unrolled(shape: Conv, end: str, *, clamped: bool) -> Unrolled | None:
    """Return code for a pixel's number of inputs, if it is possible and worth its bytes."""
    possible = end == "scaled" and shape.inputs in _UNROLLED_INPUTS and _is_few(shape, 1)
    return Unrolled(run=shape.inputs, clamped=clamped) if possible and _uses(shape) >= _UNROLLED_WORTH else None


def _window(shape: Conv, end: str, *, clamped: bool) -> WindowPlan | None:
    """Return the plan of rows of windows in place, if code for them is possible and worth its bytes.

    Many whole vectors, one after another, WindowRowsPlan takes as fast.
    """
    code = Unrolled(segments=shape.k_h, run=shape.k_w * shape.in_c, clamped=clamped)
    possible = (
        end == "scaled" and code.run % GROUP == 0 and VECTOR <= code.run <= _SEGMENT and _is_few(shape, shape.k_h)
    )
    if not possible or _uses(shape) < _WINDOW_WORTH:
        return None
    pieces = len(code.cuts)
    fits = 1 < pieces <= (_PIECES if code.tail else _WHOLE_PIECES) and code.cuts[1][1] == VECTOR
    return WindowPlan(end=end, code=code) if fits else None


def _is_few(shape: Conv, segments: int) -> bool:
    """Say whether the code takes so many groups of output channels, and segments of inputs."""
    groups, most = (header_number("glow_mve_point.h", f"GLOW_MVE_POINT_{name}") for name in ("GROUPS", "SEGMENTS"))
    return -(-shape.out_c // GROUP) <= groups and segments <= most


def _uses(shape: Conv) -> int:
    """Return the pairs of pixels times the groups of output channels."""
    return shape.out_h * shape.out_w // 2 * -(-shape.out_c // GROUP)


def rows_are_one(shape: Conv) -> bool:
    """Say whether the pixels of all rows follow each other, and those of the output, with nothing in rings.

    The last pixel of a row goes with the first of the next, whose output must not lie on the inputs of the other.
    """
    s = shape
    adjacent = s.stride_h == s.stride_w == 1 and s.in_col == s.in_c
    whole = adjacent and s.in_row == s.in_w * s.in_c and s.out_row == s.out_w * s.out_c
    unrung = s.in_ring >= s.in_h and s.out_ring >= s.out_h and s.descending == 0
    return whole and unrung and s.out_c <= (s.in_w - 1) * s.in_c


def _rows(shape: Conv, end: str) -> ConvPlan:
    k_h = shape.k_h
    whole = shape.k_w * shape.in_c % VECTOR == 0
    steps, two = (2 * k_h + 6, 4) if whole else (6 * k_h + 4, 3 * k_h + 2)
    return WindowRowsPlan(
        end=end, steps=steps, two=two, listed=_fits(shape, steps), reads_weights_once=_once(shape, end)
    )


def _once(shape: Conv, end: str) -> bool:
    return in_blocks(GROUP * shape.inputs + end_bytes(end), shape.out_c, shape.out_h * shape.out_w)


def _has_table(shape: Conv) -> bool:
    """Say whether the offsets of few inputs fit 16 bits, and rows and columns of the window a byte."""
    s = shape
    spans = (s.k_h - 1) * s.dil_h, (s.k_w - 1) * s.dil_w
    reach = spans[0] * s.in_row + spans[1] * s.in_col + (s.in_c - 1) * s.in_ch
    near = s.inputs <= _GATHERED and reach < 1 << 16
    return near and max(spans) < 1 << 8 and max(s.in_h, s.in_w) < 1 << 15


def _packed(shape: Conv, end: str, *, clamped: bool) -> ConvPlan | None:
    """Return the plan of the least `held` that wastes little and leaves room for enough pixels."""
    taps = shape.inputs
    if taps <= _runs()[-1] and (code := _unrolled(shape, end, clamped=clamped)):
        pixels, in_scratch = _gathered_pixels(shape, taps)
        return PackedPlan(
            end=end, code=code, taps=taps, held=taps, pitch=_vectors(taps), pixels=pixels, table_in_scratch=in_scratch
        )
    for held in (h for h in _runs() if taps <= h and (h - taps) * shape.out_c <= _PADDING):
        pixels, in_scratch = _gathered_pixels(shape, held)
        if pixels >= _PACKED_PIXELS:
            return PackedPlan(
                end=end, run=Run(inputs=held, end=end, clamped=clamped), taps=taps, held=held, pitch=_vectors(held),
                pixels=pixels, table_in_scratch=in_scratch,
            )  # fmt: skip
    return None


def _gathered_pixels(shape: Conv, held: int) -> tuple[int, bool]:
    """Return how many pixels have room, and whether the table has, too."""
    for table in (table_bytes(shape.inputs), 0):
        pixels = min((_room(shape) - table) // _vectors(held), _MOST_PIXELS) // 2 * 2
        if pixels >= _PACKED_PIXELS:
            break
    return max(pixels, 2), table > 0


def _gathered(shape: Conv, end: str) -> ConvPlan:
    taps = shape.inputs
    padding, table = -taps % VECTOR, table_bytes(taps)
    held = taps + (padding if padding * shape.out_c <= _PADDING else 0)
    in_scratch = 2 * _vectors(taps) + table <= _room(shape)
    listed = _fits(shape, 4, table if in_scratch else 0)
    return GatherPlan(end=end, steps=4, two=4, listed=listed, taps=taps, held=held, table_in_scratch=in_scratch)


def _fits(shape: Conv, steps: int, more: int = 0) -> bool:
    """Say whether steps have room after two pixels and `more` bytes."""
    return 2 * _vectors(shape.inputs) + more + _step_bytes() * steps <= _room(shape)


def _room(shape: Conv) -> int:
    """Bytes that a convolution may take of the arena: three rows of its input or the inputs of two pixels."""
    return max(3 * shape.in_w * shape.in_c, 2 * _vectors(shape.inputs))


def _vectors(count: int) -> int:
    return -(-count // VECTOR) * VECTOR

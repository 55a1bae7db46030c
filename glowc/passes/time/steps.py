"""Time axes of values that arrive step by step, and what a window that slides along time needs of the past.

`Steps` describes a value of which each inference computes only the newest steps. The arithmetic is that of one axis;
which operator has which axis is in `time_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Steps:
    """The time axis of a value that is computed step by step.

    `length` steps belong to a whole window, an inference computes the `new` ones, `stride` input steps stand for one.
    The first `seen` steps of a whole window see padding of layer `pad_from`. The last `late` steps would see padding
    after the window, of layer `late_from`: they are never computed, and a Slice has to cut them off. `offset` input
    steps before the first one are a part of step 0. `memory` says that a recurrent layer stands before.
    """

    axis: int
    length: int
    new: int
    stride: int = 1
    seen: int = 0
    pad_from: str = ""
    late: int = 0
    late_from: str = ""
    offset: int = 0
    memory: bool = False

    @property
    def whole(self) -> bool:
        """True when an inference computes all steps of the window, as a whole-window inference does."""
        return self.new == self.length and self.seen == 0 and self.late == 0

    def same_pace(self, other: Steps) -> bool:
        """True when the two values bring the same steps at each inference."""
        return (self.length, self.new, self.stride, self.late) == (other.length, other.new, other.stride, other.late)


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, stride and padding of an operator along time; `kernel` counts the steps from first to last tap."""

    kernel: int
    stride: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Slide:
    """How a window moves over its input: `keep` older steps in front of the new ones (negative: new ones left out)."""

    keep: int
    out: Steps


def slide(x: Steps, w: Window, out_length: int, label: str) -> Slide | None:
    """Return how window `w` moves over `x`, None where all of its outputs are computed each time.

    The newest output ends at the newest step, but for steps that the whole window leaves unused, too. `w.stride`
    has to divide `x.new`.
    """
    unpadded = (x.length + w.begin - w.kernel) // w.stride + 1
    new = max(1, x.new // w.stride)
    if unpadded < 1 or new > unpadded or (new == unpadded and w.begin == 0):
        return None
    unused = x.length + w.begin - ((unpadded - 1) * w.stride + w.kernel)
    keep = w.kernel - w.stride + unused
    late = out_length - unpadded
    seen = min(unpadded, -(-(x.seen + w.begin) // w.stride))
    out = replace(
        x, length=out_length, new=new, stride=x.stride * w.stride, seen=seen,
        pad_from=(x.pad_from or label) if seen else "", late=late, late_from=label if late else "",
        offset=x.offset + (keep - w.begin) * x.stride,
    )  # fmt: skip
    return Slide(keep, out)


def merge(values: list[Steps]) -> Steps | None:
    """Return the steps of an elementwise result, None when the operands do not go along time together."""
    first = values[0]
    if not all(first.same_pace(v) and v.axis == first.axis for v in values):
        return None
    padded = max(values, key=lambda v: v.seen)
    return replace(
        first, seen=padded.seen, pad_from=padded.pad_from, offset=max(v.offset for v in values),
        memory=any(v.memory for v in values),
    )  # fmt: skip

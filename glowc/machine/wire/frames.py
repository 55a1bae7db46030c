"""Frames of the line: consistent overhead byte stuffing, a sequence number, a length, CRC-32.

Source: S. Cheshire, M. Baker: Consistent Overhead Byte Stuffing, IEEE/ACM Transactions on Networking 7(2), 1999. A zero
byte ends a frame and is nowhere inside; little endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = struct.Struct("<BHH")
_CRC = struct.Struct("<I")
_LONGEST_RUN = 254
MOST_BYTES = 1 << 17  # of a frame: more without an end is noise


@dataclass(frozen=True, slots=True)
class Frame:
    """A request or an answer; `sequence` has 16 bits."""

    kind: int
    sequence: int
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return the bytes on the line, a zero before and after."""
        head = _HEAD.pack(self.kind, self.sequence, len(self.data)) + self.data
        return b"\0" + stuffed(head + _CRC.pack(zlib.crc32(head))) + b"\0"


def stuffed(data: bytes) -> bytes:
    """Return data without zeros: runs, each after one more than its length."""
    result = bytearray()
    for part in data.split(b"\0"):
        whole = len(part) // _LONGEST_RUN
        for i in range(whole):
            result += b"\xff" + part[i * _LONGEST_RUN : (i + 1) * _LONGEST_RUN]
        rest = part[whole * _LONGEST_RUN :]
        result += bytes([len(rest) + 1]) + rest
    return bytes(result)


def unstuffed(data: bytes) -> bytes:
    """Return what `stuffed` was given. ValueError when it gave nothing like that."""
    result, position = bytearray(), 0
    while position < len(data):
        code = data[position]
        run = data[position + 1 : position + code]
        if code == 0 or len(run) != code - 1:
            raise ValueError("a run goes beyond the frame")
        result += run
        position += code
        if code <= _LONGEST_RUN and position < len(data):
            result.append(0)
    return bytes(result)


def decoded(data: bytes) -> Frame | None:
    """Return the frame between two zeros, None when it is damaged."""
    try:
        frame = unstuffed(data)
        kind, sequence, length = _HEAD.unpack_from(frame)
        (crc,) = _CRC.unpack_from(frame, _HEAD.size + length)
    except (ValueError, struct.error):
        return None
    inside = frame[: _HEAD.size + length]
    whole = len(frame) == len(inside) + _CRC.size and zlib.crc32(inside) == crc
    return Frame(kind, sequence, inside[_HEAD.size :]) if whole else None


class Receiver:
    """Bytes that come in, as frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def frames(self, data: bytes) -> Iterator[Frame | None]:
        """Yield the frames that `data` completes; None stands for a damaged one."""
        self._bytes += data
        while (end := self._bytes.find(0)) >= 0:
            inside = bytes(self._bytes[:end])
            del self._bytes[: end + 1]
            if inside:
                yield decoded(inside)
        if len(self._bytes) > MOST_BYTES:
            self._bytes.clear()

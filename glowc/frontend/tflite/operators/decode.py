"""TFLM_DECODE: constants that a file holds compressed are unpacked when the model is compiled.

Pairs of inputs, codes and what describes them, whose first 16 bytes are: the kind, version 1, and from the fifth on a
version and parameters of the kind. Bits count from the highest of each byte on.

* 0, table: byte 5 holds the bits of an index in its lower three, byte 6 the entries of each channel's table.
* 1, Huffman: byte 5 holds in its lowest bit whether entries have 32 bits (else 16), in its upper four the bits of the
  first index less one. The highest bit of an entry says that it is a symbol, the next four how many bits of the last
  index belong to it; of another entry they are the bits of the next index less one, and the rest how much further on
  its table begins.
* 2, pruned: one bit an element, 1 for the next value, 0 for the zero point.

Source: tensorflow/lite/micro/kernels/decode_state*.h of TensorFlow Lite Micro. Channels are along the axis of the
result's scales, the first or the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.reader import Operator, Tensor
from glowc.graph.types import LARGEST_TENSOR_BYTES

_HEAD, _WINDOW = 16, 4
_TABLE, _HUFFMAN, _PRUNED = 0, 1, 2
_KINDS = {
    _TABLE: ("bool", "float32", "int8", "int16", "int32", "int64"), _HUFFMAN: ("int8", "int16"),
    _PRUNED: ("bool", "float32", "int8", "int16", "int32", "int64"),
}  # fmt: skip
_TOO_SHORT = "its compressed data end before the {} elements of the result"


@dataclass(frozen=True, slots=True)
class _Packed:
    """Codes and their description in bytes, and the result's tensor."""

    codes: np.ndarray
    about: np.ndarray
    out: Tensor

    @property
    def count(self) -> int:
        """Elements of the result."""
        return int(np.prod(self.out.shape, dtype=np.int64))

    def values(self, kind: np.dtype) -> np.ndarray:
        """Return what follows the head as little-endian numbers."""
        body = self.about[_HEAD:]
        whole = body[: body.size - body.size % kind.itemsize].copy()
        return whole != 0 if kind == np.bool_ else whole.view(kind.newbyteorder("<")).astype(kind)

    @property
    def channels(self) -> np.ndarray:
        """Return the channel of each element; 0 where there is one scale."""
        quant = self.out.quant
        if quant is None or len(quant.scale) == 1:
            return np.zeros(self.count, np.int64)
        last = len(self.out.shape) - 1
        if quant.axis not in (0, last):
            raise NodeError(f"scales along axis {quant.axis}; the first or the last axis is needed")
        size = self.out.shape[quant.axis]
        index = np.arange(self.count)
        return index % size if quant.axis == last else index // (self.count // size)


def _need(have: int, packed: _Packed) -> None:
    if have < packed.count:
        raise NodeError(_TOO_SHORT.format(packed.count))


def _from_table(packed: _Packed, kind: np.dtype) -> np.ndarray:
    bits, stride = int(packed.about[5]) & 7, int(packed.about[6])
    if bits == 0:
        raise NodeError("its indices have 0 bits")
    stream = np.unpackbits(packed.codes)
    _need(stream.size // bits, packed)
    places = np.left_shift(1, np.arange(bits - 1, -1, -1))
    index = stream[: packed.count * bits].reshape(-1, bits) @ places + packed.channels * stride
    table = packed.values(kind)
    if int(index.max(initial=-1)) >= table.size:
        raise NodeError(f"an index leads to entry {int(index.max())} of a table of {table.size}")
    return np.asarray(table[index])


def _pruned(packed: _Packed, kind: np.dtype) -> np.ndarray:
    stream = np.unpackbits(packed.codes)
    _need(stream.size, packed)
    given, table = stream[: packed.count] == 1, packed.values(kind)
    if int(given.sum()) > table.size:
        raise NodeError(f"{int(given.sum())} elements are not zero, but there are {table.size} values")
    points = np.asarray(packed.out.quant.zero_point if packed.out.quant is not None else (0,))
    found = points[packed.channels if points.size > 1 else np.zeros(packed.count, np.int64)].astype(kind)
    found[given] = table[: int(given.sum())]
    return np.asarray(found)


def _huffman(packed: _Packed, kind: np.dtype) -> np.ndarray:
    wide, first = bool(packed.about[5] & 1), (int(packed.about[5]) >> 4) + 1
    if not wide and kind != np.int8:
        raise NodeError(f"a table of 16 bits for {kind}; it is for int8 alone")
    table = [int(v) for v in packed.values(np.dtype(np.uint32 if wide else np.uint16))]
    top, shift = (31, 27) if wide else (15, 11)
    stream, size = packed.codes.tobytes() + bytes(_WINDOW), 8 * packed.codes.size
    at, found = 0, []
    for _ in range(packed.count):
        offset, width = 0, first
        while True:
            if at >= size:
                raise NodeError(_TOO_SHORT.format(packed.count))
            offset += _bits(stream, at, width)
            at += width
            if offset >= len(table):
                raise NodeError(f"a code leads to entry {offset} of a table of {len(table)}")
            entry = table[offset]
            if entry >> top:
                break
            offset, width = offset + (entry & ((1 << shift) - 1)), (entry >> shift & 15) + 1
        at -= max(0, width - (entry >> shift & 15))
        found.append(entry)
    mask = (1 << 8 * kind.itemsize) - 1
    return (np.asarray(found, np.int64) & mask).astype(f"uint{8 * kind.itemsize}").view(kind)


def _bits(stream: bytes, at: int, width: int) -> int:
    """Return `width` bits, at most 16, from the bit `at` on."""
    window = int.from_bytes(stream[at // 8 : at // 8 + _WINDOW], "big")
    return window >> (8 * _WINDOW - at % 8 - width) & ((1 << width) - 1)


_DECODE = {_TABLE: _from_table, _HUFFMAN: _huffman, _PRUNED: _pruned}


def _decoded(packed: _Packed) -> np.ndarray:
    if packed.about.size < _HEAD:
        raise NodeError(f"its description has {packed.about.size} bytes; {_HEAD} are the least")
    which, versions = int(packed.about[0]), (int(packed.about[1]), int(packed.about[4]))
    if which not in _DECODE:
        raise NodeError(f"compression {which} is not known", "store the constants without it")
    if versions != (1, 1):
        raise NodeError(f"versions {versions[0]} and {versions[1]} of its compression; 1 is known")
    if packed.out.kind not in _KINDS[which] or packed.count * 8 > LARGEST_TENSOR_BYTES:
        raise NodeError(f"{packed.out.kind}{list(packed.out.shape)} cannot be its result")
    return _DECODE[which](packed, np.dtype(packed.out.kind)).reshape(packed.out.shape)


def _raw(net: Net, index: int) -> np.ndarray:
    return np.frombuffer(net.need(index, "the compressed constant").tobytes(), np.uint8)


def decode(operator: Operator, net: Net) -> None:
    """Every result is a constant."""
    if len(operator.inputs) != 2 * len(operator.outputs):
        raise NodeError(f"{len(operator.inputs)} inputs for {len(operator.outputs)} results; each result needs two")
    pairs = zip(operator.inputs[0::2], operator.inputs[1::2], operator.outputs, strict=True)
    for codes, about, out in pairs:
        array = _decoded(_Packed(_raw(net, codes), _raw(net, about), net.tensor(out)))
        net.define(out, net.add_const(net.tensor(out).name, array, net.type(out)))


HANDLERS = {"TFLM_DECODE": decode}

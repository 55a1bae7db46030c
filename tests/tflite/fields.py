"""Tables of a flatbuffer and their fields in place: what a fuzzer of files clears, moves and widens.

A table begins with the distance to its list of places (vtable): two bytes for the list's size, two for the table's,
then two for the place of each field in the table, 0 for one that is absent and has its default.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import tflite  # type: ignore[import-untyped]

DEPRECATED, CUSTOM, VERSION, BUILTIN = range(4)
"""Fields of an operator code."""


@dataclass(frozen=True)
class Table:
    """A table of one kind at a position of the file."""

    kind: str
    at: int

    def places(self, data: bytes) -> int:
        """Return where its list of places begins."""
        return int(self.at - struct.unpack_from("<i", data, self.at)[0])

    def count(self, data: bytes) -> int:
        """Return how many fields the list tells about."""
        return (int(struct.unpack_from("<H", data, self.places(data))[0]) - 4) // 2

    def place(self, data: bytes, field: int) -> int:
        """Return the position of a field in the file; 0 for one that is absent."""
        if field >= self.count(data):
            return 0
        offset = int(struct.unpack_from("<H", data, self.places(data) + 4 + 2 * field)[0])
        return self.at + offset if offset else 0

    def clear(self, data: bytearray, field: int) -> None:
        """Let a field have its default, also of tables that share the list of places."""
        if field < self.count(data):
            struct.pack_into("<H", data, self.places(data) + 4 + 2 * field, 0)

    def moved(self, data: bytes, more: int) -> bytes:
        """Return the file with a list of places of the table's own at the end, of more (or fewer) fields."""
        begin, count = self.places(data), max(self.count(data) + more, 0)
        old = data[begin + 4 : begin + 4 + 2 * min(count, self.count(data))]
        head = struct.pack("<HH", 4 + 2 * count, struct.unpack_from("<H", data, begin + 2)[0])
        end = data + bytes(-len(data) % 4)
        changed = bytearray(end + head + old + bytes(2 * count - len(old)))
        struct.pack_into("<i", changed, self.at, self.at - len(end))
        return bytes(changed)


def tables(data: bytes) -> Iterator[Table]:
    """Yield the tables of a model: itself, operator codes, graphs, tensors, their quantisation, operators, options."""
    model = tflite.Model.GetRootAs(data, 0)
    yield Table("Model", model._tab.Pos)
    for i in range(model.OperatorCodesLength()):
        yield Table("OperatorCode", model.OperatorCodes(i)._tab.Pos)
    for i in range(model.BuffersLength()):
        yield Table("Buffer", model.Buffers(i)._tab.Pos)
    for g in range(model.SubgraphsLength()):
        graph = model.Subgraphs(g)
        yield Table("SubGraph", graph._tab.Pos)
        for i in range(graph.TensorsLength()):
            tensor = graph.Tensors(i)
            yield Table("Tensor", tensor._tab.Pos)
            if tensor.Quantization() is not None:
                yield Table("Quantization", tensor.Quantization()._tab.Pos)
        for i in range(graph.OperatorsLength()):
            operator = graph.Operators(i)
            yield Table("Operator", operator._tab.Pos)
            if operator.BuiltinOptions() is not None:
                yield Table("Options", operator.BuiltinOptions().Pos)

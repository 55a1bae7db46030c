"""Tables of a flatbuffer and their fields in place: what a fuzzer of files clears, moves and widens.

A table begins with the distance to its list of places (vtable): two bytes for the list's size, two for the table's,
then two for the place of each field in the table, 0 for one that is absent and has its default.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import tflite  # type: ignore[import-untyped]

from glowc.errors import GlowcError, InternalError
from glowc.frontend.tflite.reader import read_tflite
from tests.tflite.cases import MAKERS, Case, make_case
from tests.tflite.compare import difference, lowered
from tests.tflite.runtime import Runtime, RuntimeRefusalError

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


Change = Callable[[bytes, random.Random], bytes]
_CODES = (DEPRECATED, BUILTIN)


def _one(data: bytes, dice: random.Random, *kinds: str) -> Table:
    found = [table for table in tables(data) if not kinds or table.kind in kinds]
    return dice.choice(found or list(tables(data)))


def clear_a_field(data: bytes, dice: random.Random) -> bytes:
    """Let a field of some table be absent."""
    changed, table = bytearray(data), _one(data, dice)
    table.clear(changed, dice.randrange(max(table.count(data), 1)))
    return bytes(changed)


def clear_a_code(data: bytes, dice: random.Random) -> bytes:
    """Let an operator code stand in one of its two fields."""
    changed = bytearray(data)
    _one(data, dice, "OperatorCode").clear(changed, dice.choice(_CODES))
    return bytes(changed)


def other_codes(data: bytes, dice: random.Random) -> bytes:
    """Set one of the two fields of an operator code to the placeholder, to a smaller number or below 0."""
    changed, table = bytearray(data), _one(data, dice, "OperatorCode")
    field = dice.choice(_CODES)
    place = table.place(data, field)
    if place:
        form, wide = ("<b", 127) if field == DEPRECATED else ("<i", 1 << 31)
        struct.pack_into(form, changed, place, dice.choice((0, 1, -1, 127, -wide + 1)))
    return bytes(changed)


def shorter_list(data: bytes, dice: random.Random) -> bytes:
    """Let a table know fewer fields, as files of older schemas do."""
    return _one(data, dice).moved(data, -dice.randint(1, 3))


def longer_list(data: bytes, dice: random.Random) -> bytes:
    """Let a table know of fields that the schema does not, as files of newer ones do."""
    return _one(data, dice).moved(data, dice.randint(1, 4))


def swap_fields(data: bytes, dice: random.Random) -> bytes:
    """Exchange two options of an operator, or two fields of a quantisation, by their places."""
    table = _one(data, dice, "Options", "Quantization")
    data = table.moved(data, 0)
    changed, begin, count = bytearray(data), table.places(data), table.count(data)
    if count > 1:
        a, b = (begin + 4 + 2 * dice.randrange(count) for _ in range(2))
        changed[a : a + 2], changed[b : b + 2] = changed[b : b + 2], changed[a : a + 2]
    return bytes(changed)


def all_written(data: bytes, _: random.Random) -> bytes:
    """Write the file anew with every field that has its default."""
    return _again(data, defaults=True)


def none_written(data: bytes, _: random.Random) -> bytes:
    """Write the file anew without fields that have their defaults, lists without entries among them."""
    return _again(data, defaults=False)


def _again(data: bytes, *, defaults: bool) -> bytes:
    import flatbuffers  # type: ignore[import-untyped]
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    builder = flatbuffers.Builder(1024)
    builder.ForceDefaults(defaults)
    builder.Finish(schema.ModelT.InitFromPackedBuf(data, 0).Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


CHANGES: Sequence[Change] = (
    clear_a_field, clear_a_field, clear_a_code, other_codes, shorter_list, longer_list, swap_fields, all_written,
    none_written,
)  # fmt: skip
_UNREADABLE = (struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError)
_UNDEFINED = frozenset({"SPACE_TO_BATCH_ND"})
"""The runtime fills in what its memory holds."""
EQUAL, REFUSED, UNKNOWN, DIFFERENT, BROKEN = (
    "equal", "refused by both or by glowc", "refused by the runtime", "different", "an error that is no message",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of the file of a seed."""

    seed: int
    kind: str
    text: str = ""


def of_seed(seed: int) -> tuple[str, bytes, Case]:
    """Return what was changed, the changed file and the case that it was made of."""
    dice, codes = random.Random(seed), sorted(set(MAKERS) - _UNDEFINED)
    case = make_case(codes[seed % len(codes)], seed // len(codes))
    data, done = case.model, []
    for _ in range(dice.choice((1, 1, 2))):
        change = dice.choice(CHANGES)
        with contextlib.suppress(*_UNREADABLE):  # a second change of a file that is broken by the first
            data = change(data, dice)
            done.append(change.__name__)
    return f"{case.label}: {', '.join(done)}", data, case


def _is_undefined(data: bytes) -> bool:
    """Say whether the runtime's answer has no meaning: it multiplies by a DepthMultiplier of 0, which others derive."""
    graphs = read_tflite(data, "file").subgraphs
    return any(op.options.get("DepthMultiplier") == 0 for graph in graphs for op in graph.operators)


def tried(seed: int, runtime: Runtime) -> Outcome:
    """Return how glowc's answers for a changed file compare with the runtime's."""
    label, data, case = of_seed(seed)
    try:
        got = lowered(data, case.calls)
    except (InternalError, AssertionError, TypeError, IndexError, KeyError, AttributeError) as error:
        return Outcome(seed, BROKEN, f"{label}: {type(error).__name__}: {error}")
    except (GlowcError, ValueError) as error:
        return Outcome(seed, REFUSED, f"{label}: {error}")
    try:
        want = runtime.run(data, case.calls)
    except RuntimeRefusalError:
        return Outcome(seed, UNKNOWN, label)
    if _is_undefined(data):
        return Outcome(seed, UNKNOWN, label)
    found = difference(got, want, case.rtol)
    return Outcome(seed, DIFFERENT if found else EQUAL, f"{label}: {found}")

"""The verifier of graphs: a test per violation of what operators declare of their attributes, and the declarations."""

from __future__ import annotations

import re

import onnx
import pytest
from passes_text import graph_of

from glowc.errors import InternalError
from glowc.graph.attrs import Attr, AttrValue, Float, FloatList, Int, IntList, Str, StrList
from glowc.graph.graph import Graph, Node
from glowc.ops.base import OpDef
from glowc.ops.registry import all_ops
from glowc.ops.verify import verify

CONV = """
    input %x : f32[1,4,4,2]
    const %w : f32[1,1,1,2] = [[[[1.0, 2.0]]]]
    const %b : f32[1] = [0.5]
    %y : f32[1,4,4,1] = Conv(%x, %w, %b) {ATTRS}
    output %y
    """
GOOD = 'act_max=6.0, layout="nhwc", pads=[0, 0, 0, 0]'
BROKEN = (
    ("act_max", "act_mxa", "unknown attribute act_mxa"),
    ("6.0", '"6"', "attribute act_max = '6': needs a number"),
    ("[0, 0, 0, 0]", "0", "attribute pads = 0: needs a list of integers"),
    ("[0, 0, 0, 0]", "[0, 0.5, 0, 0]", "attribute pads = (0, 0.5, 0, 0): needs a list of integers"),
    ('"nhwc"', '"nhcw"', "attribute layout = 'nhcw': needs one of nchw, nhwc"),
    ("act_max=6.0", "group=1.0", "attribute group = 1.0: needs an integer"),
)
KINDS: tuple[tuple[Attr, tuple[AttrValue, ...], tuple[AttrValue, ...]], ...] = (
    (Int(), (0, -1), (0.5, "1", (1,))),
    (Float(), (0.5, 1, float("inf")), ("1", (1.0,))),
    (Str(), ("", "any"), (1, ("a",))),
    (Str("", words=("a", "b")), ("a", "b", ""), ("c", 1)),
    (IntList(), ((), (1, 2)), (1, (1.5,), ("a",))),
    (FloatList(), ((), (1, 2.5)), (1.0, ("a",))),
    (StrList(), ((), ("a",)), ("a", (1,))),
)


def conv_with(attrs: str) -> Graph:
    """Return the graph of a Conv with these attributes."""
    return graph_of(CONV.replace("ATTRS", attrs))


def test_good_graph_passes() -> None:
    verify(conv_with(GOOD))


@pytest.mark.parametrize(("old", "new", "problem"), BROKEN)
def test_violation_is_reported_with_the_node_and_the_pass(old: str, new: str, problem: str) -> None:
    assert old in GOOD
    with pytest.raises(InternalError, match="after a pass") as caught:
        verify(conv_with(GOOD.replace(old, new)), "a pass")
    assert [problem in detail for detail in caught.value.details] == [True]


def test_attribute_without_a_default_must_be_there() -> None:
    text = "input %x : f32[2]\n%y : f32[4] = Concat(%x, %x) {axis=0}\noutput %y"
    verify(graph_of(text))
    with pytest.raises(InternalError, match="invalid graph") as caught:
        verify(graph_of(text.replace(" {axis=0}", "")))
    assert "lacks attribute axis" in str(caught.value.details)


@pytest.mark.parametrize(("attr", "good", "bad"), KINDS, ids=lambda v: type(v).__name__)
def test_kind_accepts_its_values_only(attr: Attr, good: tuple[AttrValue, ...], bad: tuple[AttrValue, ...]) -> None:
    assert all(attr.accepts(value) for value in good)
    assert not any(attr.accepts(value) for value in bad)


def test_default_comes_from_the_declaration() -> None:
    node = Node("n", "Conv", ("x", "w"), ("y",), {"group": 2})
    assert (node.int_("group"), node.float_("act_max"), node.str_("auto_pad")) == (2, float("inf"), "NOTSET")
    assert (node.ints("strides", 2), node.ints("pads", 4)) == ((1, 1), (0, 0, 0, 0))


@pytest.mark.parametrize("read", [Node.int_, Node.float_, Node.str_, Node.ints, Node.floats, Node.strs])
def test_attribute_that_is_not_declared_cannot_be_read(read: object) -> None:
    node = Node("n", "Relu", ("x",), ("y",), {}, ("act",))
    with pytest.raises(InternalError, match=re.escape('Relu "act": operator Relu declares no attribute alpha')):
        read(node, "alpha")  # type: ignore[operator]


@pytest.mark.parametrize("op", all_ops().values(), ids=lambda op: op.name)
def test_declared_defaults_are_of_their_kind(op: OpDef) -> None:
    for key, attr in op.attrs.items():
        default = attr.default_of(2)
        assert default is None or attr.accepts(default), key


ONNX_OPS = [op for op in all_ops().values() if op.domain == "" and onnx.defs.has(op.name)]


@pytest.mark.parametrize("op", ONNX_OPS, ids=lambda op: op.name)
def test_declared_defaults_are_those_of_onnx(op: OpDef) -> None:
    theirs = onnx.defs.get_schema(op.name).attributes
    for key, attr in op.attrs.items():
        if key != "activations" and key in theirs and theirs[key].default_value.type:  # each cell has its own
            value = onnx.helper.get_attribute_value(theirs[key].default_value)
            wanted = value.decode() if isinstance(value, bytes) else value
            assert attr.default_of(0) == pytest.approx(wanted), key


def test_set_of_names_is_no_declaration() -> None:
    with pytest.raises(TypeError, match="operator Mine: attrs needs kinds and defaults"):
        OpDef("Mine", all_ops()["Relu"].infer, all_ops()["Relu"].reference, all_ops()["Relu"].lower, frozenset({"a"}))  # type: ignore[arg-type]

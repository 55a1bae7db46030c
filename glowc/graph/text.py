"""The text form of a graph: a stable dump, and the parser that reads it back.

    graph "net" {
      input %x : s8[1,4] q(0.5, -3)
      const %w : s8[2,4] q([0.1, 0.2], [0, 0], axis=0) = [[1, 2, 3, 4], [5, 6, 7, 8]]
      %y : s8[1,2] q(0.25, 0) = FullyConnected(%x, %w) {act_max=6.0} from "dense/MatMul"
      output %y
    }

Constants over `DENSE_LIMIT` elements are printed as `= #` and 12 digits of their SHA-256; the parser takes
their arrays from `consts`, or makes zeros.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Mapping

import numpy as np

from glowc.errors import GlowcError
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph, Node, State
from glowc.graph.types import DType, QuantParams, TensorType

DENSE_LIMIT = 64
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def dump(graph: Graph) -> str:
    """Return the text form of `graph`; equal graphs give equal text."""
    lines = [f"graph {json.dumps(graph.name)} {{"]
    lines += [f"  input {print_name(name)} : {print_type(graph.types[name])}" for name in graph.inputs]
    for name, array in graph.consts.items():
        lines.append(f"  const {print_name(name)} : {print_type(graph.types[name])} = {print_array(array)}")
    lines += [f"  {_node(graph, node)}" for node in graph.nodes]
    lines += [f"  output {print_name(name)}" for name in graph.outputs]
    for s in graph.states:
        declared = f"{print_name(s.value)} : {print_type(graph.types[s.value])}"
        lines.append(f"  state {declared} next {print_name(s.next)} = {print_array(s.initial)}")
    return "\n".join([*lines, "}", ""])


def print_name(name: str) -> str:
    """Return a value name as the dumps show it."""
    return "%" + (name if _PLAIN.match(name) else json.dumps(name)) if name else "_"


def print_type(t: TensorType) -> str:
    """Return a type with its quantisation as the dumps show it."""
    if t.quant is None:
        return str(t)
    bits = f", bits={t.quant.bits}" if t.quant.bits else ""
    bits += f", palette={list(t.quant.palette)}" if t.quant.palette else ""
    if t.quant.axis is None:
        return f"{t} q({t.quant.scale[0]!r}, {t.quant.zero_point[0]}{bits})"
    return f"{t} q({list(t.quant.scale)!r}, {list(t.quant.zero_point)!r}, axis={t.quant.axis}{bits})"


def print_array(array: np.ndarray) -> str:
    """Return a small constant in full, a large one as its hash."""
    if array.size <= DENSE_LIMIT:
        return str(array.tolist())
    return "#" + hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


def _attr(value: AttrValue) -> str:
    return "[" + ", ".join(_attr(v) for v in value) + "]" if isinstance(value, tuple) else (
        json.dumps(value) if isinstance(value, str) else repr(value))  # fmt: skip


def _node(graph: Graph, node: Node) -> str:
    outs = ", ".join(f"{print_name(o)} : {print_type(graph.types[o])}" if o else "_" for o in node.outputs)
    text = f"{outs} = {node.op}({', '.join(map(print_name, node.inputs))})"
    if node.attrs:
        text += " {" + ", ".join(f"{k}={_attr(v)}" for k, v in sorted(node.attrs.items())) + "}"
    return text + (" from " + ", ".join(map(json.dumps, node.origin)) if node.origin else "")


def parse(text: str, consts: Mapping[str, np.ndarray] | None = None) -> Graph:
    """Return the graph that `text` describes. Raises GlowcError naming the line that cannot be read."""
    parser = _Parser(consts or {})
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("//"):
            try:
                parser.line(stripped)
            except (ValueError, KeyError, SyntaxError, AttributeError, IndexError) as error:
                raise GlowcError(f"line {number} of the graph text: {error}", details=[stripped]) from error
    return parser.graph()


_NAME = r'%(?:[A-Za-z_][A-Za-z0-9_.]*|"(?:[^"\\]|\\.)*")|_(?![A-Za-z0-9_.])'
_TYPE = r"[a-z0-9]+\[[^\]]*\](?:@[a-z]+)?(?: q\((?:[^()]*)\))?"
_NODE = re.compile(
    rf"(?P<outs>.*?) = (?P<op>[A-Za-z0-9_.:]+)\((?P<ins>(?:(?:{_NAME})(?:, )?)*)\)"
    r"(?: \{(?P<attrs>.*?)\})?(?: from (?P<origin>\".*))?\Z"
)


class _Parser:
    def __init__(self, consts: Mapping[str, np.ndarray]) -> None:
        self.name, self.given = "graph", consts
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.consts: dict[str, np.ndarray] = {}
        self.states: list[State] = []

    def graph(self) -> Graph:
        return Graph(
            self.name, tuple(self.inputs), tuple(self.outputs), tuple(self.nodes), self.types, self.consts,
            tuple(self.states),
        )  # fmt: skip

    def line(self, text: str) -> None:
        if text == "}":
            return
        keyword, _, rest = text.partition(" ")
        if keyword == "graph":
            self.name = json.loads(rest.removesuffix("{").strip())
        elif keyword == "input":
            self.inputs.append(self._declare(rest))
        elif keyword == "output":
            self.outputs.append(parse_name(rest))
        elif keyword == "state":
            declared, _, value = rest.rpartition(" = ")
            left, _, right = declared.rpartition(" next ")
            name = self._declare(left)
            initial = parse_array(value, self.types[name], self.given.get(name))
            self.states.append(State(name, parse_name(right), initial))
        elif keyword == "const":
            declared, _, value = rest.rpartition(" = ")
            self._const(self._declare(declared), value)
        else:
            self._node(text)

    def _declare(self, text: str) -> str:
        left, _, right = text.partition(" : ")
        name = parse_name(left)
        self.types[name] = parse_type(right)
        return name

    def _const(self, name: str, value: str) -> None:
        self.consts[name] = parse_array(value, self.types[name], self.given.get(name))

    def _node(self, text: str) -> None:
        match = _NODE.match(text)
        if match is None:
            raise ValueError("not an input, const, node or output")
        outs = [self._declare(m.group(0)) if " : " in m.group(0) else ""
                for m in re.finditer(rf"(?:{_NAME}) : {_TYPE}|_(?=,|$)", match["outs"])]  # fmt: skip
        ins = tuple(parse_name(m.group(0)) for m in re.finditer(_NAME, match["ins"]))
        attrs = _parse_attrs(match["attrs"]) if match["attrs"] else {}
        origin = tuple(json.loads(f"[{match['origin']}]")) if match["origin"] else ()
        name = f"{match['op'].lower()}_{len(self.nodes)}"
        self.nodes.append(Node(name, match["op"], ins, tuple(outs), attrs, origin))


def parse_name(text: str) -> str:
    """Return the name that `print_name` printed."""
    if text == "_":
        return ""
    body = text.strip().removeprefix("%")
    return str(json.loads(body)) if body.startswith('"') else body


def parse_array(text: str, type_: TensorType, given: np.ndarray | None = None) -> np.ndarray:
    """Return the constant that `text` shows; `given` (or zeros) when it shows only a hash."""
    source: object = given
    if given is None:
        source = np.zeros(type_.shape)
        if not text.startswith("#"):
            source = eval(text, {"__builtins__": {}}, {"inf": np.inf, "nan": np.nan})
    return np.asarray(source, dtype=type_.dtype.numpy).reshape(type_.shape)


def _parse_attrs(text: str) -> dict[str, AttrValue]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(k.arg): _literal(k.value) for k in call.keywords}


def _literal(node: ast.expr) -> AttrValue:
    if isinstance(node, ast.List):
        return tuple(_literal(item) for item in node.elts)  # type: ignore[return-value]
    if isinstance(node, ast.Name):
        return float(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
        return -float(node.operand.id)
    value = ast.literal_eval(node)
    if isinstance(value, int | float | str):
        return value
    raise ValueError(f"attribute value {value!r}")


def parse_type(text: str) -> TensorType:
    """Return the type that e.g. `s8[1,4]@nhwc q(0.5, -3)` describes; ValueError when it is not one."""
    match = re.match(r"([a-z0-9]+)\[([^\]]*)\](?:@([a-z]+))?(?: q\((.*)\))?\Z", text.strip())
    if match is None:
        raise ValueError(f"not a type: {text!r}")
    shape = tuple(int(d) for d in match[2].split(",") if d)
    return TensorType(shape, DType(match[1]), _parse_quant(match[4]) if match[4] else None, match[3] or "")


def _parse_quant(text: str) -> QuantParams:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    scale, zero_point = (ast.literal_eval(arg) for arg in call.args)
    words = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    scales = tuple(scale) if isinstance(scale, list) else (float(scale),)
    points = tuple(zero_point) if isinstance(zero_point, list) else (int(zero_point),)
    return QuantParams(scales, points, words.get("axis"), words.get("bits", 0), tuple(words.get("palette", ())))

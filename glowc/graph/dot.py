"""Graphviz export: one box per operator, one edge per value with its type."""

from __future__ import annotations

import json

from glowc.graph.graph import AttrValue, Graph, Node

_EDGE_STYLE = "  node [shape=ellipse, style=filled, fillcolor=lightgray];"
_OP_STYLE = "  node [shape=box, style=rounded, fillcolor=white];"
_HIDDEN_TUPLE = 8


def to_dot(graph: Graph) -> str:
    """Return the graph in the DOT language, for `dot -Tsvg`; equal graphs give equal text."""
    lines = [f"digraph {_quoted(graph.name)} {{", "  rankdir=TB;", _EDGE_STYLE]
    lines += [f"  {_quoted('in ' + name)} [label={_quoted(name)}];" for name in graph.inputs]
    lines += [f"  {_quoted('out ' + name)} [label={_quoted(name)}];" for name in graph.outputs]
    lines.append(_OP_STYLE)
    lines += [f"  {_quoted(node.name)} [label={_quoted(_label(graph, node))}];" for node in graph.nodes]
    lines += _edges(graph)
    return "\n".join([*lines, "}", ""])


def _label(graph: Graph, node: Node) -> str:
    lines = [node.op, *node.origin[:1]]
    lines += [f"{key}={_attr(value)}" for key, value in sorted(node.attrs.items())]
    lines += [f"{name}: {graph.types[name]}" for name in node.inputs if name in graph.consts]
    return "\n".join(lines)


def _attr(value: AttrValue) -> str:
    if isinstance(value, tuple):
        text = " ".join(str(v) for v in value[:_HIDDEN_TUPLE])
        return text + (" ..." if len(value) > _HIDDEN_TUPLE else "")
    return str(value)


def _edges(graph: Graph) -> list[str]:
    sources = {name: "in " + name for name in graph.inputs}
    sources |= {out: node.name for node in graph.nodes for out in node.outputs if out}
    lines = [
        _edge(graph, sources[name], node.name, name)
        for node in graph.nodes
        for name in dict.fromkeys(node.inputs)
        if name in sources
    ]
    return lines + [_edge(graph, sources[name], "out " + name, name) for name in graph.outputs if name in sources]


def _edge(graph: Graph, source: str, target: str, value: str) -> str:
    type_ = graph.types[value]
    label = str(type_)
    if type_.quant is not None and type_.quant.axis is None:
        label += f"\nscale {type_.quant.scale[0]:.6g} zero {type_.quant.zero_point[0]}"
    return f"  {_quoted(source)} -> {_quoted(target)} [label={_quoted(label)}];"


def _quoted(text: str) -> str:
    """Return a DOT string; JSON's escapes of quotes, backslashes and line ends are DOT's."""
    return json.dumps(text, ensure_ascii=False)

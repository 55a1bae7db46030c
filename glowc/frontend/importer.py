"""ONNX model -> Graph. Each node takes the first way that is open to it:

constant (all inputs known) - the model's own function - normal form (`normalize`) - simpler ONNX nodes
(`rewrites`) - an operator of the registry as it is - ONNX's own function body - known by dequantisation.
What has none of them is unsupported; all problems of the model are reported together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import onnx

from glowc.errors import InternalError
from glowc.frontend.builder import Builder
from glowc.frontend.control import import_if, unroll_loop, unroll_scan
from glowc.frontend.double_pairs import merge_double_pairs
from glowc.frontend.fold import can_evaluate, evaluate, find_schema, infer_onnx
from glowc.frontend.functions import inline, schema_function
from glowc.frontend.given import with_shapes, with_values
from glowc.frontend.half import HALF, OTHER_FLOATS, computes_in_half, widened_model, widened_node
from glowc.frontend.kept import with_noted_states
from glowc.frontend.ml_scores import ML
from glowc.frontend.normalize import SAME_IN_MICROSOFT, find_normalizer
from glowc.frontend.onnx_model import OnnxModel, OnnxNode, read_model
from glowc.frontend.order import finish, order_nodes, reads
from glowc.frontend.problems import NodeError, Problems, UnsupportedOpError, problem_error
from glowc.frontend.reader import Source, load
from glowc.frontend.rewrites import REWRITES
from glowc.frontend.schema import check_inputs, check_outputs, check_schema, check_types, check_version, defaults
from glowc.frontend.sequences import import_list, named_outputs
from glowc.frontend.symbols import resolve_inputs
from glowc.frontend.written import GRAPH_DOMAIN, ONNX_DOMAIN, check_graph, check_written, take_written, written_types
from glowc.graph.attrs import AttrValue
from glowc.graph.graph import Graph
from glowc.graph.types import LARGEST_TENSOR_BYTES, TensorType
from glowc.ops.base import OpDef, OpError
from glowc.ops.registry import find_op

# A fold that makes a constant this much larger than its inputs stays an operator where glowc has one.
FOLD_LIMIT_ELEMENTS, FOLD_GROWTH = 4096, 4
# Operators whose result has at most the elements of their inputs; any other result is measured before it is computed.
_SIGNALS = frozenset({"DFT", "STFT"})  # become operators that ONNX lacks
NOT_GROWING = frozenset({
    "Abs", "Cast", "Ceil", "Concat", "DequantizeLinear", "Exp", "Flatten", "Floor", "Identity", "Log", "Neg", "Not",
    "QuantizeLinear", "Reshape", "Round", "Slice", "Split", "Sqrt", "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip
LARGEST_CONSTANT_ELEMENTS = 1 << 24
MOST_EXPANDED_NODES, MOST_LEVELS = 50_000, 64
PREVIEW = "ai.onnx.preview"  # operators that ONNX defines by simpler ones
QDQ = frozenset({"QuantizeLinear", "DequantizeLinear"})


def import_onnx(
    source: Source,
    *,
    name: str | None = None,
    batch_size: int | None = None,
    symbols: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    set_inputs: Mapping[str, tuple[int | float, ...]] | None = None,
    keep_unknown: bool = False,
    float32: bool = False,
) -> Graph:
    """Read an ONNX model and return its graph with static types.

    `name` is the C identifier of the network (default: from the file name). `symbols` gives values to
    symbolic dimensions, `batch_size` to symbolic first dimensions of inputs, `input_shapes` gives inputs their whole
    shape; those in `set_inputs` become constants of these elements (one fills the shape). With `keep_unknown`,
    operators that glowc lacks stay in the graph (typed by ONNX, or like their first input) instead of being an error;
    with `float32` all floats are that. Inputs and outputs without elements are left out.
    Raises ModelError with everything that is wrong with the model, InputError for options that do not fit it.
    """
    loaded = load(source, name)
    problems = Problems(loaded.source)
    model = read_model(loaded.proto, problems)
    model = merge_double_pairs(with_values(with_shapes(model, input_shapes or {}), set_inputs or {}))
    wide = OTHER_FLOATS if float32 else HALF if computes_in_half(model) else frozenset[int]()
    model = widened_model(model, wide)
    types = resolve_inputs(model.inputs, symbols or {}, batch_size, problems)
    problems.check()
    importer = _Importer(model, problems, keep_unknown, wide)
    importer.builder.types.update(types)
    for given, type_ in types.items():
        if not type_.elements:
            importer.builder.set_empty(given, type_)
    for array_name, array in model.consts.items():
        importer.builder.set_const(array_name, array)
    importer.written = check_written(written_types(loaded.proto), importer.builder.types, problems)
    importer.run()
    outputs = _filled_outputs(importer, types, problems)
    problems.check()
    inputs = tuple(i.name for i in model.inputs if types[i.name].elements)
    graph = finish(importer.builder, loaded.name, inputs, outputs)
    if importer.written:
        check_graph(graph, problems)
    return with_noted_states(graph, loaded.proto, loaded.source)


def _filled_outputs(importer: _Importer, given: Mapping[str, TensorType], problems: Problems) -> tuple[str, ...]:
    """Return the outputs that have elements; where none has, or something is wrong, name the inputs without any."""
    made = importer.builder.types
    outputs = tuple(name for name in importer.outputs if name not in made or made[name].elements)
    if outputs and not problems.found:
        return outputs
    for name, type_ in given.items():
        if not type_.elements:
            problems.add(f'input "{name}": dimension {type_.shape.index(0)} is 0, there is nothing to compute')
    if not outputs:
        texts = [f'output "{name}" ({made[name]}) has no elements' for name in importer.outputs]
        problems.add(texts[0] if texts else "the outputs are sequences without elements")
    return outputs


class _Importer:
    def __init__(self, model: OnnxModel, problems: Problems, keep_unknown: bool, wide: frozenset[int]) -> None:
        names = {n for node in model.nodes for n in (*node.inputs, *node.outputs)} | set(model.consts)
        self.model, self.problems, self.wide = model, problems, wide
        self.builder = Builder(names | {i.name for i in model.inputs}, keep_unknown=keep_unknown)
        self.failed: set[str] = set()
        self.outputs: tuple[str, ...] = ()
        self.expanded = self.level = 0
        self.written: Mapping[str, TensorType] = {}

    def run(self) -> None:
        """Import all nodes, going on after a problem with whatever does not depend on it."""
        model, b = self.model, self.builder
        defined = {*model.consts, *(i.name for i in model.inputs)}
        nodes = order_nodes(model.nodes, defined, model.outputs, self.problems)
        b.read = {name for node in nodes for name in node.inputs} | set(model.outputs)
        self.failed = {name for node in nodes for name in reads(node)} - defined
        self.failed.difference_update(name for node in nodes for name in node.outputs)
        for node in nodes:
            if not self.failed.isdisjoint(reads(node)):
                self._skip(node)
                continue
            try:
                self._import(node)
            except UnsupportedOpError as problem:
                self.problems.add_unsupported(problem.op, node.origin)
                self._give_up(node)
            except OpError as problem:
                self._report(node, problem)
                self._give_up(node)
            except (IndexError, KeyError, TypeError, ValueError) as error:
                missing = f"inputs or attributes are missing or of the wrong kind ({type(error).__name__}: {error})"
                self._report(node, NodeError(missing))
                self._give_up(node)
        for name in filter(b.absent.__contains__, model.outputs):
            self.problems.add(f'output "{name}" is an optional without element')
        self.outputs = tuple(v for name in model.outputs for v in named_outputs(name, b, self._import))

    def _report(self, node: OnnxNode, problem: OpError) -> None:
        b = self.builder
        seen = ", ".join(str(b.types[n]) if n in b.types else "?" for n in node.inputs if n)
        text = f"{node.label}: {problem}" + (f" (inputs: {seen})" if seen else "")
        self.problems.add(text, getattr(problem, "hint", None))

    def _skip(self, node: OnnxNode) -> None:
        """Only look whether the operator exists: the types of its inputs are unknown."""
        self.failed.update(filter(None, node.outputs))
        known = find_normalizer(node) or self._opdef(node) or self._expansion_exists(node) or can_evaluate(node)
        if not known and node.full_op not in ("If", "Loop", "Scan"):
            self.problems.add_unsupported(node.full_op, node.origin)

    def _expansion_exists(self, node: OnnxNode) -> bool:
        key = (node.domain, node.op, node.overload)
        return key in self.model.functions or (node.domain, node.op) in REWRITES

    def _give_up(self, node: OnnxNode) -> None:
        """Type the outputs by ONNX's rule so that problems further down are found too."""
        b = self.builder
        found = infer_onnx(node, b.types, b.consts)
        names = [name for name in node.outputs if name]
        if found is None or len(found) != len(names) or any(t.size_bytes > LARGEST_TENSOR_BYTES for t in found):
            self.failed.update(names)
        else:
            b.types.update(zip(names, found, strict=True))

    def _import(self, node: OnnxNode) -> None:
        b = self.builder
        node = widened_node(node, self.wide) if self.wide else node
        b.current, before = node, len(b.nodes)
        check_inputs(node)
        check_outputs(node)
        if node.domain == GRAPH_DOMAIN:
            take_written(node, b, self.written)
            return
        import_nodes = partial(self._import_all, call=node)
        if import_list(node, b, self.model.opsets, import_nodes) or self._fold(node):
            return
        try:
            self._translate(node)
        except UnsupportedOpError:
            b.rollback(before)
            body = self._schema_nodes(node)
            if body is not None:
                self._import_body(body, node)
            elif not self._fold_known(node):
                raise
        except OpError:
            if not self._keep(node, before):
                raise

    def _import_body(self, body: list[OnnxNode], node: OnnxNode) -> None:
        """Import ONNX's own definition; when a part of it cannot be, the operator as a whole is unsupported."""
        try:
            self._import_all(body, node)
        except OpError as problem:
            raise UnsupportedOpError(node.full_op) from problem

    def _translate(self, node: OnnxNode) -> None:
        """Normal form, rewrite, function or plain operator; UnsupportedOpError when there is none."""
        b = self.builder
        check_schema(node)
        check_types(node, b.types)
        # What QDQ means is settled here; the operators only see it as types.
        check_version(node, None if node.op in QDQ else self._opdef(node))
        function = self.model.functions.get((node.domain, node.op, node.overload))
        normalizer, rewrite = find_normalizer(node), REWRITES.get((node.domain, node.op))
        if function is not None:
            self._import_all(inline(function, node, b.fresh), node)
        elif node.op == "If" and node.domain == "":
            import_if(node, b, self.model.opsets, partial(self._import_all, call=node))
        elif node.op in ("Scan", "Loop") and node.domain == "":
            unroll = unroll_scan if node.op == "Scan" else unroll_loop
            unroll(node, b, self.model.opsets, partial(self._import_all, call=node))
        elif normalizer is not None:
            normalizer(node, b)
        elif rewrite is not None:
            before = len(b.nodes)
            self._import_all(rewrite(node, b), node)
            if b.keep_unknown and (node.op in _SIGNALS or node.domain == ML):
                self._keep(node, before, tuple(b.types[name] for name in node.outputs))
        else:
            self._plain(node)

    def _import_all(self, nodes: list[OnnxNode], call: OnnxNode) -> None:
        b = self.builder
        self._check_expansion(len(nodes), call)
        b.read |= {name for node in nodes for name in node.inputs}
        self.level += 1
        try:
            for node in nodes:
                self._import(node)
        except UnsupportedOpError as problem:
            raise UnsupportedOpError(call.full_op) from problem
        finally:
            self.level -= 1

    def _check_expansion(self, count: int, call: OnnxNode) -> None:
        """Raise ModelError when functions, branches and loops expand to more than any network has."""
        self.expanded += count
        if self.expanded > MOST_EXPANDED_NODES:
            what = f"the model's functions, branches and loops expand to over {MOST_EXPANDED_NODES:,} operators"
        elif self.level >= MOST_LEVELS:
            what = f"functions, branches and loops are nested over {MOST_LEVELS} levels deep"
        else:
            return
        hint = "look for a function that calls itself; inline the functions when exporting"
        raise problem_error(self.problems.source, [f"{call.label}: {what}"], [hint])

    def _plain(self, node: OnnxNode) -> None:
        """An operator as it is, with its defaults filled in from ONNX's definition."""
        opdef = self._opdef(node)
        if opdef is None and not self.builder.keep_unknown:
            raise UnsupportedOpError(node.full_op)
        attrs = {key: attr_value(value) for key, value in node.attrs.items()}
        if opdef is not None:
            attrs = {**defaults(node, opdef), **attrs}
        try:
            self.builder.emit(node.op if opdef is not None else node.full_op, node.inputs, attrs, node.outputs)
        except InternalError as problem:  # of ONNX's own operators the inputs were counted before
            foreign = node.domain not in ("", "com.microsoft") or find_schema(node) is not None
            if foreign or not isinstance(problem.__cause__, ValueError | IndexError):
                raise
            raise NodeError(f"{len(node.inputs)} inputs are not those that the operator takes") from problem

    def _keep(self, node: OnnxNode, before: int, types: tuple[TensorType, ...] | None = None) -> bool:
        """Have an operator of ONNX as it is, not what it became, where the caller keeps what glowc lacks."""
        self.builder.rollback(before)
        if not self.builder.keep_unknown or node.domain not in ("", ML) or node.op in QDQ:
            return False
        types = types or infer_onnx(node, self.builder.types, self.builder.consts)
        if types is None or any(isinstance(value, onnx.GraphProto) for value in node.attrs.values()):
            return False
        attrs = {key: attr_value(value) for key, value in node.attrs.items()}
        self.builder.emit(f"{node.domain or ONNX_DOMAIN}::{node.op}", node.inputs, attrs, node.outputs, types)
        return True

    def _opdef(self, node: OnnxNode) -> OpDef | None:
        opdef = find_op(node.op)
        same = node.domain == "com.microsoft" and node.op in SAME_IN_MICROSOFT
        return opdef if opdef is not None and (opdef.domain == node.domain or same) else None

    def _fold(self, node: OnnxNode) -> bool:
        """Define the outputs as constants when they are known now."""
        b = self.builder
        if node.domain == "" and node.op == "Constant":
            b.set_const(node.outputs[0], _constant(node))
            return True
        if node.domain == "" and node.op in ("Shape", "Size"):
            shape = b.type(node.inputs[0]).shape
            part = shape[slice(node.int_("start", 0), node.attrs.get("end"))]
            b.set_const(node.outputs[0], np.asarray(part if node.op == "Shape" else np.prod(shape), np.int64))
            return True
        names = [name for name in node.inputs if name]
        plain = all((name in b.consts and b.types[name].quant is None) or name in b.exotic for name in names)
        if not plain or not can_evaluate(node) or (node.domain, node.op, node.overload) in self.model.functions:
            return False
        if node.op not in NOT_GROWING and self._is_huge(node):
            return False
        results = evaluate(node, [b.value(name) if name else None for name in node.inputs])
        size = sum(int(b.consts[n].size) for n in names if n in b.consts)
        grown = sum(r.size for r in results) > max(FOLD_LIMIT_ELEMENTS, FOLD_GROWTH * size)
        if grown and self._opdef(node) is not None:
            return False
        self._set_results(node, results)
        return True

    def _fold_known(self, node: OnnxNode) -> bool:
        """Fold a node that has no other way and whose inputs are constants after DequantizeLinear."""
        values = [self.builder.value(name) if name else None for name in node.inputs]
        missing = any(value is None for value, name in zip(values, node.inputs, strict=True) if name)
        if missing or not can_evaluate(node):
            return False
        self._set_results(node, evaluate(node, values))
        return True

    def _is_huge(self, node: OnnxNode) -> bool:
        """Say that a constant result stays an operator for its size; NodeError where glowc lacks the operator."""
        b = self.builder
        types = infer_onnx(node, b.types, b.consts) or ()
        largest = max(types, key=lambda t: t.elements, default=None)
        if largest is None or largest.elements <= LARGEST_CONSTANT_ELEMENTS:
            return False
        if self._opdef(node) is None:
            raise NodeError(
                f"its constant result {largest} is too large: at most {LARGEST_CONSTANT_ELEMENTS:,} elements are folded"
            )
        return True

    def _set_results(self, node: OnnxNode, results: tuple[np.ndarray, ...]) -> None:
        for out, array in zip(filter(None, node.outputs), results, strict=True):
            self.builder.set_const(out, array)

    def _schema_nodes(self, node: OnnxNode) -> list[OnnxNode] | None:
        b = self.builder
        if node.domain not in ("", PREVIEW) or self.builder.keep_unknown:
            return None
        function = schema_function(node, [b.types.get(name) for name in node.inputs])
        if function is None:
            return None
        body = inline(function, node, b.fresh)
        opset = self.model.opsets.get("", onnx.defs.onnx_opset_version())
        return [replace(n, version=opset) for n in body] if node.domain else body


def _constant(node: OnnxNode) -> np.ndarray:
    """The array of a Constant node in any of its forms."""
    for key, value in node.attrs.items():
        if key in ("value", "sparse_value"):
            return np.asarray(value)
        if key in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if key in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if key in ("value_string", "value_strings"):
            return np.asarray(value, np.object_)
    raise NodeError("it has no value")


def attr_value(value: object) -> AttrValue:
    """Return an attribute as the graph keeps it; a tensor of one element becomes a number."""
    if isinstance(value, np.ndarray):
        flat = tuple(value.reshape(-1).tolist())
        return flat[0] if len(flat) == 1 else flat
    if isinstance(value, int | float | str | tuple):
        return value
    raise NodeError(f"an attribute is a {type(value).__name__}, which is not supported")

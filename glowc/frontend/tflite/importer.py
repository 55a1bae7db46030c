"""TensorFlow Lite model -> Graph: each operator by its handler; all problems of the model are reported together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from glowc.frontend.problems import NodeError, Problems
from glowc.frontend.tflite.net import Net
from glowc.frontend.tflite.operators import HANDLERS, handler_of
from glowc.frontend.tflite.reader import Operator, Subgraph, TfliteModel, read_tflite
from glowc.frontend.tflite.sizes import Sizes, input_shapes
from glowc.graph.graph import Graph
from glowc.ops.base import OpError


def import_tflite(data: bytes, label: str, name: str, sizes: Sizes | None = None) -> Graph:
    """Return the graph of a TensorFlow Lite file, with its arithmetic; `label` is how messages call the file.

    Raises ModelError with everything that is wrong with the model, InputError for sizes that do not fit it.
    """
    model = read_tflite(data, label)
    problems = Problems(label, "glowc ops --format tflite", HANDLERS.keys, plugins=False)
    importer = _Importer(model, problems, sizes or Sizes())
    graph = importer.run(name)
    problems.check()
    assert graph is not None
    return graph


_CODES = frozenset({"int8", "uint8", "int16", "int4"})
_MIXED = frozenset({"CAST", "GATHER", "GATHER_ND", "EMBEDDING_LOOKUP", "TFLM_DECODE"})  # codes are indices, or numbers
_OF_REALS = frozenset({
    "ABS", "ADD", "ADD_N", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "CUMSUM", "DEPTHWISE_CONV_2D", "DEQUANTIZE",
    "DIV", "ELU", "EXP", "FULLY_CONNECTED", "GELU", "HARD_SWISH", "L2_NORMALIZATION", "LEAKY_RELU", "LOG", "LOGISTIC",
    "LOG_SOFTMAX", "MEAN", "MUL", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
    "RESIZE_BILINEAR", "RSQRT", "SOFTMAX", "SQUARED_DIFFERENCE", "SUB", "SUM", "SVDF", "TANH", "TRANSPOSE_CONV",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
})  # fmt: skip
"""What these compute of codes needs scales; others move or count whole numbers as they are."""


class _Importer:
    def __init__(self, model: TfliteModel, problems: Problems, sizes: Sizes) -> None:
        self.model, self.problems, self.sizes = model, problems, sizes
        self.graph = model.subgraphs[0]
        self.net = Net(self.graph, model.subgraphs)

    def run(self, name: str) -> Graph | None:
        """Import all operators, going on after a problem with whatever does not depend on it."""
        called = _names(self.model, self.graph)
        for what, ends in (("inputs", self.graph.inputs), ("outputs", self.graph.outputs)):
            if not ends:
                self.problems.add(f"the graph has no {what}")
                return None
        inputs: list[str] = []
        shapes = input_shapes(self.graph, called, self.sizes)
        for index in self.graph.inputs:
            self._attempt(None, lambda i=index: inputs.append(self.net.add_input(called[i], i, shapes[i])))
        results = [self.net.fresh(called[index]) for index in self.graph.outputs]  # before tensors of these names
        failed: set[int] = set()
        for operator in self.graph.operators:
            if failed & set(operator.inputs) or not self._import(operator):
                failed.update(operator.outputs)
        if failed:
            self._tell_open_sizes(called)
            return None
        outputs: list[str] = []
        for out, index in zip(results, self.graph.outputs, strict=True):
            if not self._attempt(None, lambda o=out, i=index: outputs.append(self.net.result(o, i)), "an output"):
                return None
        ends = (*self.graph.inputs, *self.graph.outputs)
        own = [self.graph.tensors[index].name for index in ends]
        aliases = {value: text for value, text in zip((*inputs, *outputs), own, strict=True) if value != text}
        return replace(self.net.finish(name, inputs, outputs), aliases=aliases)

    def _tell_open_sizes(self, called: Mapping[int, str]) -> None:
        """Say which inputs have placeholders besides the batch, which may be why something does not fit."""
        for tensor in (self.graph.tensors[i] for i in self.graph.inputs):
            if -1 in tensor.signature[1:] and called[tensor.index] not in self.sizes.shapes:
                sizes = "x".join("?" if d < 0 else str(d) for d in tensor.signature)
                name = called[tensor.index]
                self.problems.add_hint(f"the file leaves sizes of {name} open: --input-shape {name}={sizes}")

    def _import(self, operator: Operator) -> bool:
        net = self.net
        net.current = operator
        handler = handler_of(operator, net)
        if handler is None:
            self.problems.add_unsupported(operator.code, _where(operator, net))
            return False

        def action() -> None:
            self._check_scales(operator)
            handler(operator, net)

        return self._attempt(operator, action)

    def _check_scales(self, operator: Operator) -> None:
        """NodeError where some codes of an operator have a scale and others have none."""
        known = [self.graph.tensors[i] for i in (*operator.inputs, *operator.outputs) if i >= 0]
        codes = [tensor for tensor in known if tensor.kind in _CODES and tensor.blocks is None]
        without = [tensor for tensor in codes if tensor.quant is None]
        if without and (len(without) < len(codes) or operator.code in _OF_REALS) and operator.code not in _MIXED:
            names = ", ".join(f'"{tensor.name}"' for tensor in without)
            others = ", others do" if len(without) < len(codes) else ""
            raise NodeError(f"{names} have no scale{others}", "convert the model with full integer quantization")

    def _attempt(self, operator: Operator | None, action: object, end: str = "an input") -> bool:
        try:
            action()  # type: ignore[operator]
        except OpError as problem:
            self._report(operator, problem, end)
        except (ArithmeticError, AssertionError, IndexError, KeyError, TypeError, ValueError) as error:
            text = f"inputs or options are missing or of the wrong kind ({type(error).__name__}: {error})"
            self._report(operator, NodeError(text), end)
        else:
            return True
        return False

    def _report(self, operator: Operator | None, problem: OpError, end: str) -> None:
        where = operator.label if operator is not None else end
        seen = ""
        if operator is not None:
            tensors = [self.graph.tensors[i] for i in operator.inputs if i >= 0]
            shown = ", ".join(f'"{t.name}" {t.kind}{list(t.shape)}' for t in tensors)
            seen = f" (inputs: {shown})" if shown else ""
        hint = getattr(problem, "hint", None)
        if hint is None and operator is not None:
            hint = f"`glowc ops --format tflite` says what {operator.code} takes"
        self.problems.add(f"{where}: {problem}{seen}", hint)


def _where(operator: Operator, net: Net) -> str:
    """Return the index of an operator and what its result is called."""
    result = f", {net.graph.tensors[operator.outputs[0]].name}" if operator.outputs else ""
    return f"operator {operator.index}{result}"


def _names(model: TfliteModel, graph: Subgraph) -> Mapping[int, str]:
    """Return what the inputs and outputs are called: by the file's only signature, else by their tensors."""
    edge: Sequence[int] = (*graph.inputs, *graph.outputs)
    own = {i: graph.tensors[i].name for i in edge}
    signatures = [s for s in model.signatures if s.subgraph == 0]
    if len(signatures) != 1:
        return own
    return {i: signatures[0].names.get(i) or name for i, name in own.items()}

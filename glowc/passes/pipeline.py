"""The graph passes in their order, and the runner that verifies, dumps and stops between them."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from glowc.errors import InputError, InternalError
from glowc.graph.graph import Graph
from glowc.graph.text import dump
from glowc.ops.verify import verify
from glowc.passes.base import GraphPass, PassCtx
from glowc.passes.channels.dead_channels import DeadChannels
from glowc.passes.channels.duplicate_channels import DuplicateChannels
from glowc.passes.clean.unneeded import Cse, DeadCode, DropIdentity, MergeReshape
from glowc.passes.fold.constants import ExactDivision, FoldBias, FoldConstants
from glowc.passes.fold.fold_batchnorm import FoldBatchNorm
from glowc.passes.fold.fold_pad import FoldPad
from glowc.passes.fuse.fuse_activation import FuseActivation
from glowc.passes.fuse.fuse_channel_lines import FuseChannelLines
from glowc.passes.fuse.fuse_dynamic import FuseDynamic
from glowc.passes.fuse.fuse_gelu import FuseGelu
from glowc.passes.fuse.fuse_layer_norm import FuseLayerNorm
from glowc.passes.fuse.fuse_lut import FuseLut
from glowc.passes.fuse.trees_on_codes import TreesOnCodes
from glowc.passes.layout.canonicalize_fc import CanonicalizeFc
from glowc.passes.layout.hoist_slice import HoistSlice
from glowc.passes.layout.sink_transpose import SinkTranspose
from glowc.passes.layout.split_conv_transpose import SplitConvTranspose
from glowc.passes.layout.split_fixed_transpose import SplitFixedTranspose
from glowc.passes.layout.splits import SplitGroups, SplitHeads
from glowc.passes.layout.transposes import (
    FoldTranspose,
    HoistTranspose,
    LayoutNhwc,
    PlanarInput,
    TransposeToReshape,
    TransposeWeights,
)
from glowc.passes.layout.whole_window import WholeWindow
from glowc.passes.quant.fold_codes import FoldDqProduct, FoldQdqNorm, FoldRequantize
from glowc.passes.quant.fold_qdq import FoldQdq
from glowc.passes.quant.fold_qdq_recurrent import FoldQdqRecurrent
from glowc.passes.quant.integers_in_float import IntegersInFloat
from glowc.passes.quant.move_qdq import MoveQdq
from glowc.passes.quant.propagate_quant import PropagateQuant
from glowc.passes.quant.u8_to_s8 import U8ToS8
from glowc.passes.quant.weights import MarkFewCodes, QuantizeWeights, WeightOnly
from glowc.passes.time.states import StateWindow

OnPass = Callable[[str, Graph], None]
ROUNDS = 200


@dataclass(frozen=True)
class Repeat:
    """Passes that make work for each other: run in turn until a whole round changes nothing."""

    passes: tuple[GraphPass, ...]


Step = GraphPass | Repeat

PIPELINE: tuple[Step, ...] = (
    DeadCode(),  # first: what no output needs must not keep a value from having one reader
    Cse(),  # equal Q nodes and constants become one, so that "the only reader" is true more often
    PropagateQuant(),  # before anything looks at types: integers get their meaning
    Repeat(
        (
            DropIdentity(),  # Dropout and Identity stand between the operators that the next ones match
            FuseGelu(),  # chains that exporters write for one operator
            FuseLayerNorm(),  # likewise; before fold-batchnorm takes a Mul or Add of it
            ExactDivision(),
            FoldConstants(),  # weights computed by Transpose, Shape arithmetic; not yet DequantizeLinear
            MergeReshape(),  # brings an activation next to its Conv, and Reshapes away from Q and DQ
            MoveQdq(),  # DQ down and Q up, until only compute operators stand between them
            CanonicalizeFc(),  # before the bias and the activation: both want one operator with a bias
            FoldBias(),  # before fold-qdq: the bias belongs into the accumulator
            FoldBatchNorm(),  # after the bias exists, before the activation closes the operator
            FuseActivation(),  # before fold-qdq, which then sees one operator between DQ and Q
            FuseDynamic(),  # before fuse-activation of the next round: the layer can clamp
            IntegersInFloat(),  # after fold-bias: the shift closes the operator; its DequantizeLinear sinks next round
            FoldPad(),  # before the layout changes, on NCHW attributes
        )
    ),
    QuantizeWeights(),  # after fold-batchnorm: on the weights as onnxruntime sees them; before fold-qdq
    SplitConvTranspose(),  # after quantize-weights, which may give its weights
    SplitFixedTranspose(),  # before merge-reshape, which joins its Reshapes with others
    Repeat((MoveQdq(), FuseActivation())),  # Q up through what split-conv-transpose added
    U8ToS8(),  # before fold-qdq: an operator may read u8 and write s8, but its kernel knows one kind
    FoldQdq(),  # everything between DQ and Q is one operator now
    FoldQdqNorm(),  # likewise, with scale and bias that stay real numbers
    FoldQdqRecurrent(),  # before weight-only and fold-constants, which make floats of its weights
    FoldDqProduct(),  # what has no QuantizeLinear behind it; before weight-only, which computes in float
    WeightOnly(),  # what stayed float keeps its codes in flash, before they are turned into floats
    FoldConstants(dequantize=True),  # weights of operators that stayed float
    Repeat(
        (
            FoldRequantize(),  # Q and DQ that fold-qdq brought together
            MoveQdq(),  # a DQ that lost its partner sinks towards the graph's end, on fewer bytes
            FuseActivation(),  # quantised activations that had their own Q
            FoldPad(),  # Pad between quantised operators
            MergeReshape(),
            DropIdentity(),
        )
    ),
    SplitHeads(),  # before Transposes sink away from the layer
    LayoutNhwc(),  # after every match on NCHW attributes; it leaves Transposes around each operator
    Repeat(
        (
            SinkTranspose(),  # until pairs meet and vanish
            TransposeWeights(),  # what reaches a flattening FullyConnected goes into its weights
            FoldConstants(dequantize=True),  # transposed constants
            MergeReshape(),
        )
    ),
    HoistTranspose(),  # after sinking: one that ended after a DequantizeLinear moves fewer bytes before it
    FoldTranspose(),  # what ended at a MatMul becomes its strides
    HoistSlice(),  # after fold-transpose: heads of an attention are axes of MatMul now
    Repeat((TransposeToReshape(), MergeReshape(), DropIdentity())),  # last: a Reshape would stop the sinking
    PlanarInput(),  # the Transpose that is left before the first Conv
    SplitGroups(),  # after planar-input; before dead-channels, which looks at the groups one by one
    Repeat((DeadChannels(), DuplicateChannels())),  # after the layout: channels are the last axis now
    StateWindow(),  # after dead-channels, which do not look into windows of time
    WholeWindow(),  # after dead-channels, which looks at images
    MarkFewCodes(),  # after dead-channels, on the weights that are left
    FuseLut(),  # last: no other pass looks into a table
    FuseChannelLines(),  # after fuse-lut, which takes what is the same for all channels
    TreesOnCodes(),  # last, when no DequantizeLinear moves any more
    Repeat((Cse(), DropIdentity(), DeadCode())),  # what the rewrites above made twice or left over
)


def flatten(steps: Iterable[Step]) -> Iterator[GraphPass]:
    """Yield every pass of a pipeline once per place, in order."""
    for step in steps:
        if isinstance(step, Repeat):
            yield from step.passes
        else:
            yield step


def pass_names(steps: Iterable[Step] = PIPELINE) -> tuple[str, ...]:
    """Return the names of the passes in order of their first place."""
    return tuple(dict.fromkeys(p.name for p in flatten(steps)))


def run_pipeline(
    graph: Graph,
    *,
    ctx: PassCtx | None = None,
    dump_dir: Path | None = None,
    stop_after: str | None = None,
    passes: str | None = None,
    on_pass: OnPass | None = None,
    steps: tuple[Step, ...] | None = None,
) -> Graph:
    """Run the passes, or `steps` in their place, on `graph` and return the result.

    `passes` edits the pipeline (see `apply_spec`); `stop_after` ends after the first place of that pass;
    `dump_dir` receives a text file per pass that changed the graph; `on_pass(name, graph)` is called
    after every pass. Raises InternalError naming the pass that broke the graph.
    """
    steps = apply_spec(PIPELINE if steps is None else steps, passes or "")
    if stop_after is not None:
        _known(stop_after, pass_names(steps))
    runner = _Runner(ctx or PassCtx(), dump_dir, stop_after, on_pass)
    return runner.run(graph, steps)


class _Runner:
    def __init__(self, ctx: PassCtx, dump_dir: Path | None, stop_after: str | None, on_pass: OnPass | None) -> None:
        self._ctx, self._dump_dir, self._stop_after, self._on_pass = ctx, dump_dir, stop_after, on_pass
        self._count = 0
        self._stopped = False

    def run(self, graph: Graph, steps: Iterable[Step]) -> Graph:
        verify(graph, "the import")
        self._dump("import", graph)
        for step in steps:
            graph = self._repeat(graph, step) if isinstance(step, Repeat) else self._one(graph, step)
            if self._stopped:
                break
        return graph

    def _repeat(self, graph: Graph, group: Repeat) -> Graph:
        for _ in range(ROUNDS):
            before = graph
            for one in group.passes:
                graph = self._one(graph, one)
                if self._stopped:
                    return graph
            if graph is before:
                return graph
        names = ", ".join(one.name for one in group.passes)
        raise InternalError("these passes undo each other's work without end", details=[names])

    def _one(self, graph: Graph, one: GraphPass) -> Graph:
        result = one.run(graph, self._ctx)
        if result is not graph:
            verify(result, f"pass {one.name}")
            self._count += 1
            self._dump(one.name, result)
        if self._on_pass is not None:
            self._on_pass(one.name, result)
        self._stopped = one.name == self._stop_after
        return result

    def _dump(self, name: str, graph: Graph) -> None:
        if self._dump_dir is not None:
            self._dump_dir.mkdir(parents=True, exist_ok=True)
            path = self._dump_dir / f"{self._count:02d}-{name}.txt"
            path.write_text(dump(graph), encoding="utf-8", newline="\n")


_ITEM = re.compile(r"\s*(?P<sign>[+-]?)(?P<name>[a-z0-9-]+)(?:\{(?P<options>[^}]*)\})?\s*(?:,|\Z)")


def apply_spec(steps: tuple[Step, ...], spec: str) -> tuple[Step, ...]:
    """Return the pipeline edited by a text such as `-cse,fold-pad{limit=2}`.

    `-name` leaves a pass out everywhere, `name{option=value}` sets options, `+name` (or `name` alone) keeps
    it and undoes an earlier `-name`. Raises GlowcError naming what cannot be read.
    """
    removed: dict[str, bool] = {}
    options: dict[str, Mapping[str, object]] = {}
    names = pass_names(steps)
    position = 0
    while position < len(spec):
        match = _ITEM.match(spec, position)
        if match is None:
            raise InputError(f"cannot read the pass list at {spec[position:]!r}", hint="e.g. -cse,fold-pad{limit=2}")
        _known(match["name"], names)
        removed[match["name"]] = match["sign"] == "-"
        if match["options"]:
            options[match["name"]] = _options(match["name"], match["options"])
        position = match.end()
    return tuple(_edited(steps, removed, options))


def _edited(
    steps: Iterable[Step], removed: Mapping[str, bool], options: Mapping[str, Mapping[str, object]]
) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Repeat):
            yield Repeat(tuple(p for p in _edited(step.passes, removed, options) if isinstance(p, GraphPass)))
        elif not removed.get(step.name, False):
            yield _with_options(step, options.get(step.name, {}))


def _with_options(one: GraphPass, options: Mapping[str, object]) -> GraphPass:
    if not options:
        return one
    known = [f.name for f in fields(one)] if hasattr(one, "__dataclass_fields__") else []  # type: ignore[arg-type]
    for key in options:
        if key not in known:
            raise InputError(
                f"pass {one.name} has no option {key!r}", hint=f"it has: {', '.join(known) or 'no options'}"
            )
    return replace(one, **options)  # type: ignore[type-var]


def _options(name: str, text: str) -> dict[str, object]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("needs name=value")
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise InputError(f"cannot read the options of pass {name}: {text!r}") from error


def _known(name: str, names: tuple[str, ...]) -> None:
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"passes: {', '.join(names)}"
    raise InputError(f"no pass named {name!r}", hint=hint)

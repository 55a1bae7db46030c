"""Choice of the kernel variant for one instruction: CPU features, shapes, rank, packed weights, scratch."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

from glowc.board import Cpu, cpu_names, load_cpu
from glowc.errors import InternalError, ModelError
from glowc.graph.graph import Node
from glowc.graph.text import parse
from glowc.kernels import choice
from glowc.kernels.base import KernelVariant, Prepared
from glowc.kernels.isas import ISAS
from glowc.kernels.registry import instruction_sets, variants_of
from glowc.lower import lowering
from glowc.lower.lowering import lower_graph
from glowc.ops import params
from glowc.ops.base import LowerCtx, OpDef, OpError
from glowc.ops.cumulate import CumulateParams
from glowc.ops.params import Elements
from glowc.program.ir import Access, BufferKind, Instr, Program
from glowc.program.kernel import Arrays, KernelDef, all_kernels
from glowc.program.params import Params
from tests.conftest import ROOT

GRAPH = """
graph "g" {
  input %x : s8[1,4]
  const %w : s8[4] = [1, 2, 3, 4]
  %y : s8[1,4] = Test(%x, %w) from "layer"
  output %y
}
"""


def wide(instr: Instr) -> bool:
    return int(instr.params["n"]) >= 16


def lower(
    cpu: str, n: int, variants: tuple[KernelVariant, ...], patch: pytest.MonkeyPatch, takes: type[Params] = Elements
) -> Program:
    """Lower one node to one instruction of a kernel with these variants."""
    kernel = KernelDef("test", ("in in", "in weights", "out out"), takes, lambda arrays, p: None)

    def lower_node(node: Node, ctx: LowerCtx) -> None:
        operands = {"in": ctx.read("x"), "weights": ctx.read("w"), "out": ctx.write("y")}
        ctx.emit("test", operands, Elements(n), macs=7)

    op = OpDef("Test", lambda node, types: (types[0],), lambda call: (), lower_node)  # type: ignore[return-value]
    patch.setattr(lowering, "find_kernel", lambda name: kernel)
    patch.setattr(choice, "variants_of", lambda name, features: variants)
    patch.setattr(lowering, "find_op", lambda name: op)
    return lower_graph(parse(GRAPH), load_cpu(cpu))


REF = KernelVariant("ref")
DSP = KernelVariant("dsp", rank=5)
MVE = KernelVariant("mve", rank=10, accepts=wide)


@pytest.mark.parametrize(
    ("cpu", "n", "name"),
    [
        ("cortex-m0", 64, "ref"),
        ("cortex-m3", 64, "ref"),
        ("cortex-m4", 64, "dsp"),
        ("cortex-m55", 64, "mve"),
        ("cortex-m55", 15, "dsp"),
        ("cortex-a53", 64, "ref"),
    ],
)
def test_best_variant_that_the_cpu_has_and_that_accepts_is_chosen(
    cpu: str, n: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variants in ((REF, DSP, MVE), (MVE, DSP, REF)):
        (instr,) = lower(cpu, n, variants, monkeypatch).instrs
        assert instr.variant == name
        assert (instr.name, instr.origin, instr.op, instr.macs) == (instr.name, ("layer",), "Test", 7)


@pytest.mark.parametrize(("cpu", "name"), [("cortex-m4", "dsp_quad"), ("cortex-m33", "dsp_quad"), ("cortex-m7", "dsp")])
def test_variant_that_is_slow_on_a_cpu_is_not_for_it(cpu: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quad = KernelVariant("dsp", form="quad", rank=7, slow_with=frozenset({"dual-issue"}))
    (instr,) = lower(cpu, 64, (REF, DSP, quad), monkeypatch).instrs
    assert instr.variant == name


def test_no_variant_is_an_error_that_names_node_kernel_and_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError) as caught:
        lower("cortex-m0", 64, (DSP, MVE), monkeypatch)
    for text in ("layer", "no variant of test for cpu cortex-m0", "s8[1,4]"):
        assert text in str(caught.value)


def test_packed_weights_replace_the_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    def reverse(constants: Arrays, _: Instr) -> Prepared:
        return Prepared({"weights": constants["weights"][::-1].astype(np.int16)})

    packing = KernelVariant("ref", prepare=reverse, packs=frozenset({"weights"}))
    program = lower("cortex-m4", 4, (packing,), monkeypatch)
    operand = program.instrs[0].operand("weights")
    assert program.consts[operand.buffer].tolist() == [4, 3, 2, 1]
    assert operand.type.dtype.value == "s16"
    assert set(program.consts) == {operand.buffer}, "the unpacked constant is not stored too"


def test_scratch_becomes_an_operand_with_a_buffer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = KernelVariant("ref", scratch_bytes=lambda instr: 3 * int(instr.params["n"]))
    program = lower("cortex-m4", 10, (needy,), monkeypatch)
    operand = program.instrs[0].operand("scratch")
    buffer = program.buffers[operand.buffer]
    assert (operand.access, buffer.kind, buffer.size_bytes) == (Access.OUT, BufferKind.SCRATCH, 30)


def test_call_with_other_parameters_than_declared_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InternalError, match="takes CumulateParams, not Elements"):
        lower("cortex-m4", 4, (REF,), monkeypatch, takes=CumulateParams)


def test_a_mapping_in_place_of_parameters_is_a_bug_that_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.Elements", lambda n: {"n": n})
    with pytest.raises(InternalError, match="kernel test takes Elements, not dict"):
        lower("cortex-m4", 4, (REF,), monkeypatch, takes=params.Elements)


def test_operator_without_lowering_lists_every_node() -> None:
    text = GRAPH.replace('from "layer"', 'from "first"').replace(
        "  output %y", '  %z : s8[1,4] = Other(%y) from "second"\n  output %z'
    )
    with pytest.raises(ModelError) as caught:
        lower_graph(parse(text), load_cpu("host"))
    assert "2 operators" in str(caught.value)
    assert '"first"' in str(caught.value) or "first" in str(caught.value)
    assert "second" in str(caught.value)


def test_error_of_an_operator_reaches_the_user_with_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(node: Node, ctx: LowerCtx) -> None:
        raise OpError("dilation 3 is not possible")

    op = OpDef("Test", lambda node, types: (types[0],), lambda call: (), refuse)  # type: ignore[return-value]
    monkeypatch.setattr(lowering, "find_op", lambda name: op)
    with pytest.raises(ModelError, match="cannot be compiled for host") as caught:
        lower_graph(parse(GRAPH), load_cpu("host"))
    assert "dilation 3 is not possible (inputs s8[1,4], s8[4])" in str(caught.value)


@pytest.mark.parametrize("dtype", ["s32", "u32", "s64", "u64"])
def test_types_that_no_kernel_computes_are_refused_by_name(dtype: str) -> None:
    inputs = f"  input %a : {dtype}[2,3]\n  input %b : {dtype}[3,4]"
    text = f'graph "g" {{\n{inputs}\n  %y : {dtype}[2,4] = MatMul(%a, %b)\n  output %y\n}}'
    with pytest.raises(ModelError, match="cannot be compiled for host") as caught:
        lower_graph(parse(text), load_cpu("host"))
    assert f"no kernel computes it on these types (inputs {dtype}[2,3], {dtype}[3,4])" in str(caught.value)


@pytest.mark.parametrize("name", all_kernels())
def test_every_kernel_has_one_portable_variant_for_every_shape(name: str) -> None:
    """Each CPU can run each kernel: `ref` needs no feature, and no two variants share a name."""
    kernel = all_kernels()[name]
    names = [v.name for v in variants_of(kernel.name)]
    assert len(names) == len(set(names))
    (ref,) = (v for v in variants_of(kernel.name) if v.name == "ref")
    assert not ref.needs
    assert ref.rank <= min(v.rank for v in variants_of(kernel.name))


def test_variants_need_features_that_some_cpu_has() -> None:
    cpus: list[Cpu] = [load_cpu(name) for name in cpu_names()]
    for kernel in all_kernels().values():
        for variant in variants_of(kernel.name):
            name, known = f"{kernel.name}__{variant.name}", frozenset[str]().union(*(cpu.features for cpu in cpus))
            assert any(variant.needs <= cpu.features and not variant.slow_with & cpu.features for cpu in cpus), name
            assert variant.slow_with <= known, name


def test_each_folder_is_of_an_instruction_set_and_each_variant_of_a_set_of_its_folder() -> None:
    assert {isa.folder for isa in ISAS.values()} == set(instruction_sets())
    for folder in instruction_sets():
        for module in pkgutil.iter_modules([str(ROOT / "glowc" / "kernels" / folder)]):
            named = getattr(importlib.import_module(f"glowc.kernels.{folder}.{module.name}"), "VARIANTS", {})
            assert {v.folder for variants in named.values() for v in variants} <= {folder}, module.name


def test_variant_of_an_unknown_instruction_set_is_an_error_that_names_the_table() -> None:
    with pytest.raises(InternalError, match=r"avx in glowc/kernels/isas\.py"):
        _ = KernelVariant("avx").needs

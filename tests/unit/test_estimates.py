"""Estimates of reports: terms of traits, what measured layers alike add, what stands in, and how they are fitted."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from glowc.board import cpu_names
from glowc.graph.types import DType, TensorType
from glowc.kernels.features import features
from glowc.program.ir import Access, Buffer, BufferKind, Instr, Operand, Plan, Program
from glowc.select.cost import Cost, Costs, Fit, key_of
from glowc.select.estimate import (
    Estimate,
    Estimates,
    Near,
    estimates_file,
    estimates_for,
    like,
    load_estimates,
    parse_kernel,
)
from glowc.select.traits import FEW, SIGNED, Extent, few_forms, given, place, traits
from tests.conftest import ROOT
from tests.unit.test_costs import conv, costs_of

FILES = sorted((ROOT / "boards" / "_estimates").glob("*.json"))


def estimate(per_mac: float, near: Near | None = None, samples: int = 9) -> Estimate:
    """An estimate of cycles per MAC, and half as many instructions."""
    return Estimate({"macs": per_mac / 2}, {"macs": per_mac}, 0.01, samples, ("stride_h>1",), near)


def estimates_of(*known: tuple[Instr, str, Estimate]) -> Estimates:
    return Estimates({key_of(instr): {mode: found} for instr, mode, found in known})


def test_sizes_of_a_convolution_and_what_tells_its_code_apart() -> None:
    instr = conv(size=8)
    assert Extent.of(instr) == Extent(64, 8, 8, 3, 12)
    assert {"k_h>1", "pad_top>0", "channels%16"} <= traits(instr)
    assert "stride_h>1" not in traits(instr)
    assert "stride_h>1" in traits(replace(instr, params={**instr.params, "stride_h": 2}))


def test_a_term_of_a_trait_counts_for_layers_that_have_it() -> None:
    found = Estimate({"call": 1.0}, {"call": 10.0, "call@k_h>1": 5.0, "call@k_h>9": 7.0}, 0.0, 9)
    assert found.predict(conv()) == Cost(1, 15)


def test_the_error_of_measured_layers_is_added_where_they_are_near() -> None:
    sizes = Extent.of(conv(size=8)).sizes
    found = estimate(2.0, Near(1.0, 0.5, ((place(sizes), 0, 0.25),)))
    plain = estimate(2.0)
    assert found.predict(conv(size=8)).cycles == round(1.25 * plain.predict(conv(size=8)).cycles)
    assert found.predict(conv(size=8)).insns == plain.predict(conv(size=8)).insns
    assert found.predict(conv(size=128)).cycles == plain.predict(conv(size=128)).cycles
    strided = conv(size=8)
    strided = replace(strided, params={**strided.params, "stride_h": 2})
    assert 1 < found.predict(strided).cycles / plain.predict(strided).cycles < 1.25


def test_calls_that_read_floats_of_no_relu_are_told_from_others() -> None:
    images = TensorType((1, 4, 4, 4), DType.F32)
    buffers = {name: Buffer(name, BufferKind.ACTIVATION, 256) for name in "xyz"}
    buffers["view"] = Buffer("view", BufferKind.ACTIVATION, 256, alias_of="z")

    def call(kernel: str, read: str, written: str, least: float) -> Instr:
        operands = (Operand("in", read, Access.IN, images), Operand("out", written, Access.OUT, images))
        return Instr(kernel, "ref", operands, {"act_min": least})

    calls = (
        call("conv_f32", "x", "y", 0.0), call("max_pool_f32", "y", "z", -math.inf), call("fc_f32", "view", "y", -1.0),
        call("fc_f32", "y", "x", 0.0),
    )  # fmt: skip
    assert [bool(x) for x in given(Program("model", (), (), buffers, {}, calls))] == [True, False, False, True]
    plain = Estimate({"call": 1.0}, {"call": 10.0, "call@signed": 5.0}, 0.0, 9)
    assert plain.predict(conv(), SIGNED) == Cost(1, 15)
    assert plain.predict(conv()) == Cost(1, 10)


def test_calls_of_kernels_with_few_functions_are_told_from_others() -> None:
    sizes = [conv("dsp", size=n) for n in (4, 6, 8, 10)]
    assert few_forms([(x, "literal") for x in sizes]) == [frozenset()] * 4
    assert few_forms([(x, "shared") for x in sizes]) == [FEW] * 4  # one function
    assert few_forms([(sizes[0], "literal")] * 9) == [FEW] * 9
    assert few_forms([(conv(), "literal")]) == [frozenset()]  # portable C has no header of its own


def test_averages_beyond_a_factor_and_those_that_may_be_ties_are_told_apart() -> None:
    def has(**params: float) -> set[str]:
        return {"factor>1/4", "factor>1/2", "ties"} & traits(replace(conv(), params={"k_h": 2, "k_w": 2, **params}))

    assert has(in_scale=0.5, out_scale=0.5) == {"ties"}
    assert has(in_scale=0.5, out_scale=0.4) == {"factor>1/4"}
    assert has(in_scale=0.5, out_scale=0.2) == {"factor>1/4", "factor>1/2"}
    assert has(in_scale=0.5, out_scale=0.5, k_h=3, k_w=3) == set()
    assert has(in_scale=0.5) == set()


def test_what_stands_in_where_a_kernel_was_not_measured() -> None:
    instr, other = conv("dsp"), conv("dsp", pad=0)
    found = estimates_of((instr, "literal", estimate(2.0)))
    macs = instr.macs
    assert found.predict(instr, "shared", Costs()) == Cost(macs, 2 * macs)
    assert found.predict(instr, "size", Costs()) is None
    assert Estimates().predict(instr, "literal", costs_of({"dsp": 3.0})) == costs_of({"dsp": 3.0}).predict(
        instr, "size"
    )
    kernel, variant, *_ = key_of(other).split(".")
    akin = Estimates({f"{kernel}.{variant}.elsewhere.s8": {"literal": estimate(4.0)}})
    assert akin.predict(other, "literal", Costs()) == Cost(2 * macs, 4 * macs)
    fit = Fit({"macs": 1.0}, {"macs": 1.0}, (0, 0), 0.01, 9)
    costs = Costs("test", {key_of(other): {"literal": fit}})
    assert akin.predict(other, "literal", costs) == Cost(macs, macs)


def test_instructions_stand_for_cycles_where_no_chip_has_the_cpu() -> None:
    instr = conv("a32")
    found = replace(estimates_of((instr, "literal", estimate(2.0))), are_insns=True)
    assert found.predict(instr, "literal", Costs(cycles_per_insn=1.5)) == Cost(2 * instr.macs, 3 * instr.macs)


def test_exact_sums_run_the_same_loops_in_either_form() -> None:
    assert "add_s8.v7m..exact" in like("add_s8f.v7m..exact")
    assert "add_s8.v7m..near" not in like("add_s8f.v7m..near")


@dataclass(frozen=True)
class FormPlan(Plan):
    """A plan of a sum."""

    form: str = "fixed"


def test_sums_in_fixed_point_run_the_same_loops_whatever_they_stand_for() -> None:
    operand = Operand("out", "y", Access.OUT, TensorType((64,), DType.S8))
    instr = Instr("add_s8f", "ref", (operand,), {"n": 64}, plan=FormPlan())
    known = Estimates({"add_s8.ref..": {"literal": Estimate({"outputs": 2.0}, {"outputs": 3.0}, 0.0, 9)}})
    assert known.predict(instr, "literal", Costs()) == Cost(128, 192)
    assert known.predict(replace(instr, plan=FormPlan("fused")), "literal", Costs()) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_estimates_are_read(path: Path) -> None:
    assert path.stem in cpu_names()
    assert estimates_file(path.stem) == path
    kernels = load_estimates(path.stem).kernels
    errors = [x.error for modes in kernels.values() for x in modes.values()]
    assert np.median(errors) <= 0.1


def test_a_cpu_of_its_own_file_does_not_take_that_of_its_costs() -> None:
    assert estimates_for("cortex-m4", "cortex-m3") is load_estimates("cortex-m4")
    assert estimates_for("cortex-m4-of-nobody", "cortex-m3") is load_estimates("cortex-m3")
    assert not estimates_for("nobody", "none").kernels


@pytest.fixture(scope="module")
def fitting() -> Iterator[ModuleType]:
    """scripts/fit_estimates.py as a module."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location("fit_estimates", ROOT / "scripts" / "fit_estimates.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["fit_estimates"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def test_fit_finds_the_terms_and_what_they_leave(fitting: ModuleType) -> None:
    def taken(instr: Instr) -> float:
        values = features(instr)
        bump = 1.3 if values["pixels"] > 150 else 1.0  # what no term says
        return bump * (40 + 3 * values["macs"] + 25 * values["rows"])

    instrs = [conv(size=n) for n in range(4, 20)]
    layers = [fitting.Layer(x, taken(x) / 2, taken(x)) for x in instrs]
    entry = fitting.kernel_of({"shared": layers, "literal": layers[:3]}, 0)
    found = json.loads(json.dumps(entry))
    assert found["modes"]["shared"]["near"]
    assert found["traits"][-1] == "shared"  # beside "literal"
    read = Estimates({key_of(instrs[0]): parse_kernel(found)})
    for instr in instrs:
        cost = read.predict(instr, "shared", Costs())
        assert cost is not None
        assert cost.cycles == pytest.approx(taken(instr), rel=0.12)


def test_error_of_the_process_is_that_of_leaving_a_layer_out(fitting: ModuleType) -> None:
    rng = np.random.default_rng(1)
    spots = [(2 ** int(n), 4, 8, 1, 16, 0) for n in range(10)]
    counts, predicted = 1000 * rng.uniform(0.8, 1.2, 10), np.full(10, 1000.0)
    near, errors = fitting.fit_near(spots, sorted(set(spots)), counts, predicted)
    assert len(near["weights"]) == len(errors) == 10
    assert 0 < np.abs(errors).max() < 0.5


def test_layers_of_the_same_sizes_are_left_out_together(fitting: ModuleType) -> None:
    spots = [(16, 4, 8, 1, 16, 0), (64, 8, 8, 1, 16, 0), (16, 4, 8, 1, 16, 1), (4, 2, 8, 1, 16, 0)]
    alike = np.array([[1.0, 0.2, 0.9, 0.1], [0.2, 1.0, 0.2, 0.3], [0.9, 0.2, 1.0, 0.1], [0.1, 0.3, 0.1, 1.0]])
    noisy, off = alike + 0.1 * np.eye(4), np.array([0.3, -0.1, 0.25, 0.05])
    inverse = np.linalg.inv(noisy)
    parts = fitting.same_sizes(spots)
    assert sorted(tuple(part) for part in parts) == [(0, 2), (1,), (3,)]
    errors = fitting.left_out_together(inverse, inverse @ off, parts)
    for part in parts:
        rest = [n for n in range(4) if n not in part]
        said = alike[np.ix_(part, rest)] @ np.linalg.solve(noisy[np.ix_(rest, rest)], off[rest])
        assert errors[part] == pytest.approx(off[part] - said)


def test_errors_of_estimates_are_those_for_what_a_layer_reads(fitting: ModuleType) -> None:
    instr = conv(size=8)
    inside = features(instr)["inside"]
    layers = [fitting.Layer(instr, 1.0, 2 * share * inside, nonzero=share) for share in (1.0, 0.25)]
    assert fitting.relative_errors(Estimate({}, {"nonzeros": 2.0}, 0.0, 9), layers) == pytest.approx([0, 0], abs=1e-3)


def test_a_kernel_that_another_tells_as_well_has_no_estimates_of_its_own(fitting: ModuleType) -> None:
    def layers(sizes: range, kernel: str, per_mac: float) -> list[object]:
        instrs = [replace(conv(size=n), kernel=kernel) for n in sizes]
        return [fitting.Layer(x, per_mac * x.macs, 40 + 2 * per_mac * x.macs) for x in instrs]

    plain, shifted = (key_of(replace(conv(), kernel=kernel)) for kernel in ("conv_s8", "conv_s8rs"))
    many = layers(range(4, 20), "conv_s8", 1.0)
    for per_mac, kept in ((1.0, {plain}), (1.5, {plain, shifted})):
        measured = {(plain, "shared"): many, (shifted, "shared"): layers(range(6, 10), "conv_s8rs", per_mac)}
        assert fitting.kernels_of(measured, 0).keys() == kept


def test_a_term_counts_multiply_accumulates(fitting: ModuleType) -> None:
    layers = [fitting.Layer(conv(size=n), 100.0, 100.0 + n) for n in range(4, 16)]
    fit, _ = fitting.fit_layers(layers, 0)
    assert {name.partition("@")[0] for name in fit["cycles"]} & (fitting.WORK | fitting.ALSO_WORK)


def test_few_layers_take_the_terms_of_another_way_of_printing(fitting: ModuleType) -> None:
    def layers(sizes: range, per_mac: float) -> list[object]:
        instrs = [conv(size=n) for n in sizes]
        return [fitting.Layer(x, per_mac * x.macs, 2 * per_mac * x.macs + 500 * features(x)["rows"]) for x in instrs]

    many, few = layers(range(4, 30), 1.0), layers(range(10, 14), 0.9)
    other, own = fitting.fit_layers(many, 0)[0], fitting.fit_layers(few, 0)
    found, said = fitting.borrowed(few, own, other)
    assert found["cycles"].keys() == other["cycles"].keys()
    assert found["samples"] == len(few)
    assert said == pytest.approx([x.cycles for x in few], rel=0.1)
    assert fitting.borrowed(many, (other, said), other)[0] == other  # no more layers than these

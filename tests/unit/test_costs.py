"""The cost model and the choice of variants by it: features, fallbacks, order, scratch, code, and how it is fitted."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from glowc.board import cpu_names, load_board, load_chip, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model
from glowc.graph.types import DType, TensorType
from glowc.kernels.base import KernelVariant, prepare
from glowc.kernels.choice import variant_of
from glowc.kernels.common.constants import WEIGHTED
from glowc.kernels.features import FEATURES, WORK, Stated, features
from glowc.kernels.isas import ISAS
from glowc.kernels.registry import variants_of
from glowc.program.ir import Access, Instr, Operand, scratch_bytes
from glowc.program.kernel import all_kernels, get_kernel
from glowc.select import cost as costs_module
from glowc.select.candidates import Layer, worth_trying
from glowc.select.code import ANY, WAYS, CodeSizes
from glowc.select.cost import MODES, Cost, Costs, Fit, key_of, keys_like, load_costs, parse_costs
from glowc.select.order import cheaper, lean, select
from tests.conftest import ROOT


def conv(isa: str = "ref", *, size: int = 8, scratch: int = 0, name: str = "conv.0", pad: int = 1) -> Instr:
    """A 3x3 convolution from 4 to 8 channels at size x size."""

    def tensor(*shape: int) -> TensorType:
        return TensorType(shape, DType.S8)

    operands = [
        Operand("in", "x", Access.IN, tensor(1, size, size, 4)),
        Operand("weights", "w", Access.IN, tensor(8, 3, 3, 4)),
        Operand("bias", "b", Access.IN, TensorType((8,), DType.S32)),
        Operand("scale", "s", Access.IN, TensorType((8,), DType.F32)),
        Operand("out", "y", Access.OUT, tensor(1, size, size, 8)),
    ]
    if scratch:
        operands.append(Operand("scratch", "t", Access.OUT, TensorType((scratch,), DType.U8)))
    params = dict.fromkeys(get_kernel("conv_s8").params, 0) | {
        "batch": 1, "in_h": size, "in_w": size, "in_c": 4, "out_h": size, "out_w": size, "out_c": 8, "in_ch": 1,
        "in_col": 4, "in_row": 4 * size, "in_ring": size, "out_row": 8 * size, "out_ring": size, "k_h": 3, "k_w": 3,
        "stride_h": 1, "stride_w": 1, "dil_h": 1, "dil_w": 1, "pad_top": pad, "pad_left": pad, "groups": 1,
        "out_min": -128, "out_max": 127, "scale_step": 1,
    }  # fmt: skip
    macs = size * size * 8 * 36
    instr = Instr("conv_s8", isa, tuple(operands), params, (0, size), name, (name,), "Conv", macs)
    arrays = {o.role: np.ones(o.type.shape, o.type.dtype.numpy) for o in operands if o.role in WEIGHTED}
    return replace(instr, plan=prepare(variant_of(instr), arrays, instr).plan)


def costs_of(per_mac: dict[str, float], text: dict[str, float] | None = None, error: float = 0.01) -> Costs:
    """Costs that are a number of cycles per MAC, half of it instructions, and of bytes, for each variant."""
    kernels = {}
    for isa, cost in per_mac.items():
        fit = Fit({"macs": cost / 2}, {"macs": cost}, error, 5)
        kernels[key_of(conv(isa))] = dict.fromkeys(MODES, fit)
    texts = {key_of(conv(isa)): (((text or {}).get(isa, 100.0), 0.0),) * len(WAYS) for isa in per_mac}
    return Costs("test", kernels, CodeSizes(texts))


def layer(*forms: Instr, live: int = 1000) -> Layer:
    return Layer(forms[0].name, forms, live)


def test_features_of_a_convolution() -> None:
    found = features(conv(size=8))
    assert (found["call"], found["pixels"], found["rows"], found["outputs"]) == (1, 64, 8, 512)
    assert (found["blocks"], found["vectors"], found["taps"], found["kernel_rows"]) == (128, 64, 576, 192)
    assert found["macs"] == 64 * 8 * 36
    assert found["padding"] == pytest.approx(found["macs"] * (1 - (22 / 24) ** 2))
    assert found["edges"] == pytest.approx(64 - 36)
    assert features(conv(size=8, pad=0))["edges"] > 0  # the last rows and columns still look beyond the input


def test_features_only_grow_with_the_layer() -> None:
    small, large = features(conv(size=6)), features(conv(size=12))
    assert all(large[name] >= small[name] for name in small)


def test_prediction_is_the_sum_of_terms_and_unknown_kernels_have_none() -> None:
    costs = costs_of({"ref": 2.0})
    assert costs.predict(conv("ref"), "shared") == Cost(64 * 8 * 36, 2 * 64 * 8 * 36)
    assert costs.predict(conv("v7m"), "shared") is None
    assert Costs().predict(conv("ref"), "literal") is None


def test_what_was_not_measured_has_the_stated_cost_and_the_cpus_cycles_per_instruction() -> None:
    insns = ISAS["v7m"].stated.insns(conv("v7m"))
    assert Costs(cycles_per_insn=1.5).stated(conv("v7m")) == Cost(round(insns), round(1.5 * insns))
    assert load_costs(load_cpu("cortex-m4")).stated(conv("v7m")).cycles == round(insns * 1.5)


def test_a_kernel_that_ends_in_a_shift_has_the_costs_of_the_one_that_does_not() -> None:
    shifted = replace(conv("ref"), kernel="conv_s8rs")
    costs = costs_of({"ref": 2.0})
    assert costs.predict(shifted, "shared") == costs.predict(conv("ref"), "shared")


def test_kernels_of_several_operations_have_costs_of_each() -> None:
    operand = Operand("in", "x", Access.IN, TensorType((8,), DType.F32))
    keys = {key_of(Instr("unary", "ref", (operand,), {"op": op}, name="u")) for op in ("tanh", "sqrt")}
    assert keys == {"unary.ref..tanh", "unary.ref..sqrt"}


def test_another_way_of_printing_stands_in_one_by_o2_before_that_by_os() -> None:
    costs = costs_of({"ref": 2.0})
    key = key_of(conv("ref"))
    only = replace(costs, kernels={key: {"literal": costs.kernels[key]["literal"]}})
    assert only.predict(conv("ref"), "size") == costs.predict(conv("ref"), "size")
    fits = {mode: Fit({}, {"call": cycles}, 0.01, 9) for mode, cycles in (("size", 9), ("shared", 5))}
    assert Costs("test", {key: fits}).predict(conv("ref"), "literal") == Cost(0, 5)


def test_a_window_of_time_steps_moves_as_a_flat_copy() -> None:
    assert keys_like("push_b1.ref..")[-1] == "copy_b1.ref..flat"
    assert keys_like("push_b2.ref..")[-1] == "copy_b4.ref..flat"
    assert keys_like("push_b1.v7m..")[-1] == "push_b1.v7m.."


@pytest.mark.parametrize(("more", "order"), [(1.2, ("v7m", "dsp")), (1.3, ("dsp", "v7m"))])
def test_fewest_predicted_cycles_win_over_rank_unless_they_are_many_more_instructions(
    more: float, order: tuple[str, ...]
) -> None:
    forms = (conv("dsp"), conv("v7m"))
    kernels = {
        key_of(form): dict.fromkeys(MODES, Fit({"macs": insns}, {"macs": cycles}, 0.01, 9))
        for form, insns, cycles in zip(forms, (1.0, more), (3.0, 2.0), strict=True)
    }
    assert select([layer(*forms)], Costs("test", kernels), "speed")["conv.0"] == order


def test_fewest_predicted_cycles_win_over_rank() -> None:
    forms = (conv("dsp"), conv("v7m"), conv("ref"))
    orders = select([layer(*forms)], costs_of({"dsp": 3.0, "v7m": 2.0, "ref": 9.0}), "speed")
    assert orders["conv.0"] == ("v7m", "dsp", "ref")


def test_rank_wins_within_the_error_of_the_fits() -> None:
    forms = (conv("dsp"), conv("v7m"))
    costs = costs_of({"dsp": 3.0, "v7m": 2.9}, error=0.05)
    assert select([layer(*forms)], costs, "speed")["conv.0"] == ("dsp", "v7m")


@pytest.mark.parametrize("opt", ["size", "balanced", "speed"])
def test_a_variant_that_was_not_measured_leaves_the_order_to_rank(opt: str) -> None:
    forms = (conv("dsp"), conv("v7m"), conv("ref"))
    assert select([layer(*forms)], costs_of({"v7m": 1.0, "ref": 9.0}), opt)["conv.0"][0] == "dsp"
    assert select([layer(*forms)], Costs(), opt)["conv.0"] == ("dsp", "v7m", "ref")


def test_rough_fits_leave_the_order_to_rank() -> None:
    forms = (conv("dsp"), conv("v7m"))
    assert select([layer(*forms)], costs_of({"dsp": 9.0, "v7m": 1.0}, error=0.3), "speed")["conv.0"] == ("dsp", "v7m")


def test_a_rough_fit_of_the_last_variant_does_not_keep_others_from_being_compared() -> None:
    forms, rough = (conv("dsp"), conv("v7m"), conv("ref")), costs_of({"ref": 1.0}, error=0.5)
    costs = Costs("test", {**costs_of({"dsp": 3.0, "v7m": 2.0}).kernels, **rough.kernels})
    assert select([layer(*forms)], costs, "speed")["conv.0"] == ("v7m", "dsp", "ref")


def test_a_layer_has_the_first_variant_of_another_order_unless_its_own_is_cheaper() -> None:
    layers, own = [layer(conv("dsp"), conv("v7m"), conv("ref"))], {"conv.0": ("dsp", "ref", "v7m")}
    other = {"conv.0": ("v7m", "dsp", "ref")}
    for price, order in ((2, ("dsp", "ref", "v7m")), (3, ("v7m", "dsp", "ref")), (4, ("v7m", "dsp", "ref"))):
        prices = {"dsp": price, "v7m": 3, "ref": 1}
        assert cheaper(layers, own, other, lambda form, p=prices: p[form.variant])["conv.0"] == order  # type: ignore[misc]


def test_measured_cycles_replace_predicted_ones() -> None:
    forms = (conv("dsp"), conv("v7m"))
    costs = costs_of({"dsp": 1.0, "v7m": 9.0})
    tuned = {"conv.0": {"dsp": Cost(300, 500), "v7m": Cost(350, 400)}}
    assert select([layer(*forms)], costs, "balanced", tuned)["conv.0"][0] == "v7m"


def test_large_scratch_is_for_speed_only() -> None:
    forms = (conv("dsp", scratch=9000), conv("v7m", scratch=100))
    costs = costs_of({"dsp": 1.0, "v7m": 9.0})
    layers = [layer(*forms, live=10_000)]
    assert select(layers, costs, "speed")["conv.0"][0] == "dsp"
    assert select(layers, costs, "balanced")["conv.0"][0] == "v7m"
    assert lean(layers, {}, {"conv.0": 0})["conv.0"] == ("v7m", "dsp")


def test_scratch_beside_few_live_bytes_is_free() -> None:
    """Where another layer needs more arena anyway, scratch does not make it grow."""
    forms = (conv("dsp", scratch=9000), conv("v7m"))
    costs = costs_of({"dsp": 1.0, "v7m": 9.0})
    layers = [layer(*forms, live=1000), layer(conv("ref", name="big.1"), live=20_000)]
    assert select(layers, costs, "balanced")["conv.0"][0] == "dsp"
    assert scratch_bytes(forms[0]) == 9000


def test_size_gives_up_speed_that_costs_too_much_code() -> None:
    forms = (conv("dsp"), conv("v7m"))
    costs = costs_of({"dsp": 1.0, "v7m": 1.2}, {"dsp": 9000.0, "v7m": 300.0})
    layers = [layer(*forms)]
    assert select(layers, costs, "balanced")["conv.0"][0] == "dsp"
    assert select(layers, costs, "size")["conv.0"][0] == "v7m"
    worth = costs_of({"dsp": 1.0, "v7m": 4.0}, {"dsp": 2000.0, "v7m": 300.0})
    assert select(layers, worth, "size")["conv.0"][0] == "dsp"


def test_code_limit_of_balanced_is_kept_where_it_costs_least() -> None:
    costs = costs_of({"dsp": 1.0, "v7m": 4.0}, {"dsp": 30_000.0, "v7m": 300.0})
    assert select([layer(conv("dsp"), conv("v7m"))], costs, "balanced")["conv.0"][0] == "v7m"
    assert select([layer(conv("dsp"), conv("v7m"))], costs, "speed")["conv.0"][0] == "dsp"


@pytest.mark.parametrize(("more", "chosen"), [(0.001, "v7m"), (0.01, "dsp")])
def test_balanced_gives_up_speed_that_hardly_saves_cycles_for_a_kilobyte(more: float, chosen: str) -> None:
    costs = costs_of({"dsp": 1.0, "v7m": 1.0 + more}, {"dsp": 3000.0, "v7m": 300.0}, error=0.0001)
    layers = [layer(conv("dsp"), conv("v7m"))]
    assert select(layers, costs, "balanced")["conv.0"][0] == chosen
    assert select(layers, costs, "speed")["conv.0"][0] == "dsp"


@pytest.mark.parametrize("opt", ["size", "balanced"])
def test_code_limit_is_not_kept_at_any_price(opt: str) -> None:
    costs = costs_of({"dsp": 1.0, "v7m": 40.0}, {"dsp": 30_000.0, "v7m": 300.0})
    assert select([layer(conv("dsp"), conv("v7m"))], costs, opt)["conv.0"][0] == "dsp"


def test_choice_is_the_same_each_time() -> None:
    layers = [layer(*(conv(isa, name=f"conv.{n}", size=5 + n) for isa in ("dsp", "v7m", "ref"))) for n in range(6)]
    costs = costs_of({"dsp": 1.0, "v7m": 1.1, "ref": 1.2}, {"dsp": 9000.0, "v7m": 4000.0, "ref": 300.0})
    assert len({json.dumps(select(layers, costs, "size")) for _ in range(3)}) == 1


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of cost files that stands for the installed one."""
    (tmp_path / "_costs").mkdir()
    monkeypatch.setattr(costs_module, "data_dir", lambda name: tmp_path)
    costs_module._table.cache_clear()
    yield tmp_path / "_costs"
    costs_module._table.cache_clear()


def table(folder: Path, cpu: str) -> None:
    known = load_cpu(cpu)
    data = {"cpu": cpu, "family": known.family, "features": sorted(known.features), "kernels": {}}
    (folder / f"{cpu}.json").write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("cpu", "used"),
    [("cortex-m4", "cortex-m4"), ("cortex-m7", "cortex-m4"), ("cortex-m33", "cortex-m4"),
     ("cortex-m0plus", "cortex-m0"), ("cortex-m55", "cortex-m4"), ("cortex-a76", "cortex-a53"),
     ("cortex-a7", ""), ("host", "")],
)  # fmt: skip
def test_cpu_without_a_file_takes_the_most_similar_one_of_its_family(tables: Path, cpu: str, used: str) -> None:
    for name in ("cortex-m0", "cortex-m4", "cortex-a53"):
        table(tables, name)
    assert load_costs(load_cpu(cpu)).cpu == used


FILES = sorted((ROOT / "boards" / "_costs").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_of_a_known_cpu_and_complete(path: Path) -> None:
    data = json.loads(path.read_text())
    assert data["cpu"] == path.stem
    assert data["cpu"] in cpu_names()
    assert data.get("chip") is None or load_chip(data["chip"]).cpu == data["cpu"]
    costs = parse_costs(data)
    for key, modes in costs.kernels.items():
        assert set(modes) <= set(MODES), key
        for fit in modes.values():
            for terms in (fit.insns, fit.cycles):
                assert all(c > 0 for c in terms.values()), key
                assert set(terms) <= set(FEATURES), key
                assert fit.samples > len(terms) or "chip" not in data, key
    assert costs.code.texts[ANY]
    assert all(min(sizes) >= 0 for sizes in costs.code.functions.values())


FITTED = [path for path in FILES if "chip" in json.loads(path.read_text())]
"""Files of the present form; the others have instructions alone, until they are fitted again."""


@pytest.mark.parametrize("path", FITTED, ids=lambda path: path.stem)
def test_fits_of_kernels_with_multiply_accumulates_count_them(path: Path) -> None:
    for key, modes in parse_costs(json.loads(path.read_text())).kernels.items():
        if key.split("_")[0] in ("conv", "dwconv", "fc", "matmul", "gru"):
            assert all(WORK & fit.cycles.keys() and WORK & fit.insns.keys() for fit in modes.values()), key


MOST_ERROR = 0.10  # of the cycles of a layer that was left out of the fit; the file names kernels with a larger one
MOST_ROUGH = 0.4  # of the kernels: portable C that no layer of a model has on the CPU, most of them


@pytest.mark.parametrize("path", FITTED, ids=lambda path: path.stem)
def test_layers_that_were_left_out_are_predicted(path: Path) -> None:
    data = json.loads(path.read_text())
    kernels = parse_costs(data).kernels
    rough = [key for key, modes in kernels.items() if any(fit.error > MOST_ERROR for fit in modes.values())]
    assert data["chip"] is None or len(rough) <= MOST_ROUGH * len(kernels)


def test_every_layer_has_estimates_of_instructions_and_cycles() -> None:
    for board in ("host", "mps2-an386", "rpi-pico", "linux-armhf"):
        report = compile_model(ROOT / "examples/digits/digits.onnx", load_board(board)).report
        for what in ("insns_estimate", "cycles_estimate"):
            assert all(layer[what] > 0 for layer in report["layers"])
            assert report[what] == sum(layer[what] for layer in report["layers"])


def _script(name: str) -> ModuleType:
    """Return scripts/NAME.py as a module."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    """scripts/fit_costs.py as a module."""
    return _script("fit_costs")


def test_nnls_is_never_negative_and_optimal(fitting: ModuleType) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        a, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
        x = fitting.nnls(a, b)
        slope = a.T @ (a @ x - b)
        assert (x >= 0).all()
        assert (slope[x == 0] > -1e-6).all()
        assert np.abs(slope[x > 0]).max(initial=0) < 1e-6


def test_fit_finds_the_terms_that_made_the_numbers(fitting: ModuleType) -> None:
    samples = [(f := features(conv(size=n)), round(50 + 3 * f["macs"] + 20 * f["rows"])) for n in range(4, 16)]
    terms, error = fitting.fit([values for values, _ in samples], [n for _, n in samples])
    assert error < 0.005
    unseen = features(conv(size=24))
    predicted = Fit(terms, terms, error, 12).predict(unseen).cycles
    assert predicted == pytest.approx(50 + 3 * unseen["macs"] + 20 * unseen["rows"], rel=0.02)


def test_fit_counts_multiply_accumulates_and_takes_fewer_terms_than_samples(fitting: ModuleType) -> None:
    values = [features(conv(size=n)) for n in (4, 8, 12)]
    assert fitting.fit(values[:1], [100]) is None
    for count in (2, 3):
        terms, _ = fitting.fit(values[:count], [128.75 * v["inputs"] for v in values[:count]])
        assert 0 < len(terms) < count
        assert WORK & terms.keys()


def test_error_of_a_layer_left_out_is_that_of_fitting_without_it(fitting: ModuleType) -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(0.5, 1.5, (8, 2)) / 2
    _, errors = fitting.left_out(rows, np.ones(8))
    for n in range(8):
        rest = np.delete(rows, n, 0)
        x = np.linalg.lstsq(rest, np.ones(7), rcond=None)[0]
        assert errors[n] == pytest.approx(rows[n] @ x - 1)


def test_slow_chips_are_measured_with_few_large_layers(fitting: ModuleType) -> None:
    def most(cpu: str, kind: str) -> int:
        return max(x.macs for x in fitting.measured_on(load_cpu(cpu).features, fitting.SAMPLES) if x.kind == kind)

    assert most("cortex-m0plus", "conv") < most("cortex-m3", "conv") == most("cortex-m4", "conv")
    assert most("cortex-m0plus", "conv_f32") == most("cortex-m3", "conv_f32") < most("cortex-m4", "conv_f32")
    of_fpu = fitting.measured_on(load_cpu("cortex-m4").features, fitting.SAMPLES)
    assert not any(x.signed or x.sparse for x in of_fpu)  # functions of floats alone take longer for some numbers


def test_clones_and_parts_belong_to_their_function() -> None:
    counting = _script("fit_code")
    assert counting.plain(".text.glow_x.constprop.0.isra.0") == "glow_x"
    names = {"m_conv_s8__dsp", "m_conv_s8_2__dsp"}
    assert counting.owner_of("m_conv_s8_2__dsp_tile0", names) == "m_conv_s8_2__dsp"
    assert counting.owner_of("m_conv_s8__dsp", names) == "m_conv_s8__dsp"
    assert counting.owner_of("glow_x", names) is None
    names |= {"m_conv_s8__dsp_winograd"}
    assert counting.owner_of("m_conv_s8__dsp_winograd", names) == "m_conv_s8__dsp_winograd"


def test_every_variant_has_a_fitted_or_a_stated_cost() -> None:
    for cpu in map(load_cpu, cpu_names()):
        fitted = {tuple(key.split(".")[:2]) for key in load_costs(cpu).kernels}
        for kernel in all_kernels():
            for variant in variants_of(kernel):
                stated = variant.stated or ISAS[variant.isa].stated
                known = (kernel, variant.cost_name) in fitted
                assert known or (stated != Stated() and min(astuple(stated)) >= 0), f"{kernel}__{variant.name}"


def test_variant_that_states_no_less_than_one_of_lower_rank_is_not_tried() -> None:
    pair = KernelVariant("dsp", rank=1, row_block=2, stated=Stated(macs=0.75))
    four = KernelVariant("dsp", form="quad", rank=2, row_block=4, stated=Stated(macs=0.7))
    silent = KernelVariant("mve", rank=3)
    for size, tried in ((8, {pair, four, silent}), (3, {pair, silent})):  # 9 pixels are 10, or 12
        assert worth_trying(dict.fromkeys((silent, four, pair), conv(size=size))).keys() == tried


def test_layers_on_reference_kernels_are_listed_by_their_share_of_the_predicted_cycles() -> None:
    rows = (("small", "fc_s8__ref", 10), ("large", "conv_s8__ref", 300), ("fast", "conv_s8__dsp", 690))
    layers = [{"name": name, "kernel": kernel, "cycles_estimate": cycles} for name, kernel, cycles in rows]
    found = list(_script("ref_layers").ref_layers("m", layers, 0.01))
    assert [(x.layer["name"], x.share) for x in found] == [("large", 0.3)]


def test_kernels_are_added_to_a_file_that_keeps_its_own(fitting: ModuleType) -> None:
    modes = {"size": {"error": 0.2}}
    known = {"cpu": "c", "kernels": {"a": {}}}
    found = {"kernels": {"a": modes, "b": modes}}
    assert fitting.with_new(known, found) == {"cpu": "c", "kernels": {"a": {}, "b": modes}}
    assert fitting.with_new(known, found, ["a*"])["kernels"] == {"a": modes}


def test_ways_of_printing_that_are_kept_stay_as_the_file_has_them(fitting: ModuleType) -> None:
    def table(**samples: int) -> dict[str, object]:
        return {"kernels": {"a": {mode: {"error": 0.0, "samples": n} for mode, n in samples.items()}}}

    known, found = table(size=30, shared=40), table(shared=12, literal=6)
    whole = fitting.with_new(known, found, ["a"])["kernels"]["a"]
    kept = fitting.with_new(known, found, ["a"], ["size"])["kernels"]["a"]
    assert {mode: fit["samples"] for mode, fit in whole.items()} == {"shared": 12, "literal": 6}
    assert {mode: fit["samples"] for mode, fit in kept.items()} == {"size": 30, "shared": 12, "literal": 6}


def test_few_drawn_layers_weigh_against_many_chosen_ones(fitting: ModuleType) -> None:
    layers = [fitting.Taken({}, 0, 0, is_drawn=n < 4) for n in range(40)]
    squares = fitting.weights_of(layers) ** 2
    assert squares.mean() == pytest.approx(1)
    assert squares[:4].sum() / squares[4:].sum() == pytest.approx((4 / 36) ** 0.5)
    assert fitting.weights_of(layers[4:]) == pytest.approx(1)


def test_kernel_with_another_ending_costs_what_the_first_one_does_and_its_outputs(fitting: ModuleType) -> None:
    first = {"macs": 3.0, "rows": 7.0, "taps": 2.0, "inputs": 5.0}

    def cycles(values: Mapping[str, float]) -> float:
        return sum(c * values[name] for name, c in first.items()) + 4 * values["outputs"]

    samples, unseen = [features(conv(size=n)) for n in (4, 5, 7, 9)], features(conv(size=40))
    terms, _ = fitting.fit(samples, [cycles(values) for values in samples], like=first)
    assert Fit(terms, terms, 0, 4).predict(unseen).cycles == pytest.approx(cycles(unseen), rel=0.02)
    modes = {"size": {}, "literal": {"cycles": first}}
    assert fitting.fit_of([{}, modes], "shared") == {"cycles": first}
    assert fitting.fit_of([{}], "shared") is None


@pytest.mark.usefixtures("fitting")
def test_few_layers_replace_what_a_file_has_where_they_halve_its_error(fitting: ModuleType) -> None:
    target, counting = sys.modules["count_costs"].target_of("stm32l4r5"), sys.modules["count_costs"]
    measured, key = counting.Measured(), "conv_s8.ref..s8"
    for n in range(4, 14):
        values = features(conv(size=n))
        measured.add(
            key, "shared", fitting.Taken(values, 6 * values["macs"], (6 + 0.5 * (-1) ** (n // 2)) * values["macs"])
        )

    def kernels(cycles: float, *, quick: bool = True) -> dict[str, object]:
        known = {key: {"shared": {"insns": {"macs": 6.0}, "cycles": {"macs": cycles}, "samples": 9}}}
        found: dict[str, object] = fitting.table_of(target, measured, known, quick=quick)["kernels"]
        return found

    assert kernels(9.0).keys() == kernels(6.0, quick=False).keys() == {key}
    assert not kernels(6.0)


def test_only_layers_whose_kernel_is_wanted_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, models, sample = _script("count_costs"), [], sys.modules["cost_sample"].Sample
    layers = [sample("conv", (4, 4, 8), 8), sample("fc", (16,), 4), sample("conv", (6, 6, 4), 4)]
    monkeypatch.setattr(counting, "count", lambda compiled, *_: models.append(compiled))
    target = counting.target_of("mps2-an386/cortex-m4")
    found = counting.measure(target, layers, lambda key: key.startswith("conv_s8.ref."), True)
    assert len(found) == len(models) == 2  # by -O2, shared and printed for each shape
    for compiled in models:
        instrs = [i for i in compiled.program.instrs if i.macs]
        assert [(i.kernel, i.variant) for i in instrs] == [("conv_s8", "ref")] * 2


@pytest.mark.usefixtures("fitting")
def test_layers_of_tensorflow_lite_are_those_that_are_measured(tmp_path: Path) -> None:
    module, counts = sys.modules["cost_tflite"], sys.modules["count_costs"]
    samples = [
        next(s for s in module.TFLITE if s.kind == kind) for kind in dict.fromkeys(s.kind for s in module.TFLITE)
    ]
    compiled = compile_model(counts.written(samples, tmp_path), load_board("mps2-an386"), CompileOptions(plan="plain"))
    kernels = {i.kernel for i in compiled.program.instrs if not i.is_marker}
    assert kernels == {"svdf_s8q31", "lstm_s8q31", "rescale_q31", "quantize_away", "add_s16q31", "mul_s16q31"}

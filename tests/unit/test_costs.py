"""The cost model and the choice of variants by it: features, fallbacks, order, scratch and code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from glowc.board import cpu_names, load_board, load_chip, load_cpu
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


@pytest.mark.parametrize(("sizes", "chosen"), [
    ((9000, 12000), "dsp"), ((12000, 9000), "v7m"), ((32768, 40000), "dsp"), ((32769, 40000), "ref"),
])  # fmt: skip
def test_portable_code_is_not_chosen_for_lack_of_little_scratch(sizes: tuple[int, int], chosen: str) -> None:
    forms = (conv("dsp", scratch=sizes[0]), conv("v7m", scratch=sizes[1]), conv("ref"))
    costs = costs_of({"dsp": 2.0, "v7m": 2.0, "ref": 9.0})
    for opt in ("balanced", "size"):
        assert select([layer(*forms)], costs, opt)["conv.0"][0] == chosen


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

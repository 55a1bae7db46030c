"""Measured choices: the file, the hash of a layer, and what `glowc tune` says when it cannot measure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from glowc.board import load_board, load_cpu
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import BoardError, InputError
from glowc.machine import tune as tune_module
from glowc.machine.tune import save_entries, tune_model
from glowc.program.lifetimes import strip_markers
from glowc.select import measured as tuned_module
from glowc.select.candidates import Candidates
from glowc.select.measured import Entry, layer_key, load_entries, read_tuned
from tests.conftest import ROOT

DIGITS = ROOT / "examples/digits/digits.onnx"


@pytest.fixture(scope="module")
def layers() -> list[object]:
    compiled = compile_model(DIGITS, load_board("mps2-an386"))
    return [x for x in Candidates(compiled.graph, load_cpu("cortex-m4")).layers() if len(x.forms) > 1]


def test_key_depends_on_cpu_way_of_optimising_and_variants(layers: list) -> None:
    m4, m7, layer = load_cpu("cortex-m4"), load_cpu("cortex-m7"), layers[0]
    keys = {
        layer_key(layer, m4, "balanced"), layer_key(layer, m4, "size"), layer_key(layer, m7, "balanced"),
        layer_key(replace(layer, forms=layer.forms[:1]), m4, "balanced"),
        layer_key(replace(layer, forms=tuple(replace(f, params={**f.params, "out_zp": 99}) for f in layer.forms)), m4,
                  "balanced"),
    }  # fmt: skip
    assert len(keys) == 5
    assert layer_key(replace(layer, name="other"), m4, "balanced") in keys


def test_key_depends_on_the_runtime(layers: list, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpu = load_cpu("cortex-m4")
    before = layer_key(layers[0], cpu, "balanced")
    for path in (ROOT / "runtime_c").rglob("*.h"):
        (tmp_path / path.name).write_text(path.read_text() + "/* changed */\n")
    monkeypatch.setattr(tuned_module, "runtime_header", lambda name: tmp_path / name)
    assert layer_key(layers[0], cpu, "balanced") != before


def test_measured_layer_decides_and_the_report_says_so(layers: list, tmp_path: Path) -> None:
    cpu, path = load_cpu("cortex-m4"), tmp_path / "tune.json"
    entries = {}
    for layer in layers:
        cycles = {f.variant: 1000 - n for n, f in enumerate(layer.forms)}  # the last is the best
        insns = {f.variant: 500 + n for n, f in enumerate(layer.forms)}  # whatever the instructions say
        entry = Entry(layer.name, layer.forms[0].kernel, cpu.name, "cc 1", insns, cycles, "stm32l4r5")
        entries[layer_key(layer, cpu, "balanced")] = entry
    save_entries(path, entries)
    assert load_entries(path) == entries
    assert read_tuned(path, cpu, "size")(layers[0]) == {}
    compiled = compile_model(DIGITS, load_board("mps2-an386"), CompileOptions(tuned=path))
    chosen = {i.name: i.variant for i in compiled.program.instrs}
    assert all(chosen[x.name] == x.forms[-1].variant for x in layers)
    assert compiled.report["tuned_layers"] == len(layers)
    tuned = {x.name: (500 + len(x.forms) - 1, 1001 - len(x.forms)) for x in layers}
    estimates = {x["name"]: (x["insns_estimate"], x["cycles_estimate"]) for x in compiled.report["layers"]}
    assert set(tuned.values()) <= set(estimates.values())
    assert "--tuned tune.json" in str(compiled.report["options"])


NO_INSNS = {"layer": "a", "kernel": "b", "cpu": "c", "compiler": "d", "insns": {}}
BROKEN = (
    "", "[]", "{}", '{"glowc_tune": 2}', '{"glowc_tune": 1, "layers": {}}', '{"glowc_tune": 2, "layers": {"k": 3}}',
    json.dumps({"glowc_tune": 2, "layers": {"k": NO_INSNS}}),
    json.dumps({"glowc_tune": 2, "layers": {"k": NO_INSNS | {"insns": {"ref": 3}, "chip": "x"}}}),
)  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_file_that_is_none_is_an_error_with_a_hint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"x\.json"):
        load_entries(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*nothing\.json"):
        compile_model(DIGITS, load_board("host"), CompileOptions(tuned=tmp_path / "nothing.json"))


def test_board_that_cannot_count_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tune.json"
    with pytest.raises(BoardError, match="cannot count instructions"):
        tune_model(DIGITS, load_board("host"), CompileOptions(), path, lambda _: None)
    assert not path.exists()


def test_file_is_the_same_for_the_same_measurements(tmp_path: Path) -> None:
    entries = {
        "b": Entry("y", "conv_s8", "cortex-m4", "cc 1", {"ref": 3}),
        "a": Entry("x", "fc_s8", "m", "c", {"ref": 1}),
    }
    save_entries(tmp_path / "1.json", entries)
    save_entries(tmp_path / "2.json", dict(reversed(entries.items())))
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    assert list(json.loads((tmp_path / "1.json").read_text())["layers"]) == ["a", "b"]


def test_interrupted_tuning_keeps_what_it_measured_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the third program is counted: the file has two, and the next run measures the rest only."""
    path, board, programs = tmp_path / "tune.json", load_board("mps2-an386"), []

    def count(compiled: Compiled, _: object) -> list[tuple[str, str, int, int]]:
        if len(programs) == 2:
            programs.append("interrupted")
            raise KeyboardInterrupt
        programs.append("counted")
        return [(i.name, i.variant, 1000 + n, 1500 + n) for n, i in enumerate(strip_markers(compiled.program).instrs)]

    monkeypatch.setattr(tune_module, "_count", count)
    monkeypatch.setattr(tune_module, "_version", lambda _: "cc 1")
    with pytest.raises(KeyboardInterrupt):
        tune_model(DIGITS, board, CompileOptions(), path, lambda _: None)
    kept = load_entries(path)
    assert {len(e.insns) for e in kept.values()} == {2}
    assert all(not e.complete for e in kept.values() if len(e.insns) < 3)
    undecided = compile_model(DIGITS, board, CompileOptions(tuned=path)).report
    assert undecided.get("tuned_layers", 0) == sum(e.complete for e in kept.values())
    choices = tune_model(DIGITS, board, CompileOptions(), path, lambda _: None)
    assert len(programs) == 1 + max(len(c.insns) for c in choices)
    assert all(e.complete for e in load_entries(path).values())

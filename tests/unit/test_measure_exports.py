"""What `bench` and `validate` hand to other tools: history and gates, traces, metrics, JUnit."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

from glowc.errors import InputError
from glowc.machine.history import Entry, broken_gates, last_like, parse_gates, read_history
from tests.conftest import ROOT, require_module, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused


def entry(passed: bool = True, board: str = "b", **figures: float) -> Entry:
    return {"time": "t", "glowc": "", "model": "m", "model_hash": "", "board": board, "cpu": "c", "chip": None,
            "options": "", "figures": figures, "passed": passed}  # fmt: skip


@pytest.mark.parametrize(
    ("gate", "now", "fails"),
    [
        ("insns>+2%", 102, False), ("insns>+2%", 102.1, True), ("insns>+0%", 100, False), ("insns > +0.5 %", 101, True),
        ("insns>1_000", 1000, False), ("insns>1,000", 1001, True), ("insns>+2%", 50, False),
    ],
)  # fmt: skip
def test_gate_holds_up_to_its_limit(gate: str, now: float, fails: bool) -> None:
    assert bool(broken_gates(parse_gates([gate]), entry(insns=now), entry(insns=100))) == fails


def test_gates_without_an_earlier_measurement_hold_when_relative() -> None:
    gates = parse_gates(["insns>+2%", "arena_bytes>10"])
    assert broken_gates(gates, entry(insns=7, arena_bytes=11), None) == ["arena_bytes is 11, more than 10"]


def test_the_last_that_passed_of_the_same_board_counts() -> None:
    entries = [entry(insns=1), entry(insns=2), entry(passed=False, insns=3), entry(board="other", insns=4)]
    found = last_like(entries, entry())
    assert found is not None
    assert found["figures"] == {"insns": 2}


def test_gates_that_are_none_are_named_at_once() -> None:
    with pytest.raises(InputError, match=r"beauty>1, insns<2, insns>-5%"):
        parse_gates(["beauty>1", "insns<2", "insns>-5%", "insns>+2%"])


def test_a_file_of_others_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(entry()) + "\nhello\n")
    with pytest.raises(InputError, match="line 2 of "):
        read_history(path)


def test_bench_appends_gates_and_exports(glowc: Glowc, tmp_path: Path) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    require_module("prometheus_client")
    history, trace, metrics = tmp_path / "h.jsonl", tmp_path / "t.json", tmp_path / "m.prom"
    bundle = tmp_path / "bundle"
    assert glowc("compile", DIGITS, "--board", "mps2-an386", "-o", bundle).status == 0
    argv = ("bench", bundle, "--history", history, "--fail-if", "insns>+1%")
    done = glowc(*argv, "--trace", trace, "--metrics", metrics, "--json")
    report = json.loads(done.out)
    assert (done.status, len(read_history(history))) == (0, 1)

    slices = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [s["args"]["insns"] for s in slices] == [layer["insns"] for layer in report["layers"]]
    assert all(b["ts"] == pytest.approx(a["ts"] + a["dur"]) for a, b in pairwise(slices))
    text = metrics.read_text()
    assert f'glowc_instructions{{board="mps2-an386",model="digits"}} {float(report["insns"])}' in text
    assert text.count("glowc_layer_instructions{") == len(report["layers"])

    history.write_text(json.dumps({**read_history(history)[0], "figures": {"insns": report["insns"] / 2}}) + "\n")
    worse = glowc(*argv)
    assert (worse.status, "insns is " in worse.err, "+100.00 %" in worse.err) == (3, True, True)
    assert [e["passed"] for e in read_history(history)] == [True, False]
    assert glowc(*argv[:-2]).status == 0  # accepted: without a gate it is what the next one is compared with
    assert glowc(*argv).status == 0


def test_without_tensorboard_its_option_says_what_to_install(
    glowc: Glowc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    argv = ("bench", DIGITS, "--board", "host", "--tensorboard", tmp_path / "events")
    done = glowc(*argv)
    assert (done.status, "glowc[tensorboard]" in done.err) == (1, True)
    events = ModuleType("tensorboard.summary")
    seen: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path / "events")

        def add_scalar(self, tag: str, data: float, step: int, description: str) -> None:
            seen.append((tag, data, step))

        def close(self) -> None:
            seen.append(("closed", 0, 0))

    events.Writer = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboard.summary", events)
    assert glowc(*argv).status == 0
    tags = [tag for tag, _, _ in seen]
    assert "host/arena_bytes" in tags
    assert tags[-1] == "closed"


def test_figures_that_a_board_does_not_measure_are_told(glowc: Glowc, tmp_path: Path) -> None:
    require_tool("gcc")
    done = glowc("bench", DIGITS, "--board", "host", "--fail-if", "insns>1")
    assert (done.status, "host does not measure insns" in done.err) == (1, True)
    refused(glowc, "bench", DIGITS, "--fail-if", "x", says=["no such gate"], hint="insns>+2%")
    refused(glowc, "bench", DIGITS, "--trace", tmp_path / "no" / "t.json", says=["cannot write"], hint="--trace")


def test_junit_names_outputs_and_what_differs(glowc: Glowc, tmp_path: Path) -> None:
    require_tool("gcc")
    with np.load(ROOT / "examples/digits/digits_test.npz") as data:
        np.savez(tmp_path / "in.npz", image=data["image"][:2])
        np.savez(tmp_path / "right.npz", logits=data["golden"][:2])
        np.savez(tmp_path / "wrong.npz", logits=1 + data["golden"][:2] // 2)
    xml = tmp_path / "junit.xml"
    for golden, status, failures in (("right.npz", 0, 0), ("wrong.npz", 3, 1)):
        argv = ("validate", DIGITS, "--input", tmp_path / "in.npz", "--golden", tmp_path / golden, "--junit", xml)
        assert glowc(*argv).status == status
        suite = ElementTree.parse(xml).getroot()
        assert (suite.get("tests"), suite.get("failures")) == ("1", str(failures))
        assert len(suite.findall("testcase[@name='logits']/failure")) == failures

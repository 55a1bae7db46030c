"""Energy of chips, each published value predicted from the others; microjoules, days of a battery, gates."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from glowc.board import load_chip
from glowc.board.chips import Chip, Energy
from glowc.errors import InputError
from glowc.machine.battery import Duty, add_battery, parse_duty
from glowc.machine.history import parse_gates
from tests.conftest import ROOT
from tests.unit.cli_calls import DIGITS, Glowc, accepted, refused


@pytest.fixture
def energy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """scripts/energy.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("energy")
    sys.modules.pop("energy")


def test_each_published_energy_is_predicted_from_the_others_within_a_tenth(energy: Any) -> None:
    errors = [error for _, error in energy.left_out(energy.read_points())]
    assert len(errors) == 16
    assert max(map(abs, errors)) < 0.10


def test_chip_files_have_what_is_fitted(energy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert energy.main() == 0, capsys.readouterr().out


def test_page_about_cycles_has_the_numbers_of_the_chips() -> None:
    page = (ROOT / "docs/CYCLES.md").read_text()
    rows = re.findall(r"^\| (STM32\w+) \(\d+ MHz\) \| ([\d.]+) \|", page, re.M)
    known = {name: load_chip(name.lower()).energy for name, _ in rows}
    assert {name: float(pj) for name, pj in rows} == {name: e and e.pj_per_cycle for name, e in known.items()}


def test_bytes_of_constants_take_energy_too() -> None:
    assert Energy(100, 5, "x").microjoules(1_000_000, 0) == 100
    assert Energy(100, 5, "x").microjoules(0, 1_000_000) == pytest.approx(11.3)


def test_days_of_a_battery() -> None:
    report: Any = {"ms": 36.0, "uj": 1000.0}
    assert add_battery(report, parse_duty("100mAh, 3V", 10_000, 10)) == ""
    # 1,080 J; 2,777.8 uW of inferences a tenth of the time, 0.9 * 30 uW asleep
    assert report["battery"]["days"] == round(1080 / (2777.78e-6 + 27e-6) / 86_400, 1)


def test_more_inferences_than_an_hour_has_time_for_are_refused() -> None:
    with pytest.raises(InputError, match="an inference takes 36") as caught:
        add_battery({"ms": 36.0, "uj": 1.0}, Duty(100, 3, 100_001, 1))  # type: ignore[typeddict-item]
    assert caught.value.hint == "an hour has time for 100,000 inferences"


@pytest.mark.parametrize(
    "argv",
    [
        ("--per-hour", "60", "--battery", "220"), ("--per-hour", "60", "--battery", "0mAh,3V"), ("--per-hour", "0"),
        ("--per-hour", "nan"), ("--per-hour", "60", "--sleep-ua", "inf"), ("--per-hour", "60", "--sleep-ua=-1"),
    ],
)  # fmt: skip
def test_bad_duty_is_refused_before_anything_runs(glowc: Glowc, argv: tuple[str, ...]) -> None:
    refused(glowc, "bench", DIGITS, *argv, says=["--"])


def test_gate_takes_the_unit_as_it_is_written() -> None:
    assert [gate.figure for gate in parse_gates(["uJ>+2%", "uj>50"])] == ["uj", "uj"]


def test_every_chip_says_its_energy_or_why_not(glowc: Glowc) -> None:
    for row in json.loads(accepted(glowc, "chips", "--json"))["chips"]:
        assert row["energy_source"].startswith("not known: ") == (row["pj_per_cycle"] is None)


@pytest.mark.qemu
def test_bench_gives_microjoules_of_layers_and_days(glowc: Glowc) -> None:
    out = accepted(glowc, "bench", DIGITS, "--chip", "stm32l4r5", "--per-hour", 60, "--fail-if", "uJ>100", "--json")
    report = json.loads(out)
    chip: Chip = load_chip("stm32l4r5")
    assert chip.energy is not None
    assert report["uj"] == round(chip.energy.microjoules(report["cycles"], report["weights_bytes"]), 3)
    layers = sum(layer["uj"] for layer in report["layers"])
    assert layers == pytest.approx(report["uj"], rel=0.1)
    assert 100 < report["battery"]["days"] < 2000
    text = accepted(glowc, "bench", DIGITS, "--chip", "stm32l4r5", "--per-hour", 60)
    assert "274 pJ a cycle, within 7 %" in text
    assert "days of 220 mAh at 3 V" in text


@pytest.mark.qemu
def test_energy_that_is_not_known_is_said(glowc: Glowc) -> None:
    done = glowc("bench", DIGITS, "--chip", "stm32g474", "--per-hour", 60, "--json")
    report = json.loads(done.out)
    assert "uj" not in report
    assert report["chip"]["energy"]["source"].startswith("not known: ")
    assert "no days of a battery: not known" in done.err
    gated = glowc("bench", DIGITS, "--chip", "stm32g474", "--fail-if", "uJ>1")
    assert (gated.status, "does not measure uj" in gated.err) == (1, True)
    Path("r.json").write_text(json.dumps(report))
    assert glowc("report", "r.json", "--no-measure", "-o", "r.html").status == 0

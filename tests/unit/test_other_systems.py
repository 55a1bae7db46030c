"""Windows and macOS, simulated: the commands of the first pages work there and write the same bytes as on Linux."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from glowc.codegen.export import FORMS
from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import tree
from tests.unit.onnx_builders import model
from tests.unit.other_system import WINDOWS

SYSTEMS = {"linux": "utf-8", "win32": "cp437", "darwin": "cp1252"}
CALLS = {
    "doctor": "doctor",
    "boards": "boards",
    "chips": "chips",
    "page": "docs memory",
    "include": "make-include",
    "examples": "example",
    "example": "example firmware-make written/project",
    "quantize": "quantize digits_fp32.onnx --data few.npz -o written/int8.onnx",
    "profile": "profile digits_fp32.onnx --data few.npz -o written/digits.yaml",
    "compile": "compile digits.onnx --board mps2-an386 --golden in.npz -o written/digits",
    "names": "compile Größe_αβ.onnx --memory-map -o written/names",
    "group": "compile a=digits.onnx b=Größe_αβ.onnx --share-arena -o written/group",
    **{form: f"compile Größe_αβ.onnx --format {form} -o written/{form}" for form in FORMS},
    "report": "report Größe_αβ.onnx -o written/names.html",
    "kit": "test-kit digits.onnx written/kit --board mps2-an386 --input in.npz",
    "board": "board new own --from rpi-pico -o written/boards",
    "run": "run written/names --input named.npz --output out.npz",
    "bench": "bench written/names",
    "validate": "validate Größe_αβ.onnx --input named.npz",
    "build": "build Größe_αβ.onnx --board nucleo-l4r5zi -o kws.elf",
    "wire": "build Größe_αβ.onnx --board mps2-an386 --wire -o wire.elf",
    "flash": "flash kws.elf --board nucleo-l4r5zi",
    "count": "bench written/names --board mps2-an386",
    "cycles": "bench written/digits --chip stm32l4r5",
    "port": "run written/digits --port COM77 --input in.npz --output out.npz",
    "matrix": "matrix --models models -o results.sqlite --do validate",
}


ON_WINDOWS = {"quantize", "matrix", "cycles"}
"""Slow calls that depend on the system nowhere else."""


@dataclass(frozen=True)
class Left:
    """What the commands leave on a system."""

    calls: dict[str, tuple[int, str, str]]
    files: dict[str, bytes | None]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Left]:
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm")
    return {system: _left(system, page, tmp_path_factory.mktemp(system)) for system, page in SYSTEMS.items()}


def _left(system: str, page: str, folder: Path) -> Left:
    _write_inputs(folder)
    calls = {name: words for name, words in CALLS.items() if _needed(system, name, words)}
    script = [sys.executable, "-X", "warn_default_encoding", str(ROOT / "tests/unit/other_system.py"), system, page]
    path = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
    done = subprocess.run(
        script, input=json.dumps([words.split() for words in calls.values()]), capture_output=True, text=True,
        check=False, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return Left(dict(zip(calls, map(tuple, answers), strict=True)), tree(folder / "written"))


def _needed(system: str, name: str, words: str) -> bool:
    """Say whether a call tells something: on Linux by its files, on macOS where the system may matter."""
    return system == WINDOWS or (name not in ON_WINDOWS and (system != "linux" or "-o written/" in words))


def _write_inputs(folder: Path) -> None:
    """Write models and inputs, one with names that no code page has, and a compiler that knows a flag of macOS."""
    for name in ("digits.onnx", "digits_fp32.onnx"):
        shutil.copy(ROOT / "examples/digits" / name, folder)
    with np.load(ROOT / "examples/digits/digits_calibration.npz") as data:
        np.savez(folder / "few.npz", image=data["image"][:8])
        np.savez(folder / "in.npz", image=np.round(data["image"][:2] * 8).astype(np.int8))
    net = model([helper.make_node("Relu", ["ξ"], ["ω"], name="α→β")], {"ξ": "f32[1,4]"}, "ω")
    (folder / "models").mkdir()
    for path in (folder / "Größe_αβ.onnx", folder / "models" / "λ.onnx"):
        path.write_bytes(net.SerializeToString())
    np.savez(folder / "named.npz", **{"ξ": np.ones((1, 1, 4), np.float32)})
    (folder / "written").mkdir()
    (folder / "bin").mkdir()
    gcc = folder / "bin" / "gcc"  # the linker here does not know the flag
    gcc.write_text(
        f'#!/bin/bash\nexec {shutil.which("gcc")} "${{@/-Wl,-dead_strip/-Wl,--gc-sections}}"\n', encoding="utf-8"
    )
    gcc.chmod(0o755)


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_work(left: dict[str, Left], system: str) -> None:
    """Nothing counts cycles on Windows, and no port is called COM77 here."""
    fails = {"port", "cycles"} if system == "win32" else {"port"}
    found = {name: (status, err) for name, (status, _, err) in left[system].calls.items()}
    assert {name: answer for name, answer in found.items() if (answer[0] != 0) != (name in fails)} == {}
    for name in fails & found.keys():
        assert found[name][0] == 1
        assert found[name][1].startswith("error[GL")
        assert "hint: " in found[name][1]


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_files_are_those_of_linux(left: dict[str, Left], system: str) -> None:
    here, there = left["linux"].files, left[system].files
    assert [name for name in here if here[name] != there.get(name)] == []
    assert len(here) > 100


def test_names_that_the_console_has_no_letters_for_are_escaped(left: dict[str, Left]) -> None:
    assert "α\\u2192\\u03b2" in left["win32"].calls["bench"][1]  # code page 437 has an alpha
    assert "\\u03b1\\u2192\\u03b2" in left["darwin"].calls["bench"][1]

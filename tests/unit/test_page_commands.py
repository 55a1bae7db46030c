"""Pages are executed: commands, the query, the C and the makefile.

The ways of a new user with an installed wheel: tests/package/test_ways.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS, Glowc

MODELS = ROOT / "examples/firmware-make/models"
TFLITE = ROOT / "examples/tflite"


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)


def _run(glowc: Glowc, block: str) -> None:
    for line in block.splitlines():
        program, *argv = shlex.split(line, comments=True)
        assert program == "glowc"
        command, _, file = " ".join(argv).partition(" > ")
        done = glowc(*shlex.split(command))
        assert done.status == 0, done.err
        if file:
            Path(file).write_text(done.out)


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_tool("cc", "arm-none-eabi-gcc", "qemu-system-arm", "make")


def test_commands_about_the_page(glowc: Glowc) -> None:
    Path("digits.onnx").write_bytes(DIGITS.read_bytes())
    first, second = _blocks("REPORT.md", "sh")
    _run(glowc, first)
    alone = Path("digits.html").read_text()
    _run(glowc, second)
    assert '"against":null' in alone
    assert '"against":{' in Path("digits.html").read_text()


def test_command_and_query_about_the_matrix(glowc: Glowc) -> None:
    Path("models").mkdir()
    Path("models/digits.onnx").write_bytes(DIGITS.read_bytes())
    _run(glowc, _blocks("MATRIX.md", "sh")[0])
    with sqlite3.connect("results.sqlite") as db:
        (query,) = _blocks("MATRIX.md", "sql")
        rows = db.execute(query).fetchall()
    db.close()
    assert len(rows) == 4
    assert "mps2-an386, size" in Path("results.html").read_text()


def test_start_with_a_makefile(glowc: Glowc) -> None:
    Path("kws.onnx").write_bytes(DIGITS.read_bytes())
    _run(glowc, _blocks("START_MAKE.md", "sh")[-1])
    (code,) = _blocks("START_MAKE.md", "c")
    head, call = code.rsplit("int status", 1)
    Path("main.c").write_text(f"{head}int main(void) {{\n  int status{call}  return status;\n}}\n")
    rule = "firmware.elf:\n\t$(CC) $(CFLAGS) $(KWS_CPU_FLAGS) --specs=nosys.specs -o $@ $^ $(KWS_LDLIBS)\n"
    (page,) = _blocks("START_MAKE.md", "make")
    Path("Makefile").write_text(
        f"CC := arm-none-eabi-gcc\nCFLAGS = $(KWS_CPU_FLAGS)\nOBJS := main.o\nall: firmware.elf\n{page}\n{rule}"
    )
    subprocess.run(["make", "-s"], check=True)
    assert Path("firmware.elf").stat().st_size > 0


def test_several_models_in_one_bundle_and_constants_as_a_blob(glowc: Glowc) -> None:
    for folder, model in (("a", "digits"), ("b", "sine")):
        Path(folder).mkdir()
        shutil.copy(MODELS / f"{model}.onnx", f"{folder}/model.onnx")
    shutil.copy(MODELS / "digits_test.npz", "in.npz")
    shutil.copy("a/model.onnx", "old_int8.onnx")
    shutil.copy(DIGITS.with_name("digits_fp32.onnx"), "new_fp32.onnx")
    with np.load(DIGITS.with_name("digits_calibration.npz")) as data:
        np.savez("samples.npz", image=data["image"][:16])
    subprocess.run([sys.executable, ROOT / "examples/llama/make_model.py"], check=True)
    for block in _blocks("OUTPUT.md", "sh"):
        _run(glowc, block)
    assert Path("build/app/app.h").is_file()
    assert Path("build/updatable/kws_weights.bin").is_file()
    assert Path("build/new/kws_weights.bin").is_file()


def test_coming_from_tflm(glowc: Glowc) -> None:
    shutil.copy(TFLITE / "sine.tflite", "model.tflite")
    shutil.copy(TFLITE / "sine_test.npz", "in.npz")
    _run(glowc, _blocks("FROM_TFLM.md", "sh")[0])
    Path("main.c").write_text(_blocks("FROM_TFLM.md", "c")[0].replace("  model_reset();", "  /* no states */"))
    sources = sorted(Path("build/model").glob("*.c"))
    subprocess.run(["cc", "-std=c11", "-Ibuild/model", "main.c", *sources, "-o", "main"], check=True)
    subprocess.run(["./main"], check=True)


def test_coming_from_keras(glowc: Glowc) -> None:
    shutil.copy(TFLITE / "sine.tflite", "model.tflite")
    shutil.copy(TFLITE / "sine_test.npz", "in.npz")
    lite, onnx_file = _blocks("FROM_KERAS.md", "sh")
    _run(glowc, lite)
    _save_float_model("model.onnx")
    np.savez("in.npz", x=np.random.default_rng(0).random((8, 1, 4), np.float32))
    _run(glowc, onnx_file)


def _save_float_model(name: str) -> None:
    w = numpy_helper.from_array(np.random.default_rng(1).random((3, 4), np.float32), "w")
    x, y = (helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, n]) for end, n in (("x", 4), ("y", 3)))
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], "net", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)

"""glowc quantize with weights of 4 and 2 bits: what it writes, and the best choice of layers for a limit of flash."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.conftest import ROOT, require_module
from tests.unit.cli_calls import Glowc

DIGITS = ROOT / "examples/digits"


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    shutil.copy(DIGITS / "digits_fp32.onnx", tmp_path / "float.onnx")
    shutil.copy(DIGITS / "digits_calibration.npz", tmp_path / "in.npz")
    with np.load(DIGITS / "digits_calibration.npz") as data:
        np.savez(tmp_path / "few.npz", image=data["image"][:8])
    with np.load(DIGITS / "digits_test.npz") as data:
        np.savez(tmp_path / "codes.npz", image=data["image"][:16])
    return tmp_path


def test_weights_of_four_bits_are_int4_initialisers_and_give_onnxruntimes_bytes(glowc: Glowc, files: Path) -> None:
    require_module("onnxruntime")
    done = glowc("quantize", files / "float.onnx", "--data", files / "in.npz", "-o", "q.onnx", "--weights", "int4",
                 "--weights-of", "wide=int8", "--weights-of", "pointwise=int4")  # fmt: skip
    assert done.status == 0, done.err
    assert "2 layers with weights of 4 bits" in done.out
    model = onnx.load(files / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    kinds = {i.name: i.data_type for i in model.graph.initializer if i.name.endswith("_codes")}
    narrow = {name for name, kind in kinds.items() if kind == TensorProto.INT4}
    assert {name.partition("_")[0] for name in narrow} == {"residual", "pointwise"}
    done = glowc("validate", "q.onnx", "--board", "host", "--input", files / "codes.npz", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["outputs"][0]["equal_share"] == 1.0


def test_pareto_lists_choices_from_all_bytes_to_the_fewest(glowc: Glowc, files: Path) -> None:
    done = glowc(
        "quantize", files / "float.onnx", "--data", files / "few.npz", "-o", "q.onnx", "--pareto", "--no-rounding"
    )
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    table = [line for line in lines if re.match(r"[* ] +[\d,]+ +[\d,]+ +[\d,]+ +[\d.]+ %", line)]
    sizes = [int(line[1:].split()[0].replace(",", "")) for line in table]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) >= 3
    assert [line[0] for line in table].count("*") == 1
    assert sum("o" in line.partition("|")[2] for line in lines) >= 2
    picture = ElementTree.parse(files / "q_pareto.svg").getroot()
    assert len(picture.findall("{*}circle")) >= len(table)


def test_activations_are_the_finest_that_the_limits_allow(glowc: Glowc, files: Path) -> None:
    given = ("quantize", files / "float.onnx", "--data", files / "few.npz", "--no-rounding", "--no-equalize", "--json",
             "--activations", "auto")  # fmt: skip
    roomy = glowc(*given, "-o", "q16.onnx", "--ram-limit", "64K", "--max-insns", "10000000")
    assert roomy.status == 0, roomy.err
    sizes = {p["activations"]: p for p in json.loads(roomy.out)["points"]}
    assert json.loads(roomy.out)["chosen"] == sizes["int16"]
    assert sizes["int16"]["error"] < sizes["int8"]["error"]
    for option, field in (("--ram-limit", "arena_bytes"), ("--max-insns", "insns_estimate")):
        for kind in ("int16", "int8"):
            found = glowc(*given, "-o", "q.onnx", option, str(sizes[kind][field]))
            assert json.loads(found.out)["chosen"]["activations"] == kind


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--flash-limit", "10"), "bytes of flash for constants and code, at most 10"),
        (("--ram-limit", "100"), "bytes of arena, at most 100"),
        (("--max-insns", "1000"), "instructions, at most 1,000"),
        (("--activations", "auto"), "--activations auto takes what limits allow"),
        (("--flash-limit", "many"), "'many' is no size in bytes"),
        (("--flash-limit", "0"), "'0' is no size in bytes"),
        (("--weights", "int3"), "--weights int3: no type of weights 'int3'"),
        (("--weights-of", "wide"), "--weights-of wide: no NODE=TYPE"),
        (("--weights-of", "wode=int4"), "no quantized layer with weights is called 'wode'"),
        (
            ("--target-accuracy", "1", "--pareto"),
            "--target-accuracy keeps layers float, limits make them smaller",
        ),
        (("--flash-limit", "32K", "--board", "mps2"), "mps2"),
        (("--flash-limit", "32K", "--weights", "int4"), "--weights int4: limits and --pareto choose"),
    ],
)
def test_wrong_wishes_are_errors_and_nothing_is_written(
    glowc: Glowc, files: Path, options: tuple[str, ...], words: str
) -> None:
    done = glowc(
        "quantize", files / "float.onnx", "--data", files / "few.npz", "-o", "q.onnx", "--no-rounding", *options
    )
    assert done.status == 1
    assert words in done.err
    assert not (files / "q.onnx").exists()

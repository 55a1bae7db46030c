"""The licence of what lands in a firmware: a line in every file, a bill of materials in the report."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from tests.conftest import ROOT

LINE = "SPDX-License-Identifier: MIT-0"
DIGITS = ROOT / "examples/digits/digits.onnx"


@pytest.mark.parametrize("folder", ["templates", "runtime_c", "boards"])
def test_every_source_of_firmware_names_its_licence(folder: str) -> None:
    kinds = {".c", ".h", ".j2", ".ld", ".S", ".mk"}
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in kinds]
    assert files
    assert [path.name for path in files if LINE not in path.read_text(encoding="utf-8")] == []


def test_every_file_of_a_bundle_names_its_licence_and_is_in_the_bill(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", image=np.zeros((1, 1, 1, 8, 8), np.int8))
    options = CompileOptions(golden=tmp_path / "in.npz", memory_map=True)
    write_bundle(compile_model(DIGITS, load_board("mps2-an386"), options), tmp_path / "bundle")
    report = json.loads((tmp_path / "bundle/report.json").read_text())
    bill = report["sbom"]
    assert bill["tool"] == {"name": "glowc", "version": report["glowc"]}
    assert bill["model"] == {"name": "digits.onnx", "sha256": hashlib.sha256(DIGITS.read_bytes()).hexdigest()}
    assert report["model_hash"].removeprefix("sha256:") == bill["model"]["sha256"][:16]
    assert sorted(f["name"] for f in bill["files"]) == [n for n in report["files"] if n != "report.json"]
    for entry in bill["files"]:
        data = (tmp_path / "bundle" / entry["name"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["license"] == "MIT-0"
        assert LINE.encode() in data or entry["name"].endswith(".svg"), entry["name"]


def test_files_of_a_plugin_are_not_declared_to_be_ours() -> None:
    from glowc.compiler.bom import bill_of_materials

    bill = bill_of_materials((DIGITS,), {"a.c": "x", "energy.c": "y"}, {"energy.c"})
    assert [(f["name"], f["license"]) for f in bill["files"]] == [("a.c", "MIT-0"), ("energy.c", "NOASSERTION")]  # type: ignore[attr-defined]

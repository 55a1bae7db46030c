"""The version that artefacts carry follows from the package's contents; the commit is that of git's files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from email.message import Message
from pathlib import Path

import onnx
import pytest

from glowc import paths as version
from glowc.codegen.blob import code_hash, lay_out
from glowc.machine.matrix import Cell
from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS, Glowc


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in which nothing was hashed yet."""
    for name in ("glowc/app", "glowc/__pycache__", "templates", "runtime_c", "boards"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "glowc/app/cli.py").write_text("one")
    (tmp_path / "templates/model.c.j2").write_text("two")
    monkeypatch.setattr(version, "_PKG", tmp_path / "glowc")
    monkeypatch.setattr(version, "data_dir", lambda name: tmp_path / name)
    return tmp_path


def fresh() -> str:
    version.package_hash.cache_clear()
    try:
        return version.package_hash()
    finally:
        version.package_hash.cache_clear()


def test_hash_is_that_of_contents_and_not_of_leftovers(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fresh()
    (package / "glowc/__pycache__/cli.cpython-311.pyc").write_text("left")
    (package / "templates/.cache").write_text("left")
    assert fresh() == before
    (package / "glowc/_data").mkdir()  # as an installed package has it
    for name in ("templates", "runtime_c", "boards"):
        shutil.move(package / name, package / "glowc/_data" / name)
    (package / "glowc/_data/commit").write_text("abc")
    monkeypatch.setattr(version, "data_dir", lambda name: package / "glowc/_data" / name)
    assert fresh() == before
    (package / "glowc/_data/templates/model.c.j2").write_text("three")
    assert fresh() != before


def test_commit_is_read_from_branches_packed_ones_and_work_trees(tmp_path: Path) -> None:
    git, tree = tmp_path / "main/.git", tmp_path / "tree"
    (git / "worktrees/tree").mkdir(parents=True)
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/tree\n")
    (git / "worktrees/tree/commondir").write_text("../..\n")
    (git / "worktrees/tree/HEAD").write_text("ref: refs/heads/mine\n")
    (git / "HEAD").write_text("0123456789abcdef\n")
    (git / "packed-refs").write_text("# pack-refs with: peeled\nfeed refs/heads/mine\n")
    assert version.head_commit(tmp_path / "main") == "0123456789abcdef"
    assert version.head_commit(tree) == "feed"
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/mine").write_text("beef\n")
    assert version.head_commit(tree) == "beef"
    assert version.head_commit(tmp_path) is None


def test_every_file_of_a_bundle_says_which_glowc_wrote_it(glowc: Glowc) -> None:
    want = version.full_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{8}", want)
    assert f"glowc {want}" in glowc("--version").out
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    for name in ("digits.c", "digits.h", "digits.mk", "digits_weights.c", "README.md", "report.json"):
        assert want in (Path("out") / name).read_text(), name


def test_quantised_models_say_which_glowc_wrote_them(tmp_path: Path) -> None:
    from glowc.quant.load import load_float
    from glowc.quant.net import model_of

    path = ROOT / "examples/digits/digits_fp32.onnx"
    net = load_float(path)
    made = model_of(net, net.nodes, net.inputs, list(onnx.load(path).graph.output), net.consts)
    assert (made.producer_name, made.producer_version) == ("glowc", version.full_version())


def test_a_cell_runs_again_after_an_update_that_keeps_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("net", "net.onnx", "1", "host", "size", ("bench",))
    before = cell.key
    assert cell.key == before
    monkeypatch.setattr("glowc.machine.matrix.package_hash", lambda: "another")
    assert cell.key != before


def test_a_blob_fits_the_same_code_of_another_glowc(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    for number in ("0.1.0+11111111", "0.1.0+22222222"):
        monkeypatch.setattr("glowc.codegen.blob.full_version", lambda number=number: number)
        codes.append(code_hash(f"/* net, compiled by glowc {number} for host */\nint x;\n", [], lay_out([])))
    assert codes[0] == codes[1]


FAKE = """\
#!/bin/sh
if [ "$1" = --version ]; then cat version; exit; fi
echo compile >> log; for f in net.c net_weights.c net.h net_weights.h; do : > $4/$f; done
"""


def test_make_compiles_again_after_an_update_of_glowc(tmp_path: Path) -> None:
    """With a glowc that only writes files: an update, none, and a machine on which there is no glowc."""
    require_tool("make")
    shutil.copy(ROOT / "runtime_c/make/glowc.mk", tmp_path / "glowc.mk")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/net.onnx").touch()
    (tmp_path / "fake").write_text(FAKE)
    (tmp_path / "fake").chmod(0o755)
    (tmp_path / "Makefile").write_text("GLOWC_MODELS := net\ninclude glowc.mk\nall: $(GLOWC_SRCS)\n")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GLOWC")}

    def compiled(text: str, glowc: str = "./fake") -> int:
        (tmp_path / "version").write_text(text)
        done = subprocess.run(["make", f"GLOWC={glowc}"], cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return len((tmp_path / "log").read_text().split())

    assert compiled("glowc 0.1.0+11111111 (commit a)\n") == 1
    assert compiled("glowc 0.1.0+11111111 (commit b)\n") == 1
    assert compiled("glowc 0.1.0+22222222\n") == 2
    assert compiled("", "./none") == 2
    assert compiled("glowc 0.1.0+22222222\n") == 2


def test_a_bug_is_to_be_reported_where_the_metadata_says(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of project.urls in pyproject.toml, which has no addresses before the first release."""
    known = Message()
    known["Project-URL"] = "Source, https://example.com/glowc"
    known["Project-URL"] = "Issues, https://example.com/glowc/issues"
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: known)
    monkeypatch.setattr("glowc.app.lists._pages", lambda: 1 / 0)
    failed = glowc("docs")
    assert (failed.status, "report what it prints to https://example.com/glowc/issues" in failed.err) == (2, True)
    names = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    assert set(names) <= {"Source", "Issues", "Documentation", "Security"}

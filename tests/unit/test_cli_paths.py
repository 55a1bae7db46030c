"""Files and folders named on the command line: read, written, or refused before any work is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.codegen.kernels import environment
from glowc.paths import cache_dir
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, images, refused, save, tree
from tests.unit.onnx_builders import model, node


def test_npy_is_the_input_of_a_model_with_one(glowc: Glowc, bundle: Path) -> None:
    np.save("in.npy", GOOD)
    for command in (("run", bundle, "--output", "out.npz"), ("validate", DIGITS), ("bench", bundle)):
        result = glowc(*command, "--input", "in.npy")
        assert result.status == 0, result.err
    assert {len(a) for a in np.load("out.npz").values()} == {2}


def test_npy_cannot_say_which_of_several_inputs_it_is(glowc: Glowc) -> None:
    save(model([node("Add", "a b", "y")], {"a": "f32[1,2]", "b": "f32[1,2]"}, "y"))
    np.save("in.npy", np.zeros((2, 1, 2), np.float32))
    says = ["in.npy holds one array without a name", "'a', 'b'"]
    refused(glowc, "validate", "net.onnx", "--input", "in.npy", says=says, hint="numpy.savez")


@pytest.mark.parametrize("output", [".", "..", "folder"])
def test_output_file_that_is_a_folder(glowc: Glowc, bundle: Path, output: str) -> None:
    images(image=GOOD)
    Path("folder").mkdir()
    argv = ("run", bundle, "--input", "in.npz", "--output", output)
    refused(glowc, *argv, says=[f"cannot write {output}: it is a folder"], hint="--output")


def test_tune_looks_at_its_output_before_it_measures(glowc: Glowc) -> None:
    Path("file").write_text("mine")
    argv = ("tune", DIGITS, "--board", "mps2-an386", "--output")
    refused(glowc, *argv, ".", says=["cannot write .: it is a folder"], hint="--output")
    refused(glowc, *argv, "file/tune.json", says=["cannot write file/tune.json"], hint="--output")


@pytest.mark.parametrize("option", ["--golden", "--tuned", "--plugin", "--board"])
@pytest.mark.parametrize("value", [".", "gone", "gone/deep", "x" * 300])
def test_path_that_is_a_folder_or_absent(glowc: Glowc, option: str, value: str) -> None:
    result = glowc("compile", DIGITS, "-o", "out", option, value)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("error[GL"), result.err
    assert tree(Path.cwd()) == {}


def test_file_of_dumps_that_cannot_be_written(glowc: Glowc) -> None:
    Path("dump/99-program.txt").mkdir(parents=True)
    result = glowc("compile", DIGITS, "-o", "out", "--dump-ir", "dump")
    assert result.status == 1
    assert "]: dump/99-program.txt" in result.err


# ---- the cache ----


@pytest.mark.parametrize("place", ["file", "/proc/gone", "not-ours"])
def test_cache_that_cannot_be_used_is_done_without(glowc: Glowc, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A file in its place, a folder that cannot be made, or one that others may write to."""
    Path("file").write_text("mine")
    Path("not-ours/glowc").mkdir(parents=True)
    Path("not-ours/glowc").chmod(0o777)
    monkeypatch.setenv("GLOWC_CACHE_DIR", place)
    environment.cache_clear()
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    assert list(Path("not-ours/glowc").iterdir()) == []
    environment.cache_clear()


def test_no_home_is_no_cache(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("HOME", "/proc/gone"), ("GLOWC_CACHE_DIR", ""), ("XDG_CACHE_HOME", "")):
        monkeypatch.setenv(name, value)
    environment.cache_clear()
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    environment.cache_clear()


def test_cache_where_the_system_has_no_user_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Windows has no geteuid, and says of every folder that all may write to it."""
    monkeypatch.delattr("os.geteuid")
    monkeypatch.setenv("GLOWC_CACHE_DIR", str(tmp_path))
    (tmp_path / "glowc").mkdir()
    (tmp_path / "glowc").chmod(0o777)
    assert cache_dir() == tmp_path / "glowc"


@pytest.mark.parametrize("keep", [0, 60, -1])
def test_damaged_cache_is_built_again(glowc: Glowc, monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    monkeypatch.setenv("GLOWC_CACHE_DIR", str(Path.cwd() / "cache"))
    environment.cache_clear()
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    whole = tree(Path("cache"))
    assert len(whole) > 5
    for path in Path("cache/glowc").iterdir():
        path.write_bytes(path.read_bytes()[:keep])
    environment.cache_clear()
    result = glowc("compile", DIGITS, "-o", "again")
    assert result.status == 0, result.err
    assert tree(Path("cache")) == whole
    assert tree(Path("again")) == tree(Path("out"))
    environment.cache_clear()

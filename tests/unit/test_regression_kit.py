"""What users test their models with: the pytest plugin and the kit that needs no glowc, as docs/REGRESSION.md says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused

PAGE = (ROOT / "docs/REGRESSION.md").read_text(encoding="utf-8")


@pytest.fixture(name="here")
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page names."""
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm", "make")
    with np.load(ROOT / "examples/digits/digits_test.npz") as data:
        np.savez(tmp_path / "in.npz", image=data["image"][:4])
        np.savez(tmp_path / "golden.npz", logits=data["golden"][:4])
    (tmp_path / "digits.onnx").write_bytes(DIGITS.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_run(here: Path, test: str, *options: str) -> tuple[int, str]:
    (here / "test_it.py").write_text(test)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "test_it.py", *options]
    done = subprocess.run(argv, cwd=here, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_page_s_test_passes_and_its_commands_work(here: Path, glowc: Glowc) -> None:
    (test,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    assert pytest_run(here, test)[0] == 0
    first, second = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
    kit, make = first.splitlines()
    assert glowc(*kit.split()[1:]).status == 0
    done = subprocess.run(make.split(), capture_output=True, text=True, check=False)
    for command in second.splitlines():
        assert glowc(*shlex.split(command)[1:]).status == 0
    assert (here / "junit.xml").is_file()
    assert (done.returncode, "4 of 4 test vectors of digits on mps2-an386" in done.stdout) == (0, True), done.stderr


def test_wrong_outputs_and_exceeded_budgets_fail_with_figures(here: Path) -> None:
    np.savez(here / "golden.npz", logits=1 - np.load("golden.npz")["logits"])
    status, text = pytest_run(
        here,
        "def test_output(glowc_board):\n    glowc_board('digits.onnx').check('in.npz', 'golden.npz')\n"
        "def test_budget(glowc_board):\n    glowc_board('digits.onnx').within(arena_bytes=10, weights_bytes=10**6)\n"
        "def test_name(glowc_board):\n    glowc_board('digits.onnx').within(beauty=1)\n"
        "def test_host(glowc_board):\n    glowc_board('digits.onnx').within(insns=1)\n",
    )
    assert status == 1
    for says in ("digits on host differs from golden.npz", "exceeds its budget", "arena_bytes: ", "of at most 10 (+",
                 "nothing is measured as beauty", "board host does not measure insns", "4 failed"):  # fmt: skip
        assert says in text
    assert "weights_bytes: " not in text


def test_update_records_what_the_next_run_compares_with(here: Path) -> None:
    (here / "golden.npz").unlink()
    test = "def test_output(glowc_board):\n    glowc_board('digits.onnx').check('in.npz', 'golden.npz')\n"
    assert pytest_run(here, test)[0] == 1
    assert pytest_run(here, test, "--glowc-update")[0] == 0
    assert pytest_run(here, test)[0] == 0


def test_arrays_run_and_the_reference_needs_no_file(here: Path) -> None:
    status, text = pytest_run(
        here,
        "import numpy as np\nimport pytest\nfrom glowc.errors import InputError\n"
        "def test_it(glowc_board):\n"
        "    digits = glowc_board('digits.onnx')\n"
        "    assert digits is glowc_board('digits.onnx')\n"
        "    x = np.load('in.npz')['image']\n"
        "    assert np.array_equal(digits.run({'image': x})['logits'], np.load('golden.npz')['logits'])\n"
        "    digits.check('in.npz')\n"
        "    with pytest.raises(InputError, match='it takes image'):\n"
        "        digits.run({'image': x[:, 0]})\n",
    )
    assert status == 0, text


def test_a_kit_with_a_changed_vector_fails(here: Path, glowc: Glowc) -> None:
    kit = here / "kit"
    assert glowc("test-kit", "digits.onnx", kit, "--board", "host", "--input", "in.npz").status == 0
    golden = kit / "model/digits_golden.c"
    head, last, vectors = golden.read_text().rpartition("GOLDEN_COUNT][DIGITS_OUTPUT_ELEMENTS]")
    assert last
    golden.write_text(head + last + re.sub(r"-?\d+", "77", vectors, count=1))
    assert subprocess.run(["make", "-s", "-C", kit, "check"], capture_output=True, check=False).returncode != 0


def test_a_kit_replaces_a_kit_and_nothing_else(here: Path, glowc: Glowc) -> None:
    argv = ("test-kit", "digits.onnx", here / "kit", "--board", "host", "--input", "in.npz")
    assert glowc(*argv).status == 0
    (here / "kit/mine.txt").write_text("mine")
    assert glowc(*argv).status == 0
    assert (here / "kit/mine.txt").read_text() == "mine"
    refused(glowc, *argv[:2], here, *argv[3:], says=["no test kit"], hint="--force")

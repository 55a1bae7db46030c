"""Code for x86-64 gives the same bytes at every level of the instruction set; integers those of portable C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.board import load_board
from glowc.board.flags import native_cpu, native_flags
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import BundleInfo, execute, load_bundle, random_inputs
from tests.conftest import require_tool
from tests.e2e.models import model_path

_INTEGER = ("mlperf_kws_dscnn", "torch_tinybert_qdq")
_REAL = ("mlperf_kws_dscnn_fp32", "torch_tinybert_fp32")


def _bundle(model: str, cpu: str, work: Path) -> BundleInfo:
    compiled = compile_model(model_path(model), load_board("host", cpu), CompileOptions(name="net"))
    write_bundle(compiled, work / cpu)
    return load_bundle(work / cpu)


def _outputs(info: BundleInfo, cpu: str, *flags: str) -> dict[str, np.ndarray]:
    return execute(info, load_board("host", cpu), random_inputs(info, 2), extra_flags=flags).outputs


def _assert_equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("model", [*_INTEGER, *_REAL])
def test_every_level_gives_the_same_bytes(model: str, tmp_path: Path) -> None:
    require_tool("gcc")
    info = _bundle(model, "x86-64", tmp_path)
    assert "__wide(" in info.sources[0].read_text(encoding="utf-8")
    plain = _outputs(info, "x86-64", "-DGLOW_WIDE_MOST=0")
    for flags in (("-DGLOW_WIDE_MOST=1",), ("-DGLOW_WIDE_MOST=2",), (), native_flags(load_board("host", "x86-64").cpu)):
        _assert_equal(_outputs(info, "x86-64", *flags), plain)
    if model in _INTEGER:
        _assert_equal(_outputs(_bundle(model, "host", tmp_path), "host"), plain)


def test_other_machines_take_portable_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert native_cpu() is None
    assert native_flags(load_board("host").cpu) == ("-O3",)
    assert native_flags(load_board("virt-a53").cpu) == ()


def test_windows_takes_no_vectors_on_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    monkeypatch.setattr("sys.platform", "win32")
    assert native_cpu() == "x86-64"
    assert native_flags(load_board("host").cpu) == ("-O3",)

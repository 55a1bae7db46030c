"""A PyTorch module through glowc: exported, quantised, compiled, and a module again (`make test-torch`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.errors import ModelError
from tests.conftest import require_tool

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test-torch installs it)")


@pytest.fixture(name="net", scope="module")
def _net() -> torch.nn.Module:
    """The classic small network: Conv 3 -> 16, ReLU, MaxPool, Linear 16 * 14 * 14 -> 10."""
    require_tool("gcc")
    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(16 * 14 * 14, 10)).eval()


@pytest.fixture(name="images", scope="module")
def _images() -> torch.Tensor:
    return torch.randn(16, 3, 28, 28, generator=torch.Generator().manual_seed(1))


def test_a_float_module_gives_the_same_numbers(net: torch.nn.Module, images: torch.Tensor) -> None:
    import glowc.torch

    fast = glowc.torch.compile(net, images[:1])
    with torch.no_grad():
        assert torch.allclose(fast(images), net(images), atol=1e-5)
    whole = torch.compile(fast, fullgraph=True, backend="eager")
    assert torch.equal(whole(images), fast(images))


def test_with_data_it_is_int8_here_and_on_the_board(net: torch.nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    import glowc
    import glowc.torch

    fast = glowc.torch.compile(net, images[:1], data=images, out=tmp_path / "board", board="mps2-an386")
    with torch.no_grad():
        error = (fast(images) - net(images)).abs().max() / net(images).abs().max()
    assert error < 0.03
    on_board = glowc.InferenceSession(tmp_path / "board").run(None, {"input": images[:1].numpy()})[0]
    assert np.array_equal(on_board, fast(images[:1]).numpy())


def test_what_cannot_be_exported_is_told() -> None:
    import glowc.torch

    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no such thing")

    with pytest.raises(ModelError, match="cannot export Odd"):
        glowc.torch.export(Odd(), torch.zeros(1))

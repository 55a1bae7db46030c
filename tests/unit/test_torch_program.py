"""Exported programs of PyTorch (.pt2): networks, states, PT2E quantization, errors (`make test-torch`)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from glowc.errors import GlowcError, ModelError, ModelFileError, SizesError, UnsupportedError
from tests.conftest import require_tool

torch = pytest.importorskip("torch", reason="PyTorch is not installed (make test-torch installs it)")

from glowc.api.session import InferenceSession  # noqa: E402
from glowc.frontend import import_model  # noqa: E402
from glowc.torch import compile as compile_module  # noqa: E402
from glowc.torch import export  # noqa: E402
from tests.unit.cli_calls import Glowc, accepted  # noqa: E402
from tests.unit.torch_nets import PLAIN, STEPPED, Cell, Passed, Quantizable  # noqa: E402

TOLERANCE = 1e-4  # of the largest value


@pytest.fixture(autouse=True)
def _begin() -> None:
    require_tool("gcc")
    torch.manual_seed(0)


def save(module: torch.nn.Module, shape: tuple[int, ...], path: Path, **options: object) -> Path:
    """Export a module for an input of a shape, and write the program."""
    program = torch.export.export(module.eval(), (torch.randn(shape),), **options)
    torch.export.save(program, path)
    return path


def assert_close(got: np.ndarray, want: torch.Tensor) -> None:
    expected = want.detach().numpy()
    assert np.abs(got - expected).max() <= TOLERANCE * np.abs(expected).max()


@pytest.mark.parametrize("name", PLAIN)
def test_a_program_computes_what_the_module_does(name: str, tmp_path: Path) -> None:
    make, shape = PLAIN[name]
    module, x = make(), torch.randn(shape)
    session = InferenceSession(save(module, shape, tmp_path / "net.pt2"))
    (given,) = session.get_inputs()
    assert [out.name for out in session.get_outputs()] == ["output"]
    assert_close(session.run(None, {given.name: x.numpy()})[0], module(x))


@pytest.mark.parametrize("name", STEPPED)
def test_changed_buffers_are_states(name: str, tmp_path: Path) -> None:
    make, shape = STEPPED[name]
    module = make()
    session = InferenceSession(save(module, shape, tmp_path / "net.pt2"))
    steps = torch.randn(10, *shape)
    results = []
    for x in steps:
        results.append(session.run(None, {"x": x.numpy()})[0])
        assert_close(results[-1], module(x))
    session.reset()
    assert np.array_equal(session.run(None, {"x": steps[0].numpy()})[0], results[0])


def test_a_compiled_module_keeps_its_buffers() -> None:
    module = Cell().eval()
    fast = compile_module(module, torch.zeros(1, 4))
    assert torch.equal(module.h, torch.linspace(-1, 1, 8)[None])
    steps = torch.randn(5, 1, 4)
    wanted = [module(x).detach().clone() for x in steps]
    for x, want in zip(steps, wanted, strict=True):
        assert_close(fast(x).numpy(), want)
    fast.reset()
    assert_close(fast(steps[0]).numpy(), wanted[0])


def test_an_argument_is_a_state_where_that_is_said() -> None:
    module, hidden = Passed().eval(), torch.zeros(1, 8)
    fast = compile_module(module, (torch.zeros(1, 4), hidden), states={"hidden": "output_1"})
    for x in torch.randn(5, 1, 4):
        total, hidden = module(x, hidden)
        assert_close(fast(x).numpy(), total)
    with pytest.raises(SizesError, match="states name an argument"):
        export(module, (torch.zeros(1, 4), hidden), states={"hiden": "output_1"})


def test_a_module_with_states_is_not_quantised_on_its_way() -> None:
    with pytest.raises(ModelError, match="with states") as caught:
        compile_module(Cell().eval(), torch.zeros(1, 4), data=torch.zeros(3, 4))
    assert "--state h=h_next" in str(caught.value.hint)


def test_symbolic_sizes_are_chosen_by_options(tmp_path: Path) -> None:
    make, shape = PLAIN["residual"]
    batch = {0: torch.export.Dim("batch", min=1)}
    path = save(make(), (2, *shape[1:]), tmp_path / "net.pt2", dynamic_shapes=(batch,))
    for size in (1, 3):
        graph = import_model(path, batch_size=size)
        assert graph.types[graph.inputs[0]].shape == (size, *shape[1:])


def test_an_operator_that_onnx_lacks_is_named_with_its_module(tmp_path: Path) -> None:
    class Bessel(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), Bessel()))
    with pytest.raises(UnsupportedError, match=r"no ONNX form of .*bessel_j0.*, used in module 1\.1"):
        import_model(save(net, (1, 4), tmp_path / "net.pt2"))


def test_a_program_that_does_not_load_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "net.pt2", "w") as archive:
        archive.writestr("net/archive_format", "pt2")
    with pytest.raises(ModelFileError, match=r"PyTorch .* cannot load"):
        import_model(tmp_path / "net.pt2")


def test_a_float_program_is_quantised_and_evaluated(glowc: Glowc) -> None:
    make, shape = PLAIN["keyword"]
    net = save(make(), shape, Path("net.pt2"))
    np.savez("in.npz", input=torch.randn(20, *shape[1:]).numpy())
    accepted(glowc, "quantize", net, "--data", "in.npz", "-o", "int8.onnx")
    assert "cosine" in accepted(glowc, "eval", "int8.onnx", "--float", net, "--data", "in.npz")
    accepted(glowc, "compile", net, "--quantize-data", "in.npz", "--require-int8", "-o", "build")


def test_steps_of_a_program_with_states_are_compared_layer_by_layer(glowc: Glowc) -> None:
    net = save(Cell(), (1, 4), Path("net.pt2"))
    np.savez("in.npz", x=torch.randn(6, 1, 4).numpy())
    assert "cosine" in accepted(glowc, "eval", net, "--float", net, "--data", "in.npz")


def _quantised(per_channel: bool) -> torch.export.ExportedProgram:
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e", reason="torchao is not installed")
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    net = Quantizable()
    for _ in range(3):
        net(torch.randn(8, 3, 24, 24))  # statistics of the batch normalizations
    example = (torch.randn(1, 3, 24, 24),)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=per_channel))
    prepared = pt2e.prepare_pt2e(torch.export.export(net.eval(), example).module(), quantizer)
    for _ in range(10):
        prepared(torch.randn(1, 3, 24, 24))
    return torch.export.export(pt2e.convert_pt2e(prepared), example)


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_quantised_program_computes_in_integers(per_channel: bool, glowc: Glowc) -> None:
    program = _quantised(per_channel)
    torch.export.save(program, "net.pt2")
    accepted(glowc, "compile", "net.pt2", "--board", "host", "-o", "net")
    layers = json.loads(Path("net/report.json").read_text())["layers"]
    kernels = [layer["kernel"].split("__")[0] for layer in layers]
    assert kernels[0] == "quantize"
    assert kernels[-1] == "dequantize"
    assert all("s8" in kernel for kernel in kernels[1:-1]), kernels
    session, module = InferenceSession("net"), program.module()
    scale = next(n.args[1] for n in reversed(program.graph.nodes) if "quantize_per_tensor" in str(n.target))
    steps = []
    for x in torch.randn(40, 1, 3, 24, 24):
        steps.append((session.run(None, {"x": x.numpy()})[0] - module(x).detach().numpy()) / scale)
    steps = np.abs(np.rint(steps))
    assert steps.max() <= 1
    assert (steps == 0).mean() > 0.9


def test_codes_of_a_narrower_range_are_cut_off(tmp_path: Path) -> None:
    import torch.ao.quantization.fx._decomposed

    ops = torch.ops.quantized_decomposed

    class Narrow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            codes = ops.quantize_per_tensor.default(x, 0.1, 0, -7, 7, torch.int8)
            return ops.dequantize_per_tensor.default(codes, 0.1, 0, -7, 7, torch.int8)

    x = torch.linspace(-2, 2, 9)[None]
    session = InferenceSession(save(Narrow(), (1, 9), tmp_path / "net.pt2"))
    assert_close(session.run(None, {"x": x.numpy()})[0], Narrow()(x))


def test_what_no_program_is_cannot_be_exported() -> None:
    with pytest.raises(GlowcError, match="cannot export Linear"):
        export(torch.nn.Linear(3, 3), torch.zeros(1, 4))

"""Options in Python: each value is checked where it is given; all that are wrong are said at once."""

from __future__ import annotations

import dataclasses
import sys
import types
import warnings
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glowc
from glowc.app import options as command
from glowc.app.export import Format
from glowc.board.checked import Checked
from glowc.codegen.export import FORMS
from glowc.errors import InputError
from glowc.machine.execute import load_bundle
from glowc.quant.weight_types import WeightType
from tests.unit.cli_calls import DIGITS
from tests.unit.quantize_nets import conv_net, images


class Opt(StrEnum):
    """As typer gives a word."""

    SIZE = "size"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plan": "x"}, "plan='x': one of auto, plain, overlap, stream"),
        ({"opt": "spede"}, 'did you mean "speed"?'),
        ({"opt": None}, "opt=None: one of size"),
        ({"ram_limit": "8 bananas"}, "ram_limit='8 bananas': a size in bytes: 8192, 8K, 2M or 0x2000"),
        ({"ram_limit": -1}, "ram_limit=-1: a size in bytes"),
        ({"flash_limit": 1.5}, "flash_limit=1.5: a size in bytes"),
        ({"flash_limit": True}, "flash_limit=True: a size in bytes"),
        ({"batch_size": 0}, "batch_size=0: 1 or more or None"),
        ({"stateful": "yes"}, "stateful='yes': True or False"),
        ({"symbols": [("N", 1)]}, "symbols=[('N', 1)]: a dict"),
        ({"symbols": {"N": "4"}}, "a whole number"),
        ({"input_shapes": {"x": (1, -3)}}, "1 or more"),
        ({"regions": (("dtcm",),)}, "2 values"),
        ({"plugins": 5}, "a path"),
        ({"name": 7, "hop": "2"}, "hop='2': a whole number or None"),
    ],
)
def test_wrong_options_are_said_where_they_are_given(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        glowc.CompileOptions(**options)  # type: ignore[arg-type]
    assert says in str(caught.value)
    assert all(f"{name}=" in str(caught.value) for name in options)


@pytest.mark.parametrize(
    ("given_", "means"),
    [
        ({"ram_limit": "8K", "flash_limit": "0x2000"}, {"ram_limit": 8192, "flash_limit": 8192}),
        ({"plugins": "a.py"}, {"plugins": (Path("a.py"),)}),
        ({"golden": "in.npz", "chain": ["b.onnx"]}, {"golden": Path("in.npz"), "chain": (Path("b.onnx"),)}),
        ({"input_shapes": {"x": [1, np.int64(3)]}}, {"input_shapes": {"x": (1, 3)}}),
        ({"set_inputs": {"sr": 16000, "a": np.array([0.5, 1])}}, {"set_inputs": {"sr": (16000,), "a": (0.5, 1.0)}}),
        ({"regions": {"dtcm": "64K", "sram": None}}, {"regions": (("dtcm", 65536), ("sram", None))}),
        ({"opt": Opt.SIZE}, {"opt": "size"}),
    ],
)
def test_values_in_the_form_of_the_command_line_are_taken(given_: dict[str, object], means: dict[str, object]) -> None:
    options = glowc.CompileOptions(**given_)  # type: ignore[arg-type]
    assert {name: getattr(options, name) for name in means} == means
    assert type(options.opt) is str


def test_the_command_s_defaults_and_words_are_those_of_the_fields() -> None:
    parameters = [p for shared in (True, False) for p in command.declared(glowc.CompileOptions, shared=shared)]
    plain = glowc.CompileOptions()
    assert command.compile_options({p.name: p.default for p in parameters}) == plain
    for word in next(p for p in parameters if p.name == "plan").annotation.__origin__:
        assert glowc.CompileOptions(plan=word).plan == word.value
    assert {word.value for word in Format} == set(FORMS) | {plain.form}


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=4),
    st.sampled_from(["8K", "speed", "nhwc", "int8", "stream", "int4", "mse"]), st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=3)), max_size=2),
    st.just(object()), st.just(np.zeros(2)), st.just(np.float32(2)), st.tuples(st.text(max_size=2), st.integers()),
)  # fmt: skip
KINDS = (glowc.CompileOptions, glowc.QuantizeOptions, glowc.Precision, glowc.ImageFormat)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_any_value_is_taken_or_refused_in_words(kind: type[Checked], data: st.DataObject) -> None:
    names = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    chosen = data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
    values = {name: data.draw(ANYTHING) for name in chosen}
    try:
        options = kind(**values)
    except InputError:
        return
    assert dataclasses.replace(options) == options  # type: ignore[type-var]
    assert repr(options).startswith(f"{kind.__name__}(")
    if isinstance(options, glowc.CompileOptions):
        assert options.text().startswith("--opt ")


def test_words_and_numbers_of_quantising() -> None:
    options = glowc.QuantizeOptions(schema="symmetric", keep_float="conv1", precision=glowc.Precision("int4"))  # type: ignore[arg-type]
    assert options.keep_float == ("conv1",)
    assert options.precision.weights is WeightType.INT4
    for wrong in ({"schema": "x"}, {"calibration": "best"}, {"split": 1.5}, {"fit": 3}, {"activations": "int4"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            glowc.QuantizeOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not 0: values are divided by it"):
        glowc.ImageFormat(std=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: glowc.compile(DIGITS, out, options={"opt": "size"}), "options is a dict, not a CompileOptions"),
        (lambda out: glowc.compile(DIGITS, out, options=glowc.QuantizeOptions()), "not a CompileOptions"),
        (lambda out: glowc.compile(5, out), "model is a int, not a path, bytes or an onnx.ModelProto"),
        (lambda out: glowc.compile(DIGITS, None), "out is a NoneType, not a path"),
        (lambda out: glowc.compile(DIGITS, out, board=5), 'unknown board "5"'),
        (lambda out: glowc.load(5), "model is a int"),
        (lambda out: glowc.InferenceSession(None), "model is a NoneType"),
        (lambda out: glowc.quantize(conv_net(), 5), "data is a int, not files or an array"),
        (lambda out: glowc.quantize(conv_net(), [np.zeros(3)]), "data is a list of other things"),
        (lambda out: glowc.quantize(conv_net(), np.zeros((1, 3)), images="nchw"), "images is a str, not a ImageFormat"),
        (lambda out: glowc.quantize(conv_net(), np.zeros((1, 3)), options={}), "not a QuantizeOptions"),
    ],
)
def test_wrong_arguments_are_said(tmp_path: Path, call: types.FunctionType, says: str) -> None:
    with pytest.raises(glowc.GlowcError) as caught:
        call(tmp_path / "out")
    assert says in str(caught.value)


def test_what_there_is_stands_in_dir_and_help() -> None:
    import pydoc

    assert set(glowc.__all__) <= set(dir(glowc))
    page = pydoc.plaintext.document(glowc)
    assert all(f"{name}(" in page or f"class {name}" in page for name in ("compile", "quantize", "load", "LoadedModel"))


def test_representations_are_short_and_say_what_a_thing_is(tmp_path: Path) -> None:
    bundle = glowc.compile(DIGITS, tmp_path / "out", board="mps2-an386")
    assert repr(bundle).startswith("<CompiledModel digits for mps2-an386 in ")
    assert "arena" in repr(bundle)
    assert len(repr(bundle)) < 200 + len(str(tmp_path))
    assert repr(glowc.CompileOptions(opt="size", ram_limit="8K")) == "CompileOptions(opt='size', ram_limit=8192)"  # type: ignore[arg-type]
    assert repr(glowc.QuantizeOptions()) == "QuantizeOptions()"
    port = load_bundle(bundle.folder).inputs[0]
    assert (
        repr(port) == f"<image: int8[1, 1, 8, 8], real = {port.quant.scale[0]:.9g} * (q - {port.quant.zero_point[0]})>"
    )  # type: ignore[union-attr]


def test_samples_of_zeros_are_noted() -> None:
    with pytest.warns(UserWarning, match="every sample of 'x' is all zeros: ranges of real data are wider"):
        glowc.quantize(conv_net(), np.zeros((8, *images(1)[0]["x"].shape), np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        glowc.quantize(conv_net(), np.stack([image["x"] for image in images(8)]))


# ---- PyTorch, by a stand-in ----


class _Part:
    """A torch.nn.Module as far as modes and exporting go."""

    def __init__(self, *parts: _Part, training: bool = True) -> None:
        self.parts, self.training = parts, training

    def modules(self) -> Iterator[_Part]:
        yield self
        for part in self.parts:
            yield from part.modules()

    def eval(self) -> _Part:
        for part in self.modules():
            part.training = False
        return self


@pytest.fixture(name="fake_torch")
def _fake_torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    torch = types.ModuleType("torch")

    def custom_op(name: str, mutates_args: object) -> object:
        return lambda function: types.SimpleNamespace(register_fake=lambda other: other)

    torch.library = types.SimpleNamespace(custom_op=custom_op)  # type: ignore[attr-defined]
    torch.nn = types.SimpleNamespace(Module=_Part)  # type: ignore[attr-defined]
    torch.Tensor, torch.dtype = np.ndarray, np.dtype  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "glowc.torch", raising=False)
    yield torch
    sys.modules.pop("glowc.torch", None)


@pytest.mark.parametrize("fails", [False, True])
def test_exporting_leaves_every_part_of_a_module_in_its_mode(
    fake_torch: types.ModuleType, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    import glowc.torch

    seen = []

    def export(module: _Part, *_: object, **__: object) -> object:
        seen.append([part.training for part in module.modules()])
        if fails:
            raise RuntimeError("no such thing")
        return object()

    fake_torch.export = types.SimpleNamespace(export=export)  # type: ignore[attr-defined]
    monkeypatch.setattr(glowc.torch, "program_to_onnx", lambda program, label: conv_net())
    net = _Part(_Part(training=False), _Part(_Part()))
    if fails:
        with pytest.raises(glowc.GlowcError, match="cannot export _Part"):
            glowc.torch.export(net, np.zeros(1))  # type: ignore[arg-type]
    else:
        glowc.torch.export(net, np.zeros(1))  # type: ignore[arg-type]
    assert seen == [[False] * 4]
    assert [part.training for part in net.modules()] == [True, False, True, True]

"""examples/llama: onnxruntime's tokens in Python and on boards, prompts in groups, reset, full caches, tokenizer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import glowc
from glowc.api.loaded import LoadedModel
from glowc.compiler.options import CompileOptions
from tests.conftest import ROOT, require_module, require_tool

LLAMA = ROOT / "examples/llama"
MODULES = ("demo", "make_model", "make_tokenizer")
FORMS: tuple[Mapping[str, Any], ...] = (
    {}, {"codes": False}, {"form": "attention"}, {"form": "group", "heads": 4, "kv_heads": 2}, {"bits": 8}, {"bits": 0},
)  # fmt: skip
PROMPT = "Takes 16 tokens at once, then one by one. \u00fc"


@pytest.fixture(name="demo", scope="module")
def _demo() -> Iterator[Any]:
    """The program of the example, with its modules; other examples have modules of the same names."""
    others = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    sys.path.insert(0, str(LLAMA))
    import demo  # type: ignore[import-not-found]

    yield demo
    sys.path.remove(str(LLAMA))
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(others)


@dataclass
class Wanted:
    """The model in onnxruntime, with the rows of its caches."""

    model: onnx.ModelProto
    sizes: Any
    caches: dict[str, np.ndarray] = field(default_factory=dict)
    position: int = 0

    def __post_init__(self) -> None:
        ort = require_module("onnxruntime")
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # others fail at the int8 caches
        self.session = ort.InferenceSession(self.model.SerializeToString(), options, ["CPUExecutionProvider"])
        rows = self.sizes.most if self.sizes.form == "group" else 0
        kind = np.int8 if self.sizes.codes and self.sizes.form == "concat" else np.float32
        names = [i.name for i in self.session.get_inputs() if i.name.startswith("past_")]
        self.caches = {name: np.zeros((1, self.sizes.kv_heads, rows, self.sizes.head), kind) for name in names}

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the logits [512] after tokens."""
        feed = dict(zip(("tokens", *places(self.sizes)), inputs(self.sizes, tokens, self.position), strict=True))
        logits, *rows = self.session.run(None, {**feed, **self.caches})
        self.caches = dict(zip(self.caches, rows, strict=True))
        self.position += len(tokens)
        return np.asarray(logits)[0, -1]

    def continued(self, tokens: Sequence[int], count: int) -> list[int]:
        """Return tokens and the most likely ones after them."""
        found, new = list(tokens), list(tokens)
        for _ in range(count):
            new = [int(self.logits(new).argmax())]
            found += new
        return found


def places(sizes: Any) -> tuple[str, ...]:
    """Return the names of the inputs that say where tokens are."""
    return ("seqlens_k", "total_sequence_length") if sizes.form == "group" else ("position_ids",)


def inputs(sizes: Any, tokens: Sequence[int], position: int) -> list[np.ndarray]:
    """Return the inputs of a step: tokens, and where they are."""
    end = position + len(tokens)
    ids = np.array([tokens], np.int64)
    if sizes.form == "group":
        return [ids, np.array([end - 1], np.int32), np.array([end], np.int32)]
    return [ids, np.arange(position, end)[None]]


def loaded(model: onnx.ModelProto, sizes: Any, folder: Path) -> LoadedModel:
    """Return the model that takes one token."""
    symbols = {"sequence": 1} if sizes.form == "group" else {"sequence": 1, "past": sizes.most - 1}
    options = CompileOptions(states={"past_*": "present_*"}, symbols=symbols)
    return glowc.load(glowc.compile(model.SerializeToString(), folder / "step", options=options))


def stepped(step: LoadedModel, sizes: Any, token: int, position: int) -> np.ndarray:
    """Return the logits after a token."""
    by_name = dict(zip(("tokens", *places(sizes)), inputs(sizes, [token], position), strict=True))
    found = step(*(by_name[port.name] for port in step.inputs))
    assert isinstance(found, np.ndarray)
    return found.reshape(-1)


def continued(step: LoadedModel, sizes: Any, first: int, count: int) -> list[int]:
    """Return a token and the most likely ones after it."""
    found = [first]
    for position in range(count):
        found.append(int(stepped(step, sizes, found[-1], position).argmax()))
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_tokens_are_those_of_onnxruntime_and_again_after_a_reset(
    demo: Any, form: Mapping[str, Any], tmp_path: Path
) -> None:
    require_tool("cc")
    sizes = demo.Sizes(**form)
    model = demo.llama(sizes)
    step = loaded(model, sizes, tmp_path)
    wanted = Wanted(model, sizes).continued([1], 64)
    assert len(set(wanted)) > 8
    assert continued(step, sizes, 1, 64) == wanted
    step.reset()
    assert continued(step, sizes, 1, 8) == wanted[:9]


def test_full_caches_keep_their_first_rows_and_replace_the_last(demo: Any, tmp_path: Path) -> None:
    require_tool("cc")
    sizes = demo.Sizes(layers=1, most=8, bits=0, codes=False)
    model = demo.llama(sizes)
    step, reference = loaded(model, sizes, tmp_path), Wanted(model, sizes)
    for position in range(12):
        at = min(position, 7)
        reference.caches = {name: rows[:, :, :7] for name, rows in reference.caches.items()}
        reference.position = at
        wanted = reference.logits([position + 5])
        np.testing.assert_allclose(stepped(step, sizes, position + 5, at), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("board", "steps"),
    [("host", 64), *(pytest.param(name, 8, marks=pytest.mark.qemu) for name in ("mps2-an505", "mps3-an547"))],
)
def test_the_firmware_writes_the_tokens_of_onnxruntime(demo: Any, board: str, steps: int, tmp_path: Path) -> None:
    for tool in ("cc",) if board == "host" else ("arm-none-eabi-gcc", "qemu-system-arm"):
        require_tool(tool)
    image = demo.firmware(demo.Sizes(), board, tmp_path, demo.Sampling(steps))
    text, tokens = demo.written(image, board, PROMPT)
    prompt = tokens[:-steps].tolist()
    assert len(prompt) > demo.GROUP
    assert tokens.tolist() == Wanted(demo.llama(demo.Sizes()), demo.Sizes()).continued(prompt, steps)
    pieces = demo.make_tokenizer.trained((LLAMA / "README.md").read_text(encoding="utf-8"), demo.Sizes().vocab)
    assert spelled(pieces, prompt) == f" {PROMPT}"
    assert len(prompt) < len(PROMPT) - 8
    assert text


def spelled(pieces: Sequence[tuple[str, float]], tokens: Sequence[int]) -> str:
    """Return the text of tokens."""
    texts = [pieces[token][0] for token in tokens if token > 2]
    parts = [bytes([int(p[3:5], 16)]) if p.startswith("<0x") else p.replace("\u2581", " ").encode() for p in texts]
    return b"".join(parts).decode()


def test_chosen_tokens_follow_the_seed(demo: Any, tmp_path: Path) -> None:
    require_tool("cc")
    found = [
        demo.written(demo.firmware(demo.Sizes(layers=1), "host", tmp_path / str(i), sampling), "host", "A")[1].tolist()
        for i, sampling in enumerate(demo.Sampling(16, 1.0, 0.9, seed) for seed in (1, 1, 2))
    ]
    assert found[0] == found[1] != found[2]


def test_a_prompt_that_leaves_no_room_is_refused(demo: Any, tmp_path: Path) -> None:
    require_tool("cc")
    image = demo.firmware(demo.Sizes(layers=1), "host", tmp_path, demo.Sampling(250))
    with pytest.raises(demo.GlowcError):
        demo.written(image, "host", PROMPT)

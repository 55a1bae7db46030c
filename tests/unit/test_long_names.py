"""Names of hundreds of characters, as converters join them by semicolons: short in C, whole in comments."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import glowc
from glowc.codegen.names import LONGEST, c_string, unique_idents, wrapped
from tests.unit.onnx_builders import model, node

JOINED = ";".join(f"litert_torch_layer_{i}/Conv2D/convolution" for i in range(40))


def test_identifiers_are_cut_off_and_numbered() -> None:
    names = [f"{JOINED}/{i}" for i in range(300)] + ["x", "X", "a" * 40, "a" * 41]
    idents = unique_idents(names)
    assert len({i.upper() for i in idents.values()}) == len(names)
    assert all(re.fullmatch(rf"\w{{1,{LONGEST}}}(_\d+)?", ident) for ident in idents.values())
    assert (idents["a" * 40], idents["a" * 41]) == ("a" * 40, "a" * 40 + "_2")


def test_long_text_is_wrapped_and_short_text_stays() -> None:
    assert wrapped("0: Conv first") == "0: Conv first"
    lines = wrapped(f"0: Conv {JOINED}", 2).split("\n")
    assert max(map(len, lines)) < 120
    assert "".join(line.strip() for line in lines).replace(" ", "") == f"0:Conv{JOINED}"
    assert '"' not in c_string("a" * 300 + '\\"')[1:110]
    assert "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', c_string(JOINED))) == JOINED


@pytest.mark.parametrize("weights", ["inside", "blob"])
def test_bundle_of_long_names_has_short_identifiers_and_lines(weights: str, tmp_path: Path) -> None:
    x, z, h, y = (f"{JOINED};{name}" for name in "xzhy")
    nodes = [node("Mul", "a b", "c", name=JOINED), node("Add", "d e", "f", name=f"{JOINED}2")]
    for one, inputs, output in zip(nodes, [(x, f"{JOINED};k"), (h, z)], [h, y], strict=True):
        one.input[:], one.output[:] = inputs, [output]
    proto = model(nodes, {x: "f32[1,8]", z: "f32[1,8]"}, {y: "f32"}, {f"{JOINED};k": np.arange(8, dtype=np.float32)})
    options = glowc.CompileOptions(weights="blob") if weights == "blob" else None
    made = glowc.compile(proto, tmp_path / "net", options=options)
    texts = {f.name: f.read_text(encoding="utf-8") for f in made.folder.rglob("*.[ch]") if f.name.startswith("model")}
    assert texts
    for name, text in texts.items():
        longest = max(re.findall(r"[A-Za-z_]\w*", text), key=len)
        assert len(longest) < 2 * LONGEST, (name, longest)
        assert max(map(len, text.splitlines())) < 400, name
    flat = re.sub(r"\s+", "", texts["model.h"])
    assert f'input"{JOINED};x"' in flat

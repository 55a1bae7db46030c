"""Flipped bits in arena and constants change results and nothing else: no access leaves them. `make flips` does 10,000.

The layers are those whose addresses depend on data: Gather, GatherElements, GatherND, ScatterElements, OneHot, TopK,
ReverseSequence, tables of codes. The address sanitizer watches; bits flip between any two layers and are put back.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from tests.conftest import ROOT, require_tool

FLIPS = int(os.environ.get("GLOWC_FLIPS", "200"))
DIGITS = ROOT / "examples/digits/digits.onnx"

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"
#include "net_weights.h"

static uint32_t state = 12345u, when;
static uint8_t *target, mask;
static uint32_t next(void) { state ^= state << 13; state ^= state >> 17; state ^= state << 5; return state; }

static struct { void *at; size_t bytes; } places[] = { PLACES };

void glow_profile_begin(uint32_t layer);
void glow_profile_end(uint32_t layer);
void glow_profile_begin(uint32_t layer) { if (layer == when && target != NULL) { *target ^= mask; } }
void glow_profile_end(uint32_t layer) { (void)layer; }

int main(void) {
  static _Alignas(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
  size_t total = sizeof arena;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) { total += places[i].bytes; }
  for (long n = 0; n < FLIPS; n++) {
    for (size_t i = 0; i < sizeof arena; i++) { arena[i] = (uint8_t)next(); }
    FILL
    size_t byte = next() % (next() % 2u ? sizeof arena : total);
    target = &arena[byte < sizeof arena ? byte : 0];
    for (size_t i = 0, at = byte - sizeof arena; byte >= sizeof arena && i < sizeof places / sizeof places[0]; i++) {
      if (at < places[i].bytes) { target = (uint8_t *)places[i].at + at; break; }
      at -= places[i].bytes;
    }
    mask = (uint8_t)(1u << next() % 8u);
    when = next() % NET_LAYER_COUNT;
    uint8_t *flipped = target;
    if (net_run_in(arena, sizeof arena) != GLOW_OK) { return 1; }
    if (flipped < arena || flipped >= arena + sizeof arena) { *flipped ^= mask; }
  }
  return 0;
}
"""


def indexed_net() -> onnx.ModelProto:
    """Layers that take addresses from their inputs; sound indices are [0, 3]."""
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["g"], axis=0),  # [4,6]
        helper.make_node("GatherElements", ["g", "e"], ["ge"], axis=0),
        helper.make_node("ScatterElements", ["ge", "e", "g"], ["se"], axis=0),
        helper.make_node("GatherND", ["se", "nd"], ["gnd"]),  # [3]
        helper.make_node("TopK", ["se", "k"], ["top", "place"], axis=1),
        helper.make_node("Gather", ["table", "place"], ["again"], axis=0),  # [4,2,6]
        helper.make_node("OneHot", ["i", "depth", "onoff"], ["hot"]),
        helper.make_node("ReverseSequence", ["se", "lengths"], ["rev"], batch_axis=0, time_axis=1),
    ]
    consts = {
        "table": np.arange(36, dtype=np.float32).reshape(6, 6), "k": np.array([2]), "depth": np.array(4),
        "onoff": np.array([0, 1], np.float32),
    }  # fmt: skip
    kinds = {"i": [4], "e": [4, 6], "nd": [3, 2], "lengths": [4]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, s) for n, s in kinds.items()]
    shapes = {"gnd": [3], "top": [4, 2], "again": [4, 2, 6], "hot": [4, 4], "rev": [4, 6]}
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in consts.items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def constants(folder: Path) -> str:
    """Return the arrays of the constants as C initialisers of places."""
    text = (folder / "net_weights.h").read_text()
    names = re.findall(r"^extern (?:_Alignas\(\d+\) )?const \w+ (\w+)\[", text, re.MULTILINE)
    return ", ".join(f"{{(void *){name}, sizeof {name}}}" for name in names) or "{NULL, 0}"


@pytest.mark.parametrize("opt", ["size", "speed"])
@pytest.mark.parametrize("name", ["indexed", "digits"])
def test_flipped_bits_change_nothing_but_results(name: str, opt: str, tmp_path: Path) -> None:
    require_tool("gcc")
    onnx.save(indexed_net() if name == "indexed" else onnx.load(DIGITS), tmp_path / "net.onnx")
    folder = tmp_path / "bundle"
    compiled = compile_model(tmp_path / "net.onnx", load_board("mps2-an386"), CompileOptions(opt=opt))
    write_bundle(compiled, folder)
    fill = [
        f"for (size_t i = 0; i < NET_{t.macro}_ELEMENTS; i++) "
        f"{{ (({t.ctype} *)(void *)(arena + NET_{t.macro}_OFFSET_BYTES))[i] = ({t.ctype})(next() % 4u); }}"
        for t in compiled.bundle.inputs
    ]
    places = constants(folder)
    assert "NULL" not in places
    text = MAIN.replace("PLACES", places).replace("FILL", "\n    ".join(fill))
    (folder / "main.c").write_text(text)
    # Without `const` the constants are memory that bits can flip in.
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=address", "-fno-sanitize-recover=all", "-Dconst=", f"-DFLIPS={FLIPS}",
             "-DGLOW_PROFILE", "-DGLOW_ANY_CORE", "-DNET_NO_STATIC_ARENA", "-Wno-discarded-qualifiers"]  # fmt: skip
    sources = [str(folder / n) for n in ("main.c", "net.c", "net_weights.c")]
    argv = ["gcc", *flags, *sources, "-o", str(folder / "program"), "-lm"]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(folder / "program")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]

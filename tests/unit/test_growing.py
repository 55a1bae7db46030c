"""Caches that grow: which models keep their rows in place, what becomes of their masks, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import Compiled, compile_model
from glowc.errors import GlowcError, GroupError
from glowc.program.ir import Instr

HEADS, KEPT, MOST, SIZE = 4, 2, 8, 4
FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
MICROSOFT = "com.microsoft"


def _values(of: dict[str, Sequence[int]]) -> list[onnx.ValueInfoProto]:
    integers = ("seqlens_k", "total")
    return [helper.make_tensor_value_info(name, INT32 if name in integers else FLOAT, s) for name, s in of.items()]


def _compiled(
    folder: Path, nodes: Sequence[onnx.NodeProto], more: dict[str, Sequence[int]], out: Sequence[int] = (),
    consts: dict[str, np.ndarray] | None = None, *, fresh: int = 1, whole: bool = False,
) -> Compiled:  # fmt: skip
    """Compile nodes with inputs q, k, v, caches of 8 rows in the end, and output y; states are the caches."""
    past = [1, KEPT, MOST if whole else MOST - fresh, SIZE]
    inputs = {"q": [1, HEADS, fresh, SIZE], "k": [1, KEPT, fresh, SIZE], "v": [1, KEPT, fresh, SIZE]} | more
    inputs |= {"past_k": past, "past_v": past}
    present = [1, KEPT, MOST, SIZE]
    outputs = {"y": out or [1, HEADS, fresh, SIZE], "present_k": present, "present_v": present}
    arrays = [numpy_helper.from_array(array, name) for name, array in (consts or {}).items()]
    graph = helper.make_graph(list(nodes), "g", _values(inputs), _values(outputs), arrays)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "net.onnx")
    options = CompileOptions(name="net", states={"past_*": "present_*"})
    return compile_model(folder / "net.onnx", load_board("host"), options)


def _written(
    mask: Sequence[onnx.NodeProto] = (), ends: str = "scores", joined: str = "past_{0} {0}"
) -> list[onnx.NodeProto]:
    """Return attention by simple operators; `mask` makes `ends` of the scores."""
    nodes = [
        helper.make_node("Concat", joined.format(x).split(), [f"present_{x}"], axis=2, name=f"join_{x}") for x in "kv"
    ]
    for x in "kv":
        nodes.append(helper.make_node("Unsqueeze", [f"present_{x}", "two"], [f"{x}5"]))
        nodes.append(helper.make_node("Expand", [f"{x}5", "times"], [f"{x}6"]))
        nodes.append(helper.make_node("Reshape", [f"{x}6", "shape"], [f"{x}7"]))
    return [
        *nodes, helper.make_node("Transpose", ["k7"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["product"]), helper.make_node("Mul", ["product", "half"], ["scores"]),
        *mask, helper.make_node("Softmax", [ends], ["shares"], axis=-1, name="shares"),
        helper.make_node("MatMul", ["shares", "v7"], ["y"], name="mix"),
    ]  # fmt: skip


def _consts(**more: np.ndarray) -> dict[str, np.ndarray]:
    shape = np.array([1, HEADS, MOST, SIZE])
    return {
        "two": np.array([2]), "times": np.array([1, KEPT, HEADS // KEPT, MOST, SIZE]), "shape": shape,
        "half": np.array(0.5, np.float32), **more,
    }  # fmt: skip


def _attended(result: Compiled) -> Instr:
    """Return the one attention; both caches have new rows, and nothing copies them."""
    kernels = [i.kernel for i in result.program.instrs if not i.is_marker]
    assert kernels.count("append_b4") == 2
    rows = KEPT * MOST * SIZE * 4
    sizes = {
        i.operands[0].buffer: result.program.buffers[i.operands[0].buffer].size_bytes for i in result.program.instrs
    }
    assert not [i for i in result.program.instrs if i.kernel.startswith("copy") and sizes[i.operands[0].buffer] == rows]
    assert sum(b.size_bytes == rows for b in result.program.buffers.values()) == 2
    (found,) = (i for i in result.program.instrs if i.kernel == "attend_f32")
    return found


def test_simple_operators_become_attention_to_rows_in_place(tmp_path: Path) -> None:
    result = _compiled(tmp_path, _written(), {}, consts=_consts())
    params = _attended(result).params
    wanted = {"heads": 4, "group": 2, "most": 8, "k_head": 32, "k_row": 4, "v_head": 32, "v_row": 4, "scale": 0.5}
    assert {key: params[key] for key in wanted} == wanted
    assert [s["name"] for s in result.report["inputs"]] == ["q", "k", "v"]


def _later(fresh: int, first: int = 0) -> np.ndarray:
    """Return where rows come after each of the last queries, or before row `first`."""
    rows = np.arange(MOST)
    return (rows > np.arange(MOST - fresh, MOST)[:, None]) | (rows < first)


def _added(hidden: np.ndarray) -> np.ndarray:
    return np.where(hidden, -1e9, 0).astype(np.float32)


@pytest.mark.parametrize("kind", ["add", "where", "not"])
def test_a_causal_mask_becomes_an_attribute(kind: str, tmp_path: Path) -> None:
    hidden, far = _later(2), np.array(-3e38, np.float32)
    node, mask = {
        "add": (helper.make_node("Add", ["mask", "scores"], ["masked"]), _added(hidden)),
        "where": (helper.make_node("Where", ["mask", "far", "scores"], ["masked"]), hidden),
        "not": (helper.make_node("Where", ["mask", "scores", "far"], ["masked"]), ~hidden),
    }[kind]
    consts = _consts(mask=mask) | ({} if kind == "add" else {"far": far})
    result = _compiled(tmp_path, _written([node], "masked"), {}, consts=consts, fresh=2)
    assert _attended(result).params["causal"] == 1


def test_queries_without_a_mask_see_all_new_rows(tmp_path: Path) -> None:
    assert _attended(_compiled(tmp_path, _written(), {}, consts=_consts(), fresh=2)).params["causal"] == 0


@pytest.mark.parametrize("fresh", [1, 3])
def test_attention_with_caches_keeps_them_in_place(fresh: int, tmp_path: Path) -> None:
    node = helper.make_node(
        "Attention", ["q", "k", "v", "", "past_k", "past_v"], ["y", "present_k", "present_v"], is_causal=1
    )
    params = _attended(_compiled(tmp_path, [node], {}, fresh=fresh)).params
    assert (params["group"], params["queries"], params["causal"]) == (2, fresh, int(fresh > 1))


def _group(**attrs: object) -> onnx.NodeProto:
    inputs = ["q3", "k3", "v3", "past_k", "past_v", "seqlens_k", "total"]
    return helper.make_node(
        "GroupQueryAttention", inputs, ["y", "present_k", "present_v"], domain=MICROSOFT, num_heads=HEADS,
        kv_num_heads=KEPT, name="gqa", **attrs,
    )  # fmt: skip


def _grouped(folder: Path, **attrs: object) -> Compiled:
    flat = [helper.make_node("Reshape", [x, f"flat_{x}"], [f"{x}3"]) for x in "qkv"]
    widths = {"q": HEADS, "k": KEPT, "v": KEPT}
    consts = {f"flat_{x}": np.array([1, 1, n * SIZE]) for x, n in widths.items()}
    return _compiled(
        folder, [*flat, _group(**attrs)], {"seqlens_k": [1], "total": [1]}, [1, 1, HEADS * SIZE], consts, whole=True
    )


def test_group_query_attention_writes_into_its_buffers(tmp_path: Path) -> None:
    result = _grouped(tmp_path)
    params = _attended(result).params
    assert (params["heads"], params["group"], params["most"], params["causal"]) == (4, 2, 8, 1)
    assert "seqlens_k" in [s["name"] for s in result.report["inputs"]]


@pytest.mark.parametrize(
    ("attrs", "text"),
    [({"local_window_size": 4}, "local_window_size = 4"), ({"softcap": 2.0}, "softcap = 2.0")],
)
def test_group_query_attention_with_other_scores_is_refused(
    attrs: dict[str, object], text: str, tmp_path: Path
) -> None:
    with pytest.raises(GlowcError) as error:
        _grouped(tmp_path, **attrs)
    assert text in f"{error.value} {error.value.details}"


def test_a_mask_that_is_an_input_is_refused_with_the_node_and_a_way_out(tmp_path: Path) -> None:
    mask = helper.make_node("Add", ["scores", "mask"], ["masked"])
    with pytest.raises(GroupError, match="needs to know its rows") as error:
        _compiled(tmp_path, _written([mask], "masked"), {"mask": [1, 1, 1, MOST]}, consts=_consts())
    assert any('reads all rows of "present_k"' in line for line in error.value.details)
    assert "--set-input" in str(error.value.hint)


def test_a_window_over_the_last_rows_is_refused(tmp_path: Path) -> None:
    mask = helper.make_node("Add", ["scores", "mask"], ["masked"])
    with pytest.raises(GroupError, match="needs to know its rows"):
        _compiled(tmp_path, _written([mask], "masked"), {}, consts=_consts(mask=_added(_later(1, first=4))))


def test_a_sum_of_all_rows_is_refused(tmp_path: Path) -> None:
    nodes = _written()
    nodes[-1] = helper.make_node("MatMul", ["shares", "v7"], ["mixed"])
    nodes.append(helper.make_node("ReduceSum", ["present_v"], ["sum"], keepdims=1, name="all"))
    nodes.append(helper.make_node("Add", ["mixed", "sum"], ["y"]))
    with pytest.raises(GroupError) as error:
        _compiled(tmp_path, nodes, {}, consts=_consts())
    assert '"all": reads all rows of "present_v"' in " ".join(error.value.details)


def test_rows_that_come_first_do_not_grow(tmp_path: Path) -> None:
    with pytest.raises(GroupError) as error:
        _compiled(tmp_path, _written(joined="{0} past_{0}"), {}, consts=_consts())
    assert 'input "past_k" is f32[1,2,7,4], output "present_k" is f32[1,2,8,4]' in " ".join(error.value.details)


def test_a_pattern_that_matches_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    _compiled(tmp_path, _written(), {}, consts=_consts())
    with pytest.raises(GroupError) as error:
        compile_model(path, load_board("host"), CompileOptions(states={"cache_*": "present_*"}))
    assert '"cache_*" is no input' in " ".join(error.value.details)


def _with_angles(folder: Path, position: str) -> Compiled:
    """Compile attention over a cache of symbolic length whose new rows are turned by the row `position` of a table."""
    nodes = [
        helper.make_node("Shape", ["past_k"], ["sizes"]), helper.make_node("Gather", ["sizes", "two"], ["length"]),
        helper.make_node("Gather", ["table", position], ["angle"]), helper.make_node("Mul", ["k", "angle"], ["turned"]),
        helper.make_node("Concat", ["past_k", "turned"], ["present_k"], axis=2),
        helper.make_node("Concat", ["past_v", "v"], ["present_v"], axis=2),
        helper.make_node("Transpose", ["present_k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]), helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "present_v"], ["y"]),
    ]  # fmt: skip
    row = [1, KEPT, 1, SIZE]
    inputs = [helper.make_tensor_value_info(name, FLOAT, row) for name in "qkv"]
    inputs += [helper.make_tensor_value_info(f"past_{x}", FLOAT, [1, KEPT, "past", SIZE]) for x in "kv"]
    inputs += [helper.make_tensor_value_info("given", TensorProto.INT64, [1])] if position == "given" else []
    outputs = [helper.make_tensor_value_info(f"present_{x}", FLOAT, [1, KEPT, "all", SIZE]) for x in "kv"]
    table = np.random.default_rng(0).random((MOST, SIZE), np.float32)
    arrays = [numpy_helper.from_array(array, name) for name, array in {"two": np.array([2]), "table": table}.items()]
    outputs.insert(0, helper.make_tensor_value_info("y", FLOAT, row))
    graph = helper.make_graph(nodes, "g", inputs, outputs, arrays)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "net.onnx")
    options = CompileOptions(name="net", states={"past_*": "present_*"}, symbols={"past": MOST - 1})
    return compile_model(folder / "net.onnx", load_board("host"), options)


def test_positions_from_the_length_of_a_cache_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GroupError, match="length of the caches, past") as caught:
        _with_angles(tmp_path, "length")
    assert any("Mul" in line for line in caught.value.details)
    assert "position_ids" in (caught.value.hint or "")


def test_positions_may_be_an_input(tmp_path: Path) -> None:
    result = _with_angles(tmp_path, "given")
    assert [i.kernel for i in result.program.instrs].count("append_b4") == 2

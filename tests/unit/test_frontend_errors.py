"""What a user is told about a file that cannot be imported: what is wrong, where, and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from glowc.errors import InputError, ModelError
from glowc.frontend import import_model
from tests.unit.onnx_builders import f32, model, node


def error(
    *args: Any, batch_size: int | None = None, symbols: dict[str, int] | None = None, **kwargs: Any
) -> ModelError:
    proto = model(*args, **kwargs)
    with pytest.raises(ModelError) as caught:
        import_model(proto, batch_size=batch_size, symbols=symbols)
    assert caught.value.exit_status == 1
    return caught.value


def file_error(source: Path | bytes) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(source)
    return str(caught.value)


def add_model() -> onnx.ModelProto:
    return model([node("Add", "x w", "y", name="add")], {"x": "f32[64]"}, "y", {"w": np.ones(64, np.float32)})


def test_missing_file_names_the_files_there(tmp_path: Path) -> None:
    (tmp_path / "other.onnx").write_bytes(b"x")
    text = file_error(tmp_path / "net.onnx")
    assert "no such file" in text
    assert "other.onnx" in text
    assert "does not exist" in file_error(tmp_path / "nowhere" / "net.onnx")


def test_directory_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x")
    text = file_error(tmp_path)
    assert "is a directory" in text
    assert "did you mean" in text


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"")
    assert f"{path} is empty" in file_error(path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"hello, this is some text\n" * 4, "is not an ONNX file"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(64), "schema version 0"),
        (b"PK\x03\x04" + bytes(64), "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\x08\x08", "holds no graph"),
        (bytes(range(256)), "is not an ONNX file"),
    ],
)
def test_foreign_file_is_recognised(data: bytes, words: str) -> None:
    assert words in file_error(data)


@pytest.mark.parametrize("part", [0.5, 0.9, 0.99])
def test_truncated_file_is_told_from_a_foreign_one(part: float, tmp_path: Path) -> None:
    data = add_model().SerializeToString()
    path = tmp_path / "net.onnx"
    path.write_bytes(data[: int(len(data) * part)])
    text = file_error(path)
    assert "truncated" in text or "holds no graph" in text
    assert "download the file again" in text


def test_missing_external_data_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(add_model(), path, save_as_external_data=True, location="net.bin", size_threshold=0)
    (tmp_path / "net.bin").unlink()
    text = file_error(path)
    assert 'weights file "net.bin" of tensor "w" is missing' in text
    assert "copy net.bin beside the model" in text
    assert "give the path" in file_error(path.read_bytes())


def test_damaged_initialiser() -> None:
    proto = add_model()
    proto.graph.initializer[0].raw_data = b"123"
    assert 'initializer "w" of shape [64]: its data do not fill its shape' in file_error(proto.SerializeToString())


def test_unsupported_operators_are_listed_together() -> None:
    nodes = [
        node("Bogus", "x", "a", name="first"), node("Relu", "a", "b", name="relu"),
        node("Bogus", "b", "c", name="second"), node("Strange", "c", "y", name="third", domain="org.example"),
    ]  # fmt: skip
    problem = error(nodes, {"x": "f32[2]"}, "y", domains=["org.example"])
    assert 'unsupported operator Bogus (2 nodes): "first", "second"' in problem.details
    assert 'unsupported operator org.example::Strange (1 node): "third"' in problem.details
    assert problem.hint is not None
    assert "glowc ops" in problem.hint


def test_long_lists_of_nodes_are_cut() -> None:
    nodes = [node("Bogus", "x", f"y{i}", name=f"n{i}") for i in range(9)]
    text = str(error(nodes, {"x": "f32[2]"}, " ".join(f"y{i}" for i in range(9))))
    assert "(9 nodes)" in text
    assert "and 3 more" in text


def test_unresolved_symbols_are_listed_with_the_option() -> None:
    inputs = {"audio": "f32[N,T,10]", "ids": "s64[1,L]"}
    problem = error([node("Identity", "audio", "y"), node("Identity", "ids", "z")], inputs, "y z")
    text = str(problem)
    assert 'input "audio" [N, T, 10]: dimension 0 (N) has no value' in text
    assert 'input "audio" [N, T, 10]: dimension 1 (T) has no value' in text
    assert 'input "ids" [1, L]: dimension 1 (L) has no value' in text
    assert "--define-symbol N=1 or --batch-size 1" in text
    assert "--define-symbol T=1" in text


def test_dimension_without_name_gets_an_option_too() -> None:
    text = str(error([node("Identity", "x", "y")], {"x": "f32[1,?]"}, "y"))
    assert 'input "x" [1, ?]: dimension 1 (x[1]) has no value' in text
    assert "--define-symbol x[1]=1" in text


def test_unknown_symbol_and_bad_batch_size_are_input_errors() -> None:
    proto = model([node("Identity", "x", "y")], {"x": "f32[N,4]"}, "y")
    with pytest.raises(InputError, match="no symbolic dimension 'M'") as caught:
        import_model(proto, symbols={"M": 3})
    assert caught.value.hint == "its symbols: N"
    with pytest.raises(InputError, match="at least 1"):
        import_model(proto, batch_size=0)
    fixed = model([node("Identity", "x", "y")], {"x": "f32[1,4]"}, "y")
    with pytest.raises(InputError, match="fixed batch size 1"):
        import_model(fixed, batch_size=8)


def test_bad_name_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no C identifier"):
        import_model(add_model(), name="my-net")


def test_input_without_shape_or_of_strings() -> None:
    assert 'input "x" has no shape' in str(error([node("Identity", "x", "y")], {"x": "f32"}, "y"))
    assert 'input "x" is string' in str(error([node("Identity", "x", "y")], {"x": "str[1]"}, {"y": "str"}))


def test_zero_sized_dimension() -> None:
    text = str(error([node("Identity", "x", "y")], {"x": "f32[1,0]"}, "y"))
    assert 'input "x": dimension 1 is 0' in text
    consts = {"s": [2], "e": [2], "a": [0]}
    text = str(error([node("Slice", "x s e a", "y", name="cut")], {"x": "f32[4]"}, "y", consts))
    assert 'output "y" (f32[0]) has no elements' in text


@pytest.mark.parametrize("inputs", ["", "x", "x w"])
def test_operator_without_schema_with_too_few_inputs(inputs: str) -> None:
    """RequantShift ended in an internal error."""
    nodes = [node("RequantShift", inputs, "y", name="shift", div=16.0, n_levels_out=256.0)]
    text = str(error(nodes, {"x": "f32[1,2]"}, "y", {"w": np.ones(1, np.float32)}))
    assert f'RequantShift "shift": {len(inputs.split())} inputs are not those that the operator takes' in text


def test_unknown_attribute() -> None:
    text = str(error([node("Gemm", "x w", "y", name="fc", transC=1)], {"x": "f32[1,2]"}, "y", {"w": np.eye(2)}))
    assert 'Gemm "fc": unknown attribute transC' in text


def test_attribute_that_the_operator_does_not_support() -> None:
    nodes = [node("BatchNormalization", "x s s s s", "y", name="norm", training_mode=1)]
    text = str(error(nodes, {"x": "f32[1,1,4,4]", "s": "f32[1]"}, "y"))
    assert 'BatchNormalization "norm"' in text
    assert "not supported" in text


def test_opset_newer_than_the_operator_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    import glowc.frontend.schema as schema

    monkeypatch.setattr(schema, "NEWEST_OPSET", 12)
    problem = error([node("Unsqueeze", "x a", "y", name="u")], {"x": "f32[2]"}, "y", {"a": [0]}, opset=13)
    assert 'Unsqueeze "u": opset 13 defines it anew; glowc knows its definition up to opset 12' in str(problem)
    assert "opset_version=12" in str(problem)


def test_opset_newer_than_onnx_and_too_old() -> None:
    text = str(error([node("Relu", "x", "y")], {"x": "f32[2]"}, "y", opset=999))
    assert "opset 999 is newer than" in text
    assert "upgrade the onnx package" in text
    assert "opset 5 is older than 7" in str(error([node("Relu", "x", "y")], {"x": "f32[2]"}, "y", opset=5))
    text = str(error([node("Relu", "x", "y")], {"x": "f32[2]"}, "y", opset=-1))
    assert "opset -1 is not a version of ONNX" in text


def test_resize_by_an_infinite_scale() -> None:
    consts = {"s": np.asarray([1, 1, np.inf, 2], np.float32)}
    text = str(error([node("Resize", "x _ s", "y", name="up")], {"x": "f32[1,1,4,4]"}, "y", consts))
    assert 'Resize "up": scales [1.0, 1.0, inf, 2.0] must be positive numbers' in text


def test_missing_value_names_node_and_value() -> None:
    problem = error([node("Add", "x lost", "y", name="add")], {"x": "f32[2]"}, "y z")
    assert any('Add "add" reads "lost", which is neither' in line for line in problem.details)
    assert 'graph output "z" is computed by no node' in problem.details


def test_missing_value_hides_no_other_problem() -> None:
    nodes = [node("Add", "x lost", "a"), node("Relu", "a", "y"), node("Foo", "x", "z"), node("If", "lost", "v")]
    details = error(nodes, {"x": "f32[2]"}, "y z v").details
    assert len(details) == 3
    assert any("unsupported operator Foo" in line for line in details)


def test_cycle_names_its_nodes() -> None:
    nodes = [node("Add", "x b", "a", name="one"), node("Add", "a x", "b", name="two"), node("Relu", "b", "y")]
    text = str(error(nodes, {"x": "f32[2]"}, "y"))
    assert 'cycle through Add "one", Add "two"' in text


def test_duplicated_names() -> None:
    nodes = [node("Relu", "x", "y", name="one"), node("Add", "x x", "y", name="two")]
    text = str(error(nodes, {"x": "f32[2]"}, "y"))
    assert 'Add "two" writes "y", which is already the name of the output of Relu "one"' in text
    text = str(error([node("Relu", "x", "w")], {"x": "f32[2]"}, "w", {"w": f32(1, 2)}))
    assert "already the name of an initializer" in text


def test_duplicated_graph_output() -> None:
    proto = model([node("Relu", "x", "y")], {"x": "f32[2]"}, "y")
    proto.graph.output.append(proto.graph.output[0])
    assert 'two graph outputs are named "y"' in file_error(proto.SerializeToString())


def test_inner_dimensions_do_not_match() -> None:
    text = str(
        error(
            [node("MatMul", "x w", "y", name="fc")],
            {"x": "f32[1,3]"},
            "y",
            {"w": np.eye(4, dtype=np.float32)},
        )
    )
    assert 'MatMul "fc": inner dimensions do not match' in text
    assert "inputs: f32[1,3], f32[4,4]" in text


def test_reshape_of_other_size_has_a_hint() -> None:
    text = str(error([node("Reshape", "x s", "y", name="r")], {"x": "f32[2,3]"}, "y", {"s": [4, -1]}))
    assert 'Reshape "r": cannot reshape f32[2,3] (6 elements) to [4, -1]' in text
    assert "--batch-size" in text


def test_shape_computed_at_run_time() -> None:
    text = str(error([node("Reshape", "x s", "y", name="r")], {"x": "f32[2,3]", "s": "s64[1]"}, "y"))
    assert 'shape "s" is computed at run time' in text


def test_convolution_with_wrong_weights_and_4_axes() -> None:
    w = np.zeros((4, 8, 3, 3), np.float32)
    text = str(error([node("Conv", "x w", "y", name="c")], {"x": "f32[1,3,8,8]"}, "y", {"w": w}))
    assert 'Conv "c": 3 input channels' in text
    w = np.zeros((4, 8, 3, 3, 3), np.float32)
    text = str(error([node("Conv", "x w", "y", name="c")], {"x": "f32[1,3,8,8,8]"}, "y", {"w": w}))
    assert 'Conv "c": 3 input channels' in text
    w = np.zeros((4, 3, 3, 3, 3, 3), np.float32)
    text = str(error([node("Conv", "x w", "y", name="c")], {"x": "f32[1,3,8,8,8,8]"}, "y", {"w": w}))
    assert "1-D to 3-D are supported" in text


def test_several_problems_are_shown_at_once() -> None:
    nodes = [
        node("DequantizeLinear", "x s", "a", name="dq"), node("MatMul", "a w", "b", name="fc"),
        node("Bogus", "b", "y", name="odd"),
    ]  # fmt: skip
    problem = error(nodes, {"x": "s8[1,3]"}, "y", {"s": f32(0), "w": np.eye(4, dtype=np.float32)})
    assert problem.message == "model: 3 problems"
    assert [line.split('"')[1] for line in problem.details] == ["odd", "dq", "fc"]


def test_missing_inputs_are_a_message_not_a_traceback() -> None:
    text = str(error([node("Conv", "x", "y", name="c")], {"x": "f32[1,3,8,8]"}, "y"))
    assert 'Conv "c": input 1 (W) is missing' in text
    text = str(error([node("DequantizeLinear", "x", "y", name="d")], {"x": "s8[2]"}, "y"))
    assert 'DequantizeLinear "d"' in text


def test_damaged_bytes_never_cause_a_traceback() -> None:
    """Any one byte changed gives a graph or a ModelError."""
    data = bytearray(model([node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": "f32[1,1,4,4]"}, "y",
                           {"w": np.ones((1, 1, 3, 3), np.float32)}).SerializeToString())  # fmt: skip
    for position in range(len(data)):
        changed = bytes(data[:position]) + bytes([data[position] ^ 0x15]) + bytes(data[position + 1 :])
        try:
            import_model(changed)
        except ModelError:
            continue


def test_huge_constant_is_an_error_before_it_is_made() -> None:
    nodes = [node("ConstantOfShape", "s", "c", name="fill"), node("Add", "x c", "y")]
    text = str(error(nodes, {"x": "f32[1]"}, "y", {"s": [1 << 20, 1 << 20]}))
    assert 'ConstantOfShape "fill": its constant result f32[1048576,1048576] is too large' in text


def test_name_that_is_no_text() -> None:
    data = model([node("Relu", "x", "y", name="NAME")], {"x": "f32[2]"}, "y").SerializeToString()
    assert "damaged: a name is not text" in file_error(data.replace(b"NAME", b"N\xff\xffE"))

"""Bad input on the command line: exit status 1, one message with a hint, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from glowc.app import cli
from tests.golden.nets import dense, float_mlp
from tests.unit.cli_calls import DIGITS, GOOD, Glowc, images, refused, save, tree
from tests.unit.onnx_builders import model, node


def unsupported() -> onnx.ModelProto:
    nodes = [
        node("Wubble", "x", "t", name="first/odd", domain="com.acme"),
        node("Relu", "x", "r", name="fine"),
        node("Wibble", "r", "y", name="second/odd", domain="com.acme"),
        node("Wobble", "y", "z", name="third/odd", domain="com.acme"),
    ]
    return model(nodes, {"x": "f32[1,4]"}, {"t": "f32", "z": "f32"}, domains=["com.acme"])


def symbolic() -> onnx.ModelProto:
    return model([node("Relu", "x", "y")], {"x": "f32[1,N,4]"}, "y")


# ---- the model file ----


def test_missing_file(glowc: Glowc) -> None:
    refused(glowc, "compile", "gone.onnx", "-o", "out", says=["no such file: gone.onnx"])


def test_missing_file_names_those_that_are_there(glowc: Glowc) -> None:
    save(dense(), "net.onnx")
    refused(glowc, "compile", "nett.onnx", "-o", "out", says=["nett.onnx"], hint="net.onnx")


def test_folder_instead_of_a_model(glowc: Glowc) -> None:
    Path("models").mkdir()
    save(dense(), "models/kws.onnx")
    refused(glowc, "compile", "models", "-o", "out", says=["models is a directory"], hint="models/kws.onnx")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello, this is no model at all\n",
        bytes(range(256)) * 4,
        b"PK\x03\x04" + bytes(64),
    ],
)
def test_file_that_is_not_onnx(glowc: Glowc, data: bytes) -> None:
    Path("net.onnx").write_bytes(data)
    says = ["net.onnx is empty"] if not data else ["net.onnx is not an ONNX file"]
    refused(glowc, "compile", "net.onnx", "-o", "out", says=says)


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 0.99])
def test_truncated_file(glowc: Glowc, part: float) -> None:
    data = DIGITS.read_bytes()
    Path("net.onnx").write_bytes(data[: int(len(data) * part)])
    refused(glowc, "compile", "net.onnx", "-o", "out", says=["net.onnx is truncated", "bytes are missing"])


def test_external_weights_that_are_missing(glowc: Glowc) -> None:
    onnx.save(float_mlp(), "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    Path("net.data").unlink()
    refused(glowc, "compile", "net.onnx", "-o", "out", says=["net.data", "is missing"], hint="net.data")


def test_all_unsupported_operators_are_listed_with_their_nodes(glowc: Glowc) -> None:
    save(unsupported())
    says = ["Wubble", '"first/odd"', "com.acme", "Wibble", '"second/odd"', "Wobble", '"third/odd"']
    result = refused(glowc, "compile", "net.onnx", "-o", "out", says=says, hint="glowc ops")
    assert "fine" not in result.err


def test_symbolic_dimension_without_a_value(glowc: Glowc) -> None:
    save(symbolic())
    says = ['input "x" [1, N, 4]', "dimension 1 (N) has no value"]
    refused(glowc, "compile", "net.onnx", "-o", "out", says=says, hint="--define-symbol N=1")


@pytest.mark.parametrize("pair", ["N", "N=", "N=0", "N=-3", "N=x", "=4", "N=1.5"])
def test_bad_define_symbol(glowc: Glowc, pair: str) -> None:
    save(symbolic())
    argv = ("compile", "net.onnx", "-o", "out", "--define-symbol", pair)
    refused(glowc, *argv, says=[f"--define-symbol {pair}"], hint="--define-symbol")


def test_symbol_that_the_model_does_not_have(glowc: Glowc) -> None:
    save(symbolic())
    argv = ("compile", "net.onnx", "-o", "out", "--define-symbol", "M=1")
    refused(glowc, *argv, says=["no symbolic dimension 'M'"], hint="N")


@pytest.mark.parametrize("pair", ["x", "x=", "x=1x", "x=1x0", "x=1,2", "=4", "x=axb"])
def test_bad_input_shape(glowc: Glowc, pair: str) -> None:
    save(symbolic())
    argv = ("compile", "net.onnx", "-o", "out", "--input-shape", pair)
    refused(glowc, *argv, says=[f"--input-shape {pair}"], hint="--input-shape")


@pytest.mark.parametrize("pair", ["x", "x=", "x=1,", "x=one", "=4"])
def test_bad_set_input(glowc: Glowc, pair: str) -> None:
    save(symbolic())
    argv = ("compile", "net.onnx", "-o", "out", "--set-input", pair)
    refused(glowc, *argv, says=[f"--set-input {pair}"], hint="--set-input sr=16000")


def test_whole_shape_of_an_input(glowc: Glowc) -> None:
    save(symbolic())
    assert glowc("compile", "net.onnx", "-o", "out", "--input-shape", "x=1x5x4").status == 0
    assert "--input-shape x=1x5x4" in Path("out/net.c").read_text()


# ---- names and boards ----


def test_name_that_is_no_c_identifier(glowc: Glowc) -> None:
    refused(glowc, "compile", DIGITS, "-o", "out", "--name", "a-b", says=["'a-b'"], hint="--name a_b")


@pytest.mark.parametrize("name", ["1st", "int", "digits_run", "glow_thing"])
def test_entry_name_that_cannot_be(glowc: Glowc, name: str) -> None:
    refused(glowc, "compile", DIGITS, "-o", "out", "--entry-name", name, says=[name], hint="--entry-name")


@pytest.mark.parametrize("command", ["compile", "bench"])
def test_unknown_board_suggests_the_right_one(glowc: Glowc, command: str) -> None:
    out = ("-o", "out") if command == "compile" else ()
    says = ['unknown board "mps2-an368"', "did you mean", "mps2-an386"]
    refused(glowc, command, DIGITS, "--board", "mps2-an368", *out, says=says)


@pytest.mark.parametrize(
    ("chip", "says"), [("stm32l4r5", "boards that have it: mps2-an386, nucleo-l4r5zi; "), ("rp2350", "is a chip: ")]
)
def test_a_chip_is_no_board_but_boards_have_it(glowc: Glowc, chip: str, says: str) -> None:
    refused(glowc, "compile", DIGITS, "--board", chip, "-o", "out", says=[says, f"bench MODEL --chip {chip}"])


def test_cpu_that_the_board_does_not_have(glowc: Glowc) -> None:
    before = tree(Path.cwd())
    result = glowc("compile", DIGITS, "--board", "mps2-an386", "--cpu", "cortex-a53", "-o", "out")
    assert (result.status, tree(Path.cwd())) == (1, before)
    assert result.err.startswith('error[GL0401]: board "mps2-an386" has no CPU "cortex-a53"')
    assert "it can have: cortex-m4" in result.err


def test_folder_without_a_board(glowc: Glowc) -> None:
    Path("myboard").mkdir()
    result = glowc("compile", DIGITS, "--board", "myboard", "-o", "out")
    assert result.status == 1
    assert result.err.startswith('error[GL0402]: folder "myboard" holds no board.toml')
    assert tree(Path.cwd()) == {"myboard": None}


@pytest.mark.parametrize(("option", "value"), [("--passes", "+nonsense"), ("--stop-after", "fold-everything")])
def test_unknown_pass(glowc: Glowc, option: str, value: str) -> None:
    refused(glowc, "compile", DIGITS, "-o", "out", option, value, says=["no pass named", value.lstrip("+")])


# ---- limits ----


def large() -> onnx.ModelProto:
    """Its first layer needs 20,736 bytes of activations: more than a micro:bit has."""
    consts = {"w": np.ones((8, 1, 1, 1), np.float32)}
    nodes = [node("Conv", "x w", "h", name="block/conv", kernel_shape=[1, 1]), node("GlobalAveragePool", "h", "y")]
    return model(nodes, {"x": "f32[1,1,24,24]"}, "y", consts)


def test_model_too_large_for_the_board_names_the_peak(glowc: Glowc) -> None:
    save(large())
    argv = ("compile", "net.onnx", "--board", "microbit", "-o", "out")
    says = ["bytes of RAM for its arena", "board microbit allows 14208", 'at Conv "block/conv"', " x\n"]
    refused(glowc, *argv, says=[*says, "the peak"], hint="glowc boards", status=3)
    result = refused(glowc, *argv, "--plan", "plain", says=says, hint="glowc boards", status=3)
    peak = re.search(r"the peak of (\d+) bytes", result.err)
    assert peak is not None
    assert int(peak[1]) == 24 * 24 * 4 * (1 + 8)


def test_ram_limit(glowc: Glowc) -> None:
    argv = ("compile", DIGITS, "-o", "out", "--ram-limit", "100")
    refused(glowc, *argv, says=["bytes of RAM", "--ram-limit 100 allows 100", "the peak is at"], hint="RAM", status=3)


def test_flash_limit(glowc: Glowc) -> None:
    argv = ("compile", DIGITS, "-o", "out", "--flash-limit", "1000")
    says = ["bytes of flash for its constants", "--flash-limit 1000 allows 1000", "largest constants"]
    refused(glowc, *argv, says=says, hint="flash", status=3)


def test_limits_that_hold_change_nothing(glowc: Glowc) -> None:
    result = glowc("compile", DIGITS, "-o", "out", "--ram-limit", "65536", "--flash-limit", "65536")
    assert result.status == 0, result.err


# ---- output ----


def test_output_folder_is_a_file(glowc: Glowc) -> None:
    Path("out").write_text("mine")
    refused(glowc, "compile", DIGITS, "-o", "out", says=["cannot write the bundle to out"], hint="-o")


def test_output_folder_inside_a_file(glowc: Glowc) -> None:
    Path("file").write_text("mine")
    refused(glowc, "compile", DIGITS, "-o", "file/out", says=["cannot write the bundle to file/out"], hint="-o")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_folder_that_is_not_writable(glowc: Glowc) -> None:
    Path("locked").mkdir(mode=0o555)
    refused(glowc, "compile", DIGITS, "-o", "locked/out", says=["cannot write the bundle"], hint="-o")


def test_full_disk_leaves_the_old_bundle_as_it_was(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name.endswith(".mk"):
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    argv = ("compile", DIGITS, "-o", "out", "--opt", "speed")
    refused(glowc, *argv, says=["cannot write the bundle to out: No space left on device"], hint="-o")


def test_dump_folder_is_a_file(glowc: Glowc) -> None:
    Path("dump").write_text("mine")
    refused(glowc, "compile", DIGITS, "-o", "out", "--dump-ir", "dump", says=["dump"])


# ---- run, bench, validate ----


BAD_INPUTS: Mapping[str, tuple[dict[str, np.ndarray], str]] = {
    "missing array": ({"picture": GOOD}, "no array named 'image' (the file has 'picture')"),
    "no array": ({}, "no array named 'image' (the file has none)"),
    "wrong shape": ({"image": GOOD[..., :4]}, "image: int8[2, 1, 1, 8, 4], the model takes int8[1, 1, 8, 8]"),
    "wrong rank": ({"image": GOOD[0, 0]}, "image: int8[1, 8, 8], the model takes int8[1, 1, 8, 8]"),
    "wrong dtype": ({"image": GOOD.astype(np.float64)}, "image: float64[2, 1, 1, 8, 8], the model takes int8"),
    "no samples": ({"image": GOOD[:0]}, "at least one"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
@pytest.mark.parametrize("source", ["bundle", "model"])
def test_inputs_that_do_not_fit(glowc: Glowc, bundle: Path, source: str, case: str) -> None:
    arrays, message = BAD_INPUTS[case]
    images(**arrays)
    where = bundle if source == "bundle" else DIGITS
    refused(glowc, "run", where, "--input", "in.npz", "--output", "out.npz", says=["in.npz", message])


@pytest.mark.parametrize("command", ["run", "bench", "validate"])
@pytest.mark.parametrize("data", [None, b"", b"no archive", b"PK\x03\x04 broken"])
def test_input_file_that_is_no_npz(glowc: Glowc, command: str, data: bytes | None) -> None:
    if data is not None:
        Path("in.npz").write_bytes(data)
    says = ["in.npz does not exist"] if data is None else ["in.npz is not an .npz file"]
    out = ("--output", "out.npz") if command == "run" else ()
    refused(glowc, command, DIGITS, "--input", "in.npz", *out, says=says)


def test_input_file_with_pickled_objects_is_not_loaded(glowc: Glowc) -> None:
    images(image=np.array([{"a": 1}], dtype=object))
    refused(glowc, "run", DIGITS, "--input", "in.npz", "--output", "out.npz", says=["in.npz is not an .npz file"])


def test_several_inputs_with_different_counts(glowc: Glowc) -> None:
    save(model([node("Add", "a b", "y")], {"a": "f32[1,2]", "b": "f32[1,2]"}, "y"))
    images(a=np.zeros((2, 1, 2), np.float32), b=np.zeros((3, 1, 2), np.float32))
    refused(glowc, "run", "net.onnx", "--input", "in.npz", "--output", "out.npz", says=["[2, 3] samples"])


@pytest.mark.parametrize("command", ["run", "bench"])
def test_folder_that_is_no_bundle(glowc: Glowc, command: str) -> None:
    Path("folder").mkdir()
    argv = ("--input", "in.npz", "--output", "out.npz") if command == "run" else ()
    refused(glowc, command, "folder", *argv, says=["folder is not a bundle"], hint="glowc compile")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": "x", "inputs": [{}], "outputs": [], "layers": []}'])
def test_broken_report_of_a_bundle(glowc: Glowc, text: str) -> None:
    Path("folder").mkdir()
    Path("folder/report.json").write_text(text)
    refused(glowc, "bench", "folder", says=["report.json cannot be read"], hint="compile the model again")


def test_output_file_that_cannot_be_written(glowc: Glowc, bundle: Path) -> None:
    images(image=GOOD)
    argv = ("run", bundle, "--input", "in.npz", "--output", "nowhere/out.npz")
    refused(glowc, *argv, says=["cannot write nowhere/out.npz"], hint="--output")


@pytest.mark.parametrize(
    ("board", "tool", "package"),
    [
        ("host", "gcc", "gcc"),
        ("mps2-an386", "arm-none-eabi-gcc", "gcc-arm-none-eabi"),
        ("linux-aarch64", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        ("linux-armhf", "arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
    ],
)
def test_missing_compiler(
    glowc: Glowc, bundle: Path, board: str, tool: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images(image=GOOD)
    monkeypatch.setenv("PATH", "")
    argv = ("run", bundle, "--board", board, "--input", "in.npz", "--output", "out.npz")
    refused(glowc, *argv, says=[f"{tool} is not installed"], hint=package)


def test_missing_qemu(
    glowc: Glowc, bundle: Path, require_tool: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler is there and QEMU is not."""
    import shutil

    require_tool("aarch64-linux-gnu-gcc")
    images(image=GOOD)
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("qemu") else which(name))
    argv = ("run", bundle, "--board", "linux-aarch64", "--input", "in.npz", "--output", "out.npz")
    refused(glowc, *argv, says=["qemu-aarch64 is not installed"], hint="qemu-user")


# ---- the program itself ----


def test_internal_error_is_status_two(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowc.compiler import pipeline as driver
    from glowc.errors import InternalError

    def broken(*_: object, **__: object) -> None:
        raise InternalError("invariant broken", details=["here"])

    monkeypatch.setattr(driver, "compile_model", broken)
    result = glowc("compile", DIGITS, "-o", "out")
    assert result.status == 2
    assert result.err.startswith("internal error[GL0900]: invariant broken\n  here")
    assert tree(Path.cwd()) == {}


def test_unexpected_exception_is_status_two_and_tells_how_to_see_more(
    glowc: Glowc, monkeypatch: pytest.MonkeyPatch
) -> None:
    from glowc.compiler import pipeline as driver

    monkeypatch.setattr(driver, "compile_model", lambda *_, **__: 1 // 0)
    result = glowc("compile", DIGITS, "-o", "out")
    assert result.status == 2
    assert result.err.startswith("internal error[GL0900]: ZeroDivisionError")
    assert "glowc --debug" in result.err
    assert "Traceback" not in result.err
    with pytest.raises(ZeroDivisionError):
        glowc("--debug", "compile", DIGITS, "-o", "out")


def test_file_error_that_no_command_expects_names_the_file(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowc.compiler import pipeline as driver

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "somewhere/file")

    monkeypatch.setattr(driver, "compile_model", full)
    refused(glowc, "compile", DIGITS, "-o", "out", says=["somewhere/file: No space left on device"])


def test_interrupted_run_has_a_status_of_its_own(glowc: Glowc, monkeypatch: pytest.MonkeyPatch) -> None:
    from glowc.compiler import pipeline as driver

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "compile_model", stopped)
    result = glowc("compile", DIGITS, "-o", "out")
    assert (result.status, result.out) == (130, "")
    assert "interrupted" in result.err


PLUGIN = """
from glowc.ops.base import OpDef
def bad(*_):
    return [][1]
def good(node, in_types):
    return (in_types[0],)
OP = OpDef("Odd", INFER, bad, bad, domain="com.acme")
"""


@pytest.mark.parametrize("infer", ["good", "bad"])
def test_bug_in_a_plugin_is_no_mistake_of_the_user(glowc: Glowc, infer: str) -> None:
    """A type rule or a lowering that fails with an exception of Python's: status 2, the node and the plugin named."""
    Path("odd.py").write_text(PLUGIN.replace('"Odd", INFER', f'"Odd{infer}", {infer}'))
    nodes = [helper.make_node(f"Odd{infer}", ["x"], ["y"], name="block/odd", domain="com.acme")]
    save(model(nodes, {"x": "f32[1,4]"}, {"y": "f32[1,4]"}, domains=["com.acme"]))
    result = glowc("compile", "net.onnx", "-o", "out", "--plugin", "odd.py")
    assert result.status == 2
    assert result.err.startswith("internal error[GL0900]: ")
    for text in ("block/odd", "IndexError", "bug in plugin odd.py"):
        assert text in result.err, result.err
    assert not Path("out").exists()


def test_json_of_compile_is_the_report(glowc: Glowc) -> None:
    result = glowc("compile", DIGITS, "-o", "out", "--json")
    assert result.status == 0
    assert json.loads(result.out) == json.loads(Path("out/report.json").read_text())


@pytest.mark.parametrize(
    "argv", [("compile",), ("compile", "a.onnx"), ("nonsense",), ("compile", "a", "-o", "b", "--opt", "x")]
)
def test_wrong_usage_is_the_users_mistake(glowc: Glowc, argv: tuple[str, ...]) -> None:
    result = glowc(*argv)
    assert result.status == 1, "2 is for a bug in glowc"
    assert "Traceback" not in result.err
    assert result.out == ""


def test_help_of_every_command_has_an_example(glowc: Glowc) -> None:
    listed = glowc("--help")
    assert listed.status == 0
    commands = [c.name or (c.callback.__name__ if c.callback else "") for c in cli.app.registered_commands]
    assert {"compile", "run", "bench", "validate", "boards", "ops", "doctor"} <= set(commands)
    for command in commands:
        assert command in listed.out
        text = glowc(command, "--help")
        assert text.status == 0
        assert "Example: " in text.out
        assert "glowc " + command in text.out


def test_message_of_a_bad_model_is_not_longer_than_a_screen(glowc: Glowc) -> None:
    """Hundreds of nodes with one unsupported operator are one line."""
    nodes = [helper.make_node("Wibble", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}", domain="com.acme") for i in range(300)]
    save(model(nodes, {"v0": "f32[1,4]"}, {"v300": "f32"}, domains=["com.acme"]))
    result = refused(glowc, "compile", "net.onnx", "-o", "out", says=["Wibble (300 nodes)", "and 294 more"])
    assert len(result.err.splitlines()) < 10

"""The line to a board: frames, the firmware's end in C, resets and noise; a wrong board or model is said to be one."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glowc.app.cli import app
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.errors import InputError, ToolError
from glowc.machine.execute import BundleInfo, execute, load_bundle, random_inputs
from glowc.machine.firmware import build_wire
from glowc.machine.wire.client import Kind, Patience, Wire, WireError
from glowc.machine.wire.frames import Frame, Receiver, decoded, stuffed, unstuffed
from glowc.machine.wire.port import open_port
from glowc.machine.wire.session import Line, run_on_wire
from tests.conftest import ROOT, require_module, require_tool
from tests.unit.onnx_builders import model, node
from tests.wire.line import Noise, emulated, process
from tests.wire.soak import soak

MODELS = ROOT / "examples/firmware-make/models"
DIGITS, SINE, SINE_TEST = MODELS / "digits.onnx", MODELS / "sine.onnx", MODELS / "sine_test.npz"


# ---- frames ----


@given(st.one_of(st.binary(max_size=600), st.integers(0, 600).map(lambda n: bytes(n) + b"\1" * n)))
def test_stuffed_bytes_have_no_zero_and_come_back(data: bytes) -> None:
    assert 0 not in stuffed(data)
    assert unstuffed(stuffed(data)) == data


@given(st.binary(max_size=300), st.integers(0, 0xFFFF), st.data())
def test_damaged_frame_is_never_taken_for_a_whole_one(data: bytes, sequence: int, draw: st.DataObject) -> None:
    frame = Frame(Kind.WRITE, sequence, data)
    inside = frame.encoded()[1:-1]
    assert decoded(inside) == frame
    at = draw.draw(st.integers(0, len(inside) - 1))
    other = inside[:at] + bytes([inside[at] ^ draw.draw(st.integers(1, 255))]) + inside[at + 1 :]
    assert decoded(other) is None
    assert decoded(inside[:at]) is None


def test_frames_come_out_whatever_the_pieces() -> None:
    frames = [Frame(1, i, bytes(i)) for i in range(5)]
    line = b"noise" + b"".join(frame.encoded() for frame in frames)
    receiver = Receiver()
    found = [frame for i in range(len(line)) for frame in receiver.frames(line[i : i + 1])]
    assert found == [None, *frames]


# ---- the firmware, as a process of this machine ----


def firmware(source: Path, name: str, folder: Path, options: CompileOptions | None = None) -> tuple[BundleInfo, Path]:
    board = load_board(name)
    require_tool(board.cpu.cc)
    write_bundle(compile_model(source, board, options), folder / "bundle")
    info = load_bundle(folder / "bundle")
    return info, build_wire(info, board, folder / "app.elf", None).path


def same(info: BundleInfo, outputs: dict[str, np.ndarray], inputs: dict[str, np.ndarray]) -> None:
    expected = execute(info, load_board("host"), inputs).outputs
    for name, array in expected.items():
        np.testing.assert_array_equal(outputs[name], array)


@pytest.mark.parametrize("io_buffers", ["arena", "caller"])
def test_outputs_are_those_of_the_bundle(io_buffers: str, tmp_path: Path) -> None:
    info, elf = firmware(DIGITS, "host", tmp_path, CompileOptions(io_buffers=io_buffers))
    inputs = random_inputs(info, 5)
    with process(elf) as port:
        done = run_on_wire(info, Line(port), inputs)
        same(info, done.outputs, inputs)
        assert (done.counter, done.typical, len(done.counts)) == ("none", None, 5)
        again = run_on_wire(info, Line(port), inputs)  # a second session with the same board
    same(info, again.outputs, inputs)


def test_rows_are_fed_by_the_firmware(tmp_path: Path) -> None:
    info, elf = firmware(DIGITS, "host", tmp_path, CompileOptions(input_stream="rows"))
    inputs = random_inputs(info, 3)
    with process(elf) as port:
        same(info, run_on_wire(info, Line(port), inputs).outputs, inputs)


def test_firmware_takes_frames_of_every_length_and_no_nonsense(tmp_path: Path) -> None:
    """Lengths around 254, where a run ends; frames too long, empty, unknown, of a wrong size."""
    _, elf = firmware(DIGITS, "host", tmp_path)
    with process(elf) as port, closing(open_port(port)) as line:
        wire = Wire(line, Patience(give_up_s=5))
        about = wire.hello()
        assert about.input_bytes == 64
        for length in (0, 1, 63, 64, 240, 245, 252):
            answer = wire._ask(Kind.WRITE, bytes(4) + b"\1" * length)
            assert answer == bytes([0 if length <= 64 else 1]), length
        for kind, data in (
            (9, b""),
            (Kind.RUN, b"short"),
            (Kind.READ, bytes(9)),
            (Kind.WRITE, b"ab"),
            (Kind.RESET, b"x"),
        ):
            assert wire._ask(kind, data) == b"\1"  # type: ignore[arg-type]
        assert wire._ask(Kind.READ, bytes(10)) == b"\3", "nothing was run"
        line.write(b"\0" + b"\7" * 5000 + b"\0" + b"\0\0\1\0")
        sample = bytes(64)
        assert wire.infer(sample, about) == wire.infer(sample, about)


def test_noise_costs_time_and_no_inference(tmp_path: Path) -> None:
    info, elf = firmware(DIGITS, "host", tmp_path)
    inputs = random_inputs(info, 40)
    samples = [inputs[info.inputs[0].name][i].tobytes() for i in range(40)]
    with process(elf) as port, closing(open_port(port)) as line:
        noise = Noise(line, random.Random(1), damaged=0.1, lost=0.02)
        wire = Wire(noise, Patience(retry_s=0.05))
        about = wire.hello()
        outputs = [wire.infer(sample, about).outputs for sample in samples]
    assert noise.spoiled > 10
    assert wire.asked_again > 0
    name = info.outputs[0].name
    same(info, {name: np.frombuffer(b"".join(outputs), np.int8).reshape(40, *info.outputs[0].shape)}, inputs)


def test_another_model_is_refused(tmp_path: Path) -> None:
    _, elf = firmware(DIGITS, "host", tmp_path / "digits")
    info, _ = firmware(SINE, "host", tmp_path / "sine")
    with process(elf) as port, pytest.raises(InputError, match="runs another model than sine"):
        run_on_wire(info, Line(port), random_inputs(info, 1))


def test_silence_and_a_wrong_port_are_said(tmp_path: Path) -> None:
    info, _ = firmware(SINE, "host", tmp_path)
    program = tmp_path / "silent"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    line = Patience(retry_s=0.05, give_up_s=0.2)
    with process(program) as port, pytest.raises(WireError, match=r"did not answer within 0\.2 s"):
        run_on_wire(info, Line(port, patience=line), random_inputs(info, 1))
    with pytest.raises(ToolError, match="cannot open port /no/such: No such file"):
        open_port("/no/such")


def glowc(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    app(list(map(str, argv)), standalone_mode=False)
    return capsys.readouterr().out


def test_commands_take_a_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_tool("gcc")
    elf, out = tmp_path / "app.elf", tmp_path / "out.npz"
    glowc(capsys, "build", SINE, "--board", "host", "--wire", "-o", elf)
    capsys.readouterr()
    with process(elf) as port:
        argv = (SINE, "--board", "host", "--port", port)
        run = json.loads(glowc(capsys, "run", *argv, "--input", SINE_TEST, "-o", out, "--json"))
        assert (run["samples"], run["counter"]) == (20, "none")
        assert json.loads(glowc(capsys, "validate", *argv, "--input", SINE_TEST, "--json"))["ok"]
        measured = json.loads(glowc(capsys, "bench", *argv, "--json"))["measured"]
        assert measured == {"inferences": 10, "counter": "none", "cycles_median": None, "cycles_least": None,
                            "cycles_most": None}  # fmt: skip
    assert np.load(out)["y"].shape[0] == 20


def test_serial_port_works_without_pyserial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "serial", None)
    info, elf = firmware(SINE, "host", tmp_path)
    with process(elf) as port:
        inputs = random_inputs(info, 2)
        same(info, run_on_wire(info, Line(port), inputs).outputs, inputs)
        with pytest.raises(ToolError, match="needs pyserial"):
            open_port(port, 9600)


# ---- the firmware in QEMU ----


@pytest.mark.qemu
@pytest.mark.parametrize(
    "name", ["mps2-an505", "mps2-an521", "mps3-an547", "musca-b1", "netduinoplus2", "microbit", "virt-a53"]
)
def test_board_answers_by_its_uart(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    require_tool(board.run_argv[0])
    require_module("serial")
    info, elf = firmware(DIGITS, name, tmp_path)
    inputs = random_inputs(info, 3)
    with emulated(board, elf, tmp_path, "pty") as (port, _):
        done = run_on_wire(info, Line(port, 115200), inputs)
    expected = execute(info, load_board(name), inputs).outputs
    for output, array in expected.items():
        np.testing.assert_array_equal(done.outputs[output], array)
    assert done.counter in ("dwt", "systick", "timer")
    assert done.typical


@pytest.mark.qemu
def test_resets_and_noise_lose_no_inference_and_make_none_wrong(tmp_path: Path) -> None:
    """`make wire-soak` runs ten thousand."""
    require_tool("arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    found = soak("mps2-an386", tmp_path, 150, random.Random(7))
    assert (found.inferences, found.wrong) == (150, 0)
    assert found.spoiled > 0
    assert found.resets > 0


class Pressed:
    """A port that resets the board before some of its frames."""

    def __init__(self, port: object, reset: object, before: Sequence[int]) -> None:
        self._port, self._reset, self._before, self._count = port, reset, set(before), 0

    def write(self, data: bytes) -> None:
        self._count += 1
        if self._count in self._before:
            self._reset()  # type: ignore[operator]
        self._port.write(data)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._port, name)


@pytest.mark.qemu
def test_sequence_with_state_begins_anew_after_a_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("arm-none-eabi-gcc", "qemu-system-arm")
    from glowc.machine.wire import session

    sums = model([node("Add", "x h", "n"), node("Identity", "n", "y")], {"x": "f32[1,4]", "h": "f32[1,4]"},
                 {"y": "f32[1,4]", "n": "f32[1,4]"})  # fmt: skip
    onnx.save(sums, tmp_path / "net.onnx")
    board = load_board("mps2-an386")
    info, elf = firmware(tmp_path / "net.onnx", board.name, tmp_path, CompileOptions(states={"h": "n"}))
    inputs = {"x": np.arange(32, dtype=np.float32).reshape(8, 1, 4)}
    with emulated(board, elf, tmp_path) as (port, monitor):
        opened = session.open_port
        before = (7, 12, 40)
        monkeypatch.setattr(session, "open_port", lambda *how: Pressed(opened(*how), monitor.reset, before))
        done = run_on_wire(info, Line(port, patience=Patience(retry_s=0.1)), inputs)
    np.testing.assert_array_equal(done.outputs["y"], np.cumsum(inputs["x"], axis=0))


def test_line_that_goes_away_is_said(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(write)
    from glowc.machine.wire.posix import Descriptor

    wire = Wire(Descriptor(read))
    with pytest.raises(WireError, match="the line is gone"):
        wire.hello()

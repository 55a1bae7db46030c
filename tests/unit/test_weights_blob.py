"""--weights blob: the same results from a file, and no blob that does not fit is ever used."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import glowc
from glowc.board import load_board
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs
from glowc.machine.shared import shared_library
from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, Glowc

BLOB = CompileOptions(name="digits", weights="blob")
MISSING, FORMAT, MODEL, LENGTH, CRC, ALIGN, SIGNATURE = range(16, 23)
ACCEPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Device:
    """Firmware with the digits model: it has no constants until a blob is accepted."""

    def __init__(self, bundle: Path) -> None:
        require_tool("cc")
        self.info = load_bundle(bundle)
        self.library = shared_library(self.info)
        self.blob = (bundle / "digits_weights.bin").read_bytes()
        self.slots: list[ctypes.Array[ctypes.c_char]] = []
        self.forget()

    def forget(self) -> None:
        ctypes.c_void_p.in_dll(self.library, "digits_weights_in_use").value = None

    def use(self, blob: bytes, shift: int = 0, accept: Callable[..., int] | None = None) -> int:
        room = ctypes.create_string_buffer(len(blob) + 128)
        self.slots.append(room)
        start = ctypes.addressof(room) + -ctypes.addressof(room) % 64 + shift
        ctypes.memmove(start, blob, len(blob))
        where = (ctypes.c_void_p(start), ctypes.c_size_t(len(blob)))
        if accept is None:
            return int(self.library.digits_use_weights(*where))
        return int(self.library.digits_use_weights_if(*where, ACCEPT(accept), None))

    def invoke(self) -> tuple[int, bytes]:
        arena, out = np.zeros(1 << 16, np.uint8), np.zeros(10, np.int8)
        start = arena.ctypes.data + -arena.ctypes.data % 64
        image = np.ascontiguousarray(random_inputs(self.info)[self.info.inputs[0].name][0])
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (image, out)]
        size = ctypes.c_size_t(self.info.report["arena_bytes"])
        return int(self.library.digits_invoke_in(ctypes.c_void_p(start), size, *pointers)), out.tobytes()


def _bundle(folder: Path, model: Path = DIGITS, options: CompileOptions = BLOB) -> Path:
    write_bundle(compile_model(model, load_board("host"), options), folder)
    return folder


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    return Device(_bundle(tmp_path_factory.mktemp("blob") / "digits"))


def _crc(blob: bytes) -> bytes:
    return blob[:12] + struct.pack("<I", zlib.crc32(blob[16:])) + blob[16:]


def test_bytes_are_those_of_constants_in_c(tmp_path: Path) -> None:
    require_tool("cc")
    outputs = []
    for options in (BLOB, CompileOptions(name="digits", weights="array")):
        info = load_bundle(_bundle(tmp_path / options.weights, DIGITS, options))
        outputs.append(execute(info, load_board("host"), random_inputs(info, 4)).outputs)
    assert all(outputs[0][name].tobytes() == array.tobytes() for name, array in outputs[1].items())
    image = np.zeros((1, 1, 8, 8), np.int8)
    both = [glowc.load(tmp_path / weights)(image) for weights in ("blob", "array")]
    assert np.array_equal(both[0], both[1])


def test_nothing_is_computed_without_constants(device: Device) -> None:
    device.forget()
    assert device.invoke()[0] == MISSING
    assert device.use(device.blob) == 0
    assert device.invoke()[0] == 0


def test_what_is_cut_off_or_longer_inside_is_refused(device: Device) -> None:
    for count in (0, 1, 63, 64, len(device.blob) - 1):
        assert device.use(device.blob[:count]) == LENGTH, count
    head = device.blob[:8] + struct.pack("<I", len(device.blob) - 64 + 4)
    assert device.use(_crc(head + device.blob[12:] + bytes(4))) == LENGTH
    assert device.use(device.blob + b"signature, or the rest of the slot") == 0


def test_other_formats_and_other_code_are_refused(device: Device) -> None:
    blob = device.blob
    assert device.use(b"\x7fELF" + blob[4:]) == FORMAT
    assert device.use(blob[:4] + b"\x02\x00" + blob[6:]) == FORMAT
    assert device.use(_crc(blob[:16] + bytes(8) + blob[24:])) == MODEL
    assert device.use(blob, shift=2) == ALIGN
    assert device.library.digits_use_weights(None, ctypes.c_size_t(100)) == 1


def test_every_flipped_bit_is_noticed_and_the_blob_before_stays(device: Device) -> None:
    assert device.use(device.blob) == 0
    expected = device.invoke()
    rng = np.random.default_rng(0)
    bits = [*range(64 * 8), *rng.integers(64 * 8, len(device.blob) * 8, 500)]
    for bit in bits:
        damaged = bytearray(device.blob)
        damaged[bit // 8] ^= 1 << bit % 8
        assert device.use(bytes(damaged)) != 0, bit
    assert device.invoke() == expected


def test_a_signature_is_asked_last(device: Device) -> None:
    asked: list[int] = []

    def accept(_: object, __: object, size: int) -> int:
        asked.append(size)
        return int(len(asked) > 1)

    assert device.use(device.blob[:-1], accept=accept) == LENGTH
    assert asked == []
    assert [device.use(device.blob, accept=accept), device.use(device.blob, accept=accept)] == [SIGNATURE, 0]
    assert asked == [len(device.blob)] * 2


def test_new_weights_of_the_same_network_are_taken_and_used(device: Device, tmp_path: Path) -> None:
    proto = onnx.load(DIGITS)
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.int8 and array.ndim > 1:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array[..., ::-1]), tensor.name))
    onnx.save(proto, tmp_path / "new.onnx")
    new = Device(_bundle(tmp_path / "new", tmp_path / "new.onnx"))
    assert new.use(new.blob) == 0
    assert device.use(new.blob) == 0
    assert device.invoke() == new.invoke()
    assert device.use(device.blob) == 0
    assert device.invoke() != new.invoke()


def test_a_blob_of_other_options_is_refused(device: Device, tmp_path: Path) -> None:
    other = _bundle(tmp_path / "speed", DIGITS, CompileOptions(name="digits", weights="blob", opt="speed"))
    assert device.use((other / "digits_weights.bin").read_bytes()) == MODEL


def test_command_writes_the_file_and_says_how_to_update(glowc: Glowc) -> None:
    assert glowc("compile", DIGITS, "--weights", "blob", "-o", "out").status == 0
    assert Path("out/digits_weights.bin").read_bytes()[:4] == b"GLWB"
    assert "slot B" in Path("out/README.md").read_text()
    Path("main.cpp").write_text('#include "out/digits.h"\nint main() { return digits_use_weights(nullptr, 0); }\n')
    require_tool("g++")
    subprocess.run(["g++", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "main.cpp"], check=True)
    assert glowc("compile", DIGITS, "-o", "out").status == 0
    assert not Path("out/digits_weights.bin").exists()

"""The host's end of the protocol: requests are asked again until they are answered, inferences survive resets."""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from glowc.errors import ToolError
from glowc.machine.wire.frames import Frame, Receiver
from glowc.machine.wire.port import Port

VERSION = 1
COUNTERS = ("none", "dwt", "systick", "timer")
_ANSWER, _DAMAGED = 0x80, 0xFF
_LONGEST_WAIT_S = 4.0
_HELLO = struct.Struct("<BBBBHII")  # and 8 bytes of identity
_WRITE = struct.Struct("<I")
_RUN = struct.Struct("<III")
_RAN = struct.Struct("<BiII")
_READ = struct.Struct("<IIH")


class Kind(IntEnum):
    """What is asked for."""

    HELLO = 1
    WRITE = 2
    RUN = 3
    READ = 4
    RESET = 5


class Status(IntEnum):
    """The first byte of an answer."""

    OK = 0
    UNKNOWN = 1
    INPUTS = 2
    NOT_DONE = 3
    LOST_STATE = 4
    FAILED = 5


class WireError(ToolError):
    """The board does not answer, or not as it should."""

    code = "GL0602"


class LostStateError(Exception):
    """The board was reset between inferences that depend on each other."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a board says of itself; `counter` is one of COUNTERS."""

    counter: str
    stateful: bool
    data_bytes: int
    input_bytes: int
    output_bytes: int
    identity: bytes


@dataclass(frozen=True, slots=True)
class Inference:
    """Outputs one behind the other, and the count of the board's counter."""

    outputs: bytes
    count: int


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until a request is asked again (twice as many after each silence), and until the board is given up.

    `inference_s` is that of the request that runs the model; `tries` are those of one inference.
    """

    retry_s: float = 0.25
    give_up_s: float = 30.0
    inference_s: float = 300.0
    tries: int = 100


class Wire:
    """A board on a port."""

    def __init__(self, port: Port, patience: Patience | None = None) -> None:
        self._port = port
        self._patience = patience or Patience()
        self._receiver = Receiver()
        self._sequence = secrets.randbelow(1 << 16)
        self.asked_again = 0

    def hello(self) -> Hello:
        """Return what the board says of itself. Raises WireError when there is none, or of another protocol."""
        answer = self._ask(Kind.HELLO)
        status, version, counter, stateful, data_bytes, input_bytes, output_bytes = self._unpacked(_HELLO, answer[:-8])
        if status != Status.OK or version != VERSION:
            raise WireError(f"the board speaks version {version} of the protocol, not {VERSION}",
                            hint="build its firmware with this version of glowc: glowc build --wire")  # fmt: skip
        known = COUNTERS[counter] if counter < len(COUNTERS) else COUNTERS[0]
        return Hello(known, bool(stateful), data_bytes, input_bytes, output_bytes, answer[-8:])

    def reset(self) -> None:
        """Take the model's state back to its start."""
        if self._ask(Kind.RESET)[:1] != bytes([Status.OK]):
            raise WireError("the board cannot reset the model's state")

    def infer(self, inputs: bytes, about: Hello, step: int = 0) -> Inference:
        """Run one inference; `step` counts those since the reset of a model with state.

        A reset of the board in between costs time, no more. Raises LostStateError when the state is another one than
        after `step` inferences, WireError when the board gives up or is given up.
        """
        for _ in range(self._patience.tries):
            found = self._tried(inputs, about, step)
            if found is not None:
                return found
        raise WireError(f"{self._patience.tries} tries of one inference came to nothing",
                        hint="does the board restart by itself? look at its power and its watchdog")  # fmt: skip

    def _tried(self, inputs: bytes, about: Hello, step: int) -> Inference | None:
        """Return an inference, None when the board has lost it on the way."""
        for offset, part in _parts(inputs, about.data_bytes - _WRITE.size):
            if self._ask(Kind.WRITE, _WRITE.pack(offset) + part)[:1] != bytes([Status.OK]):
                raise WireError("the board refuses inputs of this size")
        number = secrets.randbelow((1 << 32) - 1) + 1
        answer = self._ask(Kind.RUN, _RUN.pack(number, zlib.crc32(inputs), step))
        if answer[:1] == bytes([Status.INPUTS]):
            return None
        if answer[:1] == bytes([Status.LOST_STATE]):
            raise LostStateError
        status, result, count, crc = self._unpacked(_RAN, answer)
        if status != Status.OK:
            raise WireError(f"the inference ended with status {result}", hint="glow_status.h says what it means")
        outputs = self._outputs(number, about)
        return Inference(outputs, count) if outputs is not None and zlib.crc32(outputs) == crc else None

    def _outputs(self, number: int, about: Hello) -> bytes | None:
        outputs = bytearray()
        for offset, part in _parts(bytes(about.output_bytes), about.data_bytes - 1):
            answer = self._ask(Kind.READ, _READ.pack(number, offset, len(part)))
            if answer[:1] != bytes([Status.OK]) or len(answer) != 1 + len(part):
                return None
            outputs += answer[1:]
        return bytes(outputs)

    def _ask(self, kind: Kind, data: bytes = b"") -> bytes:
        """Return the answer to a request, which is sent again when it, or its answer, is lost or damaged."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        request = Frame(kind, self._sequence, data)
        limit_s = self._patience.inference_s if kind is Kind.RUN else self._patience.give_up_s
        wait_s, end = self._patience.retry_s, time.monotonic() + limit_s
        try:
            while (now := time.monotonic()) < end:
                self._port.write(request.encoded())
                answer = self._answer(request, min(end, now + wait_s))
                if answer is not None:
                    return answer
                self.asked_again += 1
                if time.monotonic() - now >= wait_s:  # silence: it may be at work
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        except OSError as error:
            raise WireError(f"the line is gone: {error.strerror or error}") from error
        raise WireError(
            f"the board did not answer within {limit_s:g} s",
            details=[f"request {kind.name}"],
            hint="is it the firmware of `glowc build --wire`, and the speed that of its line (--baud)?",
        )

    def _answer(self, request: Frame, until: float) -> bytes | None:
        """Return the data of the answer; None when the time is up, or a frame was damaged on either way."""
        while (left := until - time.monotonic()) > 0:
            for frame in self._receiver.frames(self._port.read(left)):
                if frame is None or frame.kind == _DAMAGED:
                    return None
                if (frame.kind, frame.sequence) == (request.kind | _ANSWER, request.sequence):
                    return frame.data
        return None

    def _unpacked(self, form: struct.Struct, data: bytes) -> tuple[int, ...]:
        if len(data) != form.size:
            raise WireError("the board answers in a form that is not known",
                            hint="build its firmware with this version of glowc: glowc build --wire")  # fmt: skip
        return form.unpack(data)


def _parts(data: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield data in parts of at most `size` bytes, each with where it begins."""
    for offset in range(0, len(data), size):
        yield offset, data[offset : offset + size]

"""Runs models on the TFLM runtime, or on LiteRT, in a process of its own, which is started again when a model ends it.

The other process is this file: it reads pickled requests from its standard input and answers on what was its standard
output; what the runtime itself prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any

import numpy as np

Arrays = tuple[np.ndarray, ...]
_ARENA_BYTES = 1 << 22


class RuntimeRefusalError(Exception):
    """The runtime does not take the model, or a call fails."""


class Runtime:
    """A handle on the process; use it as a context manager. `litert`: the Python that has ai-edge-litert, for that."""

    def __init__(self, litert: str = "") -> None:
        self._command = [litert or sys.executable, os.path.abspath(__file__), *(["litert"] if litert else [])]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def run(self, model: bytes, calls: Sequence[Arrays]) -> list[Arrays]:
        """Return the outputs of every call, in order on one interpreter. Raises RuntimeRefusalError."""
        if self._process is None:
            pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=quiet)
        try:
            assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018
            _send(self._process.stdin, (model, list(calls)))
            answer = _receive(self._process.stdout)
        except (OSError, EOFError):
            self._stop()
            raise RuntimeRefusalError("the runtime crashed") from None
        if isinstance(answer, str):
            raise RuntimeRefusalError(answer)
        return list(answer)

    def _stop(self) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    assert stream is not None
                    stream.close()
            self._process.kill()
            self._process.wait()
        self._process = None


def _send(stream: IO[bytes], value: object) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def _answers(model: bytes, calls: Sequence[Arrays]) -> list[Arrays]:
    from tflite_micro.python.tflite_micro import runtime
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    outputs = schema.Model.GetRootAsModel(model, 0).Subgraphs(0).OutputsLength()
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=max(_ARENA_BYTES, 20 * len(model)))
    found = []
    for call in calls:
        for i, array in enumerate(call):
            interpreter.set_input(array, i)
        interpreter.invoke()
        found.append(tuple(np.array(interpreter.get_output(i)) for i in range(outputs)))
    return found


def _litert_answers(model: bytes, calls: Sequence[Arrays]) -> list[Arrays]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    found = []
    for call in calls:
        for detail, array in zip(interpreter.get_input_details(), call, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        found.append(tuple(interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()))
    return found


def _serve() -> None:
    """Answer requests until the input ends."""
    sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
    run = _litert_answers if "litert" in sys.argv[1:] else _answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        try:
            model, calls = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            _send(answers, run(model, calls))
        except Exception as error:
            _send(answers, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    _serve()

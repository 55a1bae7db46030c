"""Calls of the command line inside the test's process, and what must hold of one that is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from tests.conftest import ROOT

DIGITS = ROOT / "examples/digits/digits.onnx"
GOOD = np.zeros((2, 1, 1, 8, 8), np.int8)


@dataclass(frozen=True)
class Result:
    """What one call of the program leaves."""

    status: int
    out: str
    err: str


Glowc = Callable[..., Result]


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: bytes of files, None for folders."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(glowc: Glowc, *argv: object, says: Sequence[str], hint: str = "", status: int = 1) -> Result:
    """The call fails as it should: status 1, `error[CODE]:` first, every text of `says`, a hint, nothing on disk."""
    before = tree(Path.cwd())
    result = glowc(*argv)
    assert tree(Path.cwd()) == before
    assert result.status == status, result.err
    assert result.out == ""
    assert re.match(r"error\[GL\d{4}\]: ", result.err), result.err
    assert len(re.findall("^error", result.err, re.MULTILINE)) == 1
    assert "Traceback" not in result.err
    assert 'File "' not in result.err
    for text in says:
        assert text in result.err
    assert "\n  hint: " in result.err, result.err
    assert hint in result.err.rpartition("hint: ")[2]
    return result


def accepted(glowc: Glowc, *argv: object) -> str:
    """The call succeeds: what it prints."""
    result = glowc(*argv)
    assert result.status == 0, result.err
    return result.out


def save(proto: onnx.ModelProto, name: str = "net.onnx") -> Path:
    path = Path.cwd() / name
    path.write_bytes(proto.SerializeToString())
    return path


def images(**arrays: np.ndarray) -> Path:
    np.savez("in.npz", **arrays)
    return Path("in.npz")

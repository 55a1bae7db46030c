"""The constants of a model as NAME_weights.bin: linked into the image, or replaced without being linked again.

`runtime_c/glow_weights.h` draws the layout. The hash of the code is that of the C which reads the constants: a blob
fits exactly the code that it would have been compiled with.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glowc.codegen.kernels import environment
from glowc.codegen.view import ConstView
from glowc.paths import full_version

HEADER = "glow_weights.h"
_MAGIC, _VERSION, _HEADER_BYTES, _HASH_BYTES, _CRC_FROM = b"GLWB", 1, 64, 8, 16


@dataclass(frozen=True, slots=True)
class Blob:
    """Where the constants lie behind the header, in their order, and what the whole is aligned to."""

    offsets: tuple[int, ...]
    payload_bytes: int
    align_bytes: int

    @property
    def file_bytes(self) -> int:
        """The bytes of the file, with the header."""
        return _HEADER_BYTES + self.payload_bytes


def lay_out(consts: Sequence[ConstView]) -> Blob:
    """Return the places of constants, one behind the other, each aligned."""
    offsets, end = [], 0
    for const in consts:
        offset = -(-end // const.align_bytes) * const.align_bytes
        offsets.append(offset)
        end = offset + max(const.size_bytes, 1)
    align = max([4, *(const.align_bytes for const in consts)])
    return Blob(tuple(offsets), end, align)


def code_hash(source: str, consts: Sequence[ConstView], blob: Blob) -> bytes:
    """Return the hash of the C file `source` and the places of constants.

    Left out is what says where the code comes from: the model's hash, and which glowc wrote it.
    """
    lines = [line for line in source.replace(full_version(), "").splitlines() if not line.startswith(" * model ")]
    lines += [f"{c.ident} {c.ctype} {c.count} {at}" for c, at in zip(consts, blob.offsets, strict=True)]
    return hashlib.sha256("\n".join(lines).encode()).digest()[:_HASH_BYTES]


def blob_bytes(blob: Blob, arrays: Sequence[np.ndarray], code: bytes, model_hash: str) -> bytes:
    """Return the file; `arrays` are in the order of the offsets, `model_hash` is "sha256:" and hexadecimal digits."""
    pieces: list[bytes | memoryview] = [(code + model_bytes(model_hash)).ljust(_HEADER_BYTES - _CRC_FROM, b"\0")]
    end = 0
    for offset, array in zip(blob.offsets, arrays, strict=True):
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces += [bytes(offset - end), raw.data]
        end = offset + raw.size
    pieces.append(bytes(blob.payload_bytes - end))
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    head = _MAGIC + struct.pack("<HHII", _VERSION, _HEADER_BYTES, blob.payload_bytes, crc)
    return b"".join([head, *pieces])


def model_bytes(model_hash: str) -> bytes:
    """Return what a file says of the model: the bytes of "sha256:" and hexadecimal digits."""
    return bytes.fromhex(model_hash.partition(":")[2])[:_HASH_BYTES].ljust(_HASH_BYTES, b"\0")


def assembly(symbol: str, file: str, content: bytes, align_bytes: int, title: str, macro: str = "") -> str:
    """Return the assembly that has the `content` of a file as array `symbol`, in the section that `macro` names.

    The hash of the content is in it, so that a build compiles it again for another one.
    """
    return environment().get_template("weights.S.j2").render(
        symbol=symbol, file=file, size=len(content), hash=hashlib.sha256(content).hexdigest(), align=align_bytes,
        title=title, macro=macro,
    )  # fmt: skip


def c_bytes(code: bytes) -> str:
    """Return bytes as the elements of a C array."""
    return ", ".join(f"0x{byte:02X}u" for byte in code)

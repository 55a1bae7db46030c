"""A file, bytes or a ModelProto -> a ModelProto with its external data, or what is wrong with the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from glowc.errors import InputError, ModelFileError
from glowc.frontend.archives import ENDINGS as ARCHIVES
from glowc.frontend.archives import read_archive
from glowc.frontend.external import load_external
from glowc.paths import refused_by_windows

Source = Path | bytes | onnx.ModelProto

EXPORT_HINT = "export the network again, e.g. with torch.onnx.export, tf2onnx or onnxruntime's quantizer"
ENDINGS = (".onnx", ".tflite", *ARCHIVES)  # of model files
LONGEST_NAME = 40  # characters of a name that nobody chose
_C_WORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "main", "register", "restrict", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile",
    "while",
})  # fmt: skip
# First bytes of files that people mistake for ONNX: (offset, bytes, what it is)
_KNOWN_FILES = (
    (0, b"PK\x03\x04", "a zip archive (PyTorch .pt2 or Keras .keras? Then name it so)"),
    (0, b"\x89HDF", "an HDF5 file (Keras .h5?)"),
    (0, b"\x7fELF", "an ELF program"),
    (0, b"\x1f\x8b", "a gzip file"),
    (0, b"version https://git-lfs", "a Git LFS pointer; run `git lfs pull`"),
    (0, b"ORTM", "an onnxruntime .ort file"),
    (4, b"ORTM", "an onnxruntime .ort file"),
    (4, b"TFL3", "a TensorFlow Lite model"),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The parsed model, how messages call it, and its name as a C identifier."""

    proto: onnx.ModelProto
    source: str
    name: str


def load(source: Source, name: str | None = None) -> Loaded:
    """Read a model with all its data. Raises ModelError that says what is wrong with the file."""
    check_name(name)
    if isinstance(source, onnx.ModelProto):
        label, proto, folder = "model", source, None
    elif isinstance(source, bytes):
        label, proto, folder = "model", parse_bytes(source, "model"), None
    else:
        label, folder = str(source), source.parent
        read = read_archive if source.suffix.lower() in ARCHIVES else parse_bytes
        proto = read(file_bytes(source), label)
    load_external(proto, folder, label)
    own = proto.graph.name or "model"
    # protobuf hands over a name that is no UTF-8 as bytes
    return Loaded(proto, label, name or name_of(source, own if isinstance(own, str) else "model"))


def check_name(name: str | None) -> None:
    """Raise InputError where the name that the user wants is no C identifier."""
    if name is not None and (not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _C_WORDS):
        raise InputError(f"{name!r} is no C identifier", hint=f"use e.g. --name {c_identifier(name)}")
    if name is not None and refused_by_windows(name):
        raise InputError(f"--name {name}: Windows has no file {name}.c: {refused_by_windows(name)}",
                         hint=f"use e.g. --name {c_identifier(name)}")  # fmt: skip


def name_of(source: Source, own: str = "model") -> str:
    """Return the C identifier of a network without a name: of its file, else what the model calls itself."""
    return c_identifier(source.stem if isinstance(source, Path) else own, LONGEST_NAME)


def c_identifier(text: str, longest: int | None = None) -> str:
    """Return `text` as a C identifier, no keyword, that names a file everywhere; cut off after `longest` characters."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "model"
    plain = f"net_{plain}" if plain[0].isdigit() else plain
    plain = plain[:longest].rstrip("_")
    return f"{plain}_net" if plain in _C_WORDS or refused_by_windows(plain) else plain


def file_bytes(path: Path) -> bytes:
    """Return a model file's bytes; ModelError says why it cannot be read."""
    if path.is_dir():
        inside = _models_in(path)
        hint = f"did you mean {path / inside[0]}?" if inside else "give the model file itself"
        raise ModelFileError(f"{path} is a directory, not a model file", hint=hint)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"no such file: {path}", hint=_similar(path)) from None
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from None


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the directory {path.parent} does not exist"
    others = _models_in(path.parent)
    where = "this folder" if path.parent == Path() else str(path.parent)
    return f"models in {where}: {', '.join(others[:5])}" if others else f"{where} holds no model file"


def _models_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*") if path.suffix.lower() in ENDINGS)


def parse_bytes(data: bytes, label: str) -> onnx.ModelProto:
    """Parse `data`, telling apart an empty, a truncated and a foreign file."""
    if not data:
        raise ModelFileError(f"{label} is empty", hint=EXPORT_HINT)
    for offset, magic, what in _KNOWN_FILES:
        if data[offset : offset + len(magic)] == magic:
            raise ModelFileError(f"{label} is not an ONNX file but {what}", hint=EXPORT_HINT)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        missing = truncated_bytes(data)
        if missing:
            raise ModelFileError(
                f"{label} is truncated: at least {missing:,} bytes are missing after byte {len(data):,}",
                hint="copy or download the file again",
            ) from None
        raise ModelFileError(f"{label} is not an ONNX file", hint=EXPORT_HINT) from None
    if not proto.HasField("graph") or not proto.ir_version:
        if truncated_bytes(data) or (proto.ir_version and not proto.HasField("graph")):
            raise ModelFileError(f"{label} holds no graph", hint="copy or download the file again")
        raise ModelFileError(f"{label} is not an ONNX file", hint=EXPORT_HINT)
    return proto


def truncated_bytes(data: bytes) -> int:
    """Return how many bytes the last field of an ONNX file lacks; 0 for other bytes."""
    position, first = 0, True
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        # ModelProto begins with ir_version (field 1, a varint) in every writer's output.
        if first and (number, wire) != (1, 0):
            return 0
        first = False
        if wire == 0:
            _, position = _varint(data, position)
        elif wire == 2:
            size, position = _varint(data, position)
            position += size
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            return 0
        if not 1 <= number <= 30:
            return 0
    return position - len(data)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return value, position
    return value, position + 1

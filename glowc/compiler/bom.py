"""The bill of materials of a bundle: what it was made by and from, each file with its hash and its licence."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from glowc.paths import full_version

GENERATED = "MIT-0"  # of templates/ and runtime_c/; LICENSES/MIT-0.txt
_AT_ONCE = 1 << 20  # bytes of a file that are in memory
UNKNOWN = "NOASSERTION"  # SPDX's word for files whose licence nobody has said


class Tool(TypedDict):
    """What made the bundle."""

    name: str
    version: str


class Source(TypedDict):
    """What it was made from."""

    name: str
    sha256: str


class File(Source):
    """A file of it; the licence is an SPDX expression."""

    license: str


class Sbom(TypedDict):
    """The bill of materials."""

    tool: Tool
    model: Source
    files: list[File]


def files_hash(models: Sequence[Path]) -> str:
    """Return the hash of files one after the other."""
    digest = hashlib.sha256()
    for path in models:
        with path.open("rb") as file:
            while part := file.read(_AT_ONCE):
                digest.update(part)
    return digest.hexdigest()


def as_bytes(content: str | bytes) -> bytes:
    """Return what is written of a file."""
    return content if isinstance(content, bytes) else content.encode()


def with_files(sbom: Sbom, files: Mapping[str, str]) -> Sbom:
    """Return a bill in which some files have another content."""
    listed: list[File] = [
        {**file, "sha256": hashlib.sha256(as_bytes(files[file["name"]])).hexdigest()} if file["name"] in files else file
        for file in sbom["files"]
    ]
    return {**sbom, "files": listed}


def bill_of_materials(models: Sequence[Path], files: Mapping[str, str | bytes], foreign: Collection[str]) -> Sbom:
    """Return what report.json says under "sbom"; `foreign` are the files that a plugin brought along."""
    return {
        "tool": {"name": "glowc", "version": full_version()},
        "model": {"name": " + ".join(path.name for path in models), "sha256": files_hash(models)},
        "files": [
            {"name": name, "sha256": hashlib.sha256(as_bytes(files[name])).hexdigest(),
             "license": UNKNOWN if name in foreign else GENERATED}
            for name in sorted(files)
        ],
    }  # fmt: skip

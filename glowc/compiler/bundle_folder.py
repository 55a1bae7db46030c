"""The folder of a bundle: what glowc wrote there before is replaced, what others put there is never touched."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from glowc.codegen.package import kept
from glowc.compiler.bom import as_bytes
from glowc.compiler.files import check_path, take_places
from glowc.errors import FileError, GlowcError, InputError, reason_of
from glowc.paths import refused_by_windows

REPORT = "report.json"
_SHOWN = 5


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Raise GlowcError when a bundle would lie among files that are not glowc's; nothing is touched.

    A folder may be absent, empty (hidden files do not count) or hold an earlier bundle.
    """
    check_path(folder)
    if folder.exists() and not folder.is_dir():
        raise _cannot_write(folder, "it is a file")
    if force or not folder.is_dir() or read_earlier(folder) is not None:
        return
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others:
        raise _not_ours(folder, others, "holds files and is no bundle of glowc")


@dataclass(frozen=True, slots=True)
class Earlier:
    """What glowc wrote into a folder before: the files of the bundle of `model`, and those of other models."""

    model: str = ""
    files: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    form: str | None = None  # the format of the first, where it is none of plain folders


def read_earlier(folder: Path) -> Earlier | None:
    """Return what the report in a folder says of it, None when there is no bundle."""
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        names = [report["files"], report.get("other_files", [])] if "glowc" in report else []
        ours, others = (frozenset(map(_plain, part)) for part in names)
        return Earlier(str(report["model"]), ours, others, report.get("format"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _plain(name: object) -> str:
    """Return the path of a file inside the folder; ValueError for what leads elsewhere."""
    parts = name.split("/") if isinstance(name, str) else [""]
    if not isinstance(name, str) or set(parts) & {"", ".", ".."} or any(map(refused_by_windows, parts)):
        raise ValueError(f"{name!r} is no file of the folder")
    return name


def write_folder(folder: Path, files: Mapping[str, str | bytes], *, force: bool = False) -> None:
    """Write a bundle's files (report.json among them): all that can be written, or none.

    Files of an earlier bundle of the model that this one does not have are removed; those of other models stay.
    Raises GlowcError when a file of somebody else is in the way, unless `force` says to replace it, and when the disk
    does not take them.
    """
    _check_folders(folder, files)
    earlier = read_earlier(folder) or Earlier()
    if not force:
        _check_shared(folder, earlier, files)
    ours = earlier.files | earlier.others
    stale = frozenset[str]()
    if earlier.model == _model(files):
        stale = earlier.files - files.keys()
    _check_names(files, ours - stale)
    files = _with_others(files, ours - stale - files.keys())
    try:
        taken = sorted(name for name in files if name not in ours and os.path.lexists(folder / name))
        if taken and not force:
            raise _not_ours(folder, taken, "holds files that the bundle would replace and that are not glowc's")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".glowc-", dir=folder, ignore_cleanup_errors=True) as temporary:
            for name, content in files.items():
                (Path(temporary) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(temporary) / name).write_bytes(as_bytes(content))
            # the report first: a folder that was left half-way is known as a bundle
            names = sorted(files, key=lambda name: name != REPORT)
            take_places(Path(temporary), folder, [n for n in names if not _holds(folder / n, as_bytes(files[n]))])
        _remove(folder, sorted(stale))
    except OSError as error:
        raise _cannot_write(folder, reason_of(error)) from error


def kept_files(folder: Path, files: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the files of an earlier package that keep what somebody wrote into them; `given` are options."""
    try:
        release = str(json.loads((folder / REPORT).read_text(encoding="utf-8"))["glowc"]).partition("+")[0]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    earlier = read_earlier(folder) or Earlier()
    found: dict[str, str] = {}
    for name in earlier.files & files.keys():
        with suppress(OSError, UnicodeDecodeError):
            text = kept(name, files[name], (folder / name).read_text(encoding="utf-8"), release, given)
            found |= {name: text} if text != files[name] else {}
    return found


def _holds(path: Path, content: bytes) -> bool:
    """Say whether a file has this content already: it keeps its time then, and nothing is built again for it."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def _model(files: Mapping[str, str | bytes]) -> str:
    return str(json.loads(files[REPORT])["model"])


def _with_others(files: Mapping[str, str | bytes], others: frozenset[str]) -> dict[str, str | bytes]:
    """Return the files with a report that also lists what belongs to other models of the folder."""
    if not others:
        return dict(files)
    report = {**json.loads(files[REPORT]), "other_files": sorted(others)}
    return {**files, REPORT: json.dumps(report, indent=1) + "\n"}


def _remove(folder: Path, names: Iterable[str]) -> None:
    """Remove files, and the folders inside `folder` that are empty then; links lead elsewhere and stay."""
    for name in names:
        path = folder / name
        inner = list(path.relative_to(folder).parents)[:-1]
        if path.is_file() and not any((folder / part).is_symlink() for part in (path.relative_to(folder), *inner)):
            with suppress(OSError):
                path.unlink()
                for part in inner:
                    (folder / part).rmdir()


def _check_folders(folder: Path, names: Iterable[str]) -> None:
    """Raise GlowcError where a folder of the bundle is a file, or a link that leads elsewhere."""
    inner = sorted({folder.joinpath(*Path(name).parts[:n]) for name in names for n in range(1, len(Path(name).parts))})
    wrong = next((path for path in inner if path.is_symlink() or (path.exists() and not path.is_dir())), None)
    if wrong is not None:
        raise _cannot_write(folder, f"{wrong.name} in it is no folder")


def _check_names(names: Iterable[str], others: Iterable[str]) -> None:
    """Raise InputError for files of a bundle that Windows or macOS would not have, or have as one."""
    by_letters: dict[str, str] = {}
    for name in (*others, *names):
        reason = next(filter(None, map(refused_by_windows, name.split("/"))), "")
        same = by_letters.setdefault(name.casefold(), name)
        if same != name:
            reason = f"{same} is the same file there"
        if reason:
            raise FileError(f"the bundle would have a file {name} that Windows cannot have: {reason}",
                             hint="rename it: the model by --name NAME, or the file of the plugin")  # fmt: skip


def _check_shared(folder: Path, earlier: Earlier, files: Mapping[str, str | bytes]) -> None:
    """Raise InputError where the folder describes another model to a build system, or would."""
    described = earlier.form is not None or "format" in json.loads(files[REPORT])
    if earlier.model not in ("", _model(files)) and described:
        raise FileError(
            f"folder {folder} holds the model {earlier.model}: only plain folders (--format folder) hold several",
            hint="choose another folder with -o DIR, or replace it with --force",
        )


def _cannot_write(folder: Path, reason: str) -> GlowcError:
    return FileError(f"cannot write the bundle to {folder}: {reason}", hint="choose another folder with -o DIR")


def _not_ours(folder: Path, names: list[str], what: str) -> InputError:
    more = [f"... and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return FileError(
        f"folder {folder} {what}", details=[*names[:_SHOWN], *more],
        hint="choose another folder with -o DIR, or let glowc write into this one with --force",
    )  # fmt: skip

"""Weights kept in files beside the model: found, checked and read into the ModelProto.

A location is a relative path. Links are followed as far as they stay in the model's folder or, for a model in the
cache of a model hub (`.../snapshots/REVISION/model.onnx`, where files are links to `.../blobs`), in that cache's own
tree. What leads elsewhere is refused: a model must not make the compiler read files that its user did not hand over.
Source: ONNX, docs/ExternalData.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from glowc.frontend.problems import Problems

SHOWN_TENSORS = 3
_LONGEST_NAME = 60


def load_external(proto: onnx.ModelProto, folder: Path | None, label: str) -> None:
    """Read the data of all tensors that are kept outside of `proto`, whose file lies in `folder` (None: in no file).

    Raises ModelError with one problem per file and cause, however many tensors it concerns.
    """
    failed: dict[tuple[str, str, str], list[str]] = {}
    for tensor in _all_tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        fields = {entry.key: entry.value for entry in tensor.external_data}
        try:
            tensor.raw_data = _read(tensor, fields, folder)
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
        except _ExternalDataError as problem:
            key = (_short(fields.get("location", "")), problem.what, problem.hint)
            failed.setdefault(key, []).append(tensor.name)
    problems = Problems(label)
    for (location, what, hint), names in failed.items():
        problems.add(f'weights file "{location}" of {_tensors(names)} {what}', hint)
    problems.check()


class _ExternalDataError(Exception):
    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


def _read(tensor: onnx.TensorProto, fields: dict[str, str], folder: Path | None) -> bytes:
    if folder is None:
        raise _ExternalDataError(
            "cannot be found: the model came without its path",
            "give the path of the model, so that its external data can be found",
        )
    location = fields.get("location", "")
    offset, length = _number(fields, "offset"), _number(fields, "length")
    path = _inside(folder, location)
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
            raise _ExternalDataError("is no file", f"put the file {_short(location)} beside the model")
        with path.open("rb") as file:
            file.seek(offset or 0)
            data = file.read(-1 if length is None else length)
    except FileNotFoundError:
        raise _ExternalDataError("is missing", f"copy {_short(location)} beside the model") from None
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise _ExternalDataError(f"cannot be read: {reason}", "check the file's name and permissions") from error
    if (length is not None and len(data) < length) or (not data and 0 not in tensor.dims):
        raise _ExternalDataError("is too short", f"copy or download {_short(location)} again")
    return data


def _number(fields: dict[str, str], key: str) -> int | None:
    text = fields.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise _ExternalDataError(
            f"has the {key} {_short(text)!r}, which is no number of bytes", "export the model again"
        )
    return int(text)


def _inside(folder: Path, location: str) -> Path:
    """Return where a weights file is; it and what it links to lie in a folder that belongs to the model."""
    hint = "export the model again, with its weights in a file beside it"
    if not location or "\0" in location:
        raise _ExternalDataError("has no usable name", hint)
    relative = Path(location)
    if relative.is_absolute() or ".." in relative.parts:
        raise _ExternalDataError("lies outside of the model's folder", hint)
    try:
        real = (folder / relative).resolve()
        roots = [folder.resolve(), *_cache_trees(folder)]
    except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
        raise _ExternalDataError("cannot be found", hint) from error
    if not any(real.is_relative_to(root) for root in roots):
        raise _ExternalDataError(
            f"is a link to {real}, outside of the model's folder", "replace the link by a copy of the file"
        )
    return real


def _cache_trees(folder: Path) -> Iterator[Path]:
    """Yield the tree of the cache of a model hub in which `folder` lies: the one with `snapshots` and `blobs`."""
    for parent in folder.absolute().parents:
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            yield parent.parent.resolve()


def _tensors(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:SHOWN_TENSORS])
    if len(names) == 1:
        return f"tensor {shown}"
    more = f" and {len(names) - SHOWN_TENSORS} more" if len(names) > SHOWN_TENSORS else ""
    return f"{len(names)} tensors ({shown}{more})"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _all_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        yield from _node_tensors(function.node)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graph_tensors(attribute.g)

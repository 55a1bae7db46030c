"""Targets of installed packages: the entry points of the group glowc.targets, each a module that is a plugin."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from glowc.errors import PluginError

GROUP = "glowc.targets"


def target_names() -> tuple[str, ...]:
    """Return the names of all targets that installed packages bring, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def target_files(names: Iterable[str]) -> tuple[Path, ...]:
    """Return the files of targets, for `CompileOptions.plugins`. Raises InputError for names that nobody has."""
    wanted = list(dict.fromkeys(names))
    points = {point.name: point for point in entry_points(group=GROUP)} if wanted else {}
    unknown = [name for name in wanted if name not in points]
    if unknown:
        known = ", ".join(points) or "none is installed"
        raise PluginError(
            f"no target {', '.join(unknown)}", details=[f"targets of installed packages: {known}"],
            hint="install the package that has it, or give a file with --plugin (docs/PLUGINS.md)",
        )  # fmt: skip
    return tuple(_file(points[name]) for name in wanted)


def _file(point: EntryPoint) -> Path:
    try:
        spec = find_spec(point.module)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        whose = point.dist.name if point.dist is not None else "its package"
        raise PluginError(f"target {point.name}: {whose} has no module {point.module}", hint="install it again")
    return Path(spec.origin)

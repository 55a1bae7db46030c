"""The option `--format` of `compile`, and the command `example`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glowc.app.options import JsonOpt
from glowc.app.terminal import say_text, tell_written
from glowc.errors import InputError


class Format(StrEnum):
    """What the files are made for."""

    FOLDER = "folder"
    SINGLE = "single"
    CMAKE = "cmake"
    ZEPHYR = "zephyr"
    ARDUINO = "arduino"
    PLATFORMIO = "platformio"
    CMSIS_PACK = "cmsis-pack"
    ESP_IDF = "esp-idf"


FormatOpt = Annotated[
    Format, typer.Option("--format", help="the build system that takes the files; single: one .c and one .h")
]
PackageOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--package", metavar="KEY=VALUE", help="author, maintainer, version, url, architectures of a --format"
    ),
]


def parse_package(pairs: list[str] | None) -> dict[str, str]:
    """Return the fields of --package. InputError names all that are none."""
    fields = dict(pair.split("=", 1) for pair in pairs or () if "=" in pair)
    if wrong := [f"--package {pair}" for pair in pairs or () if "=" not in pair]:
        raise InputError("a field is KEY=VALUE", details=wrong, hint="--package author=Ada --package version=1.2.0")
    return fields


def example(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="which one; without it they are listed")] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="folder that it is copied to (default: its name)")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Copy an example."""
    from glowc.compiler.files import copy_example, example_titles

    if name is None:
        titles = example_titles()
        width = max(map(len, titles), default=0)
        say_text("\n".join(f"{known:{width}}  {title}" for known, title in titles.items()), as_json)
        return
    to = folder or Path(name)
    copy_example(name, to)
    tell_written(to, f"{name} is in {to}; its README.md says how to build and run it", as_json)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        help="Copy an example project into a folder, or list them.\n\nExample: glowc example firmware-cmake my-firmware"
    )(example)

"""The commands that say what there is: boards, chips, operators, tools, the Makefile fragment, `glowc docs`: the
pages of documentation that came with this installation, listed, printed or opened, `glowc explain`: their sections
about errors, and `glowc schema`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from glowc.app.options import JsonOpt
from glowc.app.terminal import say, say_json, say_text
from glowc.errors import InputError


def boards(as_json: JsonOpt = False) -> None:
    """List the boards."""
    from glowc.app.show import board_table, boards_data

    data = boards_data()
    say_json({"boards": data}) if as_json else board_table(data)


def chips(as_json: JsonOpt = False) -> None:
    """List the chips."""
    from glowc.app.show import chip_table, chips_data

    data = chips_data()
    say_json({"chips": data}) if as_json else chip_table(data)


def make_include(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="copy it there, making folders")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Print the path of the Makefile fragment, or copy it."""
    from glowc.compiler.files import check_output, write_file
    from glowc.paths import data_dir

    path = data_dir("runtime_c") / "make" / "glowc.mk"
    if output is None:
        say_json({"output": str(path)}) if as_json else say(str(path))
        return
    check_output(output, makes_folders=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_file(output, lambda file: file.write(path.read_bytes()))
    if as_json:
        say_json({"output": str(output)})


def ops(
    as_json: JsonOpt = False,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="operators of models in this format: onnx, tflite")
    ] = "onnx",
) -> None:
    """List operators and kernels."""
    from glowc.app.show import ops_data, ops_tables, tflite_ops_data, tflite_ops_table

    if format_ not in ("onnx", "tflite"):
        raise InputError(f"--format {format_}: neither onnx nor tflite")
    if format_ == "tflite":
        say_json(tflite_ops_data()) if as_json else tflite_ops_table()
        return
    data = ops_data()
    say_json(data) if as_json else ops_tables(data)


def doctor(as_json: JsonOpt = False) -> None:
    """Check the installation."""
    from glowc.app.show import doctor_data, doctor_table

    data = doctor_data()
    say_json(data) if as_json else doctor_table(data)
    if data["missing"]:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(help="List the boards.\n\nExample: glowc boards --json")(boards)
    app.command(help="List the chips whose cycles `glowc bench --chip` counts.\n\nExample: glowc chips --json")(chips)
    app.command(
        "make-include",
        help="Print where glowc.mk is, or copy it. Its rules make models part of a Makefile project.\n\n"
        "Example: glowc make-include -o build/glowc.mk",
    )(make_include)
    app.command(help="List the supported operators and the kernels a CPU needs.\n\nExample: glowc ops --format tflite")(
        ops
    )
    app.command(help="Show which tools are installed and how to install the rest.\n\nExample: glowc doctor")(doctor)


def _pages() -> dict[str, Path]:
    """Return the pages by the name that the command takes: that of the file, in small letters."""
    from glowc.paths import data_dir

    return {path.stem.lower(): path for path in sorted(data_dir("docs").glob("*.md"))}


def _page(name: str) -> Path:
    """Return the page of a name: `memory`, MEMORY.md and docs/MEMORY.md#planners are one."""
    from glowc.board.fields import suggestion

    pages = _pages()
    wanted = re.sub(r"\.md$", "", name.split("#")[0].replace("\\", "/").rpartition("/")[2].lower())
    found = pages.get(wanted) or pages.get(wanted.replace("-", "_"))
    if found is None:
        raise InputError(f"no page {name}{suggestion(wanted, pages)}", details=[", ".join(pages)],
                         hint="`glowc docs` lists the pages")  # fmt: skip
    return found


def _title(page: Path) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")


def docs(
    page: Annotated[
        str | None, typer.Argument(metavar="PAGE", help="a page, such as memory; none: list them", show_default=False)
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="open the page in a program for text files")] = False,
    as_json: JsonOpt = False,
) -> None:
    """List, print or open the documentation."""
    if page is None:
        pages = _pages()
        wide = max(map(len, pages))
        say_text("\n".join(f"{name:{wide}}  {_title(path)}" for name, path in pages.items()), as_json)
        return
    path = _page(page)
    if open_ and typer.launch(str(path)) == 0:
        return
    say_text(path.read_text(encoding="utf-8").rstrip("\n"), as_json)


def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="of an error, such as GL0101; none: list them")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Explain an error."""
    sections = _page("errors").read_text(encoding="utf-8").split("\n## ")[1:]
    known = {text.partition(":")[0]: text for text in sections}
    if code is None:
        say_text("\n".join(text.splitlines()[0].replace(":", " ", 1) for text in known.values()), as_json)
        return
    found = known.get(code.strip().upper())
    if found is None:
        raise InputError(f"no error has the code {code}", hint="`glowc explain` lists the codes")
    say_text(found.rstrip(), as_json)


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="a command, report, group or error; none: list them")
    ] = None,
) -> None:
    """Print a JSON Schema."""
    from glowc.app.schemas import documents, schema_of
    from glowc.board.fields import suggestion

    known = documents()
    if name is None:
        say("\n".join(known))
    elif name not in known:
        raise InputError(f"no schema {name}{suggestion(name, known)}", hint="`glowc schema` lists them")
    else:
        say(json.dumps(schema_of(name), indent=1))


def register_docs(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    text = "List the pages of the documentation, print one, or open it.\n\nExample: glowc docs memory"
    app.command("docs", help=text)(docs)
    text = "Say what the code of an error means, and what to do.\n\nExample: glowc explain GL0101"
    app.command(help=text)(explain)
    text = "List the JSON Schemas of what --json prints, or print one.\n\nExample: glowc schema report"
    app.command(help=text)(schema)

"""The command `matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glowc.app.options import JsonOpt
from glowc.app.quantize import steps_bar
from glowc.app.terminal import is_quiet, say, say_json
from glowc.compiler.options import OPTS
from glowc.errors import MISMATCH, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from glowc.machine.matrix import Cell, Result
    from glowc.machine.matrix_results import Store

_BAD = ("different", "failed")
DoOpt = Annotated[list[str], typer.Option("--do", metavar="STEPS", help="validate, bench; several by commas")]


def matrix(
    models: Annotated[Path, typer.Option("--models", metavar="DIR", help="folder with model files, at any depth")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="results, SQLite; what is done there is not redone")
    ],
    boards: Annotated[
        list[str],
        typer.Option("--boards", "--board", "-b", metavar="NAMES", help="from `glowc boards`; several by commas"),
    ] = ["host"],  # noqa: B006
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="NAME",
            help="name of the .npz next to each model (default: that of the model; else random)",
        ),
    ] = None,
    do: DoOpt = ["validate,bench"],  # noqa: B006
    opt: Annotated[
        list[str], typer.Option("--opt", metavar="NAMES", help="size, balanced, speed; several by commas")
    ] = ["balanced"],  # noqa: B006
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="the results as a page")] = None,
    reports: Annotated[
        Path | None,
        typer.Option("--reports", metavar="DIR", help="a page of `glowc report` for each cell, linked from --html"),
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="FILE", help="earlier results: --html shows what changed")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume/--restart", help="leave out what is done, or do all again")] = True,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="cells at the same time on this machine")
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="run on the workers of this Dask scheduler, as tcp://host:8786"
        ),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run models on boards."""
    from glowc.compiler.files import check_output
    from glowc.machine.matrix import STEPS, cells_of, find_models
    from glowc.machine.matrix_results import open_store

    if html is not None:
        check_output(html, "--html")
    opts = _chosen(opt, list(OPTS), "--opt")
    steps = _chosen(do, STEPS, "--do")
    before = _earlier(against)
    cells = _with_pages(cells_of(find_models(models), _words(boards), opts, steps, data), reports)
    run = _runner(jobs, scheduler)
    with open_store(output) as store:
        finished = store.finished(cells) if resume else frozenset[str]()
        left = [cell for cell in cells if cell.key not in finished]
        try:
            _run(left, store, run, as_json)
        except KeyboardInterrupt:
            say(f"what is done is in {output}; the same command goes on from there", err=True)
            raise
        finally:
            results = store.results(cells)
            _write_page(cells, results, html, before)
    _tell(cells, results, len(left), as_json)
    if any(result["status"] in _BAD for result in results):
        raise typer.Exit(MISMATCH)


def _earlier(path: Path | None) -> list[Result]:
    """Return the results in a file."""
    from glowc.machine.matrix_results import open_store

    if path is None:
        return []
    if not path.is_file():
        raise InputError(f"--against {path}: no such file", hint="results that an earlier `glowc matrix -o FILE` wrote")
    with open_store(path) as store:
        return store.every()


def _with_pages(cells: list[Cell], folder: Path | None) -> list[Cell]:
    """Return the cells with the places of their pages."""
    from dataclasses import replace

    if folder is None:
        return cells
    folder.mkdir(parents=True, exist_ok=True)
    return [replace(cell, page=str(folder.resolve() / f"{cell.key}.html")) for cell in cells]


def _words(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(word.strip() for text in texts for word in text.split(",") if word.strip()))


def _chosen(texts: Sequence[str], known: Sequence[str], option: str) -> list[str]:
    found = _words(texts)
    wrong = [word for word in found if word not in known]
    if wrong or not found:
        raise InputError(f"{option} {', '.join(wrong) or 'names nothing'}", hint=f"{option} {','.join(known)}")
    return found


def _runner(jobs: int, scheduler: str | None) -> Callable[[Sequence[Cell]], Iterator[Result]]:
    from functools import partial

    from glowc.machine.matrix_run import connect, run_here, run_there

    return partial(run_here, jobs=jobs) if scheduler is None else partial(run_there, client=connect(scheduler))


def _run(cells: Sequence[Cell], store: Store, run: Callable[[Sequence[Cell]], Iterator[Result]], quiet: bool) -> None:
    with steps_bar(quiet, len(cells)) as progress:
        for result in run(cells):
            store.add(result)
            progress(f"{result['name']} on {result['board']}: {result['status']}")


def _write_page(cells: Sequence[Cell], results: Sequence[Result], html: Path | None, before: Sequence[Result]) -> None:
    from glowc.compiler.files import write_file
    from glowc.machine.matrix_results import matrix_page

    if html is not None:
        text = matrix_page(cells, results, before, html.resolve().parent).encode()
        write_file(html, lambda file: file.write(text), "--html")


def _tell(cells: Sequence[Cell], results: Sequence[Result], ran: int, as_json: bool) -> None:
    from glowc.app.show import plain_console, plain_table
    from glowc.machine.matrix_results import result_lines, summary

    if as_json:
        say_json({"cells": len(cells), "ran": ran, "results": results})
        return
    shown = [r for r in results if r["status"] in _BAD] if is_quiet() else results
    if is_quiet() and not shown:
        return
    console = plain_console()
    table = plain_table("model", "board", "opt", "", "")
    for r in shown:
        table.add_row(r["name"], r["board"], r["opt"], r["status"], "; ".join(map(str, result_lines(r))))
    console.print(table)
    console.print(f"{summary(cells, results)}; {ran} ran now")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        help="Validate and measure many models on many boards. A run that was stopped goes on.\n\n"
        "Example: glowc matrix --models models --boards host,mps2-an386 -o results.sqlite --html results.html"
    )(matrix)

"""glowc matrix: what is done stays done, whatever is killed; one bad cell stops no other."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import cast

import pytest

from glowc.machine import matrix_run
from glowc.machine.matrix import FIGURES, Cell, Result, cells_of, find_models, run_cell
from glowc.machine.matrix_results import matrix_page, open_store
from glowc.machine.matrix_run import connect, held, run_here, run_there
from tests.conftest import require_module, require_tool
from tests.unit.cli_calls import DIGITS, Glowc, accepted, refused


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    (folder / "deep" / "net").mkdir(parents=True)
    (folder / "digits.onnx").write_bytes(DIGITS.read_bytes())
    (folder / "deep" / "net" / "model.onnx").write_bytes(DIGITS.read_bytes())
    return folder


def _cells(models: Path, steps: tuple[str, ...] = (), opts: tuple[str, ...] = ("size", "balanced")) -> list[Cell]:
    return cells_of(find_models(models), ["host"], opts, steps, None)


def _fake(cell: Cell) -> Result:
    """A result at once; the process of a cell called `bad` dies, once that of `weak`."""
    marker = Path(cell.data)
    if cell.name == "bad" or (cell.name == "weak" and not marker.exists()):
        marker.touch()
        os._exit(1)
    return {
        "key": cell.key, "name": cell.name, "board": cell.board, "opt": cell.opt, "status": "done", "message": "",
        "seconds": 0.0, "reference": None, "equal_share": 1.0, "figures": dict.fromkeys(FIGURES),
    }  # fmt: skip


def test_models_have_short_names_and_cells_keys_of_their_content(models: Path) -> None:
    found = find_models(models)
    assert sorted(found) == ["deep/net", "digits"]
    cells = _cells(models)
    assert len({cell.key for cell in cells}) == 4
    moved = models.rename(models.with_name("moved"))
    assert [cell.key for cell in _cells(moved)] == [cell.key for cell in cells]
    (moved / "digits.onnx").write_bytes(b"other")
    assert [a.key == b.key for a, b in zip(_cells(moved), cells, strict=True)] == [True, True, False, False]


def test_a_cell_is_measured_and_compared(models: Path) -> None:
    require_tool("cc")
    cell = _cells(models, ("validate", "bench"))[0]
    result = run_cell(cell)
    assert (result["status"], result["equal_share"]) == ("done", 1.0)
    assert result["figures"]["text_bytes"] is not None
    assert "100.000 % equal" in matrix_page([cell], [result])


def test_page_links_reports_names_the_chip_and_shows_changes(models: Path, tmp_path: Path) -> None:
    require_tool("cc")
    cell = replace(_cells(models, ("bench",))[0], page=str(tmp_path / "pages" / "one.html"), board="nucleo-l4r5zi")
    (tmp_path / "pages").mkdir()
    Path(cell.page).write_text("a page")
    figures = {**dict.fromkeys(FIGURES), "ms": 2.0, "arena_bytes": 50}
    now: Result = {**_fake(cell), "figures": figures}
    before: Result = {**now, "key": "other", "figures": {**figures, "ms": 1.0, "arena_bytes": 100}}
    page = matrix_page([cell], [now], [before], tmp_path)
    assert '<a href="pages/one.html">done</a>' in page
    assert '<small class="worse">2.00 ms on stm32l4r5 (+100.0 %)</small>' in page
    assert '<small class="better">50 bytes of arena (-50.0 %)</small>' in page
    assert 'data-order="2.0"' in page


def test_page_sorts_in_a_browser(tmp_path: Path) -> None:
    """`make test-report` installs the browser."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed: make test-report")
    cells = [Cell(name, "", "", "host", "size", ()) for name in ("a", "b", "c")]
    figures = [{**dict.fromkeys(FIGURES), "insns": insns} for insns in (30, 100, 9)]
    results: list[Result] = [{**_fake(cell), "figures": f} for cell, f in zip(cells, figures, strict=True)]
    order = "document.title = [...document.querySelectorAll('tbody th')].map((th) => th.textContent).join('')"
    script = f"<script>document.querySelectorAll('thead th')[1].click(); {order}</script>"
    page = re.sub(r"<meta http-equiv[^>]*>", "", matrix_page(cells, results)).replace("</body>", f"{script}</body>")
    (tmp_path / "m.html").write_text(page)
    argv = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom", (tmp_path / "m.html").as_uri()]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert "<title>cab</title>" in done.stdout


def test_reports_are_written_and_earlier_results_read(glowc: Glowc, models: Path, tmp_path: Path) -> None:
    require_tool("cc")
    (models / "deep/net/model.onnx").unlink()
    argv = ("matrix", "--models", models, "--do", "bench", "--html", "m.html", "--reports", "pages")
    accepted(glowc, *argv, "-o", "one.sqlite")
    (report,) = Path("pages").iterdir()
    assert f'href="pages/{report.name}"' in Path("m.html").read_text()
    assert "digits" in report.read_text()
    with closing(sqlite3.connect("one.sqlite")) as db, db:
        db.execute("UPDATE cells SET arena_bytes = 2 * arena_bytes")
    accepted(glowc, *argv, "-o", "two.sqlite", "--against", "one.sqlite")
    assert re.findall(r"\([+-].*?%\)", Path("m.html").read_text()) == ["(-50.0 %)"]
    refused(glowc, *argv, "-o", "two.sqlite", "--against", "none.sqlite", says=["no such file"], hint="glowc matrix")


def test_a_model_that_is_none_is_a_result_and_shown_as_text(models: Path) -> None:
    (models / "<b>.onnx").write_bytes(b"no model")
    cells = [cell for cell in _cells(models) if cell.name == "<b>"]
    result = run_cell(cells[0])
    assert result["status"] == "refused"
    page = matrix_page(cells, [result])
    assert "<th>&lt;b&gt;</th>" in page
    assert "<b>.onnx" not in page
    assert 'class="open"' in page


def test_a_process_that_dies_costs_its_own_cell_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_run, "run_cell", _fake)
    names = ("a", "bad", "weak")
    cells = [Cell(name, "", "", "host", "size", (), str(tmp_path / name)) for name in names]
    found = {result["name"]: result["status"] for result in run_here(cells, 2)}
    assert found == {"a": "done", "bad": "failed", "weak": "done"}


def test_a_killed_run_goes_on_where_it_was(models: Path, tmp_path: Path) -> None:
    require_tool("cc")
    file = tmp_path / "r.sqlite"
    argv = [sys.executable, "-m", "glowc", "matrix", "--models", str(models), "--opt", "size,balanced,speed", "--do"]
    argv += ["bench", "-o", str(file), "--json"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while process.poll() is None and _count(file) < 1:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    before = _count(file)
    assert before >= 1
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert (said["cells"], said["ran"]) == (6, 6 - before)
    assert {result["status"] for result in said["results"]} == {"done"}


@pytest.mark.parametrize("cells", [0, 1])
def test_ctrl_c_keeps_what_is_done_and_prints_no_traceback(models: Path, tmp_path: Path, cells: int) -> None:
    """A terminal interrupts the processes that run cells, too: while they start, and while they compute."""
    file, err = tmp_path / "r.sqlite", tmp_path / "err.txt"
    argv = ["env", "--default-signal=INT", sys.executable, "-m", "glowc", "matrix"]  # jobs of a script ignore it
    argv += ["--models", str(models), "--opt", "size,balanced,speed", "--do", "bench", "--jobs", "2", "-o", str(file)]
    with (
        err.open("w") as log,
        subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True) as process,
    ):
        while process.poll() is None and (_count(file) < cells or not _children(process.pid)):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130
    assert "Traceback" not in err.read_text()
    assert f"what is done is in {file}" in err.read_text()
    assert err.read_text().endswith("interrupted\n")


def test_ctrl_c_that_another_thread_takes_waits_until_processes_have_started() -> None:
    """The mask of the main thread does not keep the signal from the threads of a library."""
    over = Event()
    thread = Thread(target=over.wait)
    thread.start()
    done = []

    def starts_processes() -> None:
        with held():
            signal.pthread_kill(cast("int", thread.ident), signal.SIGINT)
            time.sleep(0.1)
            done.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            starts_processes()
    finally:
        over.set()
        thread.join()
    assert done


def _children(pid: int) -> bool:
    """Say whether a process has started those that run cells."""
    return any("spawn_main" in path.read_text() for path in Path("/proc").glob("[0-9]*/cmdline")
               if _parent(path.parent) == pid)  # fmt: skip


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it is gone
        return 0


def _count(file: Path) -> int:
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(file) as db:
            return int(db.execute("SELECT count(*) FROM cells").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not there yet
        return 0


def test_what_failed_runs_again_and_what_was_refused_does_not(tmp_path: Path) -> None:
    cells = [Cell(status, "", "", "host", "size", ()) for status in ("done", "refused", "failed", "different")]
    with open_store(tmp_path / "r.sqlite") as store:
        for cell in cells:
            store.add({**_fake(cell), "status": cell.name})
    with open_store(tmp_path / "r.sqlite") as store:
        finished = store.finished(cells)
        assert [r["name"] for r in store.results(cells)] == [cell.name for cell in cells]
    assert [cell.name for cell in cells if cell.key not in finished] == ["failed"]


def test_what_cannot_be_is_refused_and_nothing_of_others_is_touched(
    glowc: Glowc, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("text.sqlite").write_text("hello " * 1000)
    with sqlite3.connect("other.sqlite") as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    Path("empty").mkdir()
    run = ("matrix", "--models", models, "-o")
    refused(glowc, *run, "text.sqlite", says=["text.sqlite is no file of results"])
    refused(glowc, *run, "other.sqlite", says=["other.sqlite is a database of something else"])
    refused(glowc, *run, "absent/r.sqlite", says=["absent is no folder"])
    refused(glowc, *run, "r.sqlite", "--opt", "size,best", says=["--opt best"], hint="size,balanced,speed")
    refused(glowc, *run, "r.sqlite", "--do", "guess", says=["--do guess"])
    refused(glowc, *run, "r.sqlite", "--boards", "host,nowhere", says=['unknown board "nowhere"'])
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(glowc, *run, "r.sqlite", "--scheduler", "tcp://127.0.0.1:1", says=["needs the Python package distributed"])
    refused(glowc, "matrix", "--models", "empty", "-o", "r.sqlite", says=["no model below empty"])


def test_two_dask_workers_of_which_one_is_killed_lose_nothing(models: Path) -> None:
    distributed = require_module("distributed")
    require_tool("cc")
    cells = _cells(models, ("bench",))
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        results = run_there(cells, connect(cluster.scheduler_address))
        found = [next(results)]
        os.kill(cluster.workers[0].process.pid, signal.SIGKILL)
        found += results
    assert {r["key"] for r in found} == {cell.key for cell in cells}
    assert {r["status"] for r in found} == {"done"}

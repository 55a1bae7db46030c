"""Break proofs, packings, planners and passes one at a time, and see that tests notice: `make mutants`.

    python scripts/mutants.py [--jobs N] [--only TEXT] [--list]

tests/mutants.toml lists the breaks; each changes one text, which its file has exactly once. They are made in copies of
the tree in a temporary folder. The tests of all of them must pass in an unchanged copy first. Prints a line for each
mutant: the test that fails, or SURVIVED; ends with 1 when one survives or cannot be made.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutants.toml"
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
TIMEOUT_S = 120  # of the tests of a mutant, which may loop for ever
FIELDS = {"file", "old", "new", "tests", "why"}
CHOSEN = {"kernels": "GLOWC_KERNELS", "cases": "GLOWC_CASES"}  # of tests/kernels: which kernels, which files of cases


@dataclass(frozen=True, slots=True)
class Call:
    """Files or nodes of tests, the expression of `-k` (all when empty), which kernels and cases tests/kernels takes."""

    nodes: tuple[str, ...]
    chosen: str = ""
    env: tuple[tuple[str, str], ...] = ()

    @property
    def args(self) -> tuple[str, ...]:
        """Arguments of pytest."""
        return (*self.nodes, "-k", self.chosen) if self.chosen else self.nodes


def parse_call(text: str, env: tuple[tuple[str, str], ...]) -> Call:
    """Return the call of a text as `tests/a.py tests/b.py -k 'one or two'`; ValueError for other options."""
    nodes = shlex.split(text)
    chosen = nodes.pop() if nodes[-2:-1] == ["-k"] else ""
    nodes = nodes[:-1] if chosen else nodes
    if not nodes or any(node.startswith("-") for node in nodes):
        raise ValueError(f"not files of tests with at most one -k after them: {text!r}")
    return Call(tuple(nodes), chosen, env)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A text of a file, another one instead of it, and the tests of which one must fail then."""

    file: str
    old: str
    new: str
    calls: tuple[Call, ...]
    why: str

    @property
    def title(self) -> str:
        """Where it is and what it would do."""
        return f"{self.file}: {self.why}"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant: "killed", "SURVIVED", or "FAILED" when pytest itself could not run."""

    mutant: Mutant
    state: str
    what: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.state:8} {self.seconds:5.1f} s  {self.mutant.title}\n{'':18}{self.what}"


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of a list; ValueError names fields that are missing or unknown."""
    mutants = []
    for entry in tomllib.loads(path.read_text())["mutant"]:
        if not FIELDS <= entry.keys() <= FIELDS | CHOSEN.keys():
            raise ValueError(f"{path.name}: fields {sorted(entry)} of {entry.get('why', entry.get('file'))!r}")
        env = tuple((CHOSEN[key], entry[key]) for key in CHOSEN if key in entry)
        calls = tuple(parse_call(text, env) for text in entry["tests"])
        mutants.append(Mutant(entry["file"], entry["old"], entry["new"], calls, entry["why"]))
    return mutants


def wrong_texts(mutants: Sequence[Mutant], root: Path = ROOT) -> list[str]:
    """Return a line for each mutant whose text is not in its file exactly once, or stays as it is."""
    wrong = []
    for mutant in mutants:
        path = root / mutant.file
        count = path.read_text().count(mutant.old) if path.is_file() else 0
        if count != 1 or mutant.old == mutant.new:
            wrong.append(f"{mutant.title}: {count} times in the file: {mutant.old!r}")
    return wrong


def copied_tree(target: Path) -> Path:
    """Copy the files that git knows, as they are now; their modules are found without looking at times."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "glowc"]
    subprocess.run(compiled, cwd=target, check=True)
    return target


def environment(tree: Path, call: Call) -> dict[str, str]:
    """Return the environment of tests in `tree`: its glowc comes first, and a missing tool is a failure."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GLOWC_", "PYTEST_"))}
    own = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "GLOWC_REQUIRE_TOOLS": "1"}
    return {**kept, **own, **dict(call.env)}


def imports_own(tree: Path) -> bool:
    """Say whether Python finds the glowc of `tree` there."""
    command = [sys.executable, "-c", "import glowc; print(glowc.__file__)"]
    env = environment(tree, Call(()))
    found = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found).resolve() == (tree / "glowc" / "__init__.py").resolve()


def run_tests(tree: Path, call: Call, timeout_s: int = TIMEOUT_S) -> tuple[int, str]:
    """Return pytest's status (1 beyond the time limit) and what it says: the test that failed, else the last line."""
    command = [sys.executable, *PYTEST, f"--basetemp={tree.parent / tree.name}.tmp", *call.args]
    process = subprocess.Popen(
        command, cwd=tree, env=environment(tree, call), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        lines = process.communicate(timeout=timeout_s)[0].splitlines()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return 1, f"no end within {timeout_s} s: {shlex.join(call.args)}"
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return process.returncode, (failed or lines or [""])[0 if failed else -1].split(" - ")[0]


def judge(mutant: Mutant, tree: Path) -> Result:
    """Run the tests of a mutant in `tree` and put its file back."""
    path, start = tree / mutant.file, time.monotonic()
    whole = path.read_text()
    path.write_text(whole.replace(mutant.old, mutant.new))
    state, what = "SURVIVED", "; ".join(shlex.join(call.args) for call in mutant.calls)
    try:
        for call in mutant.calls:
            status, said = run_tests(tree, call)
            if status:
                state, what = ("killed" if status == 1 else "FAILED"), said
                break
    finally:
        path.write_text(whole)
    return Result(mutant, state, what, time.monotonic() - start)


def all_calls(mutants: Sequence[Mutant]) -> list[Call]:
    """Return calls that run the tests of all mutants at least once, each with all that one file or node needs."""
    calls = dict.fromkeys(call for mutant in mutants for call in mutant.calls)
    whole = dict.fromkeys(node for call in calls if not call.chosen and not call.env for node in call.nodes)
    parts: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, None]] = {}
    for call in calls:
        for node in call.nodes:
            if call.env or node not in whole:
                parts.setdefault((node, call.env), {})[call.chosen] = None
    joined = [Call((node,), _either(words), env) for (node, env), words in parts.items()]
    return [*([Call(tuple(whole))] if whole else []), *joined]


def _either(words: Collection[str]) -> str:
    """Return an expression of `-k` for what any of these chooses; an empty one chooses everything."""
    return "" if "" in words else " or ".join(f"({word})" for word in words)


def run_all(mutants: Sequence[Mutant], jobs: int, folder: Path) -> int:
    """Run the tests without a mutant, then every mutant; print what happens and return the status."""
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(jobs):
        tree = copied_tree(folder / f"tree{number}")
        if not imports_own(tree):
            print("the copy's glowc is not the one that Python imports", file=sys.stderr)
            return 1
        trees.put(tree)

    def unchanged(call: Call) -> str:
        tree = trees.get()
        status, said = run_tests(tree, call, 10 * TIMEOUT_S)
        trees.put(tree)
        return f"without a mutant: {said}" if status else ""

    def mutated(mutant: Mutant) -> Result:
        tree = trees.get()
        result = judge(mutant, tree)
        trees.put(tree)
        return result

    start = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        wrong = [line for line in pool.map(unchanged, all_calls(mutants)) if line]
        if wrong:
            print("\n".join(wrong), file=sys.stderr)
            return 1
        print(f"the tests pass without a mutant, {time.monotonic() - start:.0f} s", flush=True)
        results = []
        for result in pool.map(mutated, mutants):
            print(result, flush=True)
            results.append(result)
    killed = sum(result.state == "killed" for result in results)
    print(f"{killed} of {len(results)} mutants killed, {time.monotonic() - start:.0f} s")
    return int(killed < len(results))


def main() -> int:
    """Run the mutants that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree that run tests at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in their file or their reason")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    args = parser.parse_args()
    mutants = [mutant for mutant in read_mutants() if args.only in mutant.title]
    wrong = wrong_texts(mutants)
    if args.list or wrong or not mutants:
        print("\n".join(wrong or [mutant.title for mutant in mutants] or [f"no mutant with {args.only!r}"]))
        return int(bool(wrong) or not mutants)
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        return run_all(mutants, max(1, args.jobs), Path(folder))


if __name__ == "__main__":
    sys.exit(main())

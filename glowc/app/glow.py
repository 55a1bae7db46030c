"""`glow`: the command line of Glow's model compiler, as its how-tos print it, answered by `glowc compile`.

    glow -emit-bundle simple_cnn.onnx -model-output-path compiled_model -target cpu -batch-size=1 -optimize

Options begin with one or two dashes, values follow after = or a space. Source: Glow's docs/AOT.md and tools/loader.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from glowc.app.terminal import accept_any_text, say, say_error
from glowc.errors import GlowcError, InputError

_FLAGS = frozenset({"optimize", "O", "h", "help", "verbose"})
_NAMES = {
    "emit-bundle": "bundle", "model": "model", "m": "model", "model-output-path": "bundle",
    "main-function": "entry", "main-entry-name": "entry", "network-name": "name", "target": "target",
    "backend": "target", "mcpu": "target", "batch-size": "batch", "onnx-define-symbol": "symbol",
}  # fmt: skip
_MODELS = (".onnx", ".tflite")
_RESERVED = "main"  # the program's own in C


def main() -> None:
    """Run the command line."""
    from glowc.app import cli

    accept_any_text()
    try:
        argv = translated(sys.argv[1:])
    except GlowcError as error:
        say_error(error)
        sys.exit(error.exit_status)
    if argv is None:
        say((__doc__ or "").partition("\n\nOptions")[0] + f"\n\nOptions: {', '.join(f'-{name}' for name in _NAMES)}")
        return
    say(" ".join(("glowc", *argv)), err=True)
    sys.argv = ["glowc", *argv]
    cli.main()


def translated(words: Sequence[str]) -> list[str] | None:
    """Return the arguments of glowc that these of Glow stand for; None for help. InputError names all wrong ones."""
    given, flags = _read(words)
    if flags & {"h", "help"} or not words:
        return None
    models = [value for key in ("model", "bundle") for value in given.get(key, ()) if value.endswith(_MODELS)]
    folders = [value for value in given.get("bundle", ()) if value not in models]
    if len(models) != 1 or len(folders) > 1:
        seen = f"{len(models)} models and {len(folders)} output folders"
        raise InputError(f"{seen}; one of each is needed", hint="glow -emit-bundle DIR -model net.onnx")
    argv = ["compile", models[0], "-o", folders[0] if folders else f"{Path(models[0]).stem}_bundle"]
    argv += _board(given.get("target", ["cpu"])[-1])
    for key, option in (("name", "--name"), ("batch", "--batch-size")):
        argv += [text for value in given.get(key, ())[-1:] for text in (option, value)]
    argv += [text for value in given.get("symbol", ()) for text in ("--define-symbol", value.replace(",", "=", 1))]
    entry = given.get("entry", [_RESERVED])[-1]
    return argv + ([] if entry == _RESERVED else ["--entry-name", entry])


def _read(words: Sequence[str]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the values of options by what they mean, and the flags."""
    given: dict[str, list[str]] = {}
    flags, wrong, waiting = set[str](), list[str](), list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in _FLAGS and not equals:
            flags.add(name)
        elif word.startswith("-") and name in _NAMES and (equals or waiting):
            given.setdefault(_NAMES[name], []).append(value if equals else waiting.pop(0))
        elif not word.startswith("-") and word.endswith(_MODELS):
            given.setdefault("model", []).append(word)
        else:
            wrong.append(word)
    if wrong:
        raise InputError(
            f"glow does not know {', '.join(wrong)}", hint="`glow -h` lists its options; `glowc compile -h` has more"
        )
    return given, flags


def _board(target: str) -> list[str]:
    """Return the options of glowc for a target: cpu, a board, or a CPU of one that can be run."""
    from glowc.board import board_names, cpu_names, load_board

    if target.lower() in ("cpu", "interpreter"):
        return ["--board", "host"]
    if target in board_names() or Path(target).is_dir():
        return ["--board", target]
    if target not in cpu_names():
        known = [f"boards: {', '.join(board_names())}", f"CPUs: {', '.join(cpu_names())}"]
        raise InputError(f"-target {target} is no board and no CPU", details=known, hint="cpu is this machine")
    rank: Callable[[str], tuple[bool, bool]] = lambda name: (  # noqa: E731
        load_board(name).cpu.name != target, not load_board(name).run_argv,
    )  # fmt: skip
    able = [name for name in board_names() if _runs(name, target)]
    return ["--board", min(able, key=rank), "--cpu", target]


def _runs(board: str, cpu: str) -> bool:
    from glowc.board import load_board

    try:
        load_board(board, cpu)
    except GlowcError:
        return False
    return True

"""The pytest plugin: the fixture `glowc_board` and its options. The compiler is imported when a test asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from glowc.compiler.options import CompileOptions
    from glowc.testing.subject import OnBoard


@dataclass
class Boards:
    """Puts models on boards: `glowc_board("kws.onnx", board="mps2-an386")`; each pair is compiled once a session."""

    folder: Path
    update: bool
    root: Path
    known: dict[object, OnBoard] = field(default_factory=dict)

    def __call__(
        self, source: str | Path, board: str = "host", *, cpu: str | None = None, options: CompileOptions | None = None
    ) -> OnBoard:
        """Return a model (or the folder of a bundle) on a board; a path that is not there is one from pytest's root.

        Raises GlowcError for what is wrong with the model, the board or the options.
        """
        from glowc.compiler.options import CompileOptions

        path, how = Path(source), options or CompileOptions()
        path = path if path.exists() else self.root / path
        key = (path.resolve(), board, cpu, how.text(), how.name)
        if key not in self.known:
            self.known[key] = self._made(path, board, cpu, how)
        return self.known[key]

    def _made(self, path: Path, board: str, cpu: str | None, options: CompileOptions) -> OnBoard:
        from glowc.board import load_board
        from glowc.compiler.pipeline import compile_model, write_bundle
        from glowc.machine.execute import load_bundle
        from glowc.testing.subject import OnBoard

        target, folder = load_board(board, cpu), path
        if not path.is_dir():
            folder = self.folder / str(len(self.known))
            write_bundle(compile_model(path, target, options), folder)
        return OnBoard(path, target, options, load_bundle(folder), self.update)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records outputs."""
    parser.getgroup("glowc").addoption(
        "--glowc-update", action="store_true", help="record outputs in golden files instead of comparing with them"
    )


@pytest.fixture(scope="session")
def glowc_board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Boards:
    """Compile models, run them on emulated boards, compare outputs and hold them to budgets (docs/REGRESSION.md)."""
    update = bool(request.config.getoption("--glowc-update"))
    return Boards(tmp_path_factory.mktemp("glowc"), update, request.config.rootpath)

"""tests/mutants.toml: every mutant can be made, and the tests that must kill it are there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The module scripts/mutants.py."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def test_every_mutants_text_is_in_its_file_exactly_once(script: ModuleType) -> None:
    mutants = script.read_mutants()
    assert len(mutants) >= 60
    assert script.wrong_texts(mutants) == []


def test_every_mutant_is_there_once_and_says_what_it_would_do(script: ModuleType) -> None:
    mutants = script.read_mutants()
    assert len({(m.file, m.old, m.new) for m in mutants}) == len(mutants)
    assert len({m.title for m in mutants}) == len(mutants)
    assert all(m.why and not m.why.endswith(".") for m in mutants)


def test_tests_of_mutants_exist(script: ModuleType) -> None:
    for mutant in script.read_mutants():
        assert mutant.calls, mutant.title
        for call in mutant.calls:
            files = [arg.split("::")[0] for arg in call.args if arg.startswith("tests/")]
            assert files, mutant.title
            assert all((ROOT / file).is_file() for file in files), mutant.title
            cases = dict(call.env).get("GLOWC_CASES", "")
            assert all((ROOT / "tests/ops" / f"{name}.py").is_file() for name in filter(None, cases.split(",")))


def test_a_text_that_is_missing_or_there_twice_is_named(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one two two")
    mutants = [script.Mutant("a.py", text, "", (), f"{text} goes") for text in ("one", "two", "three")]
    wrong = script.wrong_texts(mutants, tmp_path)
    assert [line.split(": ")[1:3] for line in wrong] == [
        ["two goes", "2 times in the file"],
        ["three goes", "0 times in the file"],
    ]


def test_an_entry_with_an_unknown_or_missing_field_is_refused(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "mutants.toml"
    path.write_text('[[mutant]]\nfile = "a"\nold = "b"\nnew = "c"\ntests = ["t"]\nreason = "d"\n')
    with pytest.raises(ValueError, match="reason"):
        script.read_mutants(path)


def test_calls_on_one_file_are_joined_without_a_mutant(script: ModuleType) -> None:
    texts = ("tests/a.py -k one", "tests/a.py -k 'two or three'", "tests/b.py", "tests/b.py -k four")
    plain = tuple(script.parse_call(text, ()) for text in texts)
    kernels = script.parse_call("tests/a.py -k one", (("GLOWC_KERNELS", "fc_s8"),))
    mutant = script.Mutant("a.py", "a", "b", (*plain, kernels), "why")
    calls = [(call.args, call.env) for call in script.all_calls([mutant, mutant])]
    assert calls == [
        (("tests/b.py",), ()),
        (("tests/a.py", "-k", "(one) or (two or three)"), ()),
        (("tests/a.py", "-k", "(one)"), kernels.env),
    ]


@pytest.mark.parametrize("text", ["", "-k one", "tests/a.py -x", "tests/a.py -k one -x"])
def test_other_options_of_pytest_are_refused(script: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match="at most one -k"):
        script.parse_call(text, ())

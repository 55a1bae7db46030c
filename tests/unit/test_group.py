"""--share-arena and --share-weights: several models in one bundle compute what each computes by itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowc.board import load_board
from glowc.codegen.group import GroupSpec
from glowc.compiler.group import compile_group, write_group
from glowc.compiler.options import CompileOptions
from glowc.compiler.pipeline import compile_model, write_bundle
from glowc.machine.execute import execute, load_bundle, random_inputs
from glowc.machine.link import build_elf
from tests.conftest import require_tool
from tests.unit.cli_calls import DIGITS, Glowc, refused, save

BOTH = GroupSpec("app", share_arena=True, share_weights=True)


def _other() -> Path:
    """A model with a layer of its own and a constant that the next one has too."""
    rng = np.random.default_rng(1)
    weights = numpy_helper.from_array(rng.standard_normal((8, 5)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "fc"), helper.make_node("Relu", ["m"], ["y"], "relu")]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 8]), ("y", [1, 5]))]
    graph = helper.make_graph(nodes, "other", values[:1], values[1:], [weights])
    return save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "other.onnx")


def _outputs(folder: Path, name: str | None = None) -> dict[str, np.ndarray]:
    info = load_bundle(folder / name if name else folder)
    return execute(info, load_board("host"), random_inputs(info, 3)).outputs


def _group(folder: Path, sources: list[str], spec: GroupSpec = BOTH, board: str = "host") -> dict[str, object]:
    done = compile_group(sources, load_board(board), CompileOptions(), spec)
    write_group(done, folder)
    return dict(done.report)


@pytest.mark.parametrize("spec", [BOTH, GroupSpec("app", share_arena=True, share_weights=False)], ids=["both", "arena"])
def test_every_model_gives_the_bytes_that_it_gives_alone(
    tmp_path: Path, spec: GroupSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("cc")
    monkeypatch.chdir(tmp_path)
    other = _other()
    report = _group(tmp_path / "app", [f"digits={DIGITS}", f"a={other}", f"b={other}"], spec)
    for name, model in (("digits", DIGITS), ("a", other), ("b", other)):
        alone = tmp_path / name
        write_bundle(compile_model(model, load_board("host"), CompileOptions(name=name)), alone)
        expected, found = _outputs(alone), _outputs(tmp_path / "app", name)
        assert all(found[key].tobytes() == expected[key].tobytes() for key in expected)
    arenas = [model["arena_bytes"] for model in report["models"]]  # type: ignore[attr-defined]
    assert report["arena_bytes"] == max(arenas)


def test_equal_constants_and_functions_are_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = _group(tmp_path / "app", [f"a={DIGITS}", f"b={DIGITS}"])
    single = compile_model(DIGITS, load_board("host"))
    assert report["weights_bytes"] == single.report["weights_bytes"]
    assert report["separate_weights_bytes"] == 2 * single.report["weights_bytes"]
    text = (tmp_path / "app" / "app.c").read_text()
    alone = single.bundle.files["digits.c"]
    assert text.count("GLOW_KERNEL void app_") == alone.count("GLOW_KERNEL void digits_") > 0


def test_flash_is_at_most_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("arm-none-eabi-gcc")
    monkeypatch.chdir(tmp_path)
    board, other = load_board("mps2-an386"), _other()
    _group(tmp_path / "app", [f"a={DIGITS}", f"b={DIGITS}", f"c={other}"], board="mps2-an386")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")

    def flash(folder: Path, sources: list[str]) -> int:
        files = [tmp_path / "main.c", *(folder / name for name in sources)]
        strict = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-pedantic", "-Werror", "-std=c11"]
        elf = build_elf(files, board, tmp_path / "x.elf", include_dirs=[folder], extra_flags=strict)
        return sum(elf.object_sizes[name].text + elf.object_sizes[name].rodata for name in sources)

    alone = 0
    for name, model in (("a", DIGITS), ("b", DIGITS), ("c", other)):
        write_bundle(compile_model(model, board, CompileOptions(name=name)), tmp_path / name)
        alone += flash(tmp_path / name, [f"{name}.c", f"{name}_weights.c"])
    together = flash(tmp_path / "app", ["app.c", "app_weights.c"])
    saved = compile_model(DIGITS, board).report["weights_bytes"]
    assert together <= alone - saved


def test_what_a_group_cannot_have_is_refused(glowc: Glowc) -> None:
    share = ("--share-arena", "--share-weights", "-o", "app")
    refused(glowc, "compile", DIGITS, *share, says=["one model has nothing to share with"])
    refused(glowc, "compile", DIGITS, DIGITS, *share, says=["are called digits"], hint="kws=a/model.onnx")
    refused(glowc, "compile", f"app={DIGITS}", DIGITS, *share, "--group-name", "APP", says=["app", "APP"])
    two = (f"a={DIGITS}", f"b={DIGITS}")
    refused(glowc, "compile", *two, *share, "--group-name", "../up", says=["--group-name ../up is no name"])
    refused(glowc, "compile", *two, *share, "--guard", "--io-buffers", "caller",
            says=["--io-buffers, --guard"])  # fmt: skip
    refused(glowc, "compile", *two, *share, "--pareto", says=["--pareto is for one model"])
    refused(glowc, "compile", f"a={DIGITS}", "b=absent.onnx", *share, says=["absent.onnx"])
    refused(glowc, "compile", *two, "-o", "app", says=["2 models"], hint="--share-weights")
    arena = compile_model(DIGITS, load_board("host")).report["arena_bytes"]
    limit = ("--share-weights", "-o", "app", "--ram-limit", arena * 3 // 2)
    refused(glowc, "compile", *two, *limit, says=["do not fit together"], status=3)


def test_command_says_what_sharing_saves_and_bench_takes_one_of_the_models(glowc: Glowc) -> None:
    require_tool("cc")
    done = glowc("compile", f"a={DIGITS}", f"b={DIGITS}", "--share-arena", "--share-weights", "-o", "app")
    assert done.status == 0, done.err
    report = json.loads(Path("app/report.json").read_text())
    assert f"apart {report['separate_arena_bytes']:,}" in done.out
    assert set(report["files"]) == {path.name for path in Path("app").iterdir()}
    refused(glowc, "bench", "app", says=["app holds several models: a, b"], hint="app/a")
    refused(glowc, "bench", "app/c", says=["app holds several models: a, b"])
    assert json.loads(glowc("bench", "app/b", "--json").out)["model"] == "b"
    np.savez("in.npz", image=np.zeros((2, 1, 1, 8, 8), np.int8))
    assert glowc("validate", "app/a", "--model", DIGITS, "--input", "in.npz").status == 0
    assert glowc("report", "app/a", "--no-measure").status == 0
    assert glowc("compile", f"a={DIGITS}", f"b={DIGITS}", "--share-arena", "-o", "app").status == 0  # over its own


def _sum(width: int | str, path: str) -> str:
    """Save y = x - h, and a state h' = h + x."""
    nodes = [helper.make_node("Sub", ["x", "h"], ["y"]), helper.make_node("Add", ["h", "x"], ["hn"])]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, width]) for n in names]
        for names in ("xh", ["y", "hn"])
    ]
    graph = helper.make_graph(nodes, "g", *ends)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_models_with_other_states_do_not_share_an_arena(glowc: Glowc) -> None:
    models = (f"a={_sum(3, 'a.onnx')}", f"b={_sum(4, 'b.onnx')}")
    flags = ("--state", "h=hn", "-o", "app", "--group-name", "app")
    says = ["a, b keeps a state in the arena"]
    refused(glowc, "compile", *models, "--share-arena", *flags, says=says, hint="the same states")
    assert glowc("compile", *models, "--share-weights", *flags).status == 0


def test_a_size_of_one_model_of_a_group(glowc: Glowc) -> None:
    models = (f"a={_sum('n', 'net.onnx')}", "b=net.onnx")
    flags = ("--share-weights", "-o", "app", "--group-name", "app", "--define-symbol")
    done = glowc("compile", *models, *flags, "n=3", "--define-symbol", "b:n=5")
    assert done.status == 0, done.err
    shapes = {m["model"]: m["inputs"][0]["shape"] for m in json.loads(Path("app/report.json").read_text())["models"]}
    assert shapes == {"a": [1, 3], "b": [1, 5]}
    refused(
        glowc, "compile", *models, *flags, "c:n=5", says=["--define-symbol c:...: no model of that name"], hint="a, b"
    )


def test_test_vectors_of_models_of_a_group_pass_and_are_listed(glowc: Glowc, tmp_path: Path) -> None:
    require_tool("gcc")
    _other()
    rng = np.random.default_rng(0)
    np.savez("other.npz", x=rng.standard_normal((3, 1, 8)).astype(np.float32))
    np.savez("digits.npz", image=rng.integers(-128, 128, (2, 1, 1, 8, 8)).astype(np.int8))
    argv = (
        "compile",
        f"d={DIGITS}",
        "other.onnx",
        "--share-arena",
        "--share-weights",
        "--group-name",
        "app",
        "-o",
        "out",
    )
    result = glowc(*argv, "--golden", "d=digits.npz", "--golden", "other=other.npz")
    assert result.status == 0, result.err
    text = Path("out/app.mk").read_text()
    assert "APP_GOLDEN_SRCS := $(addprefix $(APP_DIR),d_golden.c other_golden.c)" in text
    assert "d_golden.h other_golden.h" in text
    main = tmp_path / "main.c"
    main.write_text(
        '#include "d_golden.h"\n#include "other_golden.h"\n'
        "int main(void) {\n"
        "  const int counted = D_GOLDEN_COUNT == 2u && OTHER_GOLDEN_COUNT == 3u;\n"
        "  return !counted || d_golden_failures() + other_golden_failures();\n}\n"
    )
    sources = [
        main,
        *(Path("out").resolve() / f"{name}.c" for name in ("app", "app_weights", "d_golden", "other_golden")),
    ]
    elf = build_elf(sources, load_board("host"), tmp_path / "app", include_dirs=[Path("out").resolve()])
    assert subprocess.run([elf.path], check=False).returncode == 0


@pytest.mark.parametrize(
    ("golden", "says"), [("in.npz", "NAME=FILE"), ("x=in.npz", "no model of that name"), ("=in.npz", "NAME=FILE")]
)
def test_test_vectors_of_no_model_are_refused(glowc: Glowc, golden: str, says: str) -> None:
    _other()
    argv = ("compile", f"d={DIGITS}", "other.onnx", "--share-arena", "-o", "out", "--golden", golden)
    refused(glowc, *argv, says=[says])


def test_limit_of_flash_counts_the_code_that_several_models_share(glowc: Glowc) -> None:
    require_tool("arm-none-eabi-gcc")
    argv = ("compile", f"a={DIGITS}", f"b={DIGITS}", "-b", "mps2-an386", "--share-weights", "-o")
    done = glowc(*argv, "out", "--flash-limit", "32K")
    assert done.status == 0, done.err
    refused(glowc, *argv, "new", "--flash-limit", "11K", says=["11,264 are allowed"], hint="share more", status=3)

"""The Makefile's list of targets, scripts/setup.sh on machines that lack something, codegen_diff.sh.

setup.sh runs here with a PATH of small stand-ins: an `apt-get` that writes down its arguments instead
of installing, an `id` that says who we are, compilers that know where their C library is. Nothing on
the machine changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import require_tool

ROOT = Path(__file__).resolve().parents[2]
BASICS = ("awk", "bash", "cat", "cmp", "cp", "dirname", "env", "mkdir", "paste", "rm", "sh", "sort", "tr")
COMPILERS = ("arm-none-eabi-gcc", "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "gcc")
EMULATORS = ("qemu-system-arm", "qemu-system-aarch64", "qemu-aarch64", "qemu-arm")
PROGRAMS = (*COMPILERS, *EMULATORS, "clang", "cmake", "espeak-ng", "git", "llvm-mca-19", "make")
ALL_PACKAGES = (
    "clang cmake espeak-ng gcc gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf gcc-arm-none-eabi git "
    "libc6-dev libc6-dev-arm64-cross libc6-dev-armhf-cross libnewlib-arm-none-eabi llvm-19 make "
    "python3 python3-venv qemu-system-arm qemu-user"
)
CLANG = """case $1 in
-dumpversion) echo 14.0.6;;
-print-runtime-dir) echo "${0%/*}/runtime";;
esac"""
COMPILER = 'for last; do :; done; echo "/lib/${last#*=}"'
PYTHON = """
echo "python $*" >> "$LOG"
case $1$2 in -mvenv)
  for venv; do :; done; mkdir -p "$venv/bin"; cp "$0" "$venv/bin/python"; rm -f "$venv"/.setup-*;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A checkout with only what setup.sh reads, and a PATH that holds only stand-ins."""

    checkout: Path
    path: Path
    log: Path

    def program(self, name: str, script: str) -> None:
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def programs(self, names: Iterable[str]) -> None:
        for name in names:
            self.program(name, COMPILER if name.endswith("gcc") else CLANG if name == "clang" else "exit 0")

    def setup(self, mode: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.checkout / "scripts" / "setup.sh", mode],
            env={"PATH": str(self.path), "LOG": str(self.log)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def logged(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a shell and nothing else, where we are an ordinary user without sudo."""
    made = Machine(tmp_path / "checkout", tmp_path / "bin", tmp_path / "log")
    (made.checkout / "scripts").mkdir(parents=True)
    made.path.mkdir()
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, made.checkout)
    shutil.copy(ROOT / "scripts" / "setup.sh", made.checkout / "scripts")
    (made.path / "runtime").mkdir()
    (made.path / "runtime" / "libclang_rt.asan-x86_64.a").touch()
    for name in BASICS:
        found = shutil.which(name)
        assert found, f"{name} is missing on this machine"
        (made.path / name).symlink_to(found)
    made.program("id", "echo 1000")
    return made


def apt_get(machine: Machine) -> None:
    """Give the machine an apt-get whose `install` brings every program."""
    source = {name: ".gcc" if name.endswith("gcc") else ".clang" if name == "clang" else ".tool" for name in PROGRAMS}
    programs = "\n".join(f"cp {machine.path}/{source[name]} {machine.path}/{name}" for name in PROGRAMS)
    machine.program(".clang", CLANG)
    machine.program(".gcc", COMPILER)
    machine.program(".tool", "exit 0")
    machine.program(".python", PYTHON)
    install = f"{programs}\ncp {machine.path}/.python {machine.path}/python3"
    machine.program(
        "apt-get",
        f'echo "apt-get $*" >> "$LOG"\n[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9\n'
        f"case $1 in install)\n{install};;\nesac",
    )


def test_make_lists_a_dozen_targets_and_help_all_every_one() -> None:
    makefile = (ROOT / "Makefile").read_text()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}

    def listed(*command: str) -> set[str]:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        return {line.split()[0] for line in done.stdout.splitlines()}

    few = listed("make")
    assert few == listed("make", "help") == set(re.findall(r"^([\w-]+):.*## ", makefile, re.MULTILINE))
    assert {"demo", "test", "setup", "help-all"} <= few
    assert len(few) <= 13
    assert listed("make", "help-all") == set(re.findall(r"^([\w-]+):.*#[#-] ", makefile, re.MULTILINE)) > few


def test_every_makefile_target_is_phony() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))
    phony = {name for line in re.findall(r"^\.PHONY:(.*)$", makefile, re.MULTILINE) for name in line.split()}
    assert targets == phony


def test_setup_without_root_and_sudo_prints_the_exact_command(machine: Machine) -> None:
    done = machine.setup("test")
    assert done.returncode == 1
    expected = f"apt-get update && apt-get install -y --no-install-recommends {ALL_PACKAGES}\n"
    assert expected in done.stderr
    assert "run as root" in done.stderr
    assert not (machine.checkout / ".venv").exists()


def test_setup_with_a_sudo_that_asks_for_a_password_prints_the_command(machine: Machine) -> None:
    apt_get(machine)
    machine.program("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    done = machine.setup("demo")
    assert done.returncode == 1
    packages = "gcc gcc-arm-none-eabi libc6-dev libnewlib-arm-none-eabi python3 python3-venv qemu-system-arm"
    assert f"apt-get install -y --no-install-recommends {packages}\n" in done.stderr
    assert machine.logged() == []


def test_setup_demo_installs_no_linux_cross_compiler(machine: Machine) -> None:
    apt_get(machine)
    machine.program("id", "echo 0")
    done = machine.setup("demo")
    assert done.returncode == 0, done.stderr
    update, install, *_ = machine.logged()
    assert update == "apt-get update -q"
    assert "arm-none-eabi" in install
    assert "aarch64" not in install
    assert machine.logged()[-1].endswith("-e .")


@pytest.mark.parametrize("who", ["root", "sudo"])
def test_setup_installs_what_is_missing_and_nothing_the_second_time(machine: Machine, who: str) -> None:
    apt_get(machine)
    if who == "root":
        machine.program("id", "echo 0")
    else:
        machine.program("sudo", '[ "$1" = -n ] && shift; echo sudo >> "$LOG"; "$@"')
        machine.program("true", "exit 0")
    done = machine.setup("test")
    assert done.returncode == 0, done.stderr
    assert f"apt-get install -y --no-install-recommends {ALL_PACKAGES}" in machine.logged()
    assert ("sudo" in machine.logged()) == (who == "sudo")
    assert machine.logged()[-1].endswith("--no-deps --no-build-isolation -e .")

    machine.log.unlink()
    done = machine.setup("test")
    assert (done.returncode, done.stderr) == (0, "")
    assert not [line for line in machine.logged() if "apt-get" in line or "install" in line]


def test_setup_asks_apt_only_for_the_c_library_that_is_missing(machine: Machine) -> None:
    machine.programs(PROGRAMS)
    machine.program("python3", PYTHON)
    machine.program("arm-none-eabi-gcc", "echo libc.a")
    done = machine.setup("test")
    assert done.returncode == 1
    assert "--no-install-recommends libnewlib-arm-none-eabi\n" in done.stderr


def test_setup_reports_a_package_that_did_not_bring_its_program(machine: Machine) -> None:
    machine.programs(name for name in PROGRAMS if name != "cmake")
    machine.program("python3", PYTHON)
    machine.program("id", "echo 0")
    machine.program("apt-get", "exit 0")
    done = machine.setup("test")
    assert done.returncode == 1
    assert "still missing after the installation: cmake" in done.stderr


def test_setup_asks_for_the_sanitizers_of_the_clang_that_is_there(machine: Machine) -> None:
    machine.programs(PROGRAMS)
    machine.program("python3", PYTHON)
    (machine.path / "runtime" / "libclang_rt.asan-x86_64.a").unlink()
    done = machine.setup("test")
    assert done.returncode == 1
    assert "--no-install-recommends libclang-rt-14-dev\n" in done.stderr


@pytest.mark.parametrize("changed", ["pyproject.toml", "requirements.lock"])
def test_setup_installs_again_when_dependencies_changed(machine: Machine, changed: str) -> None:
    machine.programs(PROGRAMS)
    machine.program("python3", PYTHON)
    assert machine.setup("test").returncode == 0
    assert machine.setup("demo").returncode == 0
    installs = [line for line in machine.logged() if " install " in line]
    assert len(installs) == 2, "what `test` installed is enough for `demo`"
    assert "--require-hashes -r requirements.lock" in installs[0]
    with (machine.checkout / changed).open("a") as file:
        file.write("# changed\n")
    assert machine.setup("test").returncode == 0
    assert len([line for line in machine.logged() if " install " in line]) == 4


def test_setup_refuses_an_unknown_mode(machine: Machine) -> None:
    done = machine.setup("everything")
    assert done.returncode == 1
    assert "one of: demo quick test" in done.stderr


FAKE_GLOWC = """
import pathlib, sys
board, out = (pathlib.Path(sys.argv[sys.argv.index(option) + 1]) for option in ("--board", "-o"))
if board.name == "refused":
    print(f"error: {pathlib.Path.cwd()} has no {board.name}", file=sys.stderr)
    sys.exit(1)
out.mkdir()
(out / "model.c").write_text(f"/* {(board / 'board.toml').read_text()} */\\nint answer = 41;\\n")
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one model and a glowc that prints one line of C."""
    path = tmp_path / "repository"
    for folder in ("scripts", "examples/one", "glowc", ".venv/bin", "boards/_cpu", "boards/host"):
        (path / folder).mkdir(parents=True)
    for name in ("codegen_diff.sh", "compile_all.py"):
        shutil.copy(ROOT / "scripts" / name, path / "scripts")
    for cpu in ("host", "big", "small"):
        (path / "boards" / "_cpu" / f"{cpu}.toml").touch()
    (path / "boards" / "host" / "board.toml").write_text('cpu = "host"')
    (path / "examples" / "one" / "one.onnx").touch()
    (path / "glowc" / "__main__.py").write_text(FAKE_GLOWC)
    (path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (path / ".gitignore").write_text(".venv/\n")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "base")):
        subprocess.run(["git", *command], cwd=path, check=True)
    return path


def codegen_diff(repository: Path, cpus: str, jobs: str = "2") -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"CPUS": cpus, "JOBS": jobs, "VENV": ".venv", "TMPDIR": str(repository.parent)}
    command = [str(repository / "scripts" / "codegen_diff.sh"), "main"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    worktrees = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True)
    assert len(worktrees.stdout.splitlines()) == 1, "the second tree is still there"
    assert not list(repository.parent.glob("tmp.*"))
    return done


def test_codegen_diff_is_silent_for_a_refactoring(repository: Path) -> None:
    with (repository / "glowc" / "__main__.py").open("a") as source:
        source.write("# a comment\n")
    done = codegen_diff(repository, "host refused")
    assert (done.returncode, done.stderr) == (0, "")
    assert "no difference to main in 1 bundles (1 refused by both)" in done.stdout


def test_codegen_diff_shows_the_changed_line(repository: Path) -> None:
    (repository / "glowc" / "__main__.py").write_text(FAKE_GLOWC.replace("41", "42"))
    done = codegen_diff(repository, "host")
    assert done.returncode == 1
    assert "-int answer = 41;\n+int answer = 42;\n" in done.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_codegen_diff_compiles_for_every_cpu(repository: Path, jobs: str) -> None:
    source = FAKE_GLOWC.replace("41", "{42 if 'small' in (board / 'board.toml').read_text() else 41}")
    (repository / "glowc" / "__main__.py").write_text(source)
    done = codegen_diff(repository, "", jobs)
    assert done.returncode == 1, done.stderr
    assert re.findall(r"^[+]+ this/(\S+)/bundle", done.stdout, re.M) == ["examples-one-one-small"]
    (repository / "glowc" / "__main__.py").write_text(FAKE_GLOWC)
    assert "no difference to main in 3 bundles" in codegen_diff(repository, "", jobs).stdout


def test_codegen_diff_shows_a_model_that_only_one_tree_refuses(repository: Path) -> None:
    (repository / "glowc" / "__main__.py").write_text(FAKE_GLOWC.replace('"refused"', '"small"'))
    done = codegen_diff(repository, "host small")
    assert done.returncode == 1
    assert "+error: TREE has no small\n" in done.stdout


def test_codegen_diff_of_a_tree_that_python_cannot_read_is_not_no_difference(repository: Path) -> None:
    (repository / "glowc" / "__main__.py").write_text("import no_such_module")
    done = codegen_diff(repository, "host")
    assert done.returncode == 2
    assert "no_such_module" in done.stderr


def test_codegen_diff_of_a_broken_tree_is_not_no_difference(repository: Path) -> None:
    done = codegen_diff(repository, "refused")
    assert done.returncode == 2
    assert "error: TREE has no refused" in done.stderr


def test_included_rules_of_models_are_not_what_make_alone_makes(tmp_path: Path) -> None:
    """glowc.mk before the first rule of a Makefile, as its head shows it, with a glowc that only writes files."""
    require_tool("make")
    shutil.copy(ROOT / "runtime_c/make/glowc.mk", tmp_path / "glowc.mk")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/net.onnx").touch()
    glowc = tmp_path / "glowc"
    glowc.write_text(
        "#!/bin/sh\n[ $1 = compile ] || exit\nfor f in net.c net_weights.c net.h net_weights.h; do : > $4/$f; done\n"
    )
    glowc.chmod(0o755)
    rule = "all: $(GLOWC_SRCS)\n\t@echo made $(notdir $^)\n"
    later = rule.replace("$(GLOWC_SRCS)", "build/models/net/net.c")
    for text in (f"include glowc.mk\n{rule}", f"{later}include glowc.mk\n"):
        (tmp_path / "Makefile").write_text("GLOWC := ./glowc\nGLOWC_MODELS := net\n" + text)
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GLOWC")}
        done = subprocess.run(["make"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "made net.c" in done.stdout
        assert {p.name for p in (tmp_path / "build/models/net").iterdir()} == {
            "net.c", "net_weights.c", "net.h", "net_weights.h", "bundle.stamp"
        }  # fmt: skip


TESTS_ONLY = {"clang", "espeak-ng", "git"}  # of the packages that setup.sh installs
IMAGE_ONLY = {"libstdc++-arm-none-eabi-newlib"}  # for `glowc compare --tflm`
NOT_IN_IMAGE = {"test", "site", "train", "torch", "keras"}  # extras for developers, and large ones: --build-arg


def test_dockerfile_installs_what_setup_does_and_copies_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    packages = re.findall(r"apt-get install -y --no-install-recommends ([^&]+)", text)
    assert set(" ".join(packages).split()) == set(ALL_PACKAGES.split()) - TESTS_ONLY | IMAGE_ONLY
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = re.findall(r"EXTRAS=([\w,]+)", text)
    known = project["project"]["optional-dependencies"].keys()
    assert set(extras[1].split(",")) == known - NOT_IN_IMAGE  # the first is that of the comment
    assert set(extras[0].split(",")) == known - NOT_IN_IMAGE | {"torch", "keras"}
    assert re.search(r"^USER \d+", text, re.MULTILINE)
    sources = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    assert sources
    assert all((ROOT / source).exists() for source in sources)
    ignored = (ROOT / ".dockerignore").read_text().split()
    parts = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]  # what pip builds from
    assert not set(ignored) & set(parts)

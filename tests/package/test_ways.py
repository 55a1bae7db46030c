"""The ways in, as a new user goes them: the wheel alone, an empty folder, and the commands that the pages print.

Each takes at most ten commands. `west` and `arduino-cli` are stand-ins, which build the application and the sketch for
this machine and run them in place of a board.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT, require_module, require_tool
from tests.e2e.stand_ins import ARDUINO, ZEPHYR_KERNEL
from tests.package.installs import Install

pytestmark = pytest.mark.qemu

MOST = 10
WEST = """\
#!/bin/sh -e
# west build -b BOARD APP -- -DEXTRA_ZEPHYR_MODULES=MODULE; west flash
if [ "$1" = flash ]; then exec ./zephyr.exe; fi
module=${6#-DEXTRA_ZEPHYR_MODULES=}
test -f "$module/zephyr/module.yml" && grep -q CONFIG_GLOWC_SINE=y "$4/prj.conf"
gcc -DGLOW_ANY_CORE "-I$module/src" "-I$STAND_INS" "$4"/src/*.c "$module"/src/*.c -o zephyr.exe
"""
ARDUINO_CLI = """\
#!/bin/sh -e
# arduino-cli compile -b FQBN --library LIBRARY SKETCH; arduino-cli upload -b FQBN -p PORT SKETCH
if [ "$1" = upload ]; then exec ./sketch.exe; fi
test -f "$5/library.properties"
for source in "$5"/src/*.c; do gcc -DGLOW_ANY_CORE -c "$source"; done
{ echo '#include "Arduino.h"'; cat "$6"/*.ino; echo 'Port Serial; int main() { setup(); loop(); }'; } > sketch.cpp
g++ "-I$5/src" "-I$STAND_INS" sketch.cpp *.o -o sketch.exe
"""


def _block(page: str, language: str = "sh", number: int = 0) -> list[str]:
    """Return the lines of a page's code block."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)[number].splitlines()


def _stand_ins(folder: Path) -> Path:
    """Write programs and headers of build systems."""
    folder.mkdir()
    for name, text in (("west", WEST), ("arduino-cli", ARDUINO_CLI)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "zephyr").mkdir()
    (folder / "zephyr/kernel.h").write_text(ZEPHYR_KERNEL)
    (folder / "Arduino.h").write_text(ARDUINO)
    return folder


def _go(wheel: Install, tmp_path: Path, commands: list[str]) -> str:
    """Run commands in an empty folder as a shell does, with the wheel's `glowc`; returns what they print."""
    assert len(commands) <= MOST
    extra, empty = _stand_ins(tmp_path / "stand-ins"), tmp_path / "empty"
    empty.mkdir()
    foreign = (
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "CC",
        "CFLAGS",
        "LDFLAGS",
        "CMAKE_GENERATOR",
    )
    env = {key: value for key, value in os.environ.items() if key not in foreign}
    env |= {"PATH": f"{wheel.bin}:{extra}:{env['PATH']}", "STAND_INS": str(extra), "NO_COLOR": "1", "COLUMNS": "60"}
    script = "\n".join(("set -e", *commands))
    done = subprocess.run(["sh", "-c", script], cwd=empty, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def _example(name: str) -> list[str]:
    """Return the commands of docs/EXPORT.md that copy an example, for `name`, and those of its README.md."""
    copied = _block("docs/EXPORT.md", number=1)
    return [line.replace("zephyr", name) for line in copied] + _block(f"examples/{name}/README.md")


def test_make(wheel: Install, tmp_path: Path) -> None:
    require_tool("make", "arm-none-eabi-gcc", "qemu-system-arm")
    assert "digits: 20 of 20 ok\n" in _go(wheel, tmp_path, _block("docs/START_MAKE.md"))


def test_cmake(wheel: Install, tmp_path: Path) -> None:
    require_tool("cmake", "make", "aarch64-linux-gnu-gcc", "qemu-aarch64")
    assert "100% tests passed" in _go(wheel, tmp_path, _block("docs/START_CMAKE.md"))


def test_zephyr(wheel: Install, tmp_path: Path) -> None:
    require_tool("gcc")
    assert "sine: 0 of 20 vectors wrong\n" in _go(wheel, tmp_path, _example("zephyr"))


def test_arduino(wheel: Install, tmp_path: Path) -> None:
    require_tool("gcc", "g++")
    assert "status 0, microseconds " in _go(wheel, tmp_path, _example("arduino"))


def test_tensorflow_lite(wheel: Install, tmp_path: Path) -> None:
    require_tool("cc", "arm-none-eabi-gcc", "qemu-system-arm")
    printed = _go(wheel, tmp_path, _example("tflite"))
    assert "20 inferences on mps2-an386" in printed
    assert "sin(1.58) is about 1.00\n" in printed


def test_glow(wheel: Install, tmp_path: Path) -> None:
    require_tool("gcc")
    assert "360 inferences on host" in _go(wheel, tmp_path, _block("docs/FROM_GLOW.md"))


def test_handwriting(wheel: Install, tmp_path: Path) -> None:
    """The example's program writes into the folder that it is started in, and nowhere else."""
    require_tool("gcc", "arm-none-eabi-gcc", "qemu-system-arm")
    assert "passed; the generated C is in build/demo/digits" in _go(wheel, tmp_path, _example("digits"))
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["digits"]


def test_pytorch(wheel: Install, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (make test-torch installs it)")
    require_module("onnxscript")
    require_tool("gcc")
    page = "docs/START_PYTORCH.md"
    program = [*_block(page, "python"), *_block(page, "python", 1)]
    commands = _block(page)
    (tmp_path / "net.py").write_text("\n".join(program))
    commands[0] = commands[0].replace("net.py", "../net.py")
    assert "written to build/net_int8\n" in _go(wheel, tmp_path, commands)

"""The programs that glowc calls: where they are, what installs them, and how they run.

A program of the PATH comes first, then the folders that installers for Windows and macOS use without adding them to it.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glowc.errors import MissingToolError


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, what it needs to be of use, and what glowc uses it for.

    `packages` are Debian's, `winget` and `brew` those of Windows and macOS. A program without the latter runs on Linux
    alone.
    """

    name: str
    packages: tuple[str, ...]
    purpose: str
    optional: bool = False  # nothing is missing without it but what `purpose` says
    winget: str = ""
    brew: str = ""

    @property
    def package(self) -> tuple[str, ...]:
        """What installs it on this system; empty where it is not to be had."""
        one = {"win32": self.winget, "darwin": self.brew}.get(sys.platform)
        return self.packages if one is None else (one,) * bool(one)

    @property
    def required(self) -> bool:
        """Say whether it is missing on this system when it is not there."""
        return not self.optional and bool(self.package)


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """A tool and where it is; `path` is None if it is missing."""

    tool: Tool
    path: Path | None

    @property
    def ok(self) -> bool:
        """Say whether the tool is installed."""
        return self.path is not None


# libc6-dev and newlib are separate packages that the compilers only recommend.
_ARM_GCC = ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi")
_A64_GCC = ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross")
_A32_GCC = ("gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross")
_QEMU = "SoftwareFreedomConservancy.QEMU"
_XCODE = "xcode-select"  # no package of Homebrew: a command of macOS, whose gcc is clang
_CYCLES = "cycles of Cortex-M7, M55, M85 and Cortex-A"

TOOLS: tuple[Tool, ...] = (
    Tool("gcc", ("gcc", "libc6-dev"), "board host, and the instruction counter",
         winget="BrechtSanders.WinLibs.POSIX.UCRT", brew=_XCODE),
    Tool("arm-none-eabi-gcc", _ARM_GCC, "Cortex-M boards",
         winget="Arm.GnuArmEmbeddedToolchain", brew="gcc-arm-embedded"),
    Tool("aarch64-linux-gnu-gcc", _A64_GCC, "boards linux-aarch64 and virt-a53"),
    Tool("arm-linux-gnueabihf-gcc", _A32_GCC, "board linux-armhf"),
    Tool("qemu-system-arm", ("qemu-system-arm",), "running Cortex-M boards", winget=_QEMU, brew="qemu"),
    Tool("qemu-system-aarch64", ("qemu-system-arm",), "running board virt-a53", winget=_QEMU, brew="qemu"),
    Tool("qemu-aarch64", ("qemu-user",), "running board linux-aarch64"),
    Tool("qemu-arm", ("qemu-user",), "running board linux-armhf"),
    Tool("llvm-mca-19", ("llvm-19",), _CYCLES, optional=True, brew="llvm@19"),
    Tool("llvm-objdump-19", ("llvm-19",), _CYCLES, optional=True, brew="llvm@19"),
)  # fmt: skip
_BY_NAME = {tool.name: tool for tool in TOOLS}

_CUBE = "com.st.stm32cube.ide.mcu.externaltools.gnu-tools-for-stm32.*/tools/bin"
_XPACKS = "xPacks/@xpack-dev-tools/*/*/.content/bin"
PLACES: dict[str, tuple[str, ...]] = {
    "win32": (
        "{PROGRAMFILES}/Arm GNU Toolchain arm-none-eabi/*/bin",
        "{PROGRAMFILES(X86)}/Arm GNU Toolchain arm-none-eabi/*/bin",
        "{PROGRAMFILES}/Arm/GNU Toolchain */bin",
        "{PROGRAMFILES(X86)}/Arm/GNU Toolchain */bin",
        "{PROGRAMFILES(X86)}/GNU Arm Embedded Toolchain/*/bin",
        f"{{APPDATA}}/{_XPACKS}",
        f"{{LOCALAPPDATA}}/{_XPACKS}",
        f"{{SYSTEMDRIVE}}/ST/STM32CubeIDE_*/STM32CubeIDE/plugins/{_CUBE}",
        "{PROGRAMFILES}/qemu",
        "{LOCALAPPDATA}/Microsoft/WinGet/Packages/BrechtSanders.WinLibs*/mingw64/bin",
        "{SYSTEMDRIVE}/msys64/ucrt64/bin",
    ),
    "darwin": (
        "/Applications/ArmGNUToolchain/*/arm-none-eabi/bin",
        f"{{HOME}}/Library/{_XPACKS}",
        f"/Applications/STM32CubeIDE.app/Contents/Eclipse/plugins/{_CUBE}",
        *(f"{brew}/{folder}" for brew in ("/opt/homebrew", "/usr/local") for folder in ("bin", "opt/llvm@19/bin")),
    ),
}
"""Folders where installers put programs, by system: variables of the environment in braces, newest version first."""


def find_tool(name: str) -> Path | None:
    """Return where program `name` is: on the PATH, or where its installer puts it; None if it is nowhere."""
    found = shutil.which(name)
    return Path(found) if found else next(_installed(name), None)


def _installed(name: str) -> Iterator[Path]:
    """Yield the places of a program outside of the PATH; folders of one version have LLVM's without a number."""
    end = ".exe" if sys.platform == "win32" else ""
    for pattern in PLACES.get(sys.platform, ()):
        plain = name.removesuffix("-19") if "llvm@19" in pattern else name
        try:
            full = pattern.format_map({key.upper(): glob.escape(value) for key, value in os.environ.items()})
        except KeyError:
            continue
        yield from filter(Path.is_file, (Path(f, plain + end) for f in sorted(glob.glob(full), key=_by_version)[::-1]))


def _by_version(folder: str) -> list[tuple[int, str]]:
    """Return what sorts folders as people do: 9.3 before 13.2."""
    return [(int(part or 0), word) for word, part in re.findall(r"(\D*)(\d*)", folder)]


def require_tool(name: str) -> Path:
    """Return where program `name` is. Raises ToolError with the command that installs it."""
    path = find_tool(name)
    if path is None:
        here = name not in _BY_NAME or _BY_NAME[name].package
        elsewhere = "it runs on Linux: there, in WSL or in a container (docs/PLATFORMS.md)"
        raise MissingToolError(f"{name} is not installed or not on the PATH",
                        hint=install_command([name]) if here else elsewhere)  # fmt: skip
    return path


def tool_status() -> list[ToolStatus]:
    """Return every tool with its place, in the order of the table."""
    return [ToolStatus(tool, find_tool(tool.name)) for tool in TOOLS]


def install_command(names: Iterable[str]) -> str | None:
    """Return one command line that installs the tools `names`, or None if no package is known for them."""
    packages = sorted({package for name in names if name in _BY_NAME for package in _BY_NAME[name].package})
    commands = ["xcode-select --install"] if _XCODE in packages else []
    if packages := [package for package in packages if package != _XCODE]:
        by = {"win32": "winget install", "darwin": "brew install"}.get(sys.platform, "sudo apt-get install")
        commands.append(f"{by} {' '.join(packages)}")
    return " && ".join(commands) or None


def run_tool(argv: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it printed: as UTF-8, whatever the system's code page is."""
    return subprocess.run(argv, input=given, capture_output=True, encoding="utf-8", errors="replace", check=False)


def shell_text(argv: Sequence[str]) -> str:
    """Return a command as the shell of this system takes it."""
    return subprocess.list2cmdline(argv) if sys.platform == "win32" else shlex.join(argv)

"""The programs that glowc calls, and the Debian packages that install them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from glowc.errors import ToolError


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, the Debian packages it needs to be of use, and what glowc uses it for."""

    name: str
    packages: tuple[str, ...]
    purpose: str
    optional: bool = False  # nothing is missing without it but what `purpose` says


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

TOOLS: tuple[Tool, ...] = (
    Tool("gcc", ("gcc", "libc6-dev"), "board host, and the instruction counter"),
    Tool("arm-none-eabi-gcc", _ARM_GCC, "Cortex-M boards"),
    Tool("aarch64-linux-gnu-gcc", _A64_GCC, "boards linux-aarch64 and virt-a53"),
    Tool("arm-linux-gnueabihf-gcc", _A32_GCC, "board linux-armhf"),
    Tool("qemu-system-arm", ("qemu-system-arm",), "running Cortex-M boards"),
    Tool("qemu-system-aarch64", ("qemu-system-arm",), "running board virt-a53"),
    Tool("qemu-aarch64", ("qemu-user",), "running board linux-aarch64"),
    Tool("qemu-arm", ("qemu-user",), "running board linux-armhf"),
    Tool("llvm-mca-19", ("llvm-19",), "cycles of Cortex-M7, M55, M85 and Cortex-A", optional=True),
    Tool("llvm-objdump-19", ("llvm-19",), "cycles of Cortex-M7, M55, M85 and Cortex-A", optional=True),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


def find_tool(name: str) -> Path | None:
    """Return where program `name` is on the PATH, or None."""
    found = shutil.which(name)
    return Path(found) if found else None


def require_tool(name: str) -> Path:
    """Return where program `name` is. Raises ToolError with the command that installs it."""
    path = find_tool(name)
    if path is None:
        raise ToolError(f"{name} is not installed or not on the PATH", hint=install_command([name]))
    return path


def tool_status() -> list[ToolStatus]:
    """Return every tool with its place, in the order of the table."""
    return [ToolStatus(tool, find_tool(tool.name)) for tool in TOOLS]


def install_command(names: Iterable[str]) -> str | None:
    """Return one apt command that installs the tools `names`, or None if no package is known for them."""
    packages = sorted({package for name in names if name in _BY_NAME for package in _BY_NAME[name].packages})
    return f"sudo apt-get install {' '.join(packages)}" if packages else None

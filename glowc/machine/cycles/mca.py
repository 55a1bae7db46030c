"""Cycles of blocks of instructions on cores whose pipelines llvm-mca models: Cortex-M7, M55, A53, A55, A72, A76, A720.

A block counts as in a steady state: the same block before and after it. llvm-mca has no branch predictor and no
memory: taken branches, calls and misses are counted apart. An instruction that a core's model lacks takes nothing: IT,
VMRS, the ends of loops in hardware. What a taken branch takes on M55, M85, A72 and A76 is no figure of Arm's: it makes
whole models agree with another estimator; an A720 is taken to be as an A76 there. Source:
https://llvm.org/docs/CommandGuide/llvm-mca.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glowc.board import require_tool, run_tool
from glowc.errors import ToolError

MCA, OBJDUMP = "llvm-mca-19", "llvm-objdump-19"
_ITERATIONS = 100
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
_COMMENT = re.compile(r"\s*(?:@|//|<).*$")
_PLACE = re.compile(r"\b0x[0-9a-f]+\s+<.*$")
_FORWARD = ("cbz", "cbnz", "wls")
# llvm-mca takes a call for 100 cycles and reads no data; those are left out.
_SKIPPED = ("udf", ".", "<unknown>", "bl\t", "blx\t", "blr\t")
_LOAD_MANY = re.compile(r"^(?:v?ldm\w*|v?pop)(?:\.w)?\t")


@dataclass(frozen=True, slots=True)
class MachineModel:
    """How llvm-mca is asked for a core, and what is added to what it says.

    `words_per_cycle` corrects loads of several registers, which LLVM's model takes for one load; 0: they are right.
    `taken` and `call` are cycles of a branch that is taken and of a call.
    """

    triple: str
    mcpu: str
    words_per_cycle: int = 0
    taken: float = 0
    call: float = 0


_M8, _A64 = "thumbv8.1m.main-none-eabihf", "aarch64-linux-gnu"
MODELS = {
    "cortex-m7": MachineModel("thumbv7em-none-eabihf", "cortex-m7", words_per_cycle=2, call=2),
    "cortex-m55": MachineModel(_M8, "cortex-m55", taken=1.5, call=2),
    "cortex-m85": MachineModel(_M8, "cortex-m85", taken=1, call=2),
    "cortex-a53": MachineModel(_A64, "cortex-a53", call=2),
    "cortex-a55": MachineModel(_A64, "cortex-a55", call=2),
    "cortex-a72": MachineModel(_A64, "cortex-a72", taken=1, call=2),
    "cortex-a76": MachineModel(_A64, "neoverse-n1", taken=1, call=2),
    "cortex-a720": MachineModel(_A64, "cortex-a720", taken=1, call=2),
}


def assembly(elf: Path, model: MachineModel) -> dict[int, str]:
    """Return the instructions of an ELF by address, as llvm-mca reads them. Raises ToolError when LLVM cannot."""
    argv = [str(require_tool(OBJDUMP)), "-d", "--no-show-raw-insn", f"--triple={model.triple}", f"--mcpu={model.mcpu}"]
    lines = _output([*argv, str(elf)]).splitlines()
    found = (_LINE.match(line) for line in lines)
    return {int(row[1], 16): _plain(row[2]) for row in found if row}


def _plain(text: str) -> str:
    """Return an instruction without its comment, and with a distance in place of a branch's target."""
    name = text.split(None, 1)[0]
    distance = "#4" if name.startswith(_FORWARD) else "#-4"
    return _COMMENT.sub("", _PLACE.sub(distance, text)).strip()


def block_cycles(blocks: Mapping[int, Sequence[str]], model: MachineModel) -> dict[int, float]:
    """Return the cycles of each block of instructions, by its key. Raises ToolError when LLVM cannot read one."""
    if not blocks:
        return {}
    text = "\n".join(_region(key, insns) for key, insns in blocks.items())
    argv = [
        str(require_tool(MCA)), f"-mtriple={model.triple}", f"-mcpu={model.mcpu}", f"-iterations={_ITERATIONS}",
        "-skip-unsupported-instructions=any", "--json",
    ]  # fmt: skip
    regions = json.loads(_output(argv, text))["CodeRegions"]
    steady = {int(r["Name"]): r["SummaryView"]["TotalCycles"] / _ITERATIONS for r in regions}
    return {key: steady.get(key, 0.0) + _corrections(insns, model) for key, insns in blocks.items()}


def _region(key: int, insns: Iterable[str]) -> str:
    body = [insn for insn in insns if not insn.startswith(_SKIPPED)]
    return "\n".join((f"# LLVM-MCA-BEGIN {key}", *body, "# LLVM-MCA-END"))


def _corrections(insns: Sequence[str], model: MachineModel) -> float:
    calls = model.call * sum(insn.startswith(("bl\t", "blx\t")) for insn in insns)
    return calls + sum(_many(insn, model) for insn in insns)


def _many(insn: str, model: MachineModel) -> float:
    """Return what a load of several registers takes beyond the one cycle that LLVM's model counts."""
    if not model.words_per_cycle or not _LOAD_MANY.match(insn):
        return 0.0
    words = insn.count(",", insn.find("{")) + 1
    return max(0.0, (words + 1) // model.words_per_cycle - 1)


def _output(argv: Sequence[str], text: str = "") -> str:
    done = run_tool(argv, text)
    if done.returncode != 0:
        raise ToolError(f"{Path(argv[0]).name} failed", details=done.stderr.splitlines()[:5])
    return done.stdout
